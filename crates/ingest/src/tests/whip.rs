//! WHIP publishers on real UDP sockets, players by RTMP.

use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use headgate_peer::{Event, Publisher, Settings};
use headgate_rtmp::{MediaKind, MediaMessage};

use super::peer::Peer;
use super::{Core, FORCED_PANIC, PATIENCE};
use crate::{EndReason, WhipPublish};

const SPS: &[u8] = &[0x67, 0x42, 0xc0, 0x1f, 0x8c, 0x8d, 0x40, 0x50];
const PPS: &[u8] = &[0x68, 0xce, 0x3c, 0x80];
/// 20 ms of silence, mono (RFC 6716 3.1).
const SILENCE: &[u8] = &[0xf8, 0xff, 0xfe];
/// What precedes an Opus packet in an Enhanced RTMP tag body.
const OPUS_HEADER: &[u8] = b"\x91Opus";

/// A publisher that runs in a thread of its own until it is told to stop.
struct Broadcaster {
    stop: Arc<AtomicBool>,
    panics: Arc<AtomicBool>,
    thread: JoinHandle<(u32, bool)>,
}

impl Broadcaster {
    /// Opens `name` as `client_id` and publishes 25 pictures and 50 sounds a second.
    fn start(core: &Core, client_id: u64, name: &str) -> Self {
        let mut publisher = Publisher::new(Settings::default()).expect("a publisher");
        let publish = WhipPublish {
            client_id,
            name: name.into(),
            offer: publisher.offer(),
            upstreams: Vec::new(),
            stereo: false,
            start_bitrate_kbps: 2000,
            max_bitrate_kbps: 0,
            audio_bitrate: 128_000,
        };
        let answer = core.ingest.open_whip(publish).expect("an acceptable offer");
        publisher.handle_answer(Instant::now(), &answer).expect("an acceptable answer");
        let (stop, panics) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        let (stops, panicking) = (stop.clone(), panics.clone());
        let thread = thread::spawn(move || broadcast(publisher, &stops, &panicking));
        Self { stop, panics, thread }
    }

    /// Sounds sent, and whether the server said goodbye.
    fn stop(self) -> (u32, bool) {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().expect("the publisher")
    }
}

fn broadcast(mut publisher: Publisher, stop: &AtomicBool, panics: &AtomicBool) -> (u32, bool) {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a free port");
    socket.set_read_timeout(Some(Duration::from_millis(2))).expect("a socket option");
    let (mut sounds, mut pictures, mut is_closed) = (0, 0, false);
    let mut connected_at = None;
    let mut buffer = [0; 2048];
    while !stop.load(Ordering::Relaxed) && !is_closed {
        while let Some((to, datagram)) = publisher.poll_transmit() {
            let _ = socket.send_to(&datagram, to);
        }
        if let Ok((length, _)) = socket.recv_from(&mut buffer) {
            publisher.handle_datagram(Instant::now(), &buffer[..length]);
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
            if panics.swap(false, Ordering::Relaxed) {
                nal.extend_from_slice(FORCED_PANIC);
            }
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
        let _ = socket.send_to(&datagram, to);
    }
    (sounds, is_closed)
}

fn wait_until(what: &str, is_true: impl Fn() -> bool) {
    let until = Instant::now() + PATIENCE;
    while !is_true() {
        assert!(Instant::now() < until, "{what}");
        thread::sleep(Duration::from_millis(5));
    }
}

/// Plays to the end of the stream, and counts its sound as it comes.
fn listen(mut player: Peer) -> (JoinHandle<Vec<MediaMessage>>, Arc<AtomicUsize>) {
    player.wait_ready();
    let heard = Arc::new(AtomicUsize::new(0));
    let count = heard.clone();
    let reader = thread::spawn(move || {
        player.watch_to_end(|message| {
            if message.kind == MediaKind::Audio {
                count.fetch_add(1, Ordering::Relaxed);
            }
        })
    });
    (reader, heard)
}

fn audio(media: &[MediaMessage]) -> impl Iterator<Item = &[u8]> {
    media.iter().filter(|m| m.kind == MediaKind::Audio).map(|m| &m.payload[..])
}

#[test]
fn players_that_list_opus_get_it_untouched_and_others_get_aac_at_the_same_time() {
    let mut core = Core::start(2);
    let broadcaster = Broadcaster::start(&core, 1, "cam");
    wait_until("media comes", || core.ingest.snapshot(1).is_some_and(|s| s.bytes_in > 20_000));
    assert_eq!(core.ingest.transcoders(), 0, "nobody needs AAC yet");
    // Dealt to both workers in turn.
    let opus: Vec<_> = (0..2).map(|_| listen(Peer::play_opus(core.port(), "cam"))).collect();
    let has_heard = |(_, heard): &(_, Arc<AtomicUsize>)| heard.load(Ordering::Relaxed) > 100;
    wait_until("they hear something", || opus.iter().all(has_heard));
    assert_eq!(core.ingest.transcoders(), 0, "they take it as it comes");
    let aac: Vec<_> = (0..2).map(|_| listen(Peer::play(core.port(), "cam"))).collect();
    wait_until("a transcoder runs", || core.ingest.transcoders() == 1);
    wait_until("they hear something as well", || aac.iter().all(has_heard));
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
    wait_until("media comes", || core.ingest.snapshot(1).is_some_and(|s| s.bytes_in > 20_000));
    let mut player = Peer::play(core.port(), "cam");
    player.wait_ready();
    wait_until("a transcoder runs", || core.ingest.transcoders() == 1);
    player.reset();
    wait_until("it ends", || core.ingest.transcoders() == 0);
    broadcaster.stop();
    assert_eq!(core.ended(1).reason, EndReason::Unpublished);
}

#[test]
fn an_end_from_the_gateway_is_told_to_the_client_and_reported_within_a_second() {
    let mut core = Core::start(1);
    let broadcaster = Broadcaster::start(&core, 1, "cam");
    wait_until("media comes", || core.ingest.snapshot(1).is_some_and(|s| s.bytes_in > 20_000));
    let asked = Instant::now();
    core.ingest.end(1, EndReason::Kicked, String::new());
    assert_eq!(core.ended(1).reason, EndReason::Kicked);
    assert!(asked.elapsed() < Duration::from_secs(1));
    wait_until("the client hears of it", || broadcaster.thread.is_finished());
    assert!(broadcaster.stop().1);
}

#[test]
fn a_panic_in_one_session_ends_that_session_only() {
    let mut core = Core::start(1);
    let (faulty, neighbour) =
        (Broadcaster::start(&core, 1, "cam"), Broadcaster::start(&core, 2, "other"));
    wait_until("media comes", || {
        [1, 2].iter().all(|id| core.ingest.snapshot(*id).is_some_and(|s| s.bytes_in > 20_000))
    });
    faulty.panics.store(true, Ordering::Relaxed);
    assert_eq!(core.ended(1).reason, EndReason::InternalError);
    let before = core.ingest.snapshot(2).expect("it lives").bytes_in;
    wait_until("the neighbour goes on", || {
        core.ingest.snapshot(2).is_some_and(|s| s.bytes_in > before + 20_000)
    });
    faulty.stop();
    neighbour.stop();
    core.ended(2);
}

#[test]
fn a_client_that_never_comes_ends_without_media() {
    let mut core = Core::start(1);
    let publisher = Publisher::new(Settings::default()).expect("a publisher");
    let publish = WhipPublish {
        client_id: 1,
        name: b"cam".to_vec(),
        offer: publisher.offer(),
        upstreams: Vec::new(),
        stereo: false,
        start_bitrate_kbps: 2000,
        max_bitrate_kbps: 0,
        audio_bitrate: 128_000,
    };
    core.ingest.open_whip(publish).expect("an acceptable offer");
    let ended = core.ended(1);
    assert_eq!((ended.reason, ended.bytes_in), (EndReason::HandshakeFailed, 0));
}
