//! Readers: players and pushes join streams, say in which form they take audio, and leave.

use headgate_media::{Codec, Timestamp};

use super::source::Source;
use super::{Action, SessionKey, StreamKey, Switchboard};
use crate::publish::record::PublishRecord;
use crate::session::Session;
use crate::session::effect::AudioForm;
use crate::switchboard::message::Message;

impl Switchboard {
    /// A player wants a live name.
    pub(super) fn play(
        &mut self,
        player: SessionKey,
        name: &[u8],
        form: AudioForm,
        left_out: Vec<Codec>,
    ) {
        let found = self.context.publishes.find_name(name);
        let joined = found.is_some_and(|record| {
            let stream = self.stream(record.stream).or_else(|| self.open_remote(&record));
            stream.is_some_and(|stream| self.read(player, stream, form, None))
                && self.count_player(player, &record, left_out)
        });
        self.turn(player, |session, now, effects| {
            if let Session::Server(server) = session {
                if joined {
                    server.accept_play(now);
                } else {
                    server.refuse_play(now, effects);
                }
            }
        });
    }

    fn count_player(
        &mut self,
        player: SessionKey,
        record: &PublishRecord,
        left_out: Vec<Codec>,
    ) -> bool {
        let Some(entry) = self.sessions.get(player) else { return false };
        let (Some(Session::Server(server)), Some(subscriber)) = (&entry.session, entry.reads)
        else {
            return false;
        };
        self.hub.count(subscriber, record.players.enter(server.peer(), self.now));
        self.hub.leave_out(subscriber, left_out);
        true
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
        entry.audio_held_until = None;
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
