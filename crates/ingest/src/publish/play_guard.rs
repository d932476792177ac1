//! The lifetime of an allowed player.

use std::sync::Arc;

use super::mailbox::{Event, PlayEnded};
use super::registry::Publishes;
use super::upstreams::Delivery;

/// Guarantees exactly one [`PlayEnded`] for an allowed player: it is reported when this is dropped, for whatever
/// reason.
#[derive(Debug)]
pub(crate) struct PlayGuard {
    publishes: Arc<Publishes>,
    player: u64,
    delivery: Arc<Delivery>,
}

impl PlayGuard {
    /// Creates the guard of an allowed player; `player` is the handle of its request.
    pub(crate) fn new(publishes: Arc<Publishes>, player: u64) -> Self {
        Self { publishes, player, delivery: Arc::default() }
    }

    /// Counters of what the player was sent and what was dropped for it.
    pub(crate) const fn delivery(&self) -> &Arc<Delivery> {
        &self.delivery
    }
}

impl Drop for PlayGuard {
    fn drop(&mut self) {
        let (bytes_out, dropped_frames) = self.delivery.so_far();
        let ended = PlayEnded { player: self.player, bytes_out, dropped_frames };
        self.publishes.mailbox().put(Event::PlayEnded(ended));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::publish::mailbox::Mailbox;

    #[test]
    fn a_dropped_guard_reports_the_end_of_its_player() {
        let publishes = Publishes::new(Mailbox::new(Box::new(|| {})));
        let guard = PlayGuard::new(publishes.clone(), 7);
        guard.delivery().add_out(20);
        drop(guard);
        let ended = PlayEnded { player: 7, bytes_out: 20, dropped_frames: 0 };
        assert_eq!(publishes.mailbox().drain(), [Event::PlayEnded(ended)]);
    }
}
