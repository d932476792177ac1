use super::*;
use crate::transport::dtls::{MasterKey, SrtpKeys, SrtpProfile};
use crate::transport::identity::Identity;

/// The media of a session, and the client's SRTP context.
fn connected() -> (Media, Srtp, Instant) {
    let now = Instant::now();
    let offer = crate::sdp::read_offer(crate::fuzz::OFFER).expect("acceptable");
    let master = |fill| MasterKey { key: vec![fill; 16], salt: vec![fill; 12] };
    let profile = SrtpProfile::Gcm;
    let provider = Identity::generate().expect("an identity").provider();
    let ours = SrtpKeys { profile, ours: master(1), theirs: master(2) };
    let theirs = SrtpKeys { profile, ours: master(2), theirs: master(1) };
    let mut media = Media::new(&offer, 1, now);
    media.start(Srtp::new(&ours, &provider).expect("valid keys"));
    (media, Srtp::new(&theirs, &provider).expect("valid keys"), now)
}

#[test]
fn packets_with_only_padding_are_not_frames() {
    let (mut media, mut client, now) = connected();
    for (payload_type, ssrc) in [(111, 5), (96, 6)] {
        for sequence in 0..10_u8 {
            // Padding bit, marker, and 16 bytes of padding with their count in the last one.
            let head = [0xb0, 0x80 | payload_type, 0, sequence, 0, 0, sequence, 0, 0, 0, 0, ssrc];
            let rid = [0xbe, 0xde, 0, 1, 0xa0, b'h', 0, 0];
            let packet = [&head[..], &rid, &[0; 15], &[16]].concat();
            let mut datagram = client.protect_rtp(&packet).expect("protects").to_vec();
            assert!(media.handle_datagram(now, &mut datagram).is_some());
            media.handle_timeout(now + std::time::Duration::from_secs(1));
        }
    }
    assert!(media.frames.is_empty() && !media.has_frames);
    assert_eq!(media.counters().packets, 20);
    assert_eq!(media.counters().lost, 0, "their numbers count all the same");
}

#[test]
fn packets_beyond_the_rate_of_a_client_are_dropped_unopened() {
    let (mut media, mut client, now) = connected();
    let packet = [&[0x80, 111, 0, 0, 0, 0, 0, 0, 0, 0, 0, 5][..], &[0xfc, 1]].concat();
    let sealed = client.protect_rtp(&packet).expect("protects").to_vec();
    for _ in 0..PACKETS_PER_SECOND_LIMIT {
        media.handle_datagram(now, &mut sealed.clone());
    }
    let mut next = packet;
    next[3] = 1;
    let sealed = client.protect_rtp(&next).expect("protects").to_vec();
    assert!(media.handle_datagram(now, &mut sealed.clone()).is_none());
    let later = now + std::time::Duration::from_secs(1);
    assert!(media.handle_datagram(later, &mut sealed.clone()).is_some());
}

#[test]
fn a_sender_report_applies_to_the_track_with_its_ssrc() {
    let (mut media, mut client, now) = connected();
    for (payload_type, ssrc) in [(111, 5), (96, 6)] {
        let head = [0xb0, 0x80 | payload_type, 0, 0, 0, 0, 0, 0, 0, 0, 0, ssrc];
        let rid = [0xbe, 0xde, 0, 1, 0xa0, b'h', 0, 0];
        let packet = [&head[..], &rid, &[0; 15], &[16]].concat();
        let mut datagram = client.protect_rtp(&packet).expect("protects").to_vec();
        assert!(media.handle_datagram(now, &mut datagram).is_some());
    }
    media.clock.stamp_audio(now, 5, 0);
    media.clock.stamp_video(now, 6, 0);
    for ssrc in [5, 6] {
        // Second 1 of NTP time is timestamp 0 on both tracks.
        let times = [[0, 0, 0, 1], [0; 4], [0; 4], [0; 4], [0; 4]].concat();
        let report = [&[0x80, 200, 0, 6, 0, 0, 0, ssrc][..], &times].concat();
        let mut datagram = client.protect_rtcp(&report).expect("protects").to_vec();
        assert!(media.handle_datagram(now, &mut datagram).is_some());
    }
    assert_eq!(media.clock.skew_us(), Some(0), "both tracks have reported");
}

#[test]
fn transport_feedback_needs_the_attribute_and_the_extension_in_either_section() {
    const ASKS: &str = "a=rtcp-fb:96 transport-cc\r\n";
    const NUMBER: &str =
        "a=extmap:3 http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01\r\n";
    let offer = crate::fuzz::OFFER;
    let of_audio = format!("{}{NUMBER}", ASKS.replace("96", "111"));
    let of_audio =
        offer.replace(ASKS, "").replace("a=mid:0\r\n", &format!("a=mid:0\r\n{of_audio}"));
    let feeds_back = |offer: &str| {
        let now = Instant::now();
        let offer = crate::sdp::read_offer(offer).expect("acceptable");
        let mut reporter = Media::new(&offer, 1, now).reporter;
        let before = reporter.poll_timeout();
        reporter.note_packet(now, 7, 1);
        reporter.poll_timeout() < before
    };
    assert!(feeds_back(offer) && feeds_back(&of_audio));
    assert!(!feeds_back(&offer.replace(ASKS, "")) && !feeds_back(&offer.replace(NUMBER, "")));
}

#[test]
fn nothing_is_reported_before_it_is_due() {
    let (mut media, mut client, now) = connected();
    let at = |millis| now + std::time::Duration::from_millis(millis);
    let mut send = |media: &mut Media, head: [u8; 12]| {
        let packet = [&head[..], &[0xfc, 1, 2]].concat();
        let mut datagram = client.protect_rtp(&packet).expect("protects").to_vec();
        assert!(media.handle_datagram(now, &mut datagram).is_some());
    };
    send(&mut media, [0x80, 111, 0, 0, 0, 0, 0, 0, 0, 0, 0, 5]);
    assert!(media.poll_report(at(999)).is_none());
    assert!(media.poll_report(at(1_000)).is_some());
    assert!(media.poll_report(at(1_000)).is_none());
    assert!(media.poll_report(at(1_999)).is_none());
    assert!(media.poll_report(at(2_000)).is_some());
}
