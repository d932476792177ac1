use super::*;
use crate::fuzz::OFFER;
use crate::sdp::read_offer;

fn track(offer: &str) -> VideoTrack {
    let section = read_offer(offer).expect("valid").video.expect("video");
    VideoTrack::new(&section, Instant::now())
}

/// The problems reported for a connected session with only this video.
fn said_of(video: VideoDiagnostics, track: &VideoTrack) -> Vec<String> {
    let of = Diagnostics { is_connected: true, video: Some(video), ..Diagnostics::default() };
    problems(&of, Duration::from_secs(9), Some(track))
}

fn well() -> VideoDiagnostics {
    let track = TrackDiagnostics { packets: 100, ..TrackDiagnostics::default() };
    let (gop_ms, keyframe_age_ms) = (Some(2_000), Some(100));
    VideoDiagnostics { track, gop_ms, keyframe_age_ms, ..VideoDiagnostics::default() }
}

#[test]
fn profiles_have_their_names_from_the_standard() {
    for (profile, constraints, name) in [
        (66, 0xc0, "Constrained Baseline"),
        (66, 0x40, "Constrained Baseline"),
        (66, 0x80, "Baseline"),
        (66, 0, "Baseline"),
        (77, 0x40, "Main"),
        (88, 0, "Extended"),
        (100, 0x0c, "High"),
        (110, 0, "another"),
    ] {
        assert_eq!(profile_name([profile, constraints, 31]), name);
    }
}

#[test]
fn healthy_video_has_no_problems() {
    assert_eq!(said_of(well(), &track(OFFER)), [""; 0]);
}

#[test]
fn keyframes_up_to_four_seconds_apart_are_fine_and_rarer_ones_are_a_problem() {
    let of = |gop_ms, keyframe_age_ms| {
        said_of(VideoDiagnostics { gop_ms, keyframe_age_ms, ..well() }, &track(OFFER))
    };
    assert_eq!(of(Some(4_000), Some(4_000)), [""; 0]);
    assert!(matches!(&of(Some(4_001), Some(1))[..], [one] if one.starts_with("4.0 s between")));
    assert!(matches!(&of(None, Some(4_001))[..], [one] if one.starts_with("no keyframe for 4 s")));
}

#[test]
fn a_missing_first_keyframe_is_reported_if_packets_arrive_and_requests_are_impossible() {
    let of = |packets, offer: &str| {
        let track_of = TrackDiagnostics { packets, ..TrackDiagnostics::default() };
        let video = VideoDiagnostics { track: track_of, ..VideoDiagnostics::default() };
        said_of(video, &track(offer))
    };
    let without_pli = OFFER.replace("a=rtcp-fb:96 nack pli\r\n", "");
    assert!(matches!(&of(1, &without_pli)[..], [one] if one.starts_with("no keyframe yet")));
    assert_eq!(of(1, OFFER), [""; 0], "it may still arrive");
    assert_eq!(of(0, &without_pli), ["no video arrives: is the camera on?"]);
}

#[test]
fn one_percent_of_loss_and_a_skew_of_60_ms_are_tolerated() {
    let of = |loss_percent| {
        let track_of =
            TrackDiagnostics { packets: 100, loss_percent, ..TrackDiagnostics::default() };
        said_of(VideoDiagnostics { track: track_of, ..well() }, &track(OFFER))
    };
    assert_eq!(of(1.0), [""; 0]);
    assert!(matches!(&of(1.1)[..], [one] if one.starts_with("1.1 % of the video packets")));
    let apart = |skew_ms| {
        let of =
            Diagnostics { is_connected: true, skew_ms: Some(skew_ms), ..Diagnostics::default() };
        problems(&of, Duration::ZERO, None).len()
    };
    assert_eq!([60.0, -60.0, 60.5, -60.5].map(apart), [0, 0, 1, 1]);
}
