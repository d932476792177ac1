//! Messages through a whole server session: chunks of every form, control messages, aggregates, AMF3 forms.

use headgate_rtmp::{Dropped, MediaKind, ServerEvent};

use crate::support::{
    ABORT, ACKNOWLEDGEMENT, AGGREGATE, DATA, DATA_AMF3, Encoder, Reply, SET_CHUNK_SIZE,
    SET_PEER_BANDWIDTH, USER_CONTROL, WINDOW_ACK_SIZE, null, number, object, reply, string,
};

const AUDIO: u8 = 8;
const VIDEO: u8 = 9;

/// A full header on message stream 1 after a basic header of one, two or three bytes.
fn header(basic: &[u8], kind: u8, timestamp: u8, length: u8) -> Vec<u8> {
    [basic, &[0, 0, timestamp, 0, 0, length, kind, 1, 0, 0, 0]].concat()
}

/// A message within an aggregate, its back pointer included (RTMP 7.1.6).
fn part(kind: u8, timestamp: u32, body: &[u8]) -> Vec<u8> {
    let [t3, t0, t1, t2] = timestamp.to_be_bytes();
    let length = u8::try_from(body.len()).expect("short");
    [&[kind, 0, 0, length, t0, t1, t2, t3, 0, 0, 0][..], body, &[0, 0, 0, length + 11]].concat()
}

fn media(encoder: &mut Encoder) -> Vec<(MediaKind, u32, Vec<u8>)> {
    let parts = |m: headgate_rtmp::MediaMessage| (m.kind, m.timestamp, m.payload.to_vec());
    encoder.media().into_iter().map(parts).collect()
}

#[test]
fn chunk_streams_have_ids_of_one_two_and_three_bytes() {
    let mut encoder = Encoder::publishing();
    let basics: [&[u8]; 6] = [&[3], &[63], &[0, 0], &[0, 255], &[1, 0, 1], &[1, 255, 255]];
    for (n, basic) in (1..).zip(basics) {
        encoder.chunks(&[header(basic, VIDEO, n, 2), vec![n; 2]].concat());
        let again = 0xc0 | basic[0];
        encoder.chunks(&[&[again], &basic[1..], &[n; 2]].concat());
        let n32 = u32::from(n);
        let want = [n32, 2 * n32].map(|at| (MediaKind::Video, at, vec![n; 2]));
        assert_eq!(media(&mut encoder), want, "{basic:?}");
    }
}

#[test]
fn audio_travels_between_the_chunks_of_video() {
    let mut encoder = Encoder::publishing();
    encoder.chunks(&[header(&[6], VIDEO, 40, 200), vec![7; 128]].concat());
    encoder.chunks(&[header(&[4], AUDIO, 21, 3), vec![8; 3]].concat());
    encoder.chunks(&[vec![0xc6], vec![7; 72]].concat());
    let want = [(MediaKind::Audio, 21, vec![8; 3]), (MediaKind::Video, 40, vec![7; 200])];
    assert_eq!(media(&mut encoder), want);
}

#[test]
fn an_aborted_message_never_arrives() {
    let mut encoder = Encoder::publishing();
    encoder.chunks(&[header(&[6], VIDEO, 40, 200), vec![7; 128]].concat());
    encoder.message(2, ABORT, 0, &[0, 0, 0, 6]);
    encoder.chunks(&[header(&[6], VIDEO, 80, 2), vec![8; 2]].concat());
    assert_eq!(media(&mut encoder), [(MediaKind::Video, 80, vec![8; 2])]);
    encoder.message(2, ABORT, 0, &[0, 0, 0, 99]);
    assert_eq!(encoder.replies(), []);
}

#[test]
fn an_aggregate_is_split_with_its_own_clock() {
    let mut encoder = Encoder::publishing();
    let cue = string("onCuePoint");
    let parts = [
        part(VIDEO, 0x0100_0000, b"video"),
        part(99, 0x0100_0003, b"nobody knows"),
        part(AUDIO, 0x0100_0005, b"audio"),
        part(DATA, 0x0100_0006, &cue),
    ];
    encoder.message(4, AGGREGATE, 1, &parts.concat());
    let want = [
        (MediaKind::Video, 0, b"video".to_vec()),
        (MediaKind::Audio, 5, b"audio".to_vec()),
        (MediaKind::Script, 6, cue),
    ];
    assert_eq!(media(&mut encoder), want);
}

#[test]
fn a_part_longer_than_its_aggregate_ends_it_and_those_before_arrive() {
    let mut encoder = Encoder::publishing();
    let (whole, cut) = (part(AUDIO, 0, b"audio"), part(VIDEO, 0, b"video"));
    encoder.message(4, AGGREGATE, 1, &[&whole, &cut[..cut.len() - 5]].concat());
    let events = encoder.events();
    let [ServerEvent::Media(media), ServerEvent::Dropped(dropped)] = &events[..] else {
        panic!("{events:?}")
    };
    assert_eq!((&media.payload[..], *dropped), (&b"audio"[..], Dropped::Truncated));
}

#[test]
fn a_remainder_too_short_for_a_part_ends_an_aggregate() {
    let (whole, another) = (part(VIDEO, 0, b"video"), part(AUDIO, 5, b"audio"));
    for length in 0..=11 {
        let mut encoder = Encoder::publishing();
        encoder.message(4, AGGREGATE, 1, &[&whole, &another[..length]].concat());
        let want = [(MediaKind::Video, 0, b"video".to_vec())];
        assert_eq!(media(&mut encoder), want, "{length} bytes of another part");
    }
}

#[test]
fn metadata_is_accepted_bare_with_set_data_frame_and_after_an_amf3_marker() {
    let mut encoder = Encoder::publishing();
    let metadata = [string("onMetaData"), object(&[("width", number(1280.0))])].concat();
    let kept = [string("@setDataFrame"), metadata.clone()].concat();
    for (kind, payload) in [
        (DATA, metadata.clone()),
        (DATA, kept.clone()),
        (DATA_AMF3, [vec![0], metadata.clone()].concat()),
        (DATA_AMF3, [vec![0], kept].concat()),
    ] {
        encoder.message(5, kind, 1, &payload);
        assert_eq!(media(&mut encoder), [(MediaKind::Script, 0, metadata.clone())]);
    }
}

#[test]
fn received_bytes_are_acknowledged_as_often_as_the_peer_asked() {
    let mut encoder = Encoder::publishing();
    encoder.set_chunk_size(4096);
    encoder.message(2, WINDOW_ACK_SIZE, 0, &3000_u32.to_be_bytes());
    encoder.replies();
    let mut counts = Vec::new();
    for _ in 0..9 {
        encoder.message(6, VIDEO, 1, &[7; 988]);
        for Reply { kind, payload, .. } in encoder.replies() {
            assert_eq!(kind, ACKNOWLEDGEMENT);
            counts.push(u32::from_be_bytes(payload.try_into().expect("four bytes")));
        }
    }
    // One acknowledgement for every third message of 1,000 bytes, header included.
    assert_eq!(counts.iter().map(|count| count - counts[0]).collect::<Vec<_>>(), [0, 3000, 6000]);
}

#[test]
fn messages_that_need_no_answer_get_none_and_do_no_harm() {
    let mut encoder = Encoder::publishing();
    let four = [0, 0, 4, 0];
    encoder.message(2, ACKNOWLEDGEMENT, 0, &four);
    encoder.message(2, ACKNOWLEDGEMENT, 0, &[]);
    encoder.message(2, SET_PEER_BANDWIDTH, 0, &[0, 0, 4, 0, 1]);
    // SetBufferLength, PingResponse, an unknown event, a truncated event, a ping without its time.
    for event in
        [&[0, 3, 0, 0, 0, 1, 0, 0, 0, 9][..], &[0, 7, 1, 2, 3, 4], &[9, 9], &[0], &[0, 6, 1]]
    {
        encoder.message(2, USER_CONTROL, 0, event);
    }
    // Unknown types, and AMF3 shared objects.
    for kind in [0, 7, 10, 16, 19, 23, 255] {
        encoder.message(3, kind, 1, &four);
    }
    assert_eq!((encoder.replies(), encoder.events()), (vec![], vec![]));
    encoder.command(0, "_checkbw", 9.0, &[null()]);
    assert_eq!(encoder.replies(), [reply(0, "_result", 9.0, &[null(), null()])]);
}

#[test]
fn control_messages_that_mean_nothing_are_ignored() {
    for kind in [SET_CHUNK_SIZE, ABORT, WINDOW_ACK_SIZE] {
        for payload in [&[][..], &[0, 0, 1], &[0, 0, 0, 0]] {
            let mut encoder = Encoder::publishing();
            encoder.message(2, kind, 0, payload);
            let is_abort_of_nothing = kind == ABORT && payload.len() == 4;
            let want = [ServerEvent::Dropped(Dropped::Unreadable)];
            assert_eq!(encoder.events(), want[usize::from(is_abort_of_nothing)..]);
            encoder.message(6, VIDEO, 1, &[7; 300]);
            assert_eq!(media(&mut encoder), [(MediaKind::Video, 0, vec![7; 300])]);
        }
    }
}

#[test]
fn messages_beyond_8_mib_are_dropped() {
    /// Sends a video message of `length` bytes; returns whether it was kept.
    fn announce(encoder: &mut Encoder, length: usize) -> bool {
        encoder.set_chunk_size(0x7fff_ffff);
        let [.., l0, l1, l2] = length.to_be_bytes();
        encoder
            .chunks(&[&[6, 0, 0, 0, l0, l1, l2, VIDEO, 1, 0, 0, 0][..], &vec![7; length]].concat());
        let events = encoder.events();
        events.iter().all(|event| !matches!(event, ServerEvent::Dropped(Dropped::TooLong)))
    }
    let asked = |name| {
        let mut encoder = Encoder::connected();
        encoder.command(1, name, 5.0, &[null(), string("cam"), string("live")]);
        encoder
    };
    let played = || {
        let mut encoder = asked("play");
        encoder.accept_play();
        encoder
    };
    // Others than publishers may send them; they come to nothing, as shorter ones do.
    for mut encoder in [Encoder::connected(), asked("play"), played()] {
        assert!(announce(&mut encoder, 65_537));
        encoder.command(0, "_checkbw", 9.0, &[null()]);
        assert_eq!(encoder.replies().len(), 1);
    }
    assert!(announce(&mut Encoder::publishing(), 8 << 20));
    assert!(!announce(&mut Encoder::publishing(), (8 << 20) + 1));
}

#[test]
fn every_chunk_size_is_accepted_before_and_within_a_publish() {
    for size in [1, 127, 65_537, 134_217_728, 0x7fff_ffff, 0xffff_ffff, 0x8000_1000] {
        let mut early = Encoder::new();
        early.message(2, SET_CHUNK_SIZE, 0, &u32::to_be_bytes(size));
        let mut late = Encoder::publishing();
        late.message(2, SET_CHUNK_SIZE, 0, &u32::to_be_bytes(size));
        for (mut encoder, is_publishing) in [(early, false), (late, true)] {
            encoder.expect_chunk_size(size & 0x7fff_ffff);
            if !is_publishing {
                encoder = encoder.and_connected().and_publishing();
            }
            encoder.message(6, VIDEO, 1, &[7; 100_000]);
            assert_eq!(media(&mut encoder), [(MediaKind::Video, 0, vec![7; 100_000])], "{size}");
        }
    }
}

#[test]
fn one_announcement_within_a_message_applies_to_its_next_chunk() {
    let mut encoder = Encoder::publishing();
    encoder.chunks(&[header(&[6], VIDEO, 40, 200), vec![7; 128]].concat());
    encoder.message(2, SET_CHUNK_SIZE, 0, &[0x7f, 0xff, 0xff, 0xff]);
    encoder.chunks(&[vec![0xc6], vec![7; 72]].concat());
    assert_eq!(media(&mut encoder), [(MediaKind::Video, 40, vec![7; 200])]);
}

#[test]
fn an_aggregate_has_any_number_of_messages() {
    for (kind, count) in [(VIDEO, 20_000), (99, 0)] {
        let mut encoder = Encoder::publishing();
        // An empty message and its back pointer (RTMP 7.1.6).
        let empty = [kind, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 11];
        encoder.message(4, AGGREGATE, 1, &empty.repeat(20_000));
        assert_eq!(encoder.media().len(), count);
    }
}

#[test]
fn metadata_beyond_64_kib_is_dropped_alone_and_within_an_aggregate() {
    for (length, is_kept) in [(65_536, true), (65_537, false)] {
        let metadata = [string("onTextData"), vec![5; length - 13]].concat();
        let [.., l0, l1, l2] = length.to_be_bytes();
        let within = [&[18, l0, l1, l2, 0, 0, 0, 0, 0, 0, 0][..], &metadata].concat();
        for (kind, payload) in [(DATA, &metadata), (DATA_AMF3, &metadata), (AGGREGATE, &within)] {
            let mut encoder = Encoder::publishing();
            encoder.message(4, kind, 1, payload);
            let events = encoder.events();
            let is_media = matches!(&events[..], [ServerEvent::Media(_)]);
            let is_dropped = events == [ServerEvent::Dropped(Dropped::TooLong)];
            assert_eq!((is_media, is_dropped), (is_kept, !is_kept), "{kind}");
        }
    }
}
