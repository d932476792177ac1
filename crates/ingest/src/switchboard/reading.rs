//! Subscribers: players and pushes join streams, choose the form of their audio, and leave.

use std::sync::Arc;

use headgate_media::Timestamp;
use headgate_rtmp::Target;

use super::hub::Hub;
use super::source::Source;
use super::{Action, SessionKey, StreamKey, SubscriberKey, Switchboard};
use crate::publish::mailbox::{ConnectionRefused, Denial, PlayRequested};
use crate::publish::play_guard::PlayGuard;
use crate::publish::record::PublishRecord;
use crate::session::Session;
use crate::session::effect::{AudioForm, Refused};
use crate::switchboard::message::Message;

impl Switchboard {
    /// A player requests a name: the gateway decides whether it may play it and, if it is not live here, where it is.
    pub(super) fn ask_to_play(&mut self, player: SessionKey, target: Target) {
        let Some(Session::Server(server)) = self.session(player) else { return };
        let address = server.peer();
        let live = self.context.publishes.find_name(&target.name);
        let (client_id, request) = (live.map(|live| live.client_id), self.new_question(player));
        let Target { name, arguments, .. } = target;
        let question = PlayRequested { request, name, client_id, arguments, address };
        if !self.context.publishes.mailbox().put_play_request(question) {
            self.deny(request, Denial::Denied, "The service is overloaded");
        }
    }

    /// The gateway allowed a play request; one of another node is not counted.
    pub(super) fn allow_play(&mut self, request: u64, guard: PlayGuard, is_counted: bool) {
        let Some(player) = self.take_question(request).filter(|_| !self.is_stopping) else {
            return;
        };
        let Some(Session::Server(server)) = self.session(player) else { return };
        let live = self.context.publishes.find_name(server.name());
        let joined = live.and_then(|record| self.join(player, &record, guard, is_counted));
        self.turn(player, |session, now, effects| {
            if let Session::Server(server) = session {
                match joined {
                    Some(()) if is_counted => server.accept_play(now),
                    Some(()) => server.accept_pull(now),
                    None => server.refuse_stream(now, effects),
                }
            }
        });
    }

    /// Lets the player read this stream; `None` if it is gone.
    pub(super) fn join(
        &mut self,
        player: SessionKey,
        record: &Arc<PublishRecord>,
        guard: PlayGuard,
        is_counted: bool,
    ) -> Option<()> {
        let Some(Session::Server(server)) = self.session(player) else { return None };
        let ((form, left_out), address) = (server.takes(), server.peer());
        let stream = self.stream(record.stream).or_else(|| self.open_remote(record))?;
        self.begin_reading(player, stream, |hub| {
            if is_counted {
                hub.subscribe(stream, player, form)
            } else {
                hub.subscribe_uncounted(stream, player, form)
            }
        })?;
        if is_counted {
            record.players.enter(address, self.now, guard.delivery());
        }
        let subscriber = self.sessions.get(player)?.reads?;
        self.hub.count(subscriber, guard.delivery().clone());
        self.hub.hold(subscriber, guard);
        self.hub.leave_out(subscriber, left_out);
        Some(())
    }

    /// Reports that a connection was refused before it requested anything.
    pub(super) fn report_refusal(&self, key: SessionKey, refused: Refused) {
        let Some(Session::Server(server)) = self.session(key) else { return };
        let address = server.peer();
        let (code, detail) = match refused {
            Refused::App => ("app", "it asked for another app".to_owned()),
            Refused::Error(error) => (error.code(), error.to_string()),
        };
        self.report_connection(ConnectionRefused { address, code, detail });
    }

    /// The same for a connection that has no session.
    pub(crate) fn report_connection(&self, refused: ConnectionRefused) {
        self.context.publishes.mailbox().put_refusal(refused);
    }

    /// Reports that the handshake of TLS failed on a connection to us.
    pub(crate) fn report_tls_fault(&self, key: SessionKey, code: &'static str, detail: &str) {
        let Some(Session::Server(server)) = self.session(key) else { return };
        let (address, detail) = (server.peer(), detail.to_owned());
        self.context.publishes.mailbox().put_refusal(ConnectionRefused { address, code, detail });
    }

    /// Lets a push read its stream.
    pub(super) fn read_own_stream(
        &mut self,
        push: SessionKey,
        form: AudioForm,
        after: Option<Timestamp>,
    ) {
        let Some(stream) = self.sessions.get(push).and_then(|entry| entry.pushes) else { return };
        let reads =
            self.begin_reading(push, stream, |hub| hub.subscribe_push(stream, push, form, after));
        if reads.is_none() {
            return;
        }
        let transcodes =
            self.hub.stream(stream).is_some_and(|live| live.record.transcoder_error().is_none());
        let has_opus_audio = self.hub.has_opus_audio(stream) && transcodes;
        let has_paused_audio = self.has_paused_audio(stream);
        let Some(entry) = self.sessions.get_mut(push) else { return };
        let (Some(Session::Push(session)), Some(subscriber)) = (&mut entry.session, entry.reads)
        else {
            return;
        };
        session.expect_audio(has_opus_audio);
        if has_paused_audio {
            session.set_audio_stopped();
        }
        self.hub.count(subscriber, session.record().delivery.clone());
    }

    fn has_paused_audio(&self, stream: StreamKey) -> bool {
        self.local(stream).is_some_and(|local| local.timeline.has_paused_audio())
    }

    /// Lets `reader` read this stream and no other; `subscribe` creates its queue.
    fn begin_reading(
        &mut self,
        reader: SessionKey,
        stream: StreamKey,
        subscribe: impl FnOnce(&mut Hub) -> Option<SubscriberKey>,
    ) -> Option<()> {
        self.stop_reading(reader);
        let entry = self.sessions.get_mut(reader)?;
        entry.reads = Some(subscribe(&mut self.hub)?);
        self.woken.readers.push(reader);
        self.note_form(stream);
        self.note_readers(stream);
        self.want_keyframe(stream);
        Some(())
    }

    /// The upstream of a push that reads its stream has accepted.
    pub(super) fn accept_push(&mut self, push: SessionKey, form: AudioForm) {
        let subscriber = self.sessions.get(push).and_then(|entry| entry.reads);
        if let Some(subscriber) = subscriber
            && let Some(stream) = self.hub.stream_of(subscriber)
        {
            let awaits_keyframe = self.hub.accept(subscriber, form);
            if self.has_paused_audio(stream) {
                self.turn_push(push, |push, _, _| push.set_audio_stopped());
            }
            self.note_form(stream);
            self.woken.readers.push(push);
            if awaits_keyframe {
                self.want_keyframe(stream);
            }
        }
    }

    /// Stops `reader` from reading its stream.
    pub(super) fn stop_reading(&mut self, reader: SessionKey) {
        let Some(entry) = self.sessions.get_mut(reader) else { return };
        let Some(subscriber) = entry.reads.take() else { return };
        entry.held_until = None;
        let Some(stream) = self.hub.stream_of(subscriber) else { return };
        self.hub.unsubscribe(subscriber);
        self.note_form(stream);
        self.close_if_done(stream);
    }

    /// A subscriber joins: requests a keyframe for it.
    pub(super) fn want_keyframe(&mut self, stream: StreamKey) {
        let Some(live) = self.hub.stream(stream) else { return };
        match &live.source {
            Source::Local(local) => {
                // Only WHIP publishers can be asked.
                let Some(publisher) = local.stage.running().map(|of| of.publisher) else { return };
                self.turn(publisher, |session, now, _| {
                    if let Session::Whip(whip) = session {
                        whip.want_keyframe(now);
                    }
                });
            }
            Source::Remote { home, .. } => {
                let message = Message::WantKeyframe(live.record.stream);
                self.actions.push(Action::Tell(*home, message));
            }
        }
    }
}
