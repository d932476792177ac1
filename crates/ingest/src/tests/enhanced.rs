//! Enhanced RTMP from one socket to others: codecs that not every player supports, multiple tracks, Opus without a
//! header.

use std::collections::HashSet;

use headgate_rtmp::MediaMessage;

use super::Core;
use super::peer::Peer;
use headgate_rtmp::MediaKind::{Audio, Video};

/// A stream with one video codec, and AAC.
struct Enhanced {
    four_cc: &'static [u8; 4],
    /// HEVC frames contain their composition time.
    has_offset: bool,
}

const STREAMS: [Enhanced; 3] = [
    Enhanced { four_cc: b"hvc1", has_offset: true },
    Enhanced { four_cc: b"av01", has_offset: false },
    Enhanced { four_cc: b"vp09", has_offset: false },
];

impl Enhanced {
    fn name(&self) -> &'static str {
        std::str::from_utf8(self.four_cc).expect("ASCII")
    }

    fn header(&self) -> Vec<u8> {
        [&[0x90], &self.four_cc[..], b"the decoder's configuration"].concat()
    }

    /// Video frame `n` of a stream with a keyframe every ten frames.
    fn picture(&self, n: u32) -> Vec<u8> {
        let first = if n.is_multiple_of(10) { 0x91 } else { 0xa1 };
        let offset: &[u8] = if self.has_offset { &[0, 0, 40] } else { &[] };
        [&[first], &self.four_cc[..], offset, &n.to_be_bytes(), &[0; 500]].concat()
    }

    fn send(&self, publisher: &mut Peer, numbers: std::ops::Range<u32>) {
        for n in numbers {
            if n == 0 {
                publisher.send(Video, 0, &self.header());
                publisher.send(Audio, 0, &[0xaf, 0, 0x11, 0x90]);
            }
            publisher.send(Video, n * 40, &self.picture(n));
            publisher.send(Audio, n * 40, &sound(n));
        }
    }
}

fn sound(n: u32) -> Vec<u8> {
    [&[0xaf, 1][..], &n.to_be_bytes()].concat()
}

fn bodies(media: &[MediaMessage], kind: headgate_rtmp::MediaKind) -> Vec<Vec<u8>> {
    media.iter().filter(|m| m.kind == kind).map(|m| m.payload.to_vec()).collect()
}

#[test]
fn players_that_list_a_codec_get_it_and_others_only_the_audio() {
    for stream in &STREAMS {
        let mut core = Core::start(2);
        let mut publisher = core.publisher("cam", 1, &[]);
        stream.send(&mut publisher, 0..1);
        let join = |four_ccs: &[&str]| {
            let mut player = Peer::play_listing(core.port(), "cam", four_ccs);
            player.wait_ready();
            player
        };
        // The players are distributed to both workers in turn.
        let early = [join(&[stream.name()]), join(&["*"]), join(&[]), join(&["Opus"])];
        stream.send(&mut publisher, 1..15);
        core.wait_for_time(1, 14 * 40);
        let late = [join(&[stream.name()]), join(&[stream.name()]), join(&[]), join(&[])];
        stream.send(&mut publisher, 15..20);
        publisher.say_goodbye();
        let of = |players: [Peer; 4]| players.map(|mut player| player.media_to_end());
        let (early, late) = (of(early), of(late));
        let pictures = |from: u32| {
            [vec![stream.header()], (from..20).map(|n| stream.picture(n)).collect()].concat()
        };
        for (media, from) in [(&early[0], 0), (&early[1], 0), (&late[0], 10), (&late[1], 10)] {
            assert_eq!(bodies(media, Video), pictures(from), "{}", stream.name());
            assert_eq!(bodies(media, Audio).last(), Some(&sound(19)));
        }
        for media in [&early[2], &early[3], &late[2], &late[3]] {
            assert_eq!(bodies(media, Video), Vec::<Vec<u8>>::new(), "{}", stream.name());
            assert_eq!(bodies(media, Audio).last(), Some(&sound(19)));
        }
        let ended = core.ended(1);
        let payload = |media: &[MediaMessage]| {
            let header = |m: &MediaMessage| match m.kind {
                Video => 5 + if stream.has_offset { 3 } else { 0 },
                _ => 2,
            };
            let is_frame = |m: &&MediaMessage| m.payload[0] != 0x90 && m.payload[1] != 0;
            let frames = media.iter().filter(|m| m.kind != headgate_rtmp::MediaKind::Script);
            frames.filter(is_frame).map(|m| m.payload.len() as u64 - header(m)).sum::<u64>()
        };
        let sent: u64 = early.iter().chain(&late).map(|media| payload(media)).sum();
        assert_eq!(ended.bytes_out, sent, "what is left out is not counted");
    }
}

#[test]
fn players_get_only_the_first_of_several_tracks() {
    let mut core = Core::start(1);
    let mut publisher = core.publisher("cam", 1, &[]);
    publisher.send(Video, 0, b"\x96\x00hvc1\0configuration");
    publisher.send(Audio, 0, &[0xaf, 0, 0x11, 0x90]);
    let mut player = Peer::play_listing(core.port(), "cam", &["hvc1"]);
    player.wait_ready();
    // An extension, then two tracks in one message; a second audio track as OBS sends it; a second video track on its
    // own.
    publisher.send(Video, 0, b"\x97\x02\0\x03\xe8\x06\x13hvc1\x01\0\0\x04side\0\0\0\x05front");
    publisher.send(Audio, 0, b"\x95\x01mp4a\x01second");
    publisher.send(Video, 40, b"\x96\x01hvc1\x01\0\0\0alone");
    publisher.send(Audio, 21, b"\xaf\x01first");
    publisher.say_goodbye();
    let media = player.media_to_end();
    assert_eq!(
        bodies(&media, Video),
        [&b"\x90hvc1configuration"[..], b"\x91hvc1\0\0\0front"].map(<[u8]>::to_vec)
    );
    let sounds = [&[0xaf, 0, 0x11, 0x90][..], b"\xaf\x01first"].map(<[u8]>::to_vec);
    assert_eq!(bodies(&media, Audio), sounds);
    assert_eq!(core.ended(1).bytes_in, 10);
}

#[test]
fn opus_without_a_header_gets_one_for_early_and_late_players() {
    let mut core = Core::start(1);
    let mut publisher = core.publisher("cam", 1, &[]);
    let packet = |n: u8| [b"\x91Opus", &[0xfc, n, n, n][..]].concat();
    // An empty header, as Enhanced RTMP allows.
    publisher.send(Audio, 0, b"\x90Opus");
    publisher.send(Audio, 0, &packet(0));
    let mut early = Peer::play_opus(core.port(), "cam");
    early.wait_ready();
    publisher.send(Audio, 20, &packet(1));
    let mut late = Peer::play_opus(core.port(), "cam");
    late.wait_ready();
    publisher.send(Audio, 40, &packet(2));
    publisher.say_goodbye();
    for media in [early.media_to_end(), late.media_to_end()] {
        let sounds = bodies(&media, Audio);
        let head = [&b"\x90OpusOpusHead\x01\x02\x38\x01\x80\xbb"[..], &[0; 5]].concat();
        assert_eq!(sounds.first(), Some(&head));
        let distinct: HashSet<_> = sounds.iter().collect();
        assert_eq!((distinct.len(), sounds.last()), (sounds.len(), Some(&packet(2))));
    }
}

#[test]
fn a_player_that_lists_no_codec_of_a_stream_without_audio_is_notified_and_closed() {
    let mut core = Core::start(2);
    let mut publisher = core.publisher("cam", 1, &[]);
    publisher.send(Video, 0, &STREAMS[0].header());
    publisher.send(Video, 0, &STREAMS[0].picture(0));
    core.wait_for_time(1, 0);
    // The players are distributed to both workers in turn.
    for _ in 0..2 {
        let mut player = Peer::play(core.port(), "cam");
        player.wait_ready();
        let ended =
            player.wait_event(|event| matches!(event, headgate_rtmp::ClientEvent::Ended { .. }));
        let code = "NetStream.Play.NoSupportedTrackFound".to_owned();
        let description = "The stream has only hevc, which the player does not list".to_owned();
        assert_eq!(ended, headgate_rtmp::ClientEvent::Ended { code, description });
    }
    let mut listing = Peer::play_listing(core.port(), "cam", &["hvc1"]);
    listing.wait_ready();
    let is_picture = |event: &headgate_rtmp::ClientEvent| match event {
        headgate_rtmp::ClientEvent::Media(message) => message.kind == Video,
        _ => false,
    };
    // The header; the frames that follow come before the end.
    listing.wait_event(is_picture);
    publisher.send(Video, 40, &STREAMS[0].picture(1));
    publisher.say_goodbye();
    assert_eq!(bodies(&listing.media_to_end(), Video).len(), 2);
}
