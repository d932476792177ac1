//! Two workers of one process: a stream lives on the first, and a broadcaster of its name is connected to the second.

use headgate_rtmp::ClientRole;

use super::super::message::Message;
use super::super::{EndReason, SessionKey};
use super::world::{URL, World};

pub(super) struct Workers {
    pub(super) home: World,
    pub(super) away: World,
}

impl Workers {
    pub(super) fn new() -> Self {
        let (home, mut away) = (World::on(0, 2), World::on(1, 2));
        away.share(&home);
        Self { home, away }
    }

    /// A broadcaster of `name` connects to the second worker; returns its session there and its request.
    pub(super) fn connect(&mut self, name: &str) -> (SessionKey, u64) {
        let key = self.away.connect(ClientRole::Publish, name);
        // Both share one mailbox: whichever drains it first gets the events.
        self.home.settle();
        let request = self.home.asked.pop_front().or_else(|| self.away.asked.pop_front());
        (key, request.expect("it asked"))
    }

    /// The gateway allows `request` as publish 2, which continues publish 1 if that is held and else stands by for it.
    pub(super) fn allow(&mut self, request: u64) {
        let near = match self.home.near(Some(1), None) {
            near if near.continues().is_some() => near,
            _ => self.home.near(None, Some(1)),
        };
        let opening = self.home.opening(2, near, None, &[URL]);
        let stream = opening.guard.record().stream;
        self.home.switchboard.handle_message(Message::Expect(stream));
        self.away.switchboard.handle_message(Message::Allow { request, opening });
        self.away.settle();
    }

    /// The session that the second worker hands over arrives at the first, with its peer.
    pub(super) fn arrive(&mut self) -> SessionKey {
        let (home, former, moved) = self.away.moved.pop().expect("it moves");
        assert_eq!(home, 0);
        let peer = self.away.peers.remove(&former).expect("its peer");
        let key = self.home.switchboard.adopt(*moved).expect("it is served");
        self.home.peers.insert(key, peer);
        self.exchange();
        key
    }

    /// A broadcaster that was allowed as publish 2 and has arrived.
    pub(super) fn broadcaster(&mut self, name: &str) -> SessionKey {
        let (_, request) = self.connect(name);
        self.allow(request);
        self.arrive()
    }

    /// Exchanges messages and relays between the two, and sets both to the same time.
    pub(super) fn exchange(&mut self) {
        let behind = self.home.now.saturating_duration_since(self.away.now);
        self.away.pass(behind);
        for _ in 0..4 {
            for world in [&mut self.away, &mut self.home] {
                world.settle();
                world.switchboard.drain_relays();
                world.settle();
            }
            let posted = self.away.posted.drain(..).collect::<Vec<_>>();
            let back = self.home.posted.drain(..).collect::<Vec<_>>();
            for (worker, message) in posted.into_iter().chain(back) {
                let world = if worker == 0 { &mut self.home } else { &mut self.away };
                world.switchboard.handle_message(message);
            }
        }
    }

    pub(super) fn reasons(&self) -> Vec<(u64, EndReason)> {
        [self.home.reasons(), self.away.reasons()].concat()
    }
}
