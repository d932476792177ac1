//! Streams that are published on this worker: they begin, their frames pass, their audio is transcoded while someone
//! needs that.

use std::sync::Arc;

use bytes::Bytes;
use headgate_media::transcode::AacBitrate;
use headgate_media::{Codec, Frame, FrameKind};

use super::message::WhipOpening;
use super::source::{LocalSource, Source};
use super::{SessionKey, StreamKey, Switchboard};
use crate::publish::end_reason::EndReason;
use crate::publish::record::{PublishRecord, StreamId};
use crate::publish::registry::PublishGuard;
use crate::publish::upstreams::{Upstream, UpstreamRecord, UpstreamSource};
use crate::session::Session;
use crate::session::publish_session::PublishSession;
use crate::session::rtmp_push::RtmpPush;
use crate::session::whip_publisher::WhipPublisher;
use crate::transcoding::AUDIO_BITRATE;

/// What a stream is to be besides its frames.
pub(super) struct Opening {
    pub(super) name: Vec<u8>,
    pub(super) guard: PublishGuard,
    pub(super) upstreams: Vec<Upstream>,
    pub(super) audio_bitrate: AacBitrate,
    pub(super) connect_info: Bytes,
}

impl Switchboard {
    /// The gateway allowed a publish request.
    pub(super) fn allow(
        &mut self,
        request: u64,
        mut guard: PublishGuard,
        upstreams: Vec<Upstream>,
    ) {
        let asked = self.take_question(request).filter(|_| !self.is_stopping);
        let Some(key) = asked else {
            // The broadcaster did not wait: accepted and ended (W12a).
            guard.set_reason(EndReason::BroadcasterLeft);
            return;
        };
        let (mut name, record) = (Vec::new(), guard.record().clone());
        self.turn(key, |session, now, effects| {
            if let Session::Server(server) = session {
                name = server.name().to_vec();
                server.allow(record, now, effects);
            }
        });
        let (audio_bitrate, connect_info) = (AUDIO_BITRATE, Bytes::new());
        self.open_stream(key, Opening { name, guard, upstreams, audio_bitrate, connect_info });
    }

    /// A WHIP publish was allowed and its offer answered: media may come.
    pub(super) fn open_whip(&mut self, opening: WhipOpening) {
        let WhipOpening {
            session,
            awaits_answer,
            name,
            mut guard,
            upstreams,
            audio_bitrate,
            connect_info,
        } = opening;
        if self.is_stopping {
            guard.set_reason(EndReason::Shutdown);
            return;
        }
        let publish = PublishSession::new(guard.record().clone(), self.now);
        let whip = WhipPublisher::new(session, awaits_answer, publish, self.now);
        let ufrags = whip.ufrags();
        let key = self.insert(Session::Whip(Box::new(whip)));
        if !ufrags.is_empty() {
            self.routes.set_ufrags(key, ufrags);
        }
        self.open_stream(key, Opening { name, guard, upstreams, audio_bitrate, connect_info });
    }

    pub(super) fn open_stream(&mut self, publisher: SessionKey, opening: Opening) {
        let Opening { name, mut guard, upstreams, audio_bitrate, connect_info } = opening;
        let record = guard.record().clone();
        let Some(entry) = self.sessions.get_mut(publisher) else {
            // Its turn failed; the guard reports that.
            guard.set_reason(EndReason::InternalError);
            return;
        };
        // A pull has its name from when it was opened.
        let is_pull = record.pull.is_some();
        let replaced = (!is_pull).then(|| self.context.publishes.enter_name(&name, &record));
        let local = LocalSource {
            guard,
            name,
            publisher,
            pushes: Vec::new(),
            transcoder: None,
            audio_bitrate,
            draining_until: None,
        };
        let source = Source::Local(Box::new(local));
        let key = self.hub.open(record.clone(), source, self.context.caches_gop);
        entry.publishes = Some(key);
        self.by_id.insert(record.stream, key);
        for upstream in upstreams {
            let is_own = upstream.source == UpstreamSource::Own;
            let upstream = record.upstreams.open(upstream, self.now);
            let connect_info = if is_own { connect_info.clone() } else { Bytes::new() };
            self.open_push(key, upstream, connect_info);
        }
        if let Some(pull) = replaced.flatten() {
            self.end_pull(&pull);
        }
    }

    /// Pushes a live stream to one more upstream.
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

    /// A push is over.
    pub(super) fn forget_push(&mut self, stream: StreamKey, push: SessionKey) {
        let live = self.hub.stream_mut(stream);
        if let Some(local) = live.and_then(|live| live.source.local_mut()) {
            local.pushes.retain(|other| *other != push);
        }
    }

    /// A frame of the stream that `publisher` publishes.
    pub(super) fn publish_frame(&mut self, publisher: SessionKey, frame: &Frame) {
        let Some(stream) = self.sessions.get(publisher).and_then(|entry| entry.publishes) else {
            return;
        };
        let is_opus = frame.codec == Codec::Opus;
        if is_opus && frame.kind == FrameKind::Audio && !self.hub.has_opus_audio(stream) {
            self.expect_audio(stream, true);
        }
        self.hub.publish(stream, frame, &mut self.woken);
        if is_opus {
            self.transcode(stream, frame);
        }
    }

    /// The publish that a session carries out; `None` for a session that is no publisher.
    pub(crate) fn publish_of(&self, key: SessionKey) -> Option<&PublishRecord> {
        let stream = self.sessions.get(key)?.publishes?;
        self.hub.stream(stream).map(|live| &*live.record)
    }

    /// Whether the stream has audio that may have to be transcoded first: no push of it makes up silence meanwhile.
    fn expect_audio(&mut self, stream: StreamKey, expects_audio: bool) {
        let live = self.hub.stream(stream);
        let pushes = live.and_then(|live| live.source.local()).map(|local| local.pushes.clone());
        for push in pushes.into_iter().flatten() {
            self.turn_push(push, |push, _, _| push.expect_audio(expects_audio));
        }
    }

    /// An Opus frame passed: it goes to the stream's transcoder if someone needs AAC, and only then is there one.
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
                let transcoder = transcoders.open(id, self.context.worker, local.audio_bitrate);
                local.transcoder = Some(transcoder.clone());
                // What a joiner's burst holds is transcoded first, so that its audio starts with its video.
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

    /// A stream's transcoder made AAC, or cannot.
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
            self.hub.publish(stream, &frame, &mut self.woken);
        }
    }
}
