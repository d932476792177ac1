//! A broadcast: one live name on this worker with its publishers, readers and pushes, the point at which to join, and
//! its clock.
//!
//! A worker has the broadcasts whose publishers live on it, and copies of those that live on another worker but have
//! players here; a copy is fed by its [`Relay`] and is otherwise like any broadcast.

mod audio;
mod ending;
mod publisher;
mod readers;
mod stage;
mod subscriber;
mod takeover;

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use headgate_media::{Codec, Frame, FrameKind, Track};
use headgate_transcode::first_configuration;
use slotmap::SlotMap;

use super::join_point::JoinPoint;
use super::keys::{SessionKey, StreamKey, SubscriberKey};
use super::relay::Relay;
use super::sessions::{Sessions, Woken};
use super::timeline::{Placed, Timeline};
use crate::publish::mailbox::OnAirCause;
use crate::publish::record::{PublishRecord, StreamId};
use crate::publish::upstream_cause::PushOrder;
use crate::publish::upstreams::{Upstream, UpstreamRecord, UpstreamSource};
use crate::session::Session;
use crate::session::effect::Effect;
use crate::session::rtmp_push::RtmpPush;
use crate::transcoding::TranscoderRing;
pub(super) use publisher::{Publisher, Standby};
pub(super) use stage::Stage;
pub(super) use subscriber::Role;
use subscriber::Subscriber;

/// One live name.
pub(super) struct Broadcast {
    pub(super) key: StreamKey,
    pub(super) name: Vec<u8>,
    /// The publish whose broadcast this is: the one on air, or the last one that was.
    pub(super) record: Arc<PublishRecord>,
    pub(super) stage: Stage,
    pub(super) standby: Option<Box<Standby>>,
    join: JoinPoint,
    timeline: Timeline,
    /// Since when its publisher is on air.
    since: Instant,
    pushes: Vec<SessionKey>,
    subscribers: SlotMap<SubscriberKey, Subscriber>,
    /// Other workers that read it.
    relays: Vec<(usize, Arc<Relay>)>,
    /// Transcodes Opus to AAC while a subscriber needs it.
    transcoder: Option<Arc<TranscoderRing>>,
    /// The id that messages on their way may still use for it: that of the publish that this one continues.
    former: Option<StreamId>,
}

impl Broadcast {
    /// A broadcast that a publish of this worker, or a relay, is about to fill.
    pub(super) fn new(
        key: StreamKey,
        name: Vec<u8>,
        record: Arc<PublishRecord>,
        stage: Stage,
        sessions: &mut Sessions,
    ) -> Self {
        sessions.by_id.insert(record.stream, key);
        Self {
            key,
            name,
            record,
            stage,
            standby: None,
            join: JoinPoint::new(sessions.context.caches_gop),
            timeline: Timeline::default(),
            since: sessions.now,
            pushes: Vec::new(),
            subscribers: SlotMap::with_key(),
            relays: Vec::new(),
            transcoder: None,
            former: None,
        }
    }

    /// A publish that continues no other goes on air.
    pub(super) fn begin(
        &mut self,
        publisher: Publisher,
        upstreams: Vec<Upstream>,
        sessions: &mut Sessions,
    ) {
        let connect_info = publisher.connect_info.clone();
        self.record = publisher.guard.record().clone();
        self.stage = Stage::OnAir(publisher);
        self.since = sessions.now;
        sessions.by_id.insert(self.record.stream, self.key);
        if self.record.pull.is_none() {
            // A pull has entered its name when it was opened.
            sessions.enter_name(&self.name, &self.record);
        }
        self.open_pushes(upstreams, &connect_info, sessions);
        if let Some(standby) = &self.standby {
            let (record, other) = (standby.publisher.guard.record(), self.record.client_id);
            sessions.report_on_air(record, false, Some(other), OnAirCause::Began);
        }
    }

    /// Another publish stands by from now on.
    fn stand_by(&mut self, publisher: Publisher, cause: OnAirCause, sessions: &mut Sessions) {
        let record = publisher.guard.record().clone();
        sessions.by_id.insert(record.stream, self.key);
        self.standby = Some(Box::new(Standby::new(publisher, sessions.now)));
        sessions.report_on_air(&record, false, Some(self.record.client_id), cause);
    }

    /// The publisher of this publish, if it runs.
    pub(super) fn publisher(&self, id: StreamId) -> Option<&Publisher> {
        let standby = self.standby.as_ref().map(|standby| &standby.publisher);
        let publishers = [self.stage.running(), standby].into_iter().flatten();
        publishers.into_iter().find(|of| of.guard.record().stream == id)
    }

    /// The publisher with this session.
    pub(super) fn publisher_mut(&mut self, session: SessionKey) -> Option<&mut Publisher> {
        let standby = self.standby.as_mut().map(|standby| &mut standby.publisher);
        let publishers = [self.stage.running_mut(), standby].into_iter().flatten();
        publishers.into_iter().find(|of| of.session == session)
    }

    /// Whether this publish stands by.
    pub(super) fn is_standby(&self, id: StreamId) -> bool {
        self.standby.as_ref().is_some_and(|of| of.publisher.guard.record().stream == id)
    }

    /// Whether this session's publish stands by.
    pub(super) fn stands_by(&self, session: SessionKey) -> bool {
        self.standby.as_ref().is_some_and(|standby| standby.publisher.session == session)
    }

    /// The publish that a session sends to it.
    pub(super) fn record_of(&self, session: SessionKey) -> &PublishRecord {
        let standby = self.standby.as_ref().filter(|of| of.publisher.session == session);
        standby.map_or(&self.record, |standby| standby.publisher.guard.record())
    }

    /// Handles a frame of one of its publishers.
    pub(super) fn handle_frame(
        &mut self,
        from: SessionKey,
        frame: &Frame,
        sessions: &mut Sessions,
    ) {
        if self.stands_by(from) {
            self.feed_standby(frame, sessions);
            self.settle_standby(sessions);
        } else {
            self.feed(frame, sessions);
        }
    }

    /// Handles a frame of the publisher on air.
    fn feed(&mut self, frame: &Frame, sessions: &mut Sessions) {
        let placed = match self.place(frame, sessions) {
            Placed::AsItIs => None,
            Placed::Moved(frame) => Some(frame),
            Placed::LeftOut => return,
        };
        let frame = placed.as_ref().unwrap_or(frame);
        if ends_opus(frame, &self.join) {
            self.leave_opus(sessions);
        }
        let is_first_opus = begins_opus(frame, &self.join);
        if is_first_opus {
            self.expect_audio(true, sessions);
        }
        self.publish(frame, &mut sessions.woken);
        if is_first_opus && let Some(header) = aac_header(frame, &self.join) {
            self.publish(&header, &mut sessions.woken);
        }
        if frame.codec == Codec::Opus {
            self.transcode(frame, sessions);
        }
    }

    /// Handles a frame of the publisher that stands by.
    fn feed_standby(&mut self, frame: &Frame, sessions: &mut Sessions) {
        let Some(standby) = &mut self.standby else { return };
        standby.timeline.note(frame, sessions.now);
        if ends_opus(frame, &standby.join) {
            standby.join.forget_opus();
            standby.timeline.forget_opus();
        }
        let begins_opus = begins_opus(frame, &standby.join);
        let header = begins_opus.then(|| aac_header(frame, &standby.join)).flatten();
        for frame in [Some(frame), header.as_ref()].into_iter().flatten() {
            if standby.join.handle_frame(frame) {
                let (record, has_opus) =
                    (standby.publisher.guard.record(), standby.join.has_opus());
                let (readers, woken) = (&mut self.subscribers, &mut sessions.woken);
                subscriber::offer(readers, true, frame, has_opus, record, woken);
            }
        }
    }

    /// Passes a frame to all subscribers and relays; `woken` collects them.
    pub(super) fn publish(&mut self, frame: &Frame, woken: &mut Woken) {
        if self.stage.is_ended() || !self.join.handle_frame(frame) {
            return;
        }
        for (worker, relay) in &self.relays {
            relay.push(frame, self.join.headers());
            woken.workers.push(*worker);
        }
        let has_opus = self.join.has_opus();
        subscriber::offer(&mut self.subscribers, false, frame, has_opus, &self.record, woken);
    }

    /// Converts a publisher's frame to the time of the broadcast; a successor's first frame is joined to what came
    /// before.
    fn place(&mut self, frame: &Frame, sessions: &mut Sessions) -> Placed {
        if self.stage.is_silent() {
            if super::join_point::is_header(frame.kind) {
                return Placed::Moved(self.timeline.at_newest(frame));
            }
            self.splice(sessions, |timeline, now| timeline.splice(frame.timestamp, now));
        }
        if !self.timeline.is_spliced() {
            self.timeline.note(frame, sessions.now);
            return Placed::AsItIs;
        }
        let Some(placed) = self.timeline.place(frame) else { return Placed::LeftOut };
        self.timeline.note(&placed, sessions.now);
        Placed::Moved(placed)
    }

    /// Opens the pushes to the publish's upstreams.
    fn open_pushes(
        &mut self,
        upstreams: Vec<Upstream>,
        connect_info: &Bytes,
        sessions: &mut Sessions,
    ) {
        for upstream in upstreams {
            let is_own = upstream.source == UpstreamSource::Own;
            let upstream = self.record.upstreams.open(upstream, sessions.now);
            let connect_info = if is_own { connect_info.clone() } else { Bytes::new() };
            self.open_push(upstream, connect_info, sessions);
        }
    }

    /// Opens a push to one more upstream.
    pub(super) fn open_push(
        &mut self,
        upstream: Arc<UpstreamRecord>,
        connect_info: Bytes,
        sessions: &mut Sessions,
    ) {
        let (seed, adds_silence) = (sessions.random(), sessions.context.pushes_silence);
        let (client_id, now) = (self.record.client_id, sessions.now);
        let push = RtmpPush::new(client_id, upstream, connect_info, adds_silence, seed, now);
        let key = sessions.insert(Session::Push(Box::new(push)));
        self.pushes.push(key);
        if let Some(entry) = sessions.get_mut(key) {
            entry.pushes = Some(self.key);
        }
        sessions.turn_push(key, RtmpPush::start);
    }

    /// Carries out an order for the push to one upstream.
    pub(super) fn order_push(&mut self, serial: u64, order: PushOrder, sessions: &mut Sessions) {
        let mut paused = None;
        self.turn_pushes(sessions, |push, now, effects| {
            if push.record().serial != serial {
                return;
            }
            match order {
                PushOrder::Pause => paused = push.pause(now, effects).or_else(|| paused.take()),
                PushOrder::Resume => push.resume(now, effects),
                PushOrder::Retry => push.retry_now(now, effects),
            }
        });
        if let Some(record) = paused {
            self.open_push(record, Bytes::new(), sessions);
        }
    }

    /// Removes a push that has ended.
    pub(super) fn forget_push(&mut self, push: SessionKey) {
        self.pushes.retain(|other| *other != push);
    }

    /// Runs a turn of each push.
    pub(super) fn turn_pushes(
        &self,
        sessions: &mut Sessions,
        mut act: impl FnMut(&mut RtmpPush, Instant, &mut Vec<Effect>),
    ) {
        for push in &self.pushes {
            sessions.turn_push(*push, &mut act);
        }
    }

    /// A subscriber joins: requests a keyframe of the publisher on air.
    pub(super) fn want_keyframe(&self, sessions: &mut Sessions) {
        if let Stage::Elsewhere { relay, home, .. } = &self.stage {
            relay.want_keyframe();
            sessions.woken.workers.push(*home);
        }
        if let Some(publisher) = self.stage.running() {
            want_keyframe(publisher, sessions);
        }
    }

    /// Notifies a pull whether it has subscribers.
    pub(super) fn note_readers(&self, sessions: &mut Sessions) {
        if self.record.pull.is_some()
            && let Some(publisher) = self.stage.running()
        {
            let is_unread = self.is_unread();
            sessions.turn(publisher.session, |session, now, _| {
                if let Session::Pull(pull) = session {
                    pull.set_unread(is_unread, now);
                }
            });
        }
    }
}

/// Only WHIP publishers can be asked for a keyframe.
fn want_keyframe(publisher: &Publisher, sessions: &mut Sessions) {
    sessions.turn(publisher.session, |session, now, _| {
        if let Session::Whip(whip) = session {
            whip.want_keyframe(now);
        }
    });
}

/// Whether a publisher's audio is no longer Opus with this frame.
fn ends_opus(frame: &Frame, join: &JoinPoint) -> bool {
    frame.track() == Track::Audio && frame.codec != Codec::Opus && join.has_opus_audio()
}

/// Whether a publisher's Opus begins with this frame.
fn begins_opus(frame: &Frame, join: &JoinPoint) -> bool {
    frame.codec == Codec::Opus && frame.kind == FrameKind::Audio && !join.has_opus_audio()
}

/// The header of AAC transcoded from Opus that begins with this frame, before there is any: some upstreams assume that
/// the tracks of the first two seconds are all.
fn aac_header(first: &Frame, join: &JoinPoint) -> Option<Frame> {
    join.opus_frames().next().and_then(|head| first_configuration(&head, first))
}

#[cfg(test)]
#[path = "broadcast_tests.rs"]
mod tests;
