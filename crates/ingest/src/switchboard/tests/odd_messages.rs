//! Messages that are not as they should be, in the middle of a publish that a player and an upstream follow: each costs
//! at most itself, and is counted by kind.

use std::time::Duration;

use headgate_media::Irregularity::{
    ConfigurationInvalid, OversizedMessage, TruncatedTag, UnreadableMessage, UnsupportedAudio,
    UnsupportedVideo,
};
use headgate_rtmp::MediaKind::{self, Audio, Video};

use super::super::SessionKey;
use super::world::{AAC_HEADER, World};
use crate::EndReason;

const URL: &str = "rtmp://u/live/x";

/// A publish with a player and an upstream, of which the first frame has arrived.
struct Live {
    world: World,
    publisher: SessionKey,
    readers: [SessionKey; 2],
    sent: u32,
}

impl Live {
    fn new() -> Self {
        let mut world = World::new();
        world.window = Duration::from_secs(10);
        let publisher = world.publisher("a", 1, &[URL]);
        world.send(publisher, Audio, 0, AAC_HEADER);
        world.send_frame(publisher, 0, 20);
        world.pass(Duration::from_millis(40));
        let player = world.player("a");
        let upstream = world.upstream_peer().expect("connected");
        Self { world, publisher, readers: [player, upstream], sent: 1 }
    }

    /// Sends another frame, which everyone receives.
    fn continues(&mut self, after: &dyn std::fmt::Debug) {
        self.world.send_frame(self.publisher, self.sent, 20);
        let want: Vec<u32> = (0..=self.sent).collect();
        self.sent += 1;
        for reader in self.readers {
            assert_eq!(self.world.frames(reader), want, "after {after:x?}");
        }
        assert!(self.world.reasons().is_empty());
    }

    /// Bodies of a kind that the player has received.
    fn received(&self, kind: MediaKind) -> Vec<Vec<u8>> {
        let media = self.world.peers[&self.readers[0]].media.iter();
        media.filter(|of| of.kind == kind).map(|of| of.payload.to_vec()).collect()
    }
}

#[test]
fn a_sound_publish_counts_nothing() {
    let mut live = Live::new();
    for n in 1..100 {
        live.world.send(live.publisher, Audio, n * 40, &[0xaf, 1, 0x21, 9]);
        live.world.send(live.publisher, MediaKind::Script, n * 40, b"\x02\0\x0aonTextData\x05");
        live.continues(&n);
    }
    assert_eq!(live.world.irregularities(), []);
}

#[test]
fn tags_that_end_inside_their_header_cost_themselves() {
    let mut live = Live::new();
    let tags: [(MediaKind, &[u8]); 23] = [
        (Audio, b"\xaf"),
        (Audio, b"\xa2"),
        (Audio, b"\x90"),
        (Audio, b"\x91"),
        (Audio, b"\x91Op"),
        (Audio, b"\x95"),
        (Audio, b"\x95\x11Opu"),
        (Audio, b"\x95\x11Opus\0\0\0\x09short"),
        (Audio, b"\x97"),
        (Audio, b"\x97\x02\0\x03"),
        (Audio, b"\x90OpusOpusHead\x01"),
        (Video, b"\x17"),
        (Video, b"\x27"),
        (Video, b"\x17\x01"),
        (Video, b"\x17\0\0\0"),
        (Video, b"\x1c"),
        (Video, b"\x90"),
        (Video, b"\x91"),
        (Video, b"\x91hvc1\0"),
        (Video, b"\x96"),
        (Video, b"\x96\x11hvc1\0\0\0\x09x"),
        (Video, b"\x97\xff\x01"),
        (Video, b"\xa1avc"),
    ];
    for (count, (kind, tag)) in (1..).zip(tags) {
        live.world.send(live.publisher, kind, 40, tag);
        assert_eq!(live.world.irregularities(), [(TruncatedTag, count)], "{tag:x?}");
        live.continues(&tag);
    }
    // As parts of an aggregate, between good ones.
    let part = |kind: u8, body: &[u8]| {
        let length = u8::try_from(body.len()).expect("short");
        [&[kind, 0, 0, length, 0, 0, 0, 0, 0, 0, 0][..], body, &[0, 0, 0, length + 11]].concat()
    };
    let cut = part(9, b"\x27\x01\0\0\0cut");
    let aggregate =
        [part(8, b"\xaf"), part(8, b"\xaf\x01good"), part(9, b"\x17"), cut[..15].to_vec()].concat();
    live.world.send_message(live.publisher, 22, &aggregate);
    live.world.pass(Duration::from_millis(40));
    assert_eq!(live.received(Audio).last(), Some(&b"\xaf\x01good".to_vec()));
    assert_eq!(live.world.irregularities(), [(TruncatedTag, tags.len() as u64 + 3)]);
    live.continues(&"an aggregate");
}

#[test]
fn empty_tags_and_ends_of_sequences_count_nothing() {
    let mut live = Live::new();
    for (kind, tag) in [(Audio, &[][..]), (Video, &[]), (Video, &[0x17, 2]), (Audio, &[0x2f])] {
        live.world.send(live.publisher, kind, 40, tag);
        live.continues(&tag);
    }
    assert_eq!(live.world.irregularities(), []);
}

#[test]
fn audio_that_cannot_be_carried_is_left_out_and_the_video_continues() {
    let mut live = Live::new();
    let mut count = 0;
    // PCM, ADPCM, Nellymoser, G.711, reserved, Speex, MP3 of 8 kHz, device-specific: complete, and their first byte.
    for format in [0, 1, 3, 4, 5, 6, 7, 8, 11, 12, 13, 14, 15] {
        for length in [1, 160] {
            count += 1;
            let mut tag = vec![0xd5; length];
            tag[0] = format << 4 | 2;
            live.world.send(live.publisher, Audio, 40, &tag);
            assert_eq!(live.world.irregularities(), [(UnsupportedAudio, count)], "{format}");
            live.continues(&format);
        }
    }
    for tag in
        [&b"\x91ac-3data"[..], b"\x90fLaCdata", b"\x95\x21ec-3\0\0\0\x01x", b"\x94Opus\x01\x06"]
    {
        count += 1;
        live.world.send(live.publisher, Audio, 40, tag);
        assert_eq!(live.world.irregularities(), [(UnsupportedAudio, count)], "{tag:x?}");
        live.continues(&tag);
    }
    assert_eq!(live.received(Audio).len(), 1, "the header at the start");
}

#[test]
fn video_that_cannot_be_carried_is_left_out_and_the_audio_continues() {
    let mut world = World::new();
    let publisher = world.publisher("a", 1, &[]);
    world.send(publisher, Audio, 0, AAC_HEADER);
    world.send(publisher, Audio, 0, b"\xaf\x01\0");
    let player = world.player("a");
    let video: [&[u8]; 9] = [
        b"\x10",
        b"\x20\x01",
        b"\x12data",
        b"\x13data",
        b"\x24data",
        b"\x16data",
        b"\x1fdata",
        b"\x90vp08data",
        b"\x91vvc1\0\0\0data",
    ];
    for n in 1..=30_u8 {
        for tag in video {
            world.send(publisher, Video, u32::from(n) * 1_000, tag);
        }
        world.send(publisher, Audio, u32::from(n) * 1_000, &[0xaf, 1, n]);
        world.pass(Duration::from_secs(1));
    }
    let heard = world.peers[&player].media.iter().filter(|of| of.payload.starts_with(&[0xaf, 1]));
    assert_eq!(heard.map(|of| of.payload[2]).collect::<Vec<_>>(), (0..=30).collect::<Vec<_>>());
    assert_eq!(world.irregularities(), [(UnsupportedVideo, 30 * 9)]);
}

#[test]
fn a_publish_of_nothing_that_can_be_carried_ends_after_20_seconds_and_its_codec_is_named() {
    for (kind, body, name) in [
        (Video, &b"\x90vp08data"[..], "codec vp08"),
        (Audio, b"\x91ac-3data", "codec ac-3"),
        (Audio, b"\xb2speex", "audio codec 11"),
        (Video, b"\x14data", "video codec 4"),
    ] {
        let mut world = World::new();
        let publisher = world.publisher("a", 1, &[]);
        for n in 0..=20 {
            assert!(world.reasons().is_empty(), "after {n} s");
            world.send(publisher, kind, n * 1_000, body);
            world.pass(Duration::from_secs(1));
        }
        world.send(publisher, kind, 21_000, body);
        assert_eq!(world.reasons(), [(1, EndReason::ProtocolError)]);
        let events = format!("{:?}", world.peers[&publisher].events);
        assert!(events.contains(&format!("{name} is not supported")), "{events}");
    }
}

#[test]
fn the_flags_of_mp3_leave_as_they_came() {
    for flags in [0x22, 0x2f, 0x2e, 0x26, 0x2a, 0x20] {
        let mut live = Live::new();
        let tag = [&[flags][..], b"an mp3 frame"].concat();
        live.world.send(live.publisher, Audio, 40, &tag);
        live.continues(&tag);
        live.world.pass(Duration::from_millis(40));
        for reader in live.readers {
            let mut media = live.world.peers[&reader].media.iter();
            let last = media.rfind(|of| of.kind == Audio).expect("audio");
            assert_eq!(last.payload, tag, "{flags:x}");
        }
        assert_eq!(live.world.irregularities(), []);
    }
}

#[test]
fn commands_and_data_that_cannot_be_read_cost_themselves() {
    let mut live = Live::new();
    let own = |value: &[u8]| [&b"\x02\0\x03own\0\0\0\0\0\0\0\0\0\x05"[..], value].concat();
    let mut count = 0;
    for value in
        [&[7, 0, 0][..], &[17, 4, 1], &[14], &[9], &[4], &[2, 0, 9, b'x'], &[99], &[10, 0xff]]
    {
        for (kind, payload) in [
            (20, own(value)),
            (17, own(value)),
            (17, [&[0][..], &own(value)].concat()),
            (20, [value, value].concat()),
            (18, [&b"\x02\0\x0aonTextData"[..], value].concat()),
            (15, [&b"\0\x02\0\x0aonTextData"[..], value].concat()),
            (18, value.to_vec()),
        ] {
            live.world.send_message(live.publisher, kind, &payload);
            count += 1;
            assert_eq!(
                live.world.irregularities(),
                [(UnreadableMessage, count)],
                "{kind} {payload:x?}"
            );
            live.continues(&payload);
            live.world.pass(Duration::from_millis(100));
        }
    }
    for (kind, payload) in [
        (20, &[][..]),
        (17, &[]),
        (17, &[0]),
        (15, &[]),
        (18, &[]),
        (1, &[0, 0]),
        (1, &[0; 4]),
        (5, &[]),
    ] {
        live.world.send_message(live.publisher, kind, payload);
        count += 1;
        assert_eq!(
            live.world.irregularities(),
            [(UnreadableMessage, count)],
            "{kind} {payload:x?}"
        );
        live.continues(&payload);
    }
}

#[test]
fn messages_and_configurations_that_are_too_long_cost_themselves() {
    let mut live = Live::new();
    live.world.send_message(live.publisher, 1, &[0xff; 4]);
    let long = |head: &[u8], length| [head, &vec![5; length]].concat();
    live.world.send_message(live.publisher, 18, &long(b"\x02\0\x0aonMetaData", 65_536));
    live.continues(&"long metadata");
    live.world.send_message(live.publisher, 20, &long(b"\x02\0\x03own", 65_536));
    live.continues(&"a long command");
    live.world.send_message(live.publisher, 9, &long(b"\x27\x01\0\0\0", 8 << 20));
    live.continues(&"a long picture");
    assert_eq!(live.world.irregularities(), [(OversizedMessage, 3)]);
    live.world.send_message(live.publisher, 9, &long(b"\x17\0\0\0\0", 65_537));
    assert_eq!(live.world.irregularities(), [(OversizedMessage, 3), (ConfigurationInvalid, 1)]);
    live.continues(&"a long configuration");
}

#[test]
fn a_broadcaster_that_reads_nothing_goes_on() {
    let mut live = Live::new();
    live.world.peers.get_mut(&live.publisher).expect("connected").reads = 0;
    for n in 1..100 {
        // It wants an acknowledgement of every byte.
        live.world.send_message(live.publisher, 5, &[0, 0, 0, 1]);
        live.continues(&n);
        live.world.pass(Duration::from_secs(1));
    }
}

#[test]
fn any_way_to_say_done_ends_the_publish_at_once_and_is_no_loss() {
    let command = |name: &[u8], rest: &[u8]| {
        let length = u8::try_from(name.len()).expect("short");
        [&[2, 0, length], name, &[0, 0, 0, 0, 0, 0, 0, 0, 0, 5][..], rest].concat()
    };
    for payload in [
        command(b"publish", &[2, 0, 0]),
        command(b"publish", &[1, 0]),
        command(b"publish", &[5]),
        command(b"publish", &[6]),
        command(b"publish", &[]),
        command(b"FCUnpublish", &[2, 0, 1, b'x']),
        command(b"deleteStream", &[]),
        command(b"deleteStream", &[2, 0, 1, b'a']),
        command(b"deleteStream", &[0, 0x40, 0x22, 0, 0, 0, 0, 0, 0]),
        command(b"closeStream", &[]),
        command(b"close", &[]),
    ] {
        for kind in [20, 17] {
            let mut live = Live::new();
            live.world.send_message(live.publisher, kind, &payload);
            assert_eq!(live.world.reasons(), [(1, EndReason::Unpublished)], "{payload:x?}");
            // The connection closes after it: there is nothing to hold.
            live.world.hang_up(live.publisher);
            live.world.pass(Duration::from_secs(3));
            assert!(live.world.holds_ended.is_empty());
            let events = format!("{:?}", live.world.peers[&live.readers[0]].events);
            assert!(events.contains("UnpublishNotify"), "{events}");
        }
    }
}
