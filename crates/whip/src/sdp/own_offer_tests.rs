use super::*;

const FINGERPRINT: &str = "00:01:02:03:04:05:06:07:08:09:0A:0B:0C:0D:0E:0F:10:11:12:13:14:15:16:17:18:19:1A:1B:1C:1D:1E:1F";

fn settings() -> AnswerSettings<'static> {
    AnswerSettings {
        ufrag: "ours",
        pwd: "ours-ours-ours-ours-ours",
        fingerprint: &[0xab; 32],
        candidates: &[],
        session_id: 7,
        start_bitrate_kbps: 2000,
        max_bitrate_kbps: 6000,
        stereo: false,
        audio_bitrate: None,
    }
}

fn both() -> OwnOffer {
    OwnOffer::new(true, true).expect("two sections")
}

/// An answer as a browser writes it: bundled, sending, with the parts of our offer it supports.
fn answer() -> String {
    let transport = format!(
        "a=ice-ufrag:abcd\r\na=ice-pwd:0123456789abcdefghijklmn\r\na=fingerprint:sha-256 {FINGERPRINT}\r\n\
a=setup:active\r\na=sendonly\r\na=rtcp-mux\r\n"
    );
    format!(
        "v=0\r\no=- 1 2 IN IP4 127.0.0.1\r\ns=-\r\nt=0 0\r\na=group:BUNDLE 0 1\r\n\
m=audio 9 UDP/TLS/RTP/SAVPF 111\r\nc=IN IP4 0.0.0.0\r\na=mid:0\r\n{transport}\
a=extmap:3 http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01\r\n\
a=rtpmap:111 opus/48000/2\r\na=rtcp-fb:111 transport-cc\r\na=ssrc:11 cname:x\r\n\
m=video 9 UDP/TLS/RTP/SAVPF 102 103\r\nc=IN IP4 0.0.0.0\r\na=mid:1\r\n{transport}\
a=extmap:3 http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01\r\n\
a=rtpmap:102 H264/90000\r\na=rtcp-fb:102 nack\r\na=rtcp-fb:102 nack pli\r\na=rtcp-fb:102 transport-cc\r\n\
a=fmtp:102 level-asymmetry-allowed=1;packetization-mode=1;profile-level-id=42e01f\r\n\
a=rtpmap:103 rtx/90000\r\na=fmtp:103 apt=102\r\na=ssrc-group:FID 5 6\r\na=ssrc:5 cname:x\r\na=ssrc:6 cname:x\r\n"
    )
}

#[test]
fn our_offer_can_be_modified_by_a_client_of_the_old_signalling() {
    let sdp = both().write(&settings());
    for line in [
        "a=ice-lite",
        "a=group:BUNDLE 0 1",
        "m=audio 9 UDP/TLS/RTP/SAVPF 111",
        "a=fmtp:111 minptime=10; useinbandfec=1",
        "m=video 9 UDP/TLS/RTP/SAVPF 102 103",
        "a=fmtp:102 level-asymmetry-allowed=1; packetization-mode=1; profile-level-id=42e01f; \
         x-google-min-bitrate=300; x-google-start-bitrate=2000; x-google-max-bitrate=6000",
        "a=setup:actpass",
        "a=recvonly",
        "a=rtcp-mux",
    ] {
        assert!(sdp.contains(&format!("{line}\r\n")), "{line} in\n{sdp}");
    }
    assert!(!sdp.contains("\r\nb="), "the client puts in its own");
    let (_, video) = sdp.split_once("m=video").expect("video");
    assert_eq!(video.lines().nth(1), Some("c=IN IP4 0.0.0.0"), "where it puts it");
    assert_eq!(sdp.matches('\n').count(), sdp.matches("\r\n").count());
}

#[test]
fn our_offer_requests_video_feedback_and_transport_feedback_for_both_tracks() {
    let sdp = both().write(&settings());
    let feedback: Vec<_> = sdp.lines().filter_map(|line| line.strip_prefix("a=rtcp-fb:")).collect();
    let of_video = ["transport-cc", "ccm fir", "nack", "nack pli", "goog-remb"];
    let wanted: Vec<_> = of_video.map(|of| format!("102 {of}")).into_iter().collect();
    assert_eq!(feedback[..1], ["111 transport-cc"]);
    assert_eq!(feedback[1..], wanted);
    assert_eq!(sdp.matches("a=rtcp-rsize\r\n").count(), 2);
}

#[test]
fn our_offer_has_only_the_requested_sections() {
    let audio = OwnOffer::new(true, false).expect("a section").write(&settings());
    assert!(audio.contains("m=audio") && !audio.contains("m=video"));
    let video = OwnOffer::new(false, true).expect("a section").write(&settings());
    assert!(!video.contains("m=audio") && video.contains("m=video"));
    assert!(OwnOffer::new(false, false).is_none());
}

#[test]
fn the_answer_of_a_browser_contains_formats_and_credentials() {
    let answer = both().read_answer(&answer()).expect("accepted");
    let (audio, video) = (answer.audio.as_ref(), answer.video.as_ref());
    let (audio, video) = (audio.expect("audio"), video.expect("video"));
    assert_eq!((audio.payload_type, audio.ssrc, audio.transport_cc_id), (111, Some(11), Some(3)));
    assert_eq!((video.payload_type, video.ssrc), (102, Some(5)));
    assert_eq!(video.rtx, Some(Rtx { payload_type: 103, ssrc: Some(6) }));
    assert_eq!((video.has_nack, video.has_fir, video.has_remb), (true, false, false));
    assert_eq!((answer.fingerprints[0][31], is_dtls_client(&answer)), (0x1f, false));
}

#[test]
fn the_answer_of_chromium_is_accepted_with_all_its_feedback() {
    let text = include_str!("fixtures/chromium_156_answer.sdp");
    let answer = both().read_answer(text).expect("accepted");
    let video = answer.video.expect("video");
    assert_eq!(video.rtx, Some(Rtx { payload_type: 103, ssrc: Some(2_861_861_998) }));
    assert_eq!((video.has_pli, video.has_remb, video.has_transport_cc), (true, true, true));
    assert_eq!(answer.audio.expect("audio").ssrc, Some(2_615_228_736));
    // It answers a different offer.
    assert!(OwnOffer::new(false, true).expect("a section").read_answer(text).is_err());
}

#[test]
fn a_client_may_be_the_dtls_server() {
    let passive = answer().replace("a=setup:active", "a=setup:passive");
    assert!(is_dtls_client(&both().read_answer(&passive).expect("accepted")));
}

#[test]
fn an_answer_that_does_not_match_the_offer_is_rejected() {
    let audio_alone = OwnOffer::new(true, false).expect("a section");
    assert!(matches!(audio_alone.read_answer(&answer()), Err(OfferError::Sections)));
    let answer = answer();
    let swapped = {
        let (head, rest) = answer.split_once("m=audio").expect("audio");
        let (audio, video) = rest.split_once("m=video").expect("video");
        format!("{head}m=video{video}m=audio{audio}")
    };
    let table = [
        (swapped, OfferError::Sections),
        (answer.replace("m=video 9", "m=video 0"), OfferError::Sections),
        (
            answer.replace("a=mid:1", "a=mid:v").replace("BUNDLE 0 1", "BUNDLE 0 v"),
            OfferError::Sections,
        ),
        (answer.replace("BUNDLE 0 1", "BUNDLE 1 0"), OfferError::Sections),
        (answer.replace("BUNDLE 0 1", "BUNDLE 0"), OfferError::Transport),
        (answer.replace("UDP/TLS/RTP/SAVPF", "RTP/SAVPF"), OfferError::Transport),
        (answer.replace("setup:active", "setup:actpass"), OfferError::Setup),
        (answer.replace("sendonly", "inactive"), OfferError::Direction),
        (answer.replace("111", "112"), OfferError::AudioCodec),
        (answer.replace("102", "104"), OfferError::VideoCodec),
        (answer.replace("packetization-mode=1", "packetization-mode=0"), OfferError::VideoCodec),
        (answer.replace("42e01f", "7a001f"), OfferError::VideoCodec),
        (answer.replace("sha-256", "sha-1"), OfferError::Fingerprint),
        (
            answer.replace("a=ice-pwd:0123456789abcdefghijklmn", "a=ice-pwd:short"),
            OfferError::Credentials,
        ),
        ("a".repeat(OFFER_LIMIT_BYTES + 1), OfferError::TooLong),
        (String::new(), OfferError::Malformed),
    ];
    for (text, error) in table {
        let read = both().read_answer(&text).map(|_| ());
        assert_eq!(read, Err(error), "{}", &text[..text.len().min(900)]);
    }
}

#[test]
fn layers_that_were_not_offered_are_not_waited_for() {
    let layered = answer().replace(
        "a=rtpmap:103",
        "a=extmap:10 urn:ietf:params:rtp-hdrext:sdes:rtp-stream-id\r\na=rid:h send\r\na=rid:l send\r\n\
a=simulcast:send h;l\r\na=rtpmap:103",
    );
    let video = both().read_answer(&layered).expect("accepted").video.expect("video");
    assert!(video.rids.is_empty() && video.rid_id.is_none());
}
