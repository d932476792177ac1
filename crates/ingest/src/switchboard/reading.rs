//! Readers: players and pushes join streams, say in which form they take audio, and leave.

use headgate_media::Timestamp;
use headgate_rtmp::Target;

use super::source::Source;
use super::{Action, SessionKey, StreamKey, Switchboard};
use crate::publish::mailbox::{ConnectionRefused, Denial, PlayRequested};
use crate::publish::play_guard::PlayGuard;
use crate::session::Session;
use crate::session::effect::{AudioForm, Refused};
use crate::switchboard::message::Message;

const NO_SUCH_STREAM: &str = "No such stream";

impl Switchboard {
    /// A player wants a name: whether it may have it is for the gateway to say, while it is live.
    pub(super) fn ask_to_play(&mut self, player: SessionKey, target: Target) {
        let Some(Session::Server(server)) = self.session(player) else { return };
        let address = server.peer();
        let live = self.context.publishes.find_name(&target.name);
        let request = self.new_question(player);
        let Some(record) = live else {
            self.deny(request, Denial::BadName, NO_SUCH_STREAM);
            return;
        };
        let (client_id, arguments) = (record.client_id, target.arguments);
        let question = PlayRequested { request, client_id, arguments, address };
        if !self.context.publishes.mailbox().put_play_request(question) {
            self.deny(request, Denial::Denied, "The service is overloaded");
        }
    }

    /// The gateway allowed a play request.
    pub(super) fn allow_play(&mut self, request: u64, guard: PlayGuard) {
        let Some(player) = self.take_question(request).filter(|_| !self.is_stopping) else {
            return;
        };
        let joined = self.join(player, guard).is_some();
        self.turn(player, |session, now, effects| {
            if let Session::Server(server) = session {
                if joined {
                    server.accept_play(now);
                } else {
                    server.deny(Denial::BadName, NO_SUCH_STREAM, now, effects);
                }
            }
        });
    }

    /// The player reads the stream that is live under its name by now. `None`: there is none any more.
    fn join(&mut self, player: SessionKey, guard: PlayGuard) -> Option<()> {
        let Some(Session::Server(server)) = self.session(player) else { return None };
        let ((form, left_out), address) = (server.takes(), server.peer());
        let record = self.context.publishes.find_name(server.name())?;
        let stream = self.stream(record.stream).or_else(|| self.open_remote(&record))?;
        if !self.read(player, stream, form, None) {
            return None;
        }
        let subscriber = self.sessions.get(player)?.reads?;
        record.players.enter(address, self.now, guard.delivery());
        self.hub.count(subscriber, guard.delivery().clone());
        self.hub.hold(subscriber, guard);
        self.hub.leave_out(subscriber, left_out);
        Some(())
    }

    /// A connection that asked for nothing yet is refused.
    pub(super) fn report_refusal(&self, key: SessionKey, refused: Refused) {
        let Some(Session::Server(server)) = self.session(key) else { return };
        let address = server.peer();
        let (code, detail) = match refused {
            Refused::App => ("app", "it asked for another app".to_owned()),
            Refused::Error(error) => (error.code(), error.to_string()),
        };
        self.context.publishes.mailbox().put_refusal(ConnectionRefused { address, code, detail });
    }

    /// A push reads its stream.
    pub(super) fn read_own_stream(
        &mut self,
        push: SessionKey,
        form: AudioForm,
        after: Option<Timestamp>,
    ) {
        let Some(stream) = self.sessions.get(push).and_then(|entry| entry.pushes) else { return };
        if !self.read(push, stream, form, after) {
            return;
        }
        let transcodes =
            self.hub.stream(stream).is_some_and(|live| live.record.transcoder_error().is_none());
        let has_opus_audio = self.hub.has_opus_audio(stream) && transcodes;
        let Some(entry) = self.sessions.get_mut(push) else { return };
        let (Some(Session::Push(session)), Some(subscriber)) = (&mut entry.session, entry.reads)
        else {
            return;
        };
        session.expect_audio(has_opus_audio);
        self.hub.count(subscriber, session.record().delivery.clone());
    }

    /// `reader` reads the stream from configuration + keyframe on, and nothing up to `after` again.
    fn read(
        &mut self,
        reader: SessionKey,
        stream: StreamKey,
        form: AudioForm,
        after: Option<Timestamp>,
    ) -> bool {
        self.stop_reading(reader);
        let Some(entry) = self.sessions.get_mut(reader) else { return false };
        let Some(subscriber) = self.hub.subscribe(stream, reader, form, after) else {
            return false;
        };
        entry.reads = Some(subscriber);
        self.woken.readers.push(reader);
        self.note_form(stream);
        self.want_keyframe(stream);
        true
    }

    /// A reader has learnt in which form its peer takes Opus audio.
    pub(super) fn decide_form(&mut self, reader: SessionKey, form: AudioForm) {
        let subscriber = self.sessions.get(reader).and_then(|entry| entry.reads);
        if let Some(subscriber) = subscriber
            && let Some(stream) = self.hub.stream_of(subscriber)
        {
            self.hub.decide(subscriber, form);
            self.note_form(stream);
            self.woken.readers.push(reader);
        }
    }

    /// `reader` reads no more.
    pub(super) fn stop_reading(&mut self, reader: SessionKey) {
        let Some(entry) = self.sessions.get_mut(reader) else { return };
        let Some(subscriber) = entry.reads.take() else { return };
        entry.held_until = None;
        let Some(stream) = self.hub.stream_of(subscriber) else { return };
        self.hub.unsubscribe(subscriber);
        self.note_form(stream);
        self.close_if_done(stream);
    }

    /// Someone begins to read: a keyframe would serve them.
    pub(super) fn want_keyframe(&mut self, stream: StreamKey) {
        let Some(live) = self.hub.stream(stream) else { return };
        match &live.source {
            Source::Local(local) => {
                let publisher = local.publisher;
                self.turn(publisher, |session, _, _| {
                    if let Session::Whip(whip) = session {
                        whip.want_keyframe();
                    }
                });
            }
            Source::Remote { .. } => {
                let message = Message::WantKeyframe(live.record.stream);
                self.actions.push(Action::Tell(live.record.worker, message));
            }
        }
    }
}
