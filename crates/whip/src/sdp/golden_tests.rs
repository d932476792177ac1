//! Offers as real clients write them, and whether our answers fit. The fixtures are reconstructed from measurements and
//! from the clients' sources (`reference/whip.md` §2): form and numbers are theirs; credentials, addresses and ids are
//! made up.

use super::*;

pub(super) const GOLDENS: [(&str, &str); 10] = [
    ("aiortc_1_4", include_str!("fixtures/aiortc_1_4.sdp")),
    ("chromium_156", include_str!("fixtures/chromium_156.sdp")),
    ("ffmpeg_8_main", include_str!("fixtures/ffmpeg_8_main.sdp")),
    ("ffmpeg_8_video_only", include_str!("fixtures/ffmpeg_8_video_only.sdp")),
    ("firefox_153_h264", include_str!("fixtures/firefox_153_h264.sdp")),
    ("firefox_153_no_h264", include_str!("fixtures/firefox_153_no_h264.sdp")),
    ("gstreamer_1_22", include_str!("fixtures/gstreamer_1_22.sdp")),
    ("obs_30_0", include_str!("fixtures/obs_30_0.sdp")),
    ("obs_32_simulcast", include_str!("fixtures/obs_32_simulcast.sdp")),
    ("safari", include_str!("fixtures/safari.sdp")),
];

fn golden(name: &str) -> &'static str {
    GOLDENS.iter().find(|(of, _)| *of == name).expect("a fixture").1
}

pub(super) fn settings() -> AnswerSettings<'static> {
    AnswerSettings {
        ufrag: "ourufrag",
        pwd: "ours-ours-ours-ours-ours",
        fingerprint: &[0xab; 32],
        candidates: &[],
        session_id: u64::MAX,
        start_bitrate_kbps: 2000,
        max_bitrate_kbps: 6000,
        stereo: false,
        audio_bitrate: None,
    }
}

fn audio_of(name: &str) -> AudioSection {
    read_offer(golden(name)).expect(name).audio.expect(name)
}

fn video_of(name: &str) -> VideoSection {
    read_offer(golden(name)).expect(name).video.expect(name)
}

/// Splits SDP independently of our parser: the part before the first `m=`, then each section.
fn parts(text: &str) -> Vec<Vec<&str>> {
    let mut parts = vec![Vec::new()];
    for line in text.lines() {
        if line.starts_with("m=") {
            parts.push(Vec::new());
        }
        parts.last_mut().expect("never empty").push(line);
    }
    parts
}

fn values<'a>(lines: &[&'a str], prefix: &str) -> Vec<&'a str> {
    lines.iter().filter_map(|line| line.strip_prefix(prefix)).collect()
}

/// Checks an answer against its offer by the rules of RFC 9725, 8829 and 9143, and by what clients are known to need.
pub(super) fn check_answer(name: &str, offer: &str, answer: &str) {
    assert!(answer.starts_with("v=0\r\no=- ") && answer.ends_with("\r\n"), "{name}");
    assert!(!answer.contains("\r\n\r\n") && answer.len() <= 8192, "{name}");
    assert_eq!(answer.matches(['\r', '\n']).count(), 2 * answer.matches("\r\n").count(), "{name}");
    let (offered, answered) = (parts(offer), parts(answer));
    assert_eq!(offered.len(), answered.len(), "{name}: every section is answered");
    assert!(answered[0].contains(&"a=ice-lite"), "{name}");
    let mids: Vec<_> = answered[1..].iter().flat_map(|lines| values(lines, "a=mid:")).collect();
    if let [group] = values(&answered[0], "a=group:BUNDLE ")[..] {
        assert_eq!(group, mids.join(" "), "{name}");
    }
    let is_passive = offer.contains("a=setup:passive");
    for (of, lines) in offered.iter().zip(&answered).skip(1) {
        check_section(name, of, lines);
        let setup = if is_passive { "active" } else { "passive" };
        assert_eq!(values(lines, "a=setup:"), [setup], "{name}");
    }
    for never in ["ulpfec", " red/", "video-orientation"] {
        assert!(!answer.contains(never), "{name}: {never}");
    }
}

#[test]
fn every_simulcast_layer_is_accepted() {
    let offer = read_offer(golden("obs_32_simulcast")).expect("accepted");
    let answer = write_answer(&offer, &settings());
    assert!(
        answer
            .contains("a=rid:0 recv\r\na=rid:1 recv\r\na=rid:2 recv\r\na=simulcast:recv 0;1;2\r\n")
    );
    assert!(answer.contains(" urn:ietf:params:rtp-hdrext:sdes:rtp-stream-id\r\n"));
}

fn check_section(name: &str, offered: &[&str], answered: &[&str]) {
    let media: Vec<_> = answered[0].split(' ').collect();
    let of: Vec<_> = offered[0].split(' ').collect();
    let [kind, "9", protocol, ref formats @ ..] = media[..] else {
        panic!("{name}: {}", answered[0])
    };
    assert_eq!((kind, protocol), (of[0], of[2]), "{name}");
    assert!(matches!(formats.len(), 1 | 2), "{name}: a codec and its retransmissions");
    for format in formats {
        assert!(of[3..].contains(format), "{name}: payload type {format} was offered");
    }
    for once in ["a=ice-ufrag:", "a=ice-pwd:", "a=fingerprint:sha-256 ", "c="] {
        assert_eq!(values(answered, once).len(), 1, "{name}: {once}");
    }
    for each in ["a=fmtp:", "a=rtpmap:"] {
        assert_eq!(values(answered, each).len(), formats.len(), "{name}: {each}");
    }
    for line in ["a=recvonly", "a=rtcp-mux", "a=rtcp-mux-only", "a=end-of-candidates"] {
        assert_eq!(answered.iter().filter(|of| **of == line).count(), 1, "{name}: {line}");
    }
    assert_eq!(values(answered, "a=mid:"), values(offered, "a=mid:"), "{name}");
    assert_eq!(answered.contains(&"a=rtcp-rsize"), offered.contains(&"a=rtcp-rsize"), "{name}");
    for line in answered.iter().filter(|line| line.starts_with("a=rtcp-fb:")) {
        assert!(offered.contains(line), "{name}: {line} was offered");
    }
    for line in answered.iter().filter(|line| line.starts_with("a=extmap:")) {
        assert!(offered.contains(line), "{name}: {line} was offered");
    }
    let offered_maps = values(offered, "a=rtpmap:");
    for map in values(answered, "a=rtpmap:") {
        let is_same = |of: &&str| of.eq_ignore_ascii_case(map);
        assert!(offered_maps.iter().any(is_same), "{name}: {map}");
    }
    // RFC 8866 5: first c, then b, then a.
    let kinds: String = answered[1..].iter().filter_map(|line| line.chars().next()).collect();
    let first_attribute = kinds.find('a').expect("attributes");
    assert!(kinds.starts_with('c') && !kinds[first_attribute..].contains(['b', 'c']), "{name}");
}

#[test]
fn every_client_with_h264_gets_a_valid_answer_with_any_line_ending() {
    for (name, text) in GOLDENS {
        if name == "firefox_153_no_h264" {
            continue;
        }
        for written in [text.to_owned(), text.replace('\n', "\r\n"), text.replace('\n', " \r\n")] {
            let offer = read_offer(&written).expect(name);
            check_answer(name, text, &write_answer(&offer, &settings()));
        }
    }
}

#[test]
fn the_best_payload_types_of_each_client_are_chosen() {
    let table = [
        ("aiortc_1_4", Some(96), 99, 1, Some([0x42, 0x00, 0x1f])),
        ("chromium_156", Some(111), 102, 1, Some([0x42, 0x00, 0x1f])),
        ("ffmpeg_8_main", Some(111), 106, 1, Some([0x4d, 0x00, 0x1f])),
        ("ffmpeg_8_video_only", None, 106, 1, None),
        ("firefox_153_h264", Some(109), 126, 1, Some([0x42, 0xe0, 0x1f])),
        ("gstreamer_1_22", Some(96), 97, 1, Some([0x42, 0xc0, 0x1e])),
        ("obs_30_0", Some(111), 96, 1, Some([0x42, 0xe0, 0x1f])),
        ("obs_32_simulcast", Some(111), 96, 1, Some([0x42, 0xe0, 0x1f])),
        ("safari", Some(111), 96, 1, Some([0x64, 0x0c, 0x1f])),
    ];
    for (name, opus, h264, mode, profile) in table {
        let offer = read_offer(golden(name)).expect(name);
        assert_eq!(offer.audio.map(|audio| audio.payload_type), opus, "{name}");
        let video = offer.video.expect(name);
        let found = (video.payload_type, video.packetization_mode, video.profile_level_id);
        assert_eq!(found, (h264, mode, profile), "{name}");
    }
}

#[test]
fn firefox_without_openh264_is_answered_that_h264_is_missing() {
    let error = read_offer(golden("firefox_153_no_h264")).expect_err("no H.264");
    assert_eq!((error, error.status()), (OfferError::VideoCodec, 422));
}

#[test]
fn only_ffmpeg_is_a_dtls_server() {
    for (name, text) in GOLDENS {
        let is_client = read_offer(text).is_ok_and(|offer| is_dtls_client(&offer));
        assert_eq!(is_client, name.starts_with("ffmpeg"), "{name}");
    }
}

#[test]
fn a_single_section_is_bundled_only_under_its_own_mid() {
    let offer = read_offer(golden("ffmpeg_8_video_only")).expect("accepted");
    let answer = write_answer(&offer, &settings());
    assert!(answer.contains("a=group:BUNDLE 1\r\n"), "{answer}");
}

#[test]
fn credentials_are_those_of_the_tagged_section() {
    let text = golden("aiortc_1_4");
    let ufrag = |text: &str| read_offer(text).expect("accepted").ufrag;
    assert_eq!(ufrag(text), "Qd7K");
    // RFC 9143 7.2: the first in the group, not the first in the text.
    assert_eq!(ufrag(&text.replace("BUNDLE 0 1", "BUNDLE 1 0")), "xB3f");
    let without = text.replace("a=ice-ufrag:xB3f\n", "").replace("a=setup:actpass\nm=", "m=");
    assert_eq!(ufrag(&without), "Qd7K");
}

#[test]
fn only_literal_udp_candidates_are_kept() {
    let table: [(&str, &[&str]); 6] = [
        ("chromium_156", &[]),
        ("ffmpeg_8_main", &[]),
        ("obs_32_simulcast", &[]),
        ("firefox_153_h264", &["198.51.100.7:58093"]),
        ("obs_30_0", &["192.168.1.23:51820", "[2001:db8:4::17]:51820", "203.0.113.77:51820"]),
        (
            "aiortc_1_4",
            &["192.0.2.15:41712", "203.0.113.40:41712", "192.0.2.15:53604", "203.0.113.40:53604"],
        ),
    ];
    for (name, expected) in table {
        let candidates = read_offer(golden(name)).expect(name).candidates;
        let written: Vec<_> = candidates.iter().map(ToString::to_string).collect();
        assert_eq!(written, expected, "{name}");
    }
}

#[test]
fn feedback_retransmissions_and_layers_are_parsed_as_offered() {
    let chromium = video_of("chromium_156");
    assert_eq!(chromium.rtx, Some(Rtx { payload_type: 103, ssrc: Some(1_190_538_244) }));
    assert_eq!((chromium.ssrc, chromium.transport_cc_id), (Some(3_812_664_207), Some(3)));
    assert!(chromium.has_nack && chromium.has_pli && chromium.has_fir && chromium.has_remb);
    let ffmpeg = video_of("ffmpeg_8_main");
    assert!(!ffmpeg.has_nack && !ffmpeg.has_pli && !ffmpeg.has_fir && !ffmpeg.has_transport_cc);
    let firefox = video_of("firefox_153_h264");
    assert_eq!(firefox.rtx, Some(Rtx { payload_type: 127, ssrc: Some(2_901_745_563) }));
    let obs = video_of("obs_32_simulcast");
    assert_eq!(
        (obs.rids, obs.ssrc, obs.rtx),
        (["0", "1", "2"].map(String::from).into(), None, None)
    );
    let stereo = ["chromium_156", "firefox_153_h264", "obs_30_0", "ffmpeg_8_main"]
        .map(|name| audio_of(name).stereo);
    assert_eq!(stereo, [false, true, true, false]);
}

#[test]
fn transport_feedback_of_gstreamer_without_the_extension_is_not_answered() {
    let video = video_of("gstreamer_1_22");
    assert_eq!((video.has_transport_cc, video.transport_cc_id), (true, None));
    assert_eq!(video.parameter_sets.iter().map(|set| set[0] & 0x1f).collect::<Vec<_>>(), [7, 8]);
    let offer = read_offer(golden("gstreamer_1_22")).expect("accepted");
    assert!(!write_answer(&offer, &settings()).contains("transport-cc"));
}

#[test]
fn formats_of_safari_without_a_mode_are_mode_0_and_come_last() {
    let text = golden("safari").replace("packetization-mode=1;", "");
    let video = read_offer(&text).expect("accepted").video.expect("video");
    assert_eq!((video.payload_type, video.packetization_mode), (96, 0));
}
