use super::*;

/// The transport attributes of every live section in a browser's offer.
const TRANSPORT: &str = "a=ice-ufrag:abcd\na=ice-pwd:0123456789abcdefghijklmn\n\
a=fingerprint:sha-256 00:01:02:03:04:05:06:07:08:09:0A:0B:0C:0D:0E:0F:10:11:12:13:14:15:16:17:18:19:1A:1B:1C:1D:1E:1F\n\
a=setup:actpass\na=rtcp-mux\na=sendonly\n";

fn audio() -> String {
    format!(
        "m=audio 9 UDP/TLS/RTP/SAVPF 111 63 0\n{TRANSPORT}a=mid:0\na=rtpmap:111 opus/48000/2\n\
a=rtcp-fb:111 transport-cc\na=fmtp:111 minptime=10;useinbandfec=1\na=rtpmap:63 red/48000/2\n\
a=extmap:3 http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01\n"
    )
}

fn video(formats: &str) -> String {
    format!("m=video 9 UDP/TLS/RTP/SAVPF 96 102 103 104\n{TRANSPORT}a=mid:1\n{formats}")
}

const H264: &str = "a=rtpmap:96 VP8/90000\na=rtpmap:102 H264/90000\n\
a=fmtp:102 level-asymmetry-allowed=1;packetization-mode=0;profile-level-id=42001f\n\
a=rtpmap:104 H264/90000\na=fmtp:104 packetization-mode=1;profile-level-id=42e01f\n\
a=rtcp-fb:104 nack\na=rtcp-fb:* nack pli\na=rtcp-fb:104 goog-remb\n\
a=rtpmap:103 rtx/90000\na=fmtp:103 apt=104\n\
a=ssrc-group:FID 5 6\na=ssrc:5 cname:x\na=extmap:4/sendonly urn:ietf:params:rtp-hdrext:sdes:mid\n";

fn offer(sections: &[&str]) -> String {
    format!("v=0\no=- 1 1 IN IP4 0.0.0.0\ns=-\nt=0 0\na=group:BUNDLE 0 1\n{}", sections.concat())
}

fn answer_to(text: &str) -> String {
    let offer = read_offer(text).expect("accepted");
    write_answer(
        &offer,
        &AnswerSettings {
            ufrag: "ours",
            pwd: "ours-ours-ours-ours-ours",
            fingerprint: &[0xab; 32],
            candidates: &["192.0.2.1:8189".parse().expect("valid")],
            session_id: 7,
            start_bitrate_kbps: 2000,
            max_bitrate_kbps: 6000,
            stereo: false,
            audio_bitrate: None,
        },
    )
}

#[test]
fn the_offer_of_a_browser_is_parsed_with_the_payload_types_we_choose() {
    let offer = read_offer(&offer(&[&audio(), &video(H264)])).expect("accepted");
    let (audio, video) = (offer.audio.expect("audio"), offer.video.expect("video"));
    assert_eq!((audio.payload_type, audio.stereo, audio.transport_cc_id), (111, false, Some(3)));
    assert_eq!((video.payload_type, video.packetization_mode), (104, 1));
    assert_eq!(video.profile_level_id, Some([0x42, 0xe0, 0x1f]));
    assert_eq!((video.has_nack, video.has_pli, video.has_transport_cc), (true, true, false));
    assert_eq!(video.rtx, Some(Rtx { payload_type: 103, ssrc: Some(6) }));
    assert_eq!(video.ssrc, Some(5));
    assert_eq!(offer.fingerprints[0][31], 0x1f);
}

#[test]
fn the_answer_has_every_line_that_clients_need_and_nothing_that_was_not_offered() {
    let answer = answer_to(&offer(&[&audio(), &video(H264)]));
    assert!(answer.starts_with("v=0\r\n") && answer.ends_with("\r\n"));
    assert!(!answer.ends_with("\r\n\r\n"));
    assert_eq!(answer.matches('\n').count(), answer.matches("\r\n").count());
    for line in [
        "a=ice-lite",
        "a=group:BUNDLE 0 1",
        "m=audio 9 UDP/TLS/RTP/SAVPF 111",
        "m=video 9 UDP/TLS/RTP/SAVPF 104 103",
        "a=rtpmap:103 rtx/90000",
        "a=fmtp:103 apt=104",
        "a=rtcp-fb:104 nack pli",
        "a=rtcp-fb:104 goog-remb",
        "a=extmap:4 urn:ietf:params:rtp-hdrext:sdes:mid",
        "a=fmtp:111 minptime=10;useinbandfec=1",
        "b=AS:6000",
    ] {
        assert_eq!(answer.lines().filter(|of| *of == line).count(), 1, "{line}\n{answer}");
    }
    for line in ["a=setup:passive", "a=recvonly", "a=rtcp-mux-only", "a=ice-ufrag:ours"] {
        assert_eq!(answer.lines().filter(|of| *of == line).count(), 2, "{line}");
    }
    assert!(answer.contains("x-google-start-bitrate=2000;x-google-max-bitrate=6000"));
    assert!(answer.contains("a=candidate:1 1 udp 2130706431 192.0.2.1 8189 typ host"));
    for absent in ["red", "rtcp-rsize", "rtcp-fb:104 transport-cc", "stereo"] {
        assert!(!answer.contains(absent), "{absent}");
    }
}

#[test]
fn stereo_is_answered_when_the_offer_lists_it() {
    let stereo = audio().replace("useinbandfec=1", "useinbandfec=1;stereo=1;sprop-stereo=1");
    assert!(answer_to(&offer(&[&stereo])).contains("stereo=1;sprop-stereo=1"));
}

#[test]
fn a_passive_client_is_answered_actively() {
    let text = offer(&[&audio()]).replace("actpass", "passive");
    assert!(is_dtls_client(&read_offer(&text).expect("accepted")));
    assert!(answer_to(&text).contains("a=setup:active"));
}

#[test]
fn unusual_but_valid_offers_are_accepted() {
    let both = offer(&[&audio(), &video(H264)]);
    let table = [
        // CRLF, trailing blanks, capitals, a single section without a group.
        both.replace('\n', "\r\n"),
        both.replace('\n', " \n"),
        both.replace("opus/", "OPUS/"),
        offer(&[&audio()]).replace("a=group:BUNDLE 0 1\n", ""),
        // GStreamer: a bundled section on port 0.
        both.replace("m=video 9", "m=video 0").replace("a=mid:1", "a=bundle-only\na=mid:1"),
        // aiortc: separate credentials per section. FFmpeg: a profile id of seven digits.
        both.replacen("abcd", "efgh", 1),
        both.replace("42e01f", "422001f"),
        // Safari: no packetization mode. High profile.
        both.replace("packetization-mode=1;", "").replace("packetization-mode=0;", ""),
        both.replace("42e01f", "640c1f"),
        // Fingerprint and credentials at session level, direction omitted.
        both.replace("a=sendonly\n", ""),
        both.replace("a=group", &format!("{TRANSPORT}a=group")),
    ];
    for text in table {
        assert!(read_offer(&text).is_ok(), "{text}");
        answer_to(&text);
    }
}

#[test]
fn unsupported_offers_are_rejected_with_the_right_status() {
    let (audio, both) = (audio(), offer(&[&audio(), &video(H264)]));
    let table: &[(u16, &str, String)] = &[
        (400, "offer_malformed", String::new()),
        (400, "offer_malformed", "hello".into()),
        (400, "offer_malformed", both.replace("s=-", "nonsense")),
        (400, "offer_malformed", both.replace("v=0", "v=01")),
        (
            400,
            "offer_malformed",
            both.replace("m=video 9 UDP/TLS/RTP/SAVPF 96 102 103 104", "m=video 9"),
        ),
        (400, "offer_malformed", both.replace("a=mid:1", "a=mid:0")),
        (400, "offer_malformed", both.replace("a=mid:1", "a=mid:1\u{e9}")),
        (400, "offer_malformed", both.replace("111", "104")),
        (400, "offer_malformed", format!("{both}a=rid:\u{e9} send\n")),
        (400, "offer_too_long", format!("{both}{}", "a=x\n".repeat(20_000))),
        (400, "offer_too_long", format!("{both}{}", "a=x\n".repeat(2000))),
        (400, "offer_credentials", both.replace("abcd", "ab")),
        (400, "offer_credentials", both.replace("0123456789abcdefghijklmn", "short")),
        (400, "offer_fingerprint", both.replace("sha-256", "sha-1")),
        (400, "offer_fingerprint", both.replace("00:01", "00")),
        (422, "offer_setup", both.replace("actpass", "holdconn")),
        (422, "offer_sections", offer(&[])),
        (422, "offer_sections", offer(&[&audio, &audio])),
        (422, "offer_sections", both.replace("m=video 9", "m=application 9")),
        (
            422,
            "offer_sections",
            format!("{both}m=application 9 UDP/DTLS/SCTP webrtc-datachannel\n"),
        ),
        (422, "offer_sections", format!("{both}{audio}")),
        (422, "offer_sections", both.replace("m=video 9", "m=video 0")),
        (422, "offer_direction", both.replacen("sendonly\na=mid", "recvonly\na=mid", 1)),
        (422, "offer_direction", both.replacen("sendonly\na=mid", "inactive\na=mid", 1)),
        (422, "offer_transport", both.replace("a=rtcp-mux\n", "")),
        (422, "offer_transport", both.replace("BUNDLE 0 1", "BUNDLE 0")),
        (422, "offer_transport", both.replace("BUNDLE 0 1", "LS 0 1")),
        (422, "offer_transport", both.replace("BUNDLE 0 1", "BUNDLE 0\na=group:BUNDLE 1")),
        (422, "offer_transport", both.replace("UDP/TLS/RTP/SAVPF", "RTP/AVP")),
        (422, "offer_audio_codec", both.replace("opus/", "PCMU/")),
        (422, "offer_audio_codec", both.replace("opus/48000", "opus/16000")),
        (422, "offer_audio_codec", both.replace("111", "72")),
        (422, "offer_video_codec", both.replace("42e01f", "7a001f").replace("42001f", "58001f")),
        (422, "offer_video_codec", both.replace("mode=0", "mode=2").replace("mode=1", "mode=x")),
        (422, "offer_video_codec", both.replace("H264/", "VP9/")),
        (422, "offer_video_codec", offer(&[&audio, &video("a=rtpmap:96 VP8/90000\n")])),
    ];
    for (status, code, text) in table {
        let error = read_offer(text).expect_err(code);
        assert_eq!((error.status(), error.code()), (*status, *code));
    }
}

#[test]
fn only_candidates_with_literal_addresses_are_kept() {
    let text = format!(
        "{}a=candidate:1 1 udp 2122260223 192.0.2.7 5000 typ host\n\
a=candidate:2 1 UDP 1 3f4e.local 5001 typ host\na=candidate:3 1 tcp 1 192.0.2.7 9 typ host\n\
a=candidate:4 1 udp 1 2001:db8::1 5002 typ host\na=candidate:\n\
a=candidate:5 1 udp 1 192.0.2.8 0 typ host\na=candidate:6 1 udp 1 0.0.0.0 5003 typ host\n\
a=candidate:7 1 udp 1 224.0.0.1 5004 typ host\na=candidate:8 2 udp 1 192.0.2.9 5005 typ host\n",
        offer(&[&audio()])
    );
    let candidates = read_offer(&text).expect("accepted").candidates;
    let written: Vec<_> = candidates.iter().map(ToString::to_string).collect();
    assert_eq!(written, ["192.0.2.7:5000", "[2001:db8::1]:5002"]);
}

#[test]
fn parameter_sets_of_the_offer_are_decoded() {
    let formats = H264.replace("42e01f", "42e01f;sprop-parameter-sets=Z0LAHg==,aM48gA==,!!");
    let offer = read_offer(&offer(&[&audio(), &video(&formats)])).expect("accepted");
    let sets = offer.video.expect("video").parameter_sets;
    assert_eq!(sets, [vec![0x67, 0x42, 0xc0, 0x1e], vec![0x68, 0xce, 0x3c, 0x80]]);
}

#[test]
fn empty_and_too_long_parameter_sets_are_ignored() {
    let (longest, longer) = ("Z".repeat(1_024), "Z".repeat(1_025));
    let listed = format!("42e01f;sprop-parameter-sets=,==,{longer},{longest}");
    let formats = H264.replace("42e01f", &listed);
    let offer = read_offer(&offer(&[&audio(), &video(&formats)])).expect("accepted");
    let lengths: Vec<_> = offer.video.expect("video").parameter_sets.iter().map(Vec::len).collect();
    assert_eq!(lengths, [768]);
}

#[test]
fn multichannel_opus_is_rejected_alone_and_ignored_beside_stereo() {
    let with = |map: &str| offer(&[&audio().replace("opus/48000/2\na=rtcp-fb", map), &video(H264)]);
    let refused = ["multiopus/48000/6\na=rtcp-fb", "opus/48000/6\na=rtcp-fb"];
    for map in refused {
        let error = read_offer(&with(map)).expect_err(map);
        assert_eq!((error, error.code()), (OfferError::AudioChannels, "offer_audio_channels"));
        assert_eq!(error.status(), 422);
    }
    for map in ["opus/48000\na=rtcp-fb", "opus/48000/1\na=rtcp-fb", "OPUS/48000/2\na=rtcp-fb"] {
        assert!(read_offer(&with(map)).is_ok(), "{map}");
    }
    let beside = "multiopus/48000/6\na=rtpmap:63 opus/48000/2\na=rtcp-fb";
    let beside = with(beside).replace("a=rtpmap:63 red/48000/2\n", "");
    assert_eq!(read_offer(&beside).expect("accepted").audio.expect("audio").payload_type, 63);
}

#[test]
fn an_offer_may_be_as_long_as_the_limit() {
    let text = offer(&[&audio()]);
    let line = "a=x:".len() + 1;
    let padded = |length: usize| {
        let padding = "y".repeat(length - text.len() - line);
        format!("{text}a=x:{padding}\n")
    };
    assert_eq!(padded(OFFER_LIMIT_BYTES).len(), OFFER_LIMIT_BYTES);
    assert!(read_offer(&padded(OFFER_LIMIT_BYTES)).is_ok());
    assert_eq!(read_offer(&padded(OFFER_LIMIT_BYTES + 1)).err(), Some(OfferError::TooLong));
}

#[test]
fn without_a_limit_the_answer_has_no_bitrate() {
    let offer = read_offer(&offer(&[&audio(), &video(H264)])).expect("accepted");
    let settings = AnswerSettings { max_bitrate_kbps: 0, ..golden_tests::settings() };
    let answer = write_answer(&offer, &settings);
    assert!(!answer.contains("\r\nb=") && !answer.contains("max-bitrate"), "{answer}");
}

#[test]
fn the_session_direction_applies_to_sections_without_one() {
    let both = offer(&[&audio(), &video(H264)]);
    let session = |direction: &str| both.replace("a=group", &format!("a={direction}\na=group"));
    let silent = |text: String| text.replace("a=sendonly\n", "");
    for direction in ["recvonly", "inactive"] {
        assert!(read_offer(&session(direction)).is_ok(), "its sections send");
        let refused = read_offer(&silent(session(direction))).err();
        assert_eq!(refused, Some(OfferError::Direction), "{direction}");
        let sends_both_ways = session(direction).replace("a=sendonly", "a=sendrecv");
        assert!(read_offer(&sends_both_ways).is_ok());
    }
    assert!(read_offer(&silent(session("sendonly"))).is_ok());
}

#[test]
fn layers_are_those_sent_and_the_first_of_alternatives() {
    const RID: &str = "a=extmap:10 urn:ietf:params:rtp-hdrext:sdes:rtp-stream-id\n";
    let rids = |lines: &str| {
        let text = offer(&[&audio(), &format!("{}{lines}", video(H264))]);
        read_offer(&text).expect("accepted").video.expect("video").rids
    };
    let named = "a=rid:h send\na=rid:m send\na=rid:l send\na=rid:r recv\n";
    let simulcast = |list: &str| rids(&format!("{RID}{named}a=simulcast:{list}\n"));
    assert_eq!(simulcast("send h;m,l;~l"), ["h", "m", "l"]);
    assert_eq!(simulcast("recv r send h;l"), ["h", "l"]);
    assert_eq!(simulcast("send h;x;l;h"), ["h", "l"]);
    for alone in ["send h", "recv r", "send x;y", "send"] {
        assert_eq!(simulcast(alone), [""; 0], "{alone}");
    }
    assert_eq!(rids(&format!("{named}a=simulcast:send h;l\n")), [""; 0], "none is marked");
}

#[test]
fn formats_and_names_of_a_section_may_reach_the_limits() {
    let formats = |count: usize| {
        let more = " 3".repeat(count - 3);
        read_offer(&offer(&[&audio().replace("111 63 0", &format!("111 63 0{more}"))]))
    };
    assert!([64, 65, 5_000].into_iter().all(|count| formats(count).is_ok()));
    let named = |mid: &str| {
        let text = offer(&[&audio()]).replace("a=group:BUNDLE 0 1\n", "");
        read_offer(&text.replace("a=mid:0", &format!("a=mid:{mid}")))
    };
    assert!(named(&"m".repeat(64)).is_ok());
    for mid in ["m".repeat(65), String::new(), "m\u{e9}".into()] {
        assert_eq!(named(&mid).err(), Some(OfferError::Malformed), "{mid}");
    }
}

#[test]
fn candidates_beyond_the_limit_are_ignored() {
    for count in [100, 101, 1_000] {
        let lines = (1..=count).map(|n| format!("a=candidate:1 1 udp 1 192.0.2.8 {n} typ host\n"));
        let text = format!("{}{}", offer(&[&audio()]), lines.collect::<String>());
        assert_eq!(read_offer(&text).expect("accepted").candidates.len(), 100);
    }
}

#[test]
fn layers_beyond_four_are_not_taken() {
    let names = ["a", "b", "c", "d", "e", "f"];
    let rids: String = names.iter().map(|name| format!("a=rid:{name} send\n")).collect();
    let extension = "a=extmap:10 urn:ietf:params:rtp-hdrext:sdes:rtp-stream-id\n";
    let lines = format!("{extension}{rids}a=simulcast:send {}\n", names.join(";"));
    let text = offer(&[&audio(), &format!("{}{lines}", video(H264))]);
    assert_eq!(read_offer(&text).expect("accepted").video.expect("video").rids, names[..4]);
}

#[test]
fn every_readable_fingerprint_counts_whatever_its_level_case_and_spaces() {
    let digits = |byte: &str| vec![byte; 32].join(":");
    let text = offer(&[&audio()]);
    let line = text.lines().find(|line| line.starts_with("a=fingerprint")).expect("one");
    let lines = format!(
        "a=fingerprint:sha-512 {}\n{line}\na=fingerprint:SHA-256   {}\na=fingerprint: sha-256\t{} \n\
         a=fingerprint:sha-256 zz\na=fingerprint:md2 00\n{line}",
        digits("11").repeat(2),
        digits("ab"),
        digits("CD"),
    );
    let session = format!("a=fingerprint:sha-256 {}\na=group", digits("ef"));
    let text = text.replace(line, &lines).replacen("a=group", &session, 1);
    let fingerprints = read_offer(&text).expect("accepted").fingerprints;
    let firsts: Vec<_> = fingerprints.iter().map(|fingerprint| fingerprint[1]).collect();
    assert_eq!(firsts, [1, 0xab, 0xcd, 0xef]);
}
