//! A backup that was accepted by another worker than the stream that it stands by for, with players on both.

use std::ops::{Deref, DerefMut};
use std::time::Duration;

use headgate_rtmp::MediaKind;

use super::super::message::Message;
use super::super::{EndReason, SessionKey};
use super::workers::Workers;
use super::world::{AVC_HEADER, URL, World};

/// The main encoder and its upstream on the first worker, where the backup has moved, and a player on each.
struct Backup {
    workers: Workers,
    main: SessionKey,
    backup: SessionKey,
    upstream: SessionKey,
    players: [SessionKey; 2],
}

impl Deref for Backup {
    type Target = Workers;

    fn deref(&self) -> &Workers {
        &self.workers
    }
}

impl DerefMut for Backup {
    fn deref_mut(&mut self) -> &mut Workers {
        &mut self.workers
    }
}

impl Backup {
    fn start() -> Self {
        let mut workers = Workers::new();
        let main = workers.home.publisher("a", 1, &[URL]);
        workers.home.send_frame(main, 0, 100);
        let upstream = workers.home.upstream_peer().expect("connected");
        let backup = workers.broadcaster("a");
        let players = [workers.home.player("a"), workers.away.player("a")];
        workers.exchange();
        workers.home.send(backup, MediaKind::Video, 0, AVC_HEADER);
        Self { workers, main, backup, upstream, players }
    }

    /// Sends frames from the backup and, if `main_runs`, from the main encoder; the backup's numbers are higher by
    /// 1,000.
    fn send(&mut self, frames: std::ops::Range<u32>, main_runs: bool) {
        for n in frames {
            if main_runs {
                self.workers.home.send_frame(self.main, n, 100);
            }
            self.workers.home.send_frame(self.backup, n + 1_000, 100);
            self.home.pass(Duration::from_millis(40));
            self.exchange();
        }
    }

    fn switch_to(&mut self, client_id: u64) {
        let stream = self.home.publishes.find(client_id).expect("it runs").stream;
        self.home.switchboard.handle_message(Message::SwitchTo(stream));
        self.exchange();
    }

    fn is_on_air(&self, client_id: u64) -> bool {
        self.home.snapshot(client_id).is_on_air
    }

    fn newest(&self) -> [u32; 3] {
        let last = |world: &World, peer| *world.frames(peer).last().expect("frames");
        [
            last(&self.home, self.upstream),
            last(&self.home, self.players[0]),
            last(&self.away, self.players[1]),
        ]
    }

    fn assert_no_time_goes_back(&self) {
        let peers = [(&self.home, self.upstream), (&self.away, self.players[1])];
        for (world, peer) in peers {
            let times = world.times(peer, MediaKind::Video);
            assert!(times.is_sorted_by(|one, next| one < next), "{times:?}");
        }
    }
}

#[test]
fn a_backup_on_another_worker_takes_over_for_players_of_both() {
    let mut workers = Backup::start();
    workers.send(1..60, true);
    assert_eq!(workers.newest(), [59; 3]);
    workers.workers.home.hang_up(workers.main);
    workers.exchange();
    workers.send(60..110, false);
    assert_eq!(workers.newest(), [1_109; 3]);
    assert_eq!(workers.home.resolved.len(), 1);
    workers.assert_no_time_goes_back();
    workers.workers.home.hang_up(workers.backup);
    workers.exchange();
    for _ in 0..30 {
        workers.home.pass(Duration::from_millis(100));
        workers.exchange();
    }
    assert!(workers.home.switchboard.is_empty() && !workers.away.switchboard.has_streams());
}

#[test]
fn a_switch_there_and_back_keeps_players_of_both_workers_and_those_that_join_meanwhile() {
    let mut workers = Backup::start();
    let mut n = 1;
    for to in [2, 1, 2, 1] {
        workers.send(n..n + 30, true);
        workers.switch_to(to);
        workers.send(n + 30..n + 60, true);
        n += 60;
        let want = if to == 2 { n + 999 } else { n - 1 };
        assert_eq!(workers.newest(), [want; 3]);
        // The player on the other worker leaves, and another one joins there.
        workers.workers.away.hang_up(workers.players[1]);
        workers.exchange();
        workers.players[1] = workers.away.player("a");
        workers.exchange();
    }
    workers.send(n..n + 30, true);
    assert_eq!(workers.newest(), [n + 29; 3]);
    workers.assert_no_time_goes_back();
    let snapshot = workers.home.snapshot(1);
    assert_eq!((snapshot.is_on_air, snapshot.subscribers), (true, 3));
    // With the last reader gone, no relay or route to that worker must remain.
    workers.workers.away.hang_up(workers.players[1]);
    workers.exchange();
    workers.workers.home.hang_up(workers.backup);
    workers.workers.home.hang_up(workers.main);
    for _ in 0..30 {
        workers.home.pass(Duration::from_millis(100));
        workers.exchange();
    }
    assert!(workers.home.switchboard.is_empty() && !workers.away.switchboard.has_streams());
}

#[test]
fn a_backup_that_was_as_silent_as_the_main_encoder_does_not_take_over() {
    let mut workers = Backup::start();
    workers.send(1..100, true);
    // The venue's uplink fails for four seconds; the worker wakes for others.
    for _ in 0..40 {
        workers.home.pass(Duration::from_millis(100));
        workers.exchange();
    }
    workers.workers.home.send_frame(workers.backup, 1_100, 100);
    workers.exchange();
    workers.workers.home.send_frame(workers.main, 100, 100);
    workers.exchange();
    assert!(workers.is_on_air(1) && !workers.is_on_air(2));
    workers.send(101..150, true);
    assert_eq!(workers.newest(), [149; 3]);
}

#[test]
fn a_backup_that_takes_over_with_its_last_frames_ends_like_any_other() {
    let mut workers = Backup::start();
    workers.send(1..24, true);
    workers.switch_to(2);
    // Its keyframe and its end arrive together.
    workers.workers.home.send_frame(workers.backup, 1_025, 100);
    workers.workers.home.hang_up(workers.backup);
    workers.exchange();
    assert_eq!(workers.reasons(), [(2, EndReason::BroadcasterLeft)]);
    for n in 24..80 {
        workers.workers.home.send_frame(workers.main, n, 100);
        workers.home.pass(Duration::from_millis(40));
        workers.exchange();
    }
    assert!(workers.is_on_air(1));
    assert_eq!(workers.newest(), [79; 3]);
}
