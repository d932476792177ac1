//! Media for players, byte for byte: chunk headers with and without extended timestamps, framed for one player or for
//! all.

use bytes::Bytes;
use headgate_rtmp::{Framed, MediaKind};

use crate::support::{Encoder, null, string};

const CHUNK_BYTES: usize = 65_536;
/// A tag header.
const HEADER: [u8; 5] = [0x17, 1, 0, 0, 80];

/// A player on this message stream whose play was accepted.
fn playing(stream: u32) -> Encoder {
    let mut player = Encoder::connected();
    player.command(stream, "play", 4.0, &[null(), string("cam")]);
    player.asked();
    player.accept_play();
    player
}

#[test]
fn extended_timestamps_start_at_0xffffff_and_are_repeated_on_every_chunk() {
    let payload: Vec<u8> = (0..2 * CHUNK_BYTES).map(|n| n as u8).collect();
    let body = [&HEADER[..], &payload].concat();
    let cases: [(u32, [u8; 3], &[u8]); 5] = [
        (0x00ff_fffe, [0xff, 0xff, 0xfe], &[]),
        (0x00ff_ffff, [0xff; 3], &[0x00, 0xff, 0xff, 0xff]),
        (0x0100_0000, [0xff; 3], &[0x01, 0x00, 0x00, 0x00]),
        (u32::MAX, [0xff; 3], &[0xff; 4]),
        (0, [0; 3], &[]),
    ];
    for (timestamp, field, extended) in cases {
        let mut player = playing(1);
        let shared = Bytes::from(payload.clone());
        player.session().send_media(MediaKind::Video, timestamp, &HEADER, &shared);
        let want = [
            &[7][..],
            &field,
            // 131,077 bytes of video on stream 1.
            &[0x02, 0x00, 0x05, 9, 1, 0, 0, 0],
            extended,
            &body[..CHUNK_BYTES],
            &[0xc7],
            extended,
            &body[CHUNK_BYTES..2 * CHUNK_BYTES],
            &[0xc7],
            extended,
            &body[2 * CHUNK_BYTES..],
        ]
        .concat();
        assert!(player.output() == want, "at {timestamp:#x}");
    }
}

#[test]
fn a_shared_message_equals_one_written_for_each_player() {
    for stream in [1, 3] {
        let (mut alone, mut shared) = (playing(stream), playing(stream));
        for kind in [MediaKind::Audio, MediaKind::Video, MediaKind::Script] {
            for timestamp in [0, 40, 0x00ff_fffe, 0x00ff_ffff, 0x0100_0000, u32::MAX] {
                for length in [0, 1, 300, 1005, 1006, 1007, 1023, 1024, 65_531, 65_532, 200_000] {
                    let payload = Bytes::from(vec![0x5a; length]);
                    alone.session().send_media(kind, timestamp, &HEADER, &payload);
                    let framed = Framed::new(kind, timestamp, &HEADER, &payload);
                    shared.session().send_framed(&framed.clone());
                    assert_eq!(shared.unread_bytes(), alone.unread_bytes());
                }
            }
        }
        assert!(shared.output() == alone.output(), "on stream {stream}");
    }
}

#[test]
fn a_shared_message_knows_its_length_and_shares_its_payload() {
    let payload = Bytes::from(vec![0x5a; 200_000]);
    let framed = Framed::new(MediaKind::Video, 40, &HEADER, &payload);
    // A full header, then three further chunks.
    assert_eq!(framed.wire_bytes(), 12 + 5 + 200_000 + 3);
    let mut player = playing(1);
    player.session().send_framed(&framed);
    let mut slices = [std::io::IoSlice::new(&[]); 2];
    assert_eq!(player.session().output().io_slices(&mut slices), 2);
    assert_eq!(slices[1].as_ptr(), payload.as_ptr());
}

#[test]
fn a_message_is_sent_only_to_accepted_players() {
    let framed = Framed::new(MediaKind::Video, 40, &HEADER, &Bytes::from_static(b"key"));
    let mut waiting = Encoder::connected();
    waiting.command(1, "play", 4.0, &[null(), string("cam")]);
    waiting.replies();
    waiting.session().send_framed(&framed);
    assert_eq!(waiting.unread_bytes(), 0);
}
