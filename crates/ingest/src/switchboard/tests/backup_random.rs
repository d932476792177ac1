//! Publishes and backups of one name that come, go, fall silent and are switched in random order, with invariants
//! checked throughout.

use std::time::{Duration, SystemTime};

use headgate_rtmp::MediaKind;

use super::super::message::Message;
use super::super::{EndReason, SessionKey};
use super::peer::Remote;
use super::world::{AAC_FRAME, AAC_HEADER, AVC_HEADER, URL, World};

/// Number of sequences, and events in each.
const SEQUENCES: u64 = 40;
const EVENTS: u32 = 40;

/// A running publisher.
struct Running {
    key: SessionKey,
    client_id: u64,
    next: u32,
    /// Whether it currently sends nothing.
    is_silent: bool,
}

struct Scene {
    world: World,
    /// The publish and its backup.
    running: [Option<Running>; 2],
    players: Vec<SessionKey>,
    opened: u64,
    seed: u64,
}

impl Scene {
    /// A random number below `of`.
    fn draw(&mut self, of: u64) -> u64 {
        // Knuth's MMIX generator; its low bits are poor.
        self.seed = self
            .seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.seed >> 33) % of
    }

    /// Opens a publish as the gateway does: beside the other one if that runs, else as the successor of a held one.
    fn open(&mut self, slot: usize) {
        self.opened += 1;
        let (client_id, world) = (self.opened, &mut self.world);
        let other = self.running[1 - slot].as_ref().map(|other| other.client_id);
        let held = (1..client_id).rev().find(|id| world.publishes.find_held(*id).is_some());
        let near = world.near(held, other.filter(|id| world.publishes.find(*id).is_some()));
        let key = world.broadcaster("a", client_id, near, &[URL]);
        world.send(key, MediaKind::Video, 0, AVC_HEADER);
        world.send(key, MediaKind::Audio, 0, AAC_HEADER);
        let next = u32::try_from(self.draw(100_000)).expect("small");
        self.running[slot] = Some(Running { key, client_id, next, is_silent: false });
    }

    fn send(&mut self, frames: u64) {
        for _ in 0..frames {
            for of in self.running.iter_mut().flatten().filter(|of| !of.is_silent) {
                self.world.send_frame(of.key, of.next, 100);
                self.world.send(of.key, MediaKind::Audio, of.next * 40, AAC_FRAME);
                of.next += 1;
            }
            self.world.pass(Duration::from_millis(40));
        }
    }

    fn step(&mut self) {
        let slot = usize::from(self.draw(2) == 0);
        match (self.draw(8), self.running[slot].take()) {
            (_, None) => self.open(slot),
            (0, Some(of)) => self.world.hang_up(of.key),
            (1, Some(of)) => {
                if let Some(record) = self.world.publishes.find(of.client_id) {
                    let (reason, words) = (EndReason::Kicked, "");
                    self.world.switchboard.end_publish(record.stream, reason, words);
                }
                self.world.settle();
                self.world.hang_up(of.key);
            }
            (2 | 3, Some(of)) => {
                if let Some(record) = self.world.publishes.find(of.client_id) {
                    self.world.switchboard.handle_message(Message::SwitchTo(record.stream));
                    self.world.settle();
                }
                self.running[slot] = Some(of);
            }
            (4, Some(of)) => {
                self.running[slot] = Some(Running { is_silent: !of.is_silent, ..of });
            }
            (5, of) => {
                self.running[slot] = of;
                let player = self.world.player("a");
                self.players.push(player);
            }
            (6, of) => {
                self.running[slot] = of;
                if let Some(player) = self.players.pop() {
                    self.world.hang_up(player);
                }
            }
            (_, of) => self.running[slot] = of,
        }
        let frames = self.draw(60);
        self.send(frames);
        self.forget_ended();
        self.assert_all_is_well();
    }

    /// Forgets publishers that ended because they were silent for too long.
    fn forget_ended(&mut self) {
        for slot in &mut self.running {
            let has_ended =
                |of: &Running| self.world.ended.iter().any(|ended| ended.client_id == of.client_id);
            if slot.as_ref().is_some_and(has_ended) {
                *slot = None;
            }
        }
    }

    fn assert_all_is_well(&self) {
        let records = self.running.iter().flatten();
        let records = records.filter_map(|of| self.world.publishes.find(of.client_id));
        let snapshots: Vec<_> =
            records.map(|of| of.snapshot(self.world.now, SystemTime::now())).collect();
        assert!(snapshots.iter().filter(|of| of.is_on_air).count() <= 1, "one is on air");
        for standby in snapshots.iter().filter(|of| !of.is_on_air) {
            assert_eq!((standby.subscribers, standby.upstreams.len()), (0, 0));
        }
        for (key, peer) in &self.world.peers {
            let is_reader =
                matches!(peer.remote, Remote::Upstream(_)) || self.players.contains(key);
            for kind in [MediaKind::Video, MediaKind::Audio].into_iter().filter(|_| is_reader) {
                let frames = peer.media.iter().filter(|of| of.kind == kind && of.payload[1] != 0);
                let times: Vec<_> = frames.map(|message| message.timestamp).collect();
                assert!(times.is_sorted(), "{kind:?} goes back: {times:?}");
            }
        }
    }
}

#[test]
fn whatever_happens_time_never_goes_back_one_is_on_air_and_every_end_is_reported_once() {
    for seed in 0..SEQUENCES {
        let mut world = World::new();
        world.window = Duration::from_secs(if seed % 3 == 0 { 0 } else { 10 });
        let (running, players) = ([None, None], Vec::new());
        let mut scene = Scene { world, running, players, opened: 0, seed };
        for _ in 0..EVENTS {
            scene.step();
        }
        for of in scene.running.iter_mut().filter_map(Option::take) {
            scene.world.hang_up(of.key);
        }
        scene.world.pass(Duration::from_secs(25));
        assert!(scene.world.switchboard.is_empty(), "{seed}: something is left");
        let mut ended: Vec<_> = scene.world.ended.iter().map(|ended| ended.client_id).collect();
        ended.sort_unstable();
        assert_eq!(ended, (1..=scene.opened).collect::<Vec<_>>(), "{seed}");
        let held = scene.world.ended.iter().filter(|ended| ended.is_held).count();
        assert_eq!(scene.world.holds_ended.len(), held, "{seed}");
    }
}
