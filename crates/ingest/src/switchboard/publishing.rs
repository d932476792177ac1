//! Streams that are published on this worker: opening them, passing their frames on, and transcoding their audio while
//! a subscriber needs that.

use std::sync::Arc;

use bytes::Bytes;
use headgate_media::{Codec, Frame, FrameKind, Track};
use headgate_transcode::first_configuration;

use super::arrivals::Arrival;
use super::message::{Opening, WhipOpening};
use super::source::{LocalSource, Source};
use super::stage::Stage;
use super::timeline::Placed;
use super::timers::TimerOwner;
use super::{Action, Message, SessionKey, StreamKey, Switchboard};
use crate::publish::end_reason::EndReason;
use crate::publish::record::{PublishRecord, StreamId};
use crate::publish::upstreams::{Upstream, UpstreamRecord, UpstreamSource};
use crate::session::Session;
use crate::session::publish_session::PublishSession;
use crate::session::rtmp_push::RtmpPush;
use crate::session::whip_publisher::WhipPublisher;

impl Switchboard {
    /// The gateway allowed a publish request.
    pub(super) fn allow(&mut self, request: u64, mut opening: Opening) {
        let record = opening.guard.record();
        let (stream, home) = (record.stream, record.worker);
        let asked = self.take_question(request).filter(|_| !self.is_stopping);
        let Some(key) = asked else {
            // The broadcaster has left: accepted and ended (W12a).
            opening.guard.set_reason(EndReason::BroadcasterLeft);
            if home != self.context.worker {
                self.actions.push(Action::Tell(home, Message::Forgo(stream)));
            }
            return;
        };
        if home == self.context.worker {
            self.begin_publish(key, opening);
        } else {
            self.send_home(key, home, opening);
        }
    }

    /// The session of an allowed broadcaster leaves for the worker of its stream.
    fn send_home(&mut self, key: SessionKey, home: usize, opening: Opening) {
        self.stop_reading(key);
        self.timers.disarm(TimerOwner::Session(key));
        let session = self.sessions.remove(key).and_then(|entry| entry.session);
        let Some(Session::Server(server)) = session else {
            let stream = opening.guard.record().stream;
            return self.actions.push(Action::Tell(home, Message::Forgo(stream)));
        };
        let arrival = Box::new(Arrival { server, opening });
        self.actions.push(Action::Move { session: key, home, arrival });
    }

    /// The session of an allowed broadcaster arrives from the worker that accepted its connection. `None` while this
    /// worker stops.
    pub(crate) fn adopt(&mut self, arrival: Arrival) -> Option<SessionKey> {
        let messages = self.arrivals.take(arrival.stream());
        if self.is_stopping {
            arrival.refuse(EndReason::Shutdown);
            return None;
        }
        let Arrival { server, opening } = arrival;
        let key = self.insert(Session::Server(server));
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
    pub(super) fn open_whip(&mut self, whip: WhipOpening) {
        let WhipOpening { session, awaits_answer, name, mut opening } = whip;
        if self.is_stopping {
            opening.guard.set_reason(EndReason::Shutdown);
            return;
        }
        let publish = PublishSession::new(opening.guard.record().clone(), self.now);
        let whip = WhipPublisher::new(session, awaits_answer, publish, self.now);
        let ufrags = whip.ufrags();
        let key = self.insert(Session::Whip(Box::new(whip)));
        if !ufrags.is_empty() {
            self.routes.set_ufrags(key, ufrags);
        }
        self.open_stream(key, name, opening);
    }

    pub(super) fn open_stream(
        &mut self,
        publisher: SessionKey,
        name: Vec<u8>,
        mut opening: Opening,
    ) {
        if !self.sessions.contains_key(publisher) {
            // Its turn failed; the guard reports that.
            opening.guard.set_reason(EndReason::InternalError);
            return;
        }
        let stream = self.open_or_continue(publisher, name, opening);
        self.set_published(publisher, stream);
    }

    /// Opens a stream that continues no other.
    pub(super) fn open_anew(
        &mut self,
        publisher: SessionKey,
        name: Vec<u8>,
        opening: Opening,
    ) -> StreamKey {
        let (publication, upstreams) = opening.publication(publisher);
        let connect_info = publication.connect_info.clone();
        let record = publication.guard.record().clone();
        // A pull has entered its name when it was opened.
        let is_pull = record.pull.is_some();
        let replaced = (!is_pull).then(|| self.context.publishes.enter_name(&name, &record));
        let local = LocalSource::new(name, Stage::OnAir(publication), self.now);
        let source = Source::Local(Box::new(local));
        let key = self.hub.open(record.clone(), source, self.context.caches_gop);
        self.by_id.insert(record.stream, key);
        self.open_pushes(key, upstreams, &connect_info);
        if let Some(pull) = replaced.flatten() {
            self.end_pull(&pull);
        }
        key
    }

    /// Opens the pushes to the publish's upstreams.
    pub(super) fn open_pushes(
        &mut self,
        key: StreamKey,
        upstreams: Vec<Upstream>,
        connect_info: &Bytes,
    ) {
        let Some(record) = self.hub.stream(key).map(|live| live.record.clone()) else { return };
        for upstream in upstreams {
            let is_own = upstream.source == UpstreamSource::Own;
            let upstream = record.upstreams.open(upstream, self.now);
            let connect_info = if is_own { connect_info.clone() } else { Bytes::new() };
            self.open_push(key, upstream, connect_info);
        }
    }

    /// Opens a push of a live stream to one more upstream.
    pub(super) fn open_push(
        &mut self,
        stream: StreamKey,
        upstream: Arc<UpstreamRecord>,
        connect_info: Bytes,
    ) {
        let (seed, adds_silence, now) = (self.random(), self.context.pushes_silence, self.now);
        let Some(live) = self.hub.stream(stream) else { return };
        let client_id = live.record.client_id;
        let push = RtmpPush::new(client_id, upstream, connect_info, adds_silence, seed, now);
        let key = self.insert(Session::Push(Box::new(push)));
        if let Some(local) = self.hub.stream_mut(stream).and_then(|live| live.source.local_mut()) {
            local.pushes.push(key);
        }
        if let Some(entry) = self.sessions.get_mut(key) {
            entry.pushes = Some(stream);
        }
        self.turn(key, |session, now, effects| {
            if let Session::Push(push) = session {
                push.start(now, effects);
            }
        });
    }

    /// Removes a push that has ended.
    pub(super) fn forget_push(&mut self, stream: StreamKey, push: SessionKey) {
        let live = self.hub.stream_mut(stream);
        if let Some(local) = live.and_then(|live| live.source.local_mut()) {
            local.pushes.retain(|other| *other != push);
        }
    }

    /// Handles a frame of the stream that `publisher` publishes.
    pub(super) fn publish_frame(&mut self, publisher: SessionKey, frame: &Frame) {
        if let Some(stream) = self.sessions.get(publisher).and_then(|entry| entry.publishes) {
            self.feed(stream, frame);
            self.settle_standby(stream);
        }
    }

    /// Handles a frame from the publisher of a stream of this worker.
    pub(super) fn feed(&mut self, stream: StreamKey, frame: &Frame) {
        let placed = match self.place(stream, frame) {
            Placed::AsItIs => None,
            Placed::Moved(frame) => Some(frame),
            Placed::LeftOut => return,
        };
        let frame = placed.as_ref().unwrap_or(frame);
        if frame.track() == Track::Audio
            && frame.codec != Codec::Opus
            && self.hub.has_opus_audio(stream)
        {
            self.leave_opus(stream);
        }
        let is_opus = frame.codec == Codec::Opus;
        let is_first_opus =
            is_opus && frame.kind == FrameKind::Audio && !self.hub.has_opus_audio(stream);
        if is_first_opus {
            self.expect_audio(stream, true);
        }
        self.hub.publish(stream, frame, &mut self.woken);
        if is_first_opus {
            // Before there is any AAC: some upstreams assume that the tracks of the first two seconds are all.
            let opus = self.hub.opus_frames(stream);
            if let Some(header) = opus.first().and_then(|head| first_configuration(head, frame)) {
                self.hub.publish(stream, &header, &mut self.woken);
            }
        }
        if is_opus {
            self.transcode(stream, frame);
        }
    }

    /// The publish of a session; `None` if the session is no publisher.
    pub(crate) fn publish_of(&self, key: SessionKey) -> Option<&PublishRecord> {
        let stream = self.sessions.get(key)?.publishes?;
        self.hub.stream(stream).map(|live| &*live.record)
    }

    /// Sets whether the stream has audio that may have to be transcoded first: its pushes insert no silence meanwhile.
    pub(super) fn expect_audio(&mut self, stream: StreamKey, expects_audio: bool) {
        let pushes = self.local(stream).map(|local| local.pushes.clone());
        for push in pushes.into_iter().flatten() {
            self.turn_push(push, |push, _, _| push.expect_audio(expects_audio));
        }
    }

    /// Passes an Opus frame to the stream's transcoder, which only exists while a subscriber needs AAC.
    fn transcode(&mut self, stream: StreamKey, packet: &Frame) {
        let needs_aac = self.hub.needs_aac(stream);
        let transcoders = self.context.transcoders.clone();
        let Some(live) = self.hub.stream_mut(stream) else { return };
        let id = live.record.stream;
        let Some(local) = live.source.local_mut() else { return };
        match (&local.transcoder, needs_aac) {
            (None, false) => {}
            (Some(transcoder), true) => transcoders.push(transcoder, packet.clone()),
            (None, true) => {
                let Some(running) = local.stage.running() else { return };
                let transcoder = transcoders.open(id, self.context.worker, running.audio_bitrate);
                local.transcoder = Some(transcoder.clone());
                // Transcode the cached Opus frames first, so that a new subscriber's audio starts with its video.
                let mut cached = self.hub.opus_frames(stream);
                if !cached.iter().any(|frame| frame.kind == packet.kind) {
                    cached.push(packet.clone());
                }
                for packet in cached {
                    transcoders.push(&transcoder, packet);
                }
            }
            (Some(transcoder), false) => {
                transcoders.close(transcoder);
                local.transcoder = None;
                live.record.set_transcoder_error(None);
                self.hub.forget_aac(stream);
                self.expect_audio(stream, true);
            }
        }
    }

    /// A stream's transcoder has new output or a new failure.
    pub(super) fn publish_transcoded(&mut self, id: StreamId) {
        let Some(stream) = self.stream(id) else { return };
        let Some(live) = self.hub.stream(stream) else { return };
        let Some(transcoder) = live.source.local().and_then(|local| local.transcoder.clone())
        else {
            return;
        };
        let failure = transcoder.failure();
        if failure != live.record.transcoder_error() {
            live.record.set_transcoder_error(failure.clone());
            self.expect_audio(stream, failure.is_none());
        }
        for frame in transcoder.drain() {
            if self.local_mut(stream).is_some_and(|local| local.timeline.pass_made(&frame)) {
                self.hub.publish(stream, &frame, &mut self.woken);
            }
        }
    }

    /// Stops transcoding the stream.
    pub(super) fn close_transcoder(&mut self, stream: StreamKey) {
        let transcoder = self.local_mut(stream).and_then(|local| local.transcoder.take());
        if let Some(transcoder) = transcoder {
            self.context.transcoders.close(&transcoder);
        }
    }
}
