//! Streams of other nodes: pulled while they have subscribers here, and otherwise like any stream.

use super::message::{Message, Opening};
use super::{Action, SessionKey, StreamKey, SubscriberKey, Switchboard};
use crate::publish::end_reason::EndReason;
use crate::publish::mailbox::{Event, SourceWanted};
use crate::publish::play_guard::PlayGuard;
use crate::publish::pull_record::PullSource;
use crate::publish::record::PublishRecord;
use crate::publish::registry::{PublishGuard, Pulled};
use crate::session::Session;
use crate::session::effect::Effect;
use crate::session::rtmp_pull::RtmpPull;
use crate::session::rtmp_server::RtmpServer;

impl Switchboard {
    /// The gateway allowed a play request for a stream that is live on another node: the player reads the pulled stream
    /// and waits for its first frame.
    pub(super) fn pull(&mut self, request: u64, guard: PlayGuard, source: PullSource) {
        let Some(player) = self.take_question(request).filter(|_| !self.is_stopping) else {
            return;
        };
        let Some(Session::Server(server)) = self.session(player) else { return };
        let (name, worker) = (server.name().to_vec(), self.context.worker);
        let record = match self.context.publishes.open_pull(&name, &source, worker, self.now) {
            Pulled::Running(record) => record,
            Pulled::Opened(opened) => {
                let record = opened.record().clone();
                self.open_pull(name, source, opened);
                record
            }
        };
        let joined = self.join(player, &record, guard, true);
        self.turn(player, |session, now, effects| {
            if let Session::Server(server) = session {
                match joined {
                    Some(()) => server.await_stream(now),
                    None => server.refuse_stream(now, effects),
                }
            }
        });
        self.woken.readers.push(player);
    }

    fn open_pull(&mut self, name: Vec<u8>, source: PullSource, guard: PublishGuard) {
        let pull = RtmpPull::new(source, guard.record().clone(), self.random(), self.now);
        let key = self.insert(Session::Pull(Box::new(pull)));
        // Not held here: its publisher's loss is handled at the source.
        self.open_stream(key, name, Opening::new(guard, Vec::new()));
        self.turn_pull(key, RtmpPull::start);
    }

    /// A pull lost its connection: ask the gateway where the stream is.
    pub(super) fn locate(&mut self, key: SessionKey) {
        let Some(record) = self.publish_of(key) else { return };
        let Some(name) = record.pull.as_ref().map(|pull| pull.name.clone()) else { return };
        let client_id = record.client_id;
        let pull = self.new_question(key);
        let wanted = SourceWanted { pull, name, client_id };
        self.context.publishes.mailbox().put(Event::SourceWanted(wanted));
    }

    /// The gateway's answer to that question.
    pub(super) fn dial_pull(&mut self, pull: u64, source: Option<PullSource>) {
        if let Some(key) = self.take_question(pull) {
            self.turn_pull(key, |pull, now, effects| pull.handle_source(source, now, effects));
        }
    }

    /// A publish of this node has taken over the name of a pull: ends the pull.
    pub(super) fn end_pull(&mut self, record: &PublishRecord) {
        let (stream, reason) = (record.stream, EndReason::Replaced);
        if record.worker == self.context.worker {
            self.end_publish(stream, reason, "");
        } else {
            let end = Message::End { stream, reason, description: String::new() };
            self.actions.push(Action::Tell(record.worker, end));
        }
    }

    /// Notifies a pull whether its stream has subscribers.
    pub(super) fn note_readers(&mut self, stream: StreamKey) {
        let is_pulled = self.hub.stream(stream).is_some_and(|live| live.record.pull.is_some());
        let Some(key) = self.publisher_of(stream).filter(|_| is_pulled) else { return };
        let is_unread = self.hub.is_unread(stream);
        self.turn_pull(key, |pull, now, _| pull.set_unread(is_unread, now));
    }

    /// Accepts the play of a waiting player once its stream has frames, and refuses it if the stream ended before.
    pub(super) fn serve_waiting(
        &self,
        server: &mut RtmpServer,
        subscriber: SubscriberKey,
        effects: &mut Vec<Effect>,
    ) {
        if self.hub.has_frames(subscriber) {
            server.accept_play(self.now);
        } else if self.hub.is_finished(subscriber) {
            server.refuse_stream(self.now, effects);
        }
    }

    fn turn_pull(
        &mut self,
        key: SessionKey,
        act: impl FnOnce(&mut RtmpPull, std::time::Instant, &mut Vec<Effect>),
    ) {
        self.turn(key, |session, now, effects| {
            if let Session::Pull(pull) = session {
                act(pull, now, effects);
            }
        });
    }
}
