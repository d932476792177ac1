//! Where pushes join a stream whose keyframes are far apart: upstreams that accept late, come late or come back.

use std::time::Duration;

use headgate_rtmp::{MediaKind, MediaMessage};

use super::super::message::Message;
use super::peer::{Peer, Remote};
use super::world::{URL, World, upstream};
use crate::EndReason;
use crate::sample::{AVC_HEADER, picture};
use crate::switchboard::SessionKey;

/// AudioSpecificConfig of AAC-LC at 48 kHz in stereo, in its tag body.
const AAC_HEADER: &[u8] = &[0xaf, 0, 0x11, 0x90];

/// A publisher with pictures every 40 ms and audio twice as often.
struct Sender {
    world: World,
    key: SessionKey,
    /// Pictures from one keyframe to the next.
    gop: u32,
    n: u32,
}

impl Sender {
    fn new(mut world: World, gop: u32, upstreams: &[&str]) -> Self {
        let key = world.publisher("a", 1, upstreams);
        world.send(key, MediaKind::Video, 0, AVC_HEADER);
        world.send(key, MediaKind::Audio, 0, AAC_HEADER);
        Self { world, key, gop, n: 0 }
    }

    /// A world whose upstreams leave the publish request unanswered.
    fn unanswered(gop: u32) -> Self {
        let mut world = World::new();
        world.upstream.1 = false;
        Self::new(world, gop, &[URL])
    }

    fn run(&mut self, seconds: f64) {
        for _ in 0..(seconds * 25.0) as u32 {
            let n = self.n;
            let body = picture(n.is_multiple_of(self.gop), n, 0);
            self.world.send(self.key, MediaKind::Video, n * 40, &body);
            for half in [0, 20] {
                let sound = [&[0xaf, 1], &n.to_be_bytes()[..]].concat();
                self.world.send(self.key, MediaKind::Audio, n * 40 + half, &sound);
                self.world.pass(Duration::from_millis(20));
            }
            self.n += 1;
        }
    }

    fn add_upstream(&mut self) {
        let publish = self.world.publishes.find(1).expect("live");
        let record = publish.upstreams.open(upstream(URL), self.world.now);
        let message = Message::AddUpstream { stream: publish.stream, record };
        self.world.switchboard.handle_message(message);
        self.world.settle();
    }

    /// The upstream accepts.
    fn accept(&mut self) -> SessionKey {
        let key = self.world.upstream_peer().expect("connected");
        let Some(Peer { remote: Remote::Upstream(server), .. }) = self.world.peers.get_mut(&key)
        else {
            panic!("an upstream");
        };
        server.allow();
        self.world.settle();
        key
    }

    /// Audio and video that an upstream got, without headers.
    fn media(&self, upstream: SessionKey) -> Vec<&MediaMessage> {
        let of = self.world.peers[&upstream].media.iter();
        of.filter(|m| m.kind != MediaKind::Script && m.payload[1] == 1).collect()
    }

    /// Asserts that an upstream got the pictures from `first` to the newest, no audio before them, and no hole in it.
    #[track_caller]
    fn assert_whole(&self, upstream: SessionKey, first: u32) {
        assert_eq!(self.world.frames(upstream), (first..self.n).collect::<Vec<_>>());
        let media = self.media(upstream);
        assert_eq!((media[0].kind, media[0].payload[0]), (MediaKind::Video, 0x17));
        let sound: Vec<_> = media.iter().filter(|m| m.kind == MediaKind::Audio).collect();
        let times: Vec<_> = sound.iter().map(|m| m.timestamp).collect();
        let all: Vec<_> = (first * 2..self.n * 2).map(|n| n * 20).collect();
        assert_eq!(times, all);
        let headers = self.world.peers[&upstream].media.iter();
        let headers = headers.filter(|m| m.kind != MediaKind::Script && m.payload[1] == 0);
        assert_eq!(headers.count(), 2, "one configuration of each track");
    }
}

#[test]
fn an_upstream_that_accepts_late_gets_the_cached_group() {
    for (gop, seconds) in [(250, 3.5), (250, 7.0), (u32::MAX, 5.0), (u32::MAX, 7.9)] {
        let mut sender = Sender::unanswered(gop);
        sender.run(seconds);
        let upstream = sender.accept();
        sender.run(1.0);
        sender.assert_whole(upstream, 0);
        let dropped = sender.world.snapshot(1).dropped_frames;
        assert_eq!(dropped, 0, "what it gets later is not dropped");
    }
    let mut sender = Sender::unanswered(100);
    sender.run(6.0);
    let upstream = sender.accept();
    sender.run(1.0);
    sender.assert_whole(upstream, 100);
}

#[test]
fn an_upstream_that_accepts_soon_gets_the_stream_from_its_first_frame() {
    let mut sender = Sender::unanswered(10);
    sender.run(2.5);
    let upstream = sender.accept();
    sender.run(1.0);
    sender.assert_whole(upstream, 0);
}

#[test]
fn an_upstream_added_in_mid_stream_gets_the_cached_group_whenever_it_accepts() {
    for (before, until_accepted) in [(1.0, 0.1), (1.0, 5.0), (6.0, 1.5)] {
        let mut world = World::new();
        world.upstream.1 = false;
        let mut sender = Sender::new(world, 250, &[]);
        sender.run(before);
        sender.add_upstream();
        sender.run(until_accepted);
        let upstream = sender.accept();
        sender.run(1.0);
        sender.assert_whole(upstream, 0);
    }
}

#[test]
fn an_upstream_that_comes_back_between_distant_keyframes_gets_the_cached_group_again() {
    for gop in [250, u32::MAX] {
        let mut sender = Sender::new(World::new(), gop, &[URL]);
        sender.run(3.0);
        let first = sender.world.upstream_peer().expect("connected");
        sender.world.hang_up(first);
        sender.run(2.0);
        let again = sender.world.upstream_peer().expect("connected again");
        sender.run(1.0);
        sender.assert_whole(again, 0);
    }
}

#[test]
fn an_upstream_that_comes_back_waits_for_a_keyframe_that_comes_soon() {
    let mut sender = Sender::new(World::new(), 50, &[URL]);
    sender.run(5.0);
    let first = sender.world.upstream_peer().expect("connected");
    sender.world.hang_up(first);
    sender.run(3.0);
    let again = sender.world.upstream_peer().expect("connected again");
    let start = sender.world.frames(again)[0];
    assert!(start >= 150 && start.is_multiple_of(50), "{start}");
    sender.assert_whole(again, start);
}

#[test]
fn without_the_cache_audio_waits_for_the_next_keyframe() {
    for (gop, seconds, want) in [(100, 5.0, 200), (100, 1.0, 100), (250, 9.0, 250)] {
        let mut world = World::new();
        world.switchboard.sessions.context.caches_gop = false;
        world.upstream.1 = false;
        let mut sender = Sender::new(world, gop, &[]);
        sender.run(0.2);
        sender.add_upstream();
        sender.run(seconds);
        let upstream = sender.accept();
        sender.run(6.0);
        sender.assert_whole(upstream, want);
    }
}

#[test]
fn audio_goes_alone_after_ten_seconds_if_no_keyframe_comes() {
    let mut world = World::new();
    world.switchboard.sessions.context.caches_gop = false;
    let mut sender = Sender::new(world, u32::MAX, &[URL]);
    sender.run(1.0);
    let first = sender.world.upstream_peer().expect("connected");
    sender.world.hang_up(first);
    sender.run(9.0);
    let again = sender.world.upstream_peer().expect("connected again");
    assert_eq!(sender.media(again).len(), 0);
    sender.run(5.0);
    assert!(sender.media(again).len() > 100 && sender.world.frames(again).is_empty());
}

#[test]
fn audio_of_a_stream_that_has_had_no_video_is_not_withheld() {
    let mut world = World::new();
    world.upstream.1 = false;
    let mut sender = Sender::new(world, 25, &[URL]);
    for n in 0..250 {
        sender.world.send(sender.key, MediaKind::Audio, n * 20, &[0xaf, 1, 0, 0, 0, 0]);
        sender.world.pass(Duration::from_millis(20));
    }
    let upstream = sender.accept();
    let got = sender.media(upstream).len();
    assert!((48..=52).contains(&got), "the last second of it: {got}");
}

#[test]
fn an_upstream_that_accepts_just_after_the_end_of_a_publish_gets_its_last_group() {
    let mut sender = Sender::unanswered(250);
    sender.run(5.0);
    sender.world.hang_up(sender.key);
    sender.world.pass(Duration::from_millis(300));
    let upstream = sender.accept();
    sender.world.pass(Duration::from_millis(100));
    assert_eq!(sender.world.frames(upstream), (0..125).collect::<Vec<_>>());
    sender.world.pass(Duration::from_secs(3));
    assert_eq!(sender.world.reasons(), [(1, EndReason::BroadcasterLeft)]);
    assert!(sender.world.switchboard.is_empty());
}
