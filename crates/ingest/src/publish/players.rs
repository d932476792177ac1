//! The players of one publish: written by the workers they are connected to, read by the gateway at any time.

use std::net::IpAddr;
use std::sync::{Arc, Mutex, Weak};
use std::time::{Instant, SystemTime};

use super::lock::lock;
use super::upstreams::Delivery;
use super::wall_time::wall_time;

/// Players that are listed individually; totals count all of them.
const LISTED_LIMIT: usize = 1_000;

/// One player at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlayerStatus {
    /// Address of the player.
    pub address: IpAddr,
    /// When it joined.
    pub since: SystemTime,
    /// Payload handed to it.
    pub bytes_out: u64,
    /// Frames dropped because it was slow.
    pub dropped_frames: u64,
}

#[derive(Debug)]
struct Player {
    address: IpAddr,
    since: Instant,
    /// Released when the player leaves.
    delivery: Weak<Delivery>,
}

/// The current players, oldest first.
#[derive(Debug, Default)]
pub(crate) struct Players(Mutex<Vec<Player>>);

impl Players {
    /// Adds a player, which is listed for as long as `delivery` has an owner.
    pub(crate) fn enter(&self, address: IpAddr, since: Instant, delivery: &Arc<Delivery>) {
        let mut players = lock(&self.0);
        // Remove players that have left before the list grows.
        if players.len() == players.capacity() {
            players.retain(|player| player.delivery.strong_count() > 0);
        }
        players.push(Player { address, since, delivery: Arc::downgrade(delivery) });
    }

    /// The first thousand players.
    pub(crate) fn status(&self, now: Instant, wall: SystemTime) -> Vec<PlayerStatus> {
        let players = lock(&self.0);
        let status = players.iter().filter_map(|player| {
            let (bytes_out, dropped_frames) = player.delivery.upgrade()?.so_far();
            let (address, since) = (player.address, wall_time(player.since, now, wall));
            Some(PlayerStatus { address, since, bytes_out, dropped_frames })
        });
        status.take(LISTED_LIMIT).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn players_are_listed_while_they_read_and_those_that_left_are_removed() {
        let (players, now) = (Players::default(), Instant::now());
        let address = IpAddr::from([192, 0, 2, 1]);
        let staying = Arc::new(Delivery::default());
        players.enter(address, now, &staying);
        for _ in 0..10_000 {
            players.enter(address, now, &Arc::default());
        }
        staying.add_out(20);
        staying.add_dropped(1);
        let listed = players.status(now, SystemTime::now());
        let counted: Vec<_> =
            listed.iter().map(|player| (player.bytes_out, player.dropped_frames)).collect();
        assert_eq!(counted, [(20, 1)]);
        assert!(players.0.lock().expect("no other owner").capacity() < 64);
    }
}
