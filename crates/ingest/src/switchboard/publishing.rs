//! Publishes that open on this worker: they begin a broadcast, continue a held one, or stand by beside another.

use std::sync::Arc;

use super::action::Action;
use super::broadcast::{Broadcast, Stage};
use super::message::{Message, Opening};
use super::moved_publish::MovedPublish;
use super::{SessionKey, StreamKey, Switchboard};
use crate::publish::end_reason::EndReason;
use crate::publish::mailbox::OnAirCause;
use crate::publish::play_guard::PlayGuard;
use crate::publish::pull_record::PullSource;
use crate::publish::record::{PublishRecord, StreamId};
use crate::publish::registry::{PublishGuard, Pulled};
use crate::session::Session;
use crate::session::rtmp_pull::RtmpPull;
use crate::session::whip_publisher::WhipPublisher;

/// What a publish opens as.
#[derive(Clone, Copy)]
enum Place {
    /// The successor in a held broadcast.
    Held,
    Standby,
    /// The publisher of a broadcast that is vacant.
    OnAir,
}

impl Switchboard {
    /// The gateway allowed a publish request.
    pub(super) fn allow(&mut self, request: u64, mut opening: Opening) {
        let record = opening.guard.record();
        let (stream, home) = (record.stream, record.worker);
        let asked = self.take_question(request).filter(|_| !self.sessions.is_stopping);
        let Some(key) = asked else {
            // The broadcaster has left: accepted and ended (W12a).
            opening.guard.set_reason(EndReason::BroadcasterLeft);
            if home != self.sessions.context.worker {
                self.sessions.actions.push(Action::Tell(home, Message::Forgo(stream)));
            }
            return;
        };
        if home == self.sessions.context.worker {
            self.begin_publish(key, opening);
        } else {
            self.send_home(key, home, opening);
        }
    }

    /// The session of an allowed broadcaster leaves for the worker of its stream.
    fn send_home(&mut self, key: SessionKey, home: usize, opening: Opening) {
        self.stop_reading(key);
        let session = self.sessions.remove(key).and_then(|entry| entry.session);
        let Some(Session::Server(server)) = session else {
            let stream = opening.guard.record().stream;
            return self.sessions.actions.push(Action::Tell(home, Message::Forgo(stream)));
        };
        let moved = Box::new(MovedPublish { server, opening });
        self.sessions.actions.push(Action::Move { session: key, home, moved });
    }

    /// The session of an allowed broadcaster arrives from the worker that accepted its connection. `None` while this
    /// worker stops.
    pub(crate) fn adopt(&mut self, moved: MovedPublish) -> Option<SessionKey> {
        let messages = self.expected.take(moved.stream());
        if self.sessions.is_stopping {
            moved.refuse(EndReason::Shutdown);
            return None;
        }
        let MovedPublish { server, opening } = moved;
        let key = self.sessions.insert(Session::Server(server));
        self.begin_publish(key, opening);
        for message in messages {
            self.handle_message(message);
        }
        Some(key)
    }

    fn begin_publish(&mut self, key: SessionKey, opening: Opening) {
        let (mut name, record) = (Vec::new(), opening.guard.record().clone());
        self.turn(key, |session, now, effects| {
            if let Session::Server(server) = session {
                name = server.name().to_vec();
                server.allow(record, now, effects);
            }
        });
        self.open_stream(key, name, opening);
    }

    /// Opens a WHIP publish that was allowed and whose offer was answered.
    pub(super) fn open_whip(
        &mut self,
        whip: Box<WhipPublisher>,
        name: Vec<u8>,
        mut opening: Opening,
    ) {
        if self.sessions.is_stopping {
            opening.guard.set_reason(EndReason::Shutdown);
            return;
        }
        let ufrags = whip.ufrags();
        let key = self.sessions.insert(Session::Whip(whip));
        if !ufrags.is_empty() {
            self.routes.set_ufrags(key, ufrags);
        }
        self.open_stream(key, name, opening);
    }

    /// Opens the publish of `session`: it takes over the broadcast of the publish that it continues, if still held; it
    /// stands by for the publish that it is opened beside, if that is on air; or it begins a broadcast.
    fn open_stream(&mut self, session: SessionKey, name: Vec<u8>, mut opening: Opening) {
        if !self.sessions.contains_key(session) {
            // Its turn failed; the guard reports that.
            opening.guard.set_reason(EndReason::InternalError);
            return;
        }
        let (continues, beside) = (opening.near.continues(), opening.near.beside());
        let record = opening.guard.record().clone();
        let (publisher, upstreams) = opening.publisher(session);
        let (key, place) = self.place_of(continues, beside, name, &record);
        if let Some(entry) = self.sessions.get_mut(session) {
            entry.publishes = Some(key);
        }
        let Some(live) = self.broadcasts.get_mut(key) else { return };
        match place {
            Place::Held => live.take_over(publisher, upstreams, &mut self.sessions),
            Place::Standby => live.open_standby(publisher, &mut self.sessions),
            Place::OnAir => {
                if continues.is_some() || beside.is_some() {
                    // Its upstreams are those of another publish, which has ended.
                    record.upstreams.clear();
                }
                live.begin(publisher, upstreams, &mut self.sessions);
            }
        }
        if beside.is_some() && !live.stands_by(session) {
            self.sessions.report_on_air(&live.record, true, None, OnAirCause::Began);
        }
        self.carry_out_deferred();
    }

    /// Where a publish opens, and as what.
    fn place_of(
        &mut self,
        continues: Option<StreamId>,
        beside: Option<StreamId>,
        name: Vec<u8>,
        record: &Arc<PublishRecord>,
    ) -> (StreamKey, Place) {
        let find = |id: StreamId| self.broadcasts.get(*self.sessions.by_id.get(&id)?);
        let held = continues.and_then(find).filter(|live| live.stage.is_held());
        let other = beside.and_then(find).filter(|live| !live.stage.is_draining());
        match (held, other, beside) {
            (Some(held), _, _) => (held.key, Place::Held),
            (None, Some(other), Some(id)) => {
                let (key, is_standby) = (other.key, other.is_standby(id));
                // One that stands by beside a publish that is being replaced gets a broadcast of its own.
                let vacant = self.part_standby(key);
                if is_standby { (vacant, Place::OnAir) } else { (key, Place::Standby) }
            }
            (None, _, _) => (self.open_vacant(name, record), Place::OnAir),
        }
    }

    fn open_vacant(&mut self, name: Vec<u8>, record: &Arc<PublishRecord>) -> StreamKey {
        let (record, sessions) = (record.clone(), &mut self.sessions);
        self.broadcasts
            .insert_with_key(|key| Broadcast::new(key, name, record, Stage::Vacant, sessions))
    }

    /// A publish that stands by gets a broadcast of its own, unless it has that: the one on air ends or is replaced.
    pub(super) fn part_standby(&mut self, key: StreamKey) -> StreamKey {
        let Some(live) = self.broadcasts.get(key).filter(|live| !live.stage.is_vacant()) else {
            return key;
        };
        let Some(standby) = &live.standby else { return key };
        let (name, record) = (live.name.clone(), standby.publisher.guard.record().clone());
        let own = self.open_vacant(name, &record);
        if let Some([from, to]) = self.broadcasts.get_disjoint_mut([key, own]) {
            from.part(to, &mut self.sessions);
        }
        own
    }

    /// The gateway allowed a play request for a stream that is live on another node: the player reads the pulled stream
    /// and waits for its first frame.
    pub(super) fn pull(&mut self, request: u64, guard: PlayGuard, source: PullSource) {
        let Some(player) = self.take_player(request) else { return };
        let (key, name, context) = (player.key, &player.name, &self.sessions.context);
        let pulled = context.publishes.open_pull(name, &source, context.worker, self.sessions.now);
        let record = match pulled {
            Pulled::Running(record) => record,
            Pulled::Opened(opened) => {
                let record = opened.record().clone();
                self.open_pull(name.clone(), source, opened);
                record
            }
        };
        let joined = self.join(player, &record, guard, true);
        self.turn(key, |session, now, effects| {
            if let Session::Server(server) = session {
                match joined {
                    Some(()) => server.await_stream(now),
                    None => server.refuse_stream(now, effects),
                }
            }
        });
        self.sessions.woken.readers.push(key);
    }

    fn open_pull(&mut self, name: Vec<u8>, source: PullSource, guard: PublishGuard) {
        let (seed, now) = (self.sessions.random(), self.sessions.now);
        let pull = RtmpPull::new(source, guard.record().clone(), seed, now);
        let key = self.sessions.insert(Session::Pull(Box::new(pull)));
        // Not held here: its publisher's loss is handled at the source.
        self.open_stream(key, name, Opening::new(guard, Vec::new()));
        self.turn(key, |session, now, effects| {
            if let Session::Pull(pull) = session {
                pull.start(now, effects);
            }
        });
    }

    /// A publish of this node has taken over the name of a pull: ends the pull.
    pub(super) fn end_pull(&mut self, record: &PublishRecord) {
        let (stream, reason) = (record.stream, EndReason::Replaced);
        if record.worker == self.sessions.context.worker {
            self.end_publish(stream, reason, "");
        } else {
            let end = Message::End { stream, reason, description: String::new() };
            self.sessions.actions.push(Action::Tell(record.worker, end));
        }
    }
}
