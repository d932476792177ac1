//! Messages through a whole server session: chunks of every form, control messages, aggregates, AMF3 forms.

use headgate_rtmp::{Error, MediaKind};

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
fn a_part_longer_than_its_aggregate_is_an_error() {
    let mut encoder = Encoder::publishing();
    let cut = part(VIDEO, 0, b"video");
    let taken = encoder.try_message(4, AGGREGATE, 1, &cut[..cut.len() - 5]);
    assert_eq!(taken, Err(Error::Message));
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
fn truncated_control_messages_are_errors() {
    for kind in [SET_CHUNK_SIZE, ABORT, WINDOW_ACK_SIZE] {
        let mut encoder = Encoder::publishing();
        assert_eq!(encoder.try_message(2, kind, 0, &[0, 0, 1]), Err(Error::Message), "{kind}");
    }
}

#[test]
fn long_messages_are_accepted_only_after_a_publish_is_allowed() {
    /// Declares a video message of `length` bytes, none of which follow.
    fn announce(encoder: &mut Encoder, length: u32) -> Result<(), Error> {
        let [_, l0, l1, l2] = length.to_be_bytes();
        encoder.try_chunks(&[6, 0, 0, 0, l0, l1, l2, VIDEO, 1, 0, 0, 0])
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
    for mut encoder in [Encoder::connected(), asked("play"), played()] {
        assert_eq!(announce(&mut encoder, 65_537), Err(Error::MessageLimit));
    }
    for mut encoder in [Encoder::connected(), asked("play"), played()] {
        assert_eq!(announce(&mut encoder, 65_536), Ok(()));
    }
    assert_eq!(announce(&mut Encoder::publishing(), 8 << 20), Ok(()));
    assert_eq!(announce(&mut Encoder::publishing(), (8 << 20) + 1), Err(Error::MessageLimit));
}

#[test]
fn a_chunk_size_out_of_bounds_is_rejected() {
    for size in [0, 65_537, u32::MAX] {
        let mut encoder = Encoder::publishing();
        let outcome = encoder.try_message(2, SET_CHUNK_SIZE, 0, &size.to_be_bytes());
        assert_eq!(outcome, Err(Error::ChunkSizeLimit), "{size}");
    }
}

#[test]
fn amf0_beyond_its_limits_is_rejected_in_a_command() {
    let deep = [[10, 0, 0, 0, 1].repeat(17), vec![5]].concat();
    let long_key = [&[3, 1, 1][..], &[b'k'; 257], &[5, 0, 0, 9]].concat();
    let wide = [&[10, 0, 0, 4, 1][..], &[5; 1025]].concat();
    for value in [deep, long_key, wide] {
        let mut encoder = Encoder::publishing();
        let outcome = encoder.try_command(0, "theirOwnThing", 2.0, &[null(), value]);
        assert_eq!(outcome, Err(Error::AmfLimit));
    }
    let mut encoder = Encoder::publishing();
    let outcome =
        encoder.try_command(0, "theirOwnThing", 2.0, &[null(), vec![2, 0xff, 0xff, b'x']]);
    assert_eq!(outcome, Err(Error::Amf));
}

#[test]
fn an_aggregate_of_4096_messages_is_split_and_a_larger_one_is_rejected() {
    let aggregate = |kind: u8, count: usize| {
        let mut encoder = Encoder::connected();
        encoder.command(1, "publish", 5.0, &[null(), string("cam"), string("live")]);
        encoder.allow();
        encoder.events();
        // An empty message and its back pointer (RTMP 7.1.6).
        let empty = [kind, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 11];
        let taken = encoder.try_message(4, AGGREGATE, 1, &empty.repeat(count));
        taken.map(|()| encoder.events().len())
    };
    assert_eq!(aggregate(VIDEO, 4096), Ok(4096));
    assert_eq!(aggregate(VIDEO, 4097), Err(Error::MessageLimit));
    // Those that are passed over are read all the same.
    assert_eq!(aggregate(99, 4096), Ok(0));
    assert_eq!(aggregate(99, 4097), Err(Error::MessageLimit));
}

#[test]
fn metadata_within_an_aggregate_is_at_most_64_kib_too() {
    let aggregate = |length: usize| {
        let mut encoder = Encoder::connected();
        encoder.command(1, "publish", 5.0, &[null(), string("cam"), string("live")]);
        encoder.allow();
        let [.., l0, l1, l2] = length.to_be_bytes();
        let metadata = [&[18, l0, l1, l2, 0, 0, 0, 0, 0, 0, 0][..], &vec![5; length]].concat();
        encoder.try_message(4, AGGREGATE, 1, &metadata)
    };
    assert_eq!(aggregate(65_536), Ok(()));
    assert_eq!(aggregate(65_537), Err(Error::MessageLimit));
}
