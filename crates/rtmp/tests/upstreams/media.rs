//! A server that sends: media with the timestamps of a long stream, and pings whose answers it does not read.

use bytes::Bytes;
use headgate_rtmp::{ClientConfig, ClientEvent, Framed, Limits, MediaKind};

use crate::fake::{Amf, Upstream, player, publisher, status};
use crate::wire_times::{ACKNOWLEDGEMENT_BYTES, EDGES, video};

#[test]
fn a_client_reads_32_bit_timestamps_repeated_on_type_3_or_not() {
    for repeats in [true, false] {
        for are_differences in [true, false] {
            let mut upstream = Upstream::starting_with(player());
            let mut before = 0;
            for (n, time) in (1..).zip(EDGES) {
                let is_difference = are_differences && n > 1;
                let field = if is_difference { time.wrapping_sub(before) } else { time };
                upstream.says(&video(is_difference, field, n, repeats));
                before = time;
            }
            upstream.says(&ACKNOWLEDGEMENT_BYTES);
            let times = upstream.events().into_iter().zip(1_u8..).map(|(event, n)| match event {
                ClientEvent::Media(media) if media.payload == vec![n; 300] => media.timestamp,
                other => panic!("{other:?}"),
            });
            assert_eq!(times.collect::<Vec<_>>(), EDGES, "{repeats} {are_differences}");
        }
    }
}

#[test]
fn a_server_that_pings_and_does_not_read_gets_few_answers() {
    let limits = Limits { pings_per_second: u32::MAX, ..Limits::default() };
    let mut upstream = Upstream::starting_with(ClientConfig { limits, ..publisher() });
    let ping = [2, 0, 0, 0, 0, 0, 6, 4, 0, 0, 0, 0, 0, 6, 1, 2, 3, 4];
    for _ in 0..10_000 {
        upstream.says(&ping);
    }
    assert!(upstream.client.output().pending_bytes() <= (32 << 10) + ping.len());
}

#[test]
fn a_server_may_announce_any_chunk_size_at_any_time() {
    for size in [1, 65_537, 134_217_728, 0x7fff_ffff, 0xffff_ffff_u32] {
        for is_early in [true, false] {
            let mut upstream = Upstream::shaken(publisher());
            let announce =
                [&[2, 0, 0, 0, 0, 0, 4, 1, 0, 0, 0, 0][..], &size.to_be_bytes()].concat();
            let size = (size & 0x7fff_ffff) as usize;
            if is_early {
                upstream.says(&announce);
                upstream.chunk_size = size;
            }
            let accepted = status("status", "x", "");
            upstream.answers("_result", 1.0, &[Amf::Null, accepted]);
            upstream.answers("_result", 4.0, &[Amf::Null, Amf::Number(1.0)]);
            let started = status("status", "NetStream.Publish.Start", "");
            upstream.command(1, "onStatus", &[Amf::Number(0.0), Amf::Null, started]);
            if !is_early {
                upstream.says(&announce);
                upstream.chunk_size = size;
            }
            assert_eq!(upstream.events(), [ClientEvent::Ready], "{size}");
            upstream.command(1, "onBWDone", &[Amf::Number(0.0), Amf::Null]);
            let ended = status("status", "NetStream.Unpublish.Success", "");
            upstream.command(1, "onStatus", &[Amf::Number(0.0), Amf::Null, ended]);
            assert_eq!(upstream.events().len(), 2, "{size}");
        }
    }
}

#[test]
fn media_sent_to_a_client_that_publishes_is_dropped() {
    let mut upstream = Upstream::starting_with(publisher());
    for kind in [8, 9, 18] {
        upstream.sends(kind, 1, &[0x17; 300]);
    }
    let mut aggregate = vec![9, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0x17];
    aggregate.extend([0, 0, 0, 12]);
    upstream.sends(22, 1, &aggregate);
    assert_eq!(upstream.events(), []);
}

#[test]
fn a_message_above_64_kib_is_dropped_by_a_publishing_client() {
    for (config, is_kept, code) in
        [(publisher(), false, "NetStream.Publish.Start"), (player(), true, "NetStream.Play.Start")]
    {
        let mut upstream = Upstream::starting_with(config);
        upstream.sends(9, 1, &[0x27; 65_537]);
        assert_eq!(upstream.events().len(), usize::from(is_kept));
        let started = status("status", code, "");
        upstream.command(1, "onStatus", &[Amf::Number(0.0), Amf::Null, started]);
        assert_eq!(upstream.events(), [ClientEvent::Ready]);
    }
}

#[test]
fn a_shared_message_equals_one_written_for_each_upstream() {
    let ready = || {
        let mut upstream = Upstream::starting();
        upstream.written();
        let started = status("status", "NetStream.Publish.Start", "");
        upstream.command(1, "onStatus", &[Amf::Number(0.0), Amf::Null, started]);
        assert_eq!(upstream.events(), [ClientEvent::Ready]);
        upstream
    };
    let (mut alone, mut shared) = (ready(), ready());
    let metadata = Bytes::from_static(b"\x02\0\x0aonMetaData\x08\0\0\0\0\0\0\x09");
    let frame = Bytes::from(vec![0x5a; 100_000]);
    for (kind, header, payload) in [
        (MediaKind::Script, &[][..], &metadata),
        (MediaKind::Video, &[0x17, 1, 0, 0, 0], &frame),
        (MediaKind::Audio, &[0xaf, 1], &metadata),
    ] {
        alone.client.send_media(kind, 0x0100_0000, header, payload);
        shared.client.send_framed(&Framed::new(kind, 0x0100_0000, header, payload));
    }
    assert!(alone.written() == shared.written());
}

#[test]
fn a_player_recognises_the_end_of_its_stream_by_the_control_message_alone() {
    let stream_eof = |stream| [2, 0, 0, 0, 0, 0, 6, 4, 0, 0, 0, 0, 0, 1, 0, 0, 0, stream];
    let ends = |config, code, stream| {
        let mut upstream = Upstream::starting_with(config);
        upstream.answers("onStatus", 0.0, &[Amf::Null, status("status", code, "")]);
        assert_eq!(upstream.events(), [ClientEvent::Ready]);
        upstream.says(&stream_eof(stream));
        upstream.events()
    };
    let ended = ClientEvent::Ended { code: "StreamEOF".into(), description: String::new() };
    let plays = "NetStream.Play.Start";
    assert_eq!(ends(player(), plays, 1), [ended, ClientEvent::Close]);
    assert_eq!(ends(player(), plays, 2), [], "of another stream");
    assert_eq!(ends(publisher(), "NetStream.Publish.Start", 1), []);
}
