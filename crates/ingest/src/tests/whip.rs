//! WHIP publishers on real UDP sockets, players by RTMP.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use headgate_peer::{Event, Publisher, Settings};
use headgate_rtmp::{MediaKind, MediaMessage};

use super::peer::Peer;
use super::whip_wire::Wire;
use super::{Core, PATIENCE};
use crate::{EndReason, Hold, ParsedOffer, WhipPublish, parse_offer};

pub(super) const SPS: &[u8] = &[0x67, 0x42, 0xc0, 0x1f, 0x8c, 0x8d, 0x40, 0x50, 0x1e, 0xd0, 0x0f];
pub(super) const PPS: &[u8] = &[0x68, 0xce, 0x3c, 0x80];
/// 20 ms of silence, mono (RFC 6716 3.1).
pub(super) const SILENCE: &[u8] = &[0xf8, 0xff, 0xfe];
/// What precedes an Opus packet in an Enhanced RTMP tag body.
pub(super) const OPUS_HEADER: &[u8] = b"\x91Opus";

/// A publisher that runs in its own thread until it is stopped.
pub(super) struct Broadcaster {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<(u32, bool)>,
}

impl Broadcaster {
    /// Opens `name` as `client_id` and publishes 25 video frames and 50 audio packets a second.
    pub(super) fn start(core: &Core, client_id: u64, name: &str) -> Self {
        Self::start_by(core, client_id, name, false)
    }

    /// The same over TCP.
    fn start_by(core: &Core, client_id: u64, name: &str, is_tcp: bool) -> Self {
        let mut publisher = Publisher::new(Settings::default()).expect("a publisher");
        let publish = publish_of(
            client_id,
            name,
            parse_offer(&publisher.offer()).1.expect("an acceptable offer"),
        );
        let answer = core.ingest.open_whip(publish).expect("an acceptable offer");
        publisher.handle_answer(Instant::now(), &answer).expect("an acceptable answer");
        Self::run(publisher, is_tcp)
    }

    /// Runs a publisher that has handled the core's SDP, until it is stopped.
    pub(super) fn run(publisher: Publisher, is_tcp: bool) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let stops = stop.clone();
        let thread = thread::spawn(move || broadcast(publisher, is_tcp, &stops));
        Self { stop, thread }
    }

    /// Stops it; returns the number of audio packets sent, and whether the server closed DTLS.
    pub(super) fn stop(self) -> (u32, bool) {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().expect("the publisher")
    }
}

fn broadcast(mut publisher: Publisher, is_tcp: bool, stop: &AtomicBool) -> (u32, bool) {
    let mut wire = Wire::open(is_tcp);
    let (mut sounds, mut pictures, mut is_closed) = (0, 0, false);
    let mut connected_at = None;
    while !stop.load(Ordering::Relaxed) && !is_closed {
        while let Some((to, datagram)) = publisher.poll_transmit() {
            wire.send(to, &datagram);
        }
        if let Some(datagram) = wire.receive() {
            publisher.handle_datagram(Instant::now(), &datagram);
        }
        let now = Instant::now();
        publisher.handle_timeout(now);
        while let Some(event) = publisher.poll_event() {
            match event {
                Event::Connected => connected_at = Some(now),
                Event::Closed => is_closed = true,
                Event::KeyframeWanted | Event::Nack(_) | Event::TransportFeedback => {}
            }
        }
        let Some(at) = connected_at else { continue };
        let elapsed = u32::try_from((now - at).as_millis()).expect("a short test");
        while sounds < elapsed / 20 {
            publisher.send_audio(now, sounds * 960, SILENCE);
            sounds += 1;
        }
        while pictures < elapsed / 40 {
            let mut nal = if pictures % 25 == 0 { vec![0x65, 0x88] } else { vec![0x41, 0x9a] };
            nal.resize(1500, pictures as u8);
            let sets = [SPS, PPS, &nal];
            let nals = if pictures % 25 == 0 { &sets[..] } else { &sets[2..] };
            publisher.send_video(now, pictures * 3600, nals);
            pictures += 1;
        }
    }
    if !is_closed {
        publisher.close(Instant::now());
    }
    while let Some((to, datagram)) = publisher.poll_transmit() {
        wire.send(to, &datagram);
    }
    (sounds, is_closed)
}

/// A WHIP publish without upstreams.
pub(super) fn publish_of(client_id: u64, name: &str, offer: ParsedOffer) -> WhipPublish {
    WhipPublish {
        client_id,
        name: name.into(),
        offer,
        upstreams: Vec::new(),
        stereo: false,
        start_bitrate_kbps: 2000,
        max_bitrate_kbps: 0,
        audio_bitrate: None,
        connect_info: Vec::new(),
        hold: Hold::default(),
    }
}

pub(super) fn wait_until(what: &str, mut is_true: impl FnMut() -> bool) {
    let until = Instant::now() + PATIENCE;
    while !is_true() {
        assert!(Instant::now() < until, "{what}");
        thread::sleep(Duration::from_millis(5)); // between two looks
    }
}

/// Plays to the end of the stream in a thread.
pub(super) fn watch(player: Peer) -> JoinHandle<Vec<MediaMessage>> {
    listen(player, |_| false).0
}

/// Plays to the end of the stream in a thread, and counts these messages as they arrive.
pub(super) fn listen(
    mut player: Peer,
    counts: impl Fn(&MediaMessage) -> bool + Send + 'static,
) -> (JoinHandle<Vec<MediaMessage>>, Arc<AtomicUsize>) {
    player.wait_ready();
    let heard = Arc::new(AtomicUsize::new(0));
    let count = heard.clone();
    let reader = thread::spawn(move || {
        player.watch_to_end(|message| {
            if counts(message) {
                count.fetch_add(1, Ordering::Relaxed);
            }
        })
    });
    (reader, heard)
}

fn is_audio(message: &MediaMessage) -> bool {
    message.kind == MediaKind::Audio
}

pub(super) fn audio(media: &[MediaMessage]) -> impl Iterator<Item = &[u8]> {
    media.iter().filter(|m| m.kind == MediaKind::Audio).map(|m| &m.payload[..])
}

#[test]
fn players_that_list_opus_get_it_unchanged_and_others_get_aac_at_the_same_time() {
    let mut core = Core::start(2);
    let broadcaster = Broadcaster::start(&core, 1, "cam");
    wait_until("media arrives", || core.ingest.snapshot(1).is_some_and(|s| s.bytes_in > 20_000));
    assert_eq!(core.ingest.transcoders(), 0, "no player needs AAC yet");
    // The players are distributed to both workers in turn.
    let opus: Vec<_> =
        (0..2).map(|_| listen(Peer::play_opus(core.port(), "cam"), is_audio)).collect();
    let has_heard = |(_, heard): &(_, Arc<AtomicUsize>)| heard.load(Ordering::Relaxed) > 100;
    wait_until("they receive audio", || opus.iter().all(has_heard));
    assert_eq!(core.ingest.transcoders(), 0, "they get it unchanged");
    let aac: Vec<_> = (0..2).map(|_| listen(Peer::play(core.port(), "cam"), is_audio)).collect();
    wait_until("a transcoder runs", || core.ingest.transcoders() == 1);
    wait_until("they receive audio too", || aac.iter().all(has_heard));
    broadcaster.stop();
    for (player, _) in opus {
        let media = player.join().expect("a player");
        let packets: Vec<_> = audio(&media).filter(|body| body.starts_with(OPUS_HEADER)).collect();
        assert!(packets.len() > 90, "{}", packets.len());
        assert!(packets.iter().all(|body| &body[5..] == SILENCE));
        assert!(!audio(&media).any(|body| body[0] == 0xaf));
    }
    for (player, _) in aac {
        let media = player.join().expect("a player");
        let first = audio(&media).next().expect("sound");
        assert_eq!(first, [0xaf, 0, 0x11, 0x88], "mono stays mono");
        let frames = audio(&media).filter(|body| body.starts_with(&[0xaf, 1])).count();
        assert!(frames > 80, "{frames}");
        assert!(!audio(&media).any(|body| body[0] != 0xaf));
        let times: Vec<_> =
            media.iter().filter(|m| m.kind == MediaKind::Audio).map(|m| m.timestamp).collect();
        assert!(times.is_sorted());
    }
    core.ended(1);
    wait_until("the transcoder ends", || core.ingest.transcoders() == 0);
}

#[test]
fn a_transcoder_ends_with_the_last_player_that_needs_it() {
    let mut core = Core::start(1);
    let broadcaster = Broadcaster::start(&core, 1, "cam");
    wait_until("media arrives", || core.ingest.snapshot(1).is_some_and(|s| s.bytes_in > 20_000));
    let mut player = Peer::play(core.port(), "cam");
    player.wait_ready();
    wait_until("a transcoder runs", || core.ingest.transcoders() == 1);
    player.reset();
    wait_until("it ends", || core.ingest.transcoders() == 0);
    broadcaster.stop();
    assert_eq!(core.ended(1).reason, EndReason::Unpublished);
}

#[test]
fn an_end_by_the_gateway_is_sent_to_the_client_and_reported_within_a_second() {
    let mut core = Core::start(1);
    let broadcaster = Broadcaster::start(&core, 1, "cam");
    wait_until("media arrives", || core.ingest.snapshot(1).is_some_and(|s| s.bytes_in > 20_000));
    let asked = Instant::now();
    core.ingest.end(1, EndReason::Kicked, String::new());
    assert_eq!(core.ended(1).reason, EndReason::Kicked);
    assert!(asked.elapsed() < Duration::from_secs(1));
    wait_until("the client is notified", || broadcaster.thread.is_finished());
    assert!(broadcaster.stop().1);
}

#[test]
fn a_client_that_never_comes_ends_without_media() {
    let mut core = Core::start(1);
    let publisher = Publisher::new(Settings::default()).expect("a publisher");
    let publish =
        publish_of(1, "cam", parse_offer(&publisher.offer()).1.expect("an acceptable offer"));
    core.ingest.open_whip(publish).expect("an acceptable offer");
    let ended = core.ended(1);
    assert_eq!(
        (ended.reason, ended.bytes_in),
        (EndReason::HandshakeFailed(headgate_whip::HandshakeFault::Unreachable), 0)
    );
}

#[test]
fn media_arrives_by_tcp_on_the_same_port_and_the_closing_alert_leaves_there() {
    let mut core = Core::start(2);
    let broadcasters: Vec<_> =
        (1..=2).map(|id| Broadcaster::start_by(&core, id, &format!("cam{id}"), true)).collect();
    wait_until("media arrives", || {
        (1..=2).all(|id| core.ingest.snapshot(id).is_some_and(|of| of.bytes_in > 100_000))
    });
    wait_until("diagnostics", || {
        let shown = core.ingest.whip_diagnostics(1);
        shown.is_some_and(|of| of.path.is_some_and(|path| path.is_tcp) && of.is_connected)
    });
    let video = core.ingest.whip_diagnostics(2).and_then(|of| of.video).expect("a picture");
    assert_eq!((video.profile, video.track.lost), ("Constrained Baseline", 0));
    assert!(core.ingest.is_whip_connected(1));
    core.ingest.end(1, EndReason::Kicked, String::new());
    core.ended(1);
    wait_until("it is forgotten", || {
        !core.ingest.is_whip_connected(1) && core.ingest.whip_diagnostics(1).is_none()
    });
    wait_until("the goodbye", || broadcasters[0].thread.is_finished());
    let closed: Vec<_> = broadcasters.into_iter().map(|of| of.stop().1).collect();
    assert_eq!(closed, [true, false]);
    core.ended(2);
}

#[test]
fn a_second_address_of_the_machine_answers_over_udp() {
    let any = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0));
    let mut core = Core::start_at(any, Ipv4Addr::new(127, 0, 0, 2).into());
    let broadcaster = Broadcaster::start(&core, 1, "cam");
    wait_until("media arrives", || core.ingest.snapshot(1).is_some_and(|s| s.bytes_in > 20_000));
    core.ingest.end(1, EndReason::Kicked, String::new());
    core.ended(1);
    wait_until("the client is notified", || broadcaster.thread.is_finished());
    assert!(broadcaster.stop().1, "the last alert comes from there, too");
}

#[test]
fn tcp_connections_that_do_not_authenticate_are_closed() {
    let core = Core::start(1);
    let address = (Ipv4Addr::LOCALHOST, core.ingest.media_ports()[0]);
    let junk: [&[u8]; 4] = [
        &[0, 4, 1, 2, 3, 4],
        &[0xff, 0xff, 0],
        &[0, 0, 0, 1, 0x80],
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
    ];
    for bytes in junk {
        let mut stream = std::net::TcpStream::connect(address).expect("taken");
        stream.set_read_timeout(Some(PATIENCE)).expect("an option");
        std::io::Write::write_all(&mut stream, bytes).expect("written");
        let read = std::io::Read::read(&mut stream, &mut [0; 64]);
        assert!(
            matches!(read, Ok(0))
                || read.is_err_and(|e| e.kind() == std::io::ErrorKind::ConnectionReset)
        );
    }
    // A connection that sends nothing at all is closed in time.
    let mut silent = std::net::TcpStream::connect(address).expect("taken");
    silent.set_read_timeout(Some(PATIENCE)).expect("an option");
    assert_eq!(std::io::Read::read(&mut silent, &mut [0; 64]).expect("closed"), 0);
}

#[test]
fn data_from_the_broadcaster_reaches_players_and_joins_its_metadata() {
    let mut core = Core::start(2);
    let broadcaster = Broadcaster::start(&core, 1, "cam");
    wait_until("media arrives", || core.ingest.snapshot(1).is_some_and(|s| s.bytes_in > 20_000));
    let (player, heard) = listen(Peer::play_opus(core.port(), "cam"), |m| {
        m.payload.windows(5).any(|of| of == b"scene")
    });
    wait_until("it plays", || core.ingest.snapshot(1).is_some_and(|s| s.subscribers == 1));
    let cue = b"\x02\x00\x0aonCuePoint\x03\x00\x01a\x01\x01\x00\x00\x09";
    let metadata = b"\x02\x00\x0aonMetaData\x03\x00\x05scene\x02\x00\x01x\x00\x00\x09";
    assert!(core.ingest.send_whip_data(1, bytes::Bytes::from_static(cue)));
    assert!(core.ingest.send_whip_data(1, bytes::Bytes::from_static(metadata)));
    wait_until("the metadata arrives", || heard.load(Ordering::Relaxed) > 0);
    let (late, heard) = listen(Peer::play_opus(core.port(), "cam"), |m| m.kind == MediaKind::Video);
    wait_until("the late one gets media", || heard.load(Ordering::Relaxed) > 0);
    broadcaster.stop();
    core.ended(1);
    assert!(!core.ingest.send_whip_data(1, bytes::Bytes::from_static(cue)));
    let script = |media: Vec<MediaMessage>| -> Vec<_> {
        media.into_iter().filter(|m| m.kind == MediaKind::Script).map(|m| m.payload).collect()
    };
    let has =
        |payload: &bytes::Bytes, words: &[u8]| payload.windows(words.len()).any(|of| of == words);
    let heard = script(player.join().expect("a player"));
    assert!(heard.iter().any(|payload| payload[..] == cue[..]), "{heard:?}");
    for heard in [heard, script(late.join().expect("a player"))] {
        let joined = heard.iter().any(|of| has(of, b"videocodecid") && has(of, b"scene"));
        assert!(joined, "{heard:?}");
    }
}
