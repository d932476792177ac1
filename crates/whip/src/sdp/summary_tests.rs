//! What is shown of an offer and of our answer.

use super::golden_tests::{GOLDENS, settings};
use super::*;

const MIXED: &str = "v=0
m=audio 9 UDP/TLS/RTP/SAVPF 111
a=rtpmap:111 opus/48000/2
a=sendonly
a=candidate:1 1 udp 2122260223 192.0.2.7 54321 typ host generation 0
a=candidate:2 1 UDP 1686052607 198.51.100.9 54321 typ srflx raddr 192.0.2.7 rport 54321
a=candidate:3 1 tcp 1518280447 192.0.2.7 9 typ host tcptype active
a=candidate:4 1 udp 1518280447 192.0.2.7 9 typ s3cret
m=video 0 UDP/TLS/RTP/SAVPF 96 97
a=rtpmap:96 H264/90000
a=fmtp:96 level-asymmetry-allowed=1;packetization-mode=1;profile-level-id=42e01f
a=rtpmap:97 s3cret of somebody/90000
a=inactive
";

fn media(
    kind: &'static str,
    is_off: bool,
    direction: &'static str,
    codecs: &[&str],
) -> MediaSummary {
    let codecs = codecs.iter().map(|codec| (*codec).to_owned()).collect();
    MediaSummary { kind, is_off, direction, codecs }
}

#[test]
fn media_directions_codecs_with_profiles_and_kinds_of_candidates_are_shown_of_a_refused_offer() {
    let (summary, offer) = examine_offer(MIXED);
    assert!(offer.is_err());
    assert_eq!(
        summary.media,
        [
            media("audio", false, "sendonly", &["opus/48000/2"]),
            media("video", true, "inactive", &["H264/90000 42e01f"]),
        ]
    );
    let kinds = ["1 host udp", "1 srflx udp", "1 host tcp", "1 other udp"];
    assert_eq!(summary.candidates, kinds);
    assert_eq!(summary.agreed, []);
}

#[test]
fn what_precedes_a_malformed_line_is_shown() {
    let (summary, offer) = examine_offer(&MIXED.replace("a=inactive", "inactive"));
    assert_eq!(offer.err(), Some(OfferError::Malformed));
    assert_eq!(summary.media.len(), 2);
    for text in ["", "nothing", &"v=0\n".repeat(OFFER_LIMIT_BYTES)] {
        assert_eq!(examine_offer(text).0, OfferSummary::default());
    }
}

#[test]
fn what_is_agreed_is_what_our_answer_says() {
    for (name, text) in GOLDENS {
        let (summary, offer) = examine_offer(text);
        let answered = offer.map(|offer| write_answer(&offer, &settings()));
        let said = answered.map(|answer| examine_offer(&answer).0.media).unwrap_or_default();
        assert_eq!(summary.agreed, said, "{name}");
    }
}

#[test]
fn a_section_without_a_direction_has_that_of_the_session() {
    let (summary, _) = examine_offer("v=0\na=sendonly\nm=audio 9 x\nm=video 9 x\na=recvonly\n");
    let directions: Vec<_> = summary.media.iter().map(|section| section.direction).collect();
    assert_eq!(directions, ["sendonly", "recvonly"]);
}

#[test]
fn a_summary_is_bounded() {
    let maps = (0..=127).map(|format| format!("a=rtpmap:{format} x{format}/1\n"));
    let text = format!("v=0\nm=audio 9 x\n{}", maps.collect::<String>());
    assert_eq!(examine_offer(&text).0.media[0].codecs.len(), 64);
    let text = format!("v=0\nm=audio 9 x\n{}", "a=rtpmap:1 x/1\n".repeat(1_900));
    assert_eq!(examine_offer(&text).0.media[0].codecs, ["x/1"]);
    let text = format!("v=0\n{}", "m=video 9 x\n".repeat(100));
    assert_eq!(examine_offer(&text).0.media.len(), 16);
}
