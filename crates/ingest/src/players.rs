//! The players of one publish and how each does: written by the workers they read at, read by the gateway at any time.

use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::SystemTime;

use crate::upstreams::Delivery;

/// Players that are told one by one; the sums count all of them.
const LISTED_LIMIT: usize = 1_000;

/// One player at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlayerStatus {
    /// Where it reads from.
    pub address: IpAddr,
    /// When it joined.
    pub since: SystemTime,
    /// Payload handed to it.
    pub bytes_out: u64,
    /// Frames it lost because it was slow.
    pub dropped_frames: u64,
}

#[derive(Debug)]
struct Player {
    address: IpAddr,
    since: SystemTime,
    /// Gone when the player has left.
    delivery: Weak<Delivery>,
}

/// Those that read now, the oldest first.
#[derive(Debug, Default)]
pub(crate) struct Players(Mutex<Vec<Player>>);

impl Players {
    /// A player joins; it is listed for as long as somebody holds what it is counted in.
    pub(crate) fn enter(&self, address: IpAddr) -> Arc<Delivery> {
        let delivery = Arc::new(Delivery::default());
        let mut players = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Whoever has left is swept out before the list grows.
        if players.len() == players.capacity() {
            players.retain(|player| player.delivery.strong_count() > 0);
        }
        let since = SystemTime::now();
        players.push(Player { address, since, delivery: Arc::downgrade(&delivery) });
        delivery
    }

    /// The first thousand of them.
    pub(crate) fn status(&self) -> Vec<PlayerStatus> {
        let players = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let status = players.iter().filter_map(|player| {
            let (bytes_out, dropped_frames) = player.delivery.upgrade()?.so_far();
            let Player { address, since, .. } = *player;
            Some(PlayerStatus { address, since, bytes_out, dropped_frames })
        });
        status.take(LISTED_LIMIT).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn players_are_listed_while_they_read_and_the_list_does_not_grow_with_those_who_left() {
        let players = Players::default();
        let address = IpAddr::from([192, 0, 2, 1]);
        let staying = players.enter(address);
        for _ in 0..10_000 {
            drop(players.enter(address));
        }
        staying.add_out(20);
        staying.add_dropped(1);
        let listed = players.status();
        let told: Vec<_> =
            listed.iter().map(|player| (player.bytes_out, player.dropped_frames)).collect();
        assert_eq!(told, [(20, 1)]);
        assert!(players.0.lock().expect("nobody else").capacity() < 64);
    }
}
