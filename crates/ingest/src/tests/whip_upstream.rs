//! What a WHIP publish sends its upstream besides media: its own data messages, and what is merged into the connect
//! command.

use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, TcpListener};
use std::sync::atomic::Ordering;

use bytes::Bytes;
use headgate_peer::{Publisher, Settings};
use headgate_rtmp::MediaKind;

use super::peer::Peer;
use super::whip::{Broadcaster, listen, publish_of, wait_until};
use super::{Core, PATIENCE};
use crate::{
    AddedUpstream, EndReason, Hold, Upstream, UpstreamSource, UpstreamUrl, WhipPublish, parse_offer,
};

const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
/// The one-byte header of a continuation chunk on the chunk stream of commands.
const FURTHER_CHUNK: u8 = 0xc3;

fn upstream(port: u16, source: UpstreamSource) -> Upstream {
    let url = format!("rtmp://127.0.0.1:{port}/live/out");
    let id = port.to_string();
    let url = UpstreamUrl::parse(&url).expect("an RTMP URL");
    Upstream { id, url, source, is_paused: false }
}

/// Answers a handshake; returns what follows, without continuation chunk headers, until it contains `words`.
fn connect_with(listener: &TcpListener, words: &[u8]) -> Vec<u8> {
    let (mut socket, _) = listener.accept().expect("the push");
    socket.set_read_timeout(Some(PATIENCE)).expect("an option");
    let mut hello = [0; 1537];
    socket.read_exact(&mut hello).expect("C0 and C1");
    socket.write_all(&[&[3][..], &[0; 1536], &hello[1..]].concat()).expect("sent");
    let mut came = Vec::new();
    while !came.windows(words.len()).any(|of| of == words) {
        let mut buffer = [0; 4096];
        let length = socket.read(&mut buffer).unwrap_or(0);
        assert!(length > 0, "it is not in {came:?}");
        came.extend(buffer[..length].iter().filter(|byte| **byte != FURTHER_CHUNK));
    }
    came
}

#[test]
fn connect_info_joins_the_connect_command_to_its_own_upstream_and_to_no_other() {
    let mut core = Core::start(1);
    let publisher = Publisher::new(Settings::default()).expect("a publisher");
    let [own, other] = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").expect("a free port"));
    let port = |of: &TcpListener| of.local_addr().expect("bound").port();
    let offer = parse_offer(&publisher.offer()).1.expect("an acceptable offer");
    let publish = WhipPublish {
        upstreams: vec![
            upstream(port(&own), UpstreamSource::Own),
            upstream(port(&other), UpstreamSource::Deployment),
        ],
        connect_info: b"\x03\x00\x05event\x02\x00\x06spring\x00\x00\x09".to_vec(),
        ..publish_of(1, "cam", offer)
    };
    core.ingest.open_whip(publish).expect("an acceptable offer");
    for _ in 0..2 {
        let wanted = core.address_wanted();
        core.ingest.dial(wanted.push, vec![LOOPBACK]);
    }
    connect_with(&own, b"\x00\x05event\x02\x00\x06spring");
    // The connect command is complete at its object's end marker.
    let connect = connect_with(&other, b"\x00\x00\x09");
    assert!(!connect.windows(6).any(|of| of == b"spring"), "{connect:?}");
    core.ingest.end(1, EndReason::Kicked, String::new());
    core.ended(1);
}

#[test]
fn data_from_the_broadcaster_reaches_its_upstream() {
    let (mut core, mut other) = (Core::start(1), Core::start(1));
    let broadcaster = Broadcaster::start(&core, 1, "cam");
    wait_until("media arrives", || core.ingest.snapshot(1).is_some_and(|s| s.bytes_in > 20_000));
    let pushed = upstream(other.port(), UpstreamSource::Session);
    assert_eq!(core.ingest.add_upstream(1, pushed), AddedUpstream::Added);
    let wanted = core.address_wanted();
    core.ingest.dial(wanted.push, vec![LOOPBACK]);
    let request = other.request();
    other.ingest.allow(request.request, 7, Vec::new(), Hold::default());
    wait_until("it gets media", || other.ingest.snapshot(7).is_some_and(|s| s.bytes_in > 20_000));
    let cue = b"\x02\x00\x0aonCuePoint\x03\x00\x01a\x01\x01\x00\x00\x09";
    let (player, heard) =
        listen(Peer::play_opus(other.port(), "out"), |m| m.payload[..] == cue[..]);
    wait_until("it plays", || other.ingest.snapshot(7).is_some_and(|s| s.subscribers == 1));
    assert!(core.ingest.send_whip_data(1, Bytes::from_static(cue)));
    wait_until("the cue point arrives", || heard.load(Ordering::Relaxed) == 1);
    broadcaster.stop();
    core.ended(1);
    other.ended(7);
    let media = player.join().expect("a player");
    let mut said = media.iter().filter(|m| m.kind == MediaKind::Script);
    assert!(said.any(|message| message.payload[..] == cue[..]));
}
