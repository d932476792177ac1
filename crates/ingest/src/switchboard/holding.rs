//! Streams that lost their publisher: held for a while with silence, so that upstreams and players stay, and taken over
//! by the publish that continues them, which the gateway chooses.

use std::sync::Arc;
use std::time::{Duration, Instant};

use headgate_media::{Frame, FrameKind, Irregularity, Timestamp, aac};

use super::message::{Message, Opening};
use super::source::Ending;
use super::stage::Stage;
use super::timeline::{Placed, Timeline};
use super::timers::TimerOwner;
use super::{Action, SessionKey, StreamKey, Switchboard};
use crate::publish::end_reason::EndReason;
use crate::publish::mailbox::OnAirCause;
use crate::publish::record::{PublishRecord, StreamId};
use crate::publish::upstreams::{Upstream, UpstreamSource};

/// How often a held stream gets silence.
const SILENCE_PAUSE: Duration = Duration::from_millis(100);

impl Switchboard {
    /// Holds a stream whose publisher was lost, and reports the end of its publish. False: the stream ends.
    pub(super) fn hold_stream(&mut self, key: StreamKey, ending: Ending) -> bool {
        let now = self.now;
        let is_stopping = self.is_stopping;
        let Some(local) = self.local_mut(key) else { return false };
        let until = local.stage.hold_until(now);
        let is_kept = ending.is_loss && !is_stopping && local.stage.standby().is_none();
        if !is_kept || now >= until || !local.timeline.has_begun() {
            return false;
        }
        self.begin_hold(key, ending.reason, until);
        true
    }

    /// The stream has no publisher until another one takes it over; at `until` it ends.
    pub(super) fn begin_hold(&mut self, key: StreamKey, reason: EndReason, until: Instant) {
        let Some(live) = self.hub.stream_mut(key) else { return };
        let id = live.record.stream;
        let Some(local) = live.source.local_mut() else { return };
        if local.stage.lose(reason, until) {
            self.context.publishes.leave_name(&local.name, id);
            self.timers.arm(TimerOwner::Stream(key), until.min(self.now + SILENCE_PAUSE));
        }
    }

    /// Handles a stream's timer: silence between two publishers, or the end of a hold or of the drain time.
    pub(super) fn handle_stream_timeout(&mut self, key: StreamKey) {
        let now = self.now;
        let local = self.local(key);
        match local.map(|local| &local.stage) {
            Some(Stage::Held { until, .. }) if now >= *until => {
                if !self.hand_over_held(key) {
                    self.drain(key);
                }
            }
            Some(Stage::Held { .. } | Stage::Awaited { .. }) => {
                self.write_silence(key);
                self.timers.arm(TimerOwner::Stream(key), now + SILENCE_PAUSE);
            }
            Some(Stage::OnAir(_) | Stage::Standby(..) | Stage::Draining { .. }) | None => {
                self.close_if_done(key);
            }
        }
    }

    /// The gateway ends a held stream: it will have no successor.
    pub(super) fn release(&mut self, stream: StreamId) {
        let Some(key) = self.stream(stream) else { return };
        if self.local(key).is_some_and(|local| local.stage.is_held()) {
            self.drain(key);
        }
    }

    /// Ends all held streams.
    pub(super) fn release_all(&mut self) {
        let held = self.hub.streams().filter_map(|(key, live)| {
            live.source.local().is_some_and(|local| local.stage.is_held()).then_some(key)
        });
        for key in held.collect::<Vec<_>>() {
            self.drain(key);
        }
    }

    /// Opens a publish of `publisher`: it takes over the stream of the publish that it continues, if still held.
    pub(super) fn open_or_continue(
        &mut self,
        publisher: SessionKey,
        name: Vec<u8>,
        opening: Opening,
    ) -> StreamKey {
        let held = opening
            .continues
            .and_then(|stream| self.stream(stream))
            .filter(|key| self.local(*key).is_some_and(|local| local.stage.is_held()));
        let has_other = opening.beside.is_some();
        let key = match (held, self.other_of(&opening)) {
            (Some(key), _) => {
                self.take_over(key, publisher, &name, opening);
                key
            }
            (None, Some(other)) => self.open_beside(publisher, name, opening, other),
            (None, None) => {
                if opening.continues.is_some() || has_other {
                    // The upstreams of the other publish ended while the message was in flight.
                    opening.guard.record().upstreams.clear();
                }
                self.open_anew(publisher, name, opening)
            }
        };
        if has_other && !self.stands_by(key) {
            self.tell_on_air(key, None, OnAirCause::Began);
        }
        key
    }

    fn take_over(&mut self, key: StreamKey, publisher: SessionKey, name: &[u8], opening: Opening) {
        let (now, (publication, upstreams)) = (self.now, opening.publication(publisher));
        let connect_info = publication.connect_info.clone();
        let record = publication.guard.record().clone();
        let Some(live) = self.hub.stream_mut(key) else { return };
        let Some(local) = live.source.local_mut() else { return };
        let pushes = local.pushes.clone();
        local.stage.take_over(publication, now);
        self.succeed(key, &record);
        let replaced = self.context.publishes.enter_name(name, &record);
        let mut kept = Vec::new();
        for push in pushes {
            self.turn_push(push, |push, now, effects| {
                let (upstream, is_paused) = (&push.record().upstream, push.record().is_paused());
                // It may have been paused or resumed meanwhile.
                let is_same = |of: &Upstream| of.id == upstream.id && of.url == upstream.url;
                let is_wanted = upstream.source == UpstreamSource::Session
                    || upstreams.iter().any(|of| is_same(of) && of.is_paused == is_paused);
                if push.is_closing() {
                    // Removed before: a new push is opened if it is requested again.
                } else if is_wanted {
                    kept.push(upstream.id.clone());
                    push.set_client_id(record.client_id);
                } else {
                    record.upstreams.remove(&upstream.id);
                    push.leave(now, effects);
                }
            });
        }
        let missing = upstreams.into_iter().filter(|of| !kept.contains(&of.id));
        self.open_pushes(key, missing.collect(), &connect_info);
        if let Some(pull) = replaced {
            self.end_pull(&pull);
        }
    }

    /// The stream belongs to another publish from now on: notifies other workers that read it.
    pub(super) fn succeed(&mut self, key: StreamKey, record: &Arc<PublishRecord>) {
        let Some(succession) = self.hub.succeed(key, record) else { return };
        if let Some(forgotten) = succession.forgotten
            && self.by_id.get(&forgotten) == Some(&key)
        {
            // That publish may stand by, on a stream of its own.
            self.by_id.remove(&forgotten);
        }
        self.by_id.insert(record.stream, key);
        for reader in succession.readers {
            let (stream, record) = (succession.former, record.clone());
            self.actions.push(Action::Tell(reader, Message::Succeeded { stream, record }));
        }
    }

    /// A stream of another worker that is read here belongs to another publish from now on.
    pub(super) fn handle_succeeded(&mut self, stream: StreamId, record: &Arc<PublishRecord>) {
        let Some(key) = self.stream(stream) else { return };
        let known = self.stream(record.stream);
        self.succeed(key, record);
        if let Some(known) = known {
            // A player here has already joined it under its new id.
            self.by_id.insert(record.stream, known);
        }
    }

    /// Converts a publisher's frame to the time of its stream; a successor's first frame is joined to what came before.
    pub(super) fn place(&mut self, key: StreamKey, frame: &Frame) -> Placed {
        let now = self.now;
        let Some(local) = self.local_mut(key) else { return Placed::LeftOut };
        if local.stage.is_silent() {
            let is_header = matches!(
                frame.kind,
                FrameKind::Configuration | FrameKind::ColorInfo | FrameKind::Script
            );
            if is_header {
                return Placed::Moved(local.timeline.at_newest(frame));
            }
            self.splice(key, frame);
        }
        let Some(local) = self.local_mut(key) else { return Placed::LeftOut };
        if !local.timeline.is_spliced() {
            local.timeline.note(frame, now);
            return Placed::AsItIs;
        }
        let Some(placed) = local.timeline.place(frame) else { return Placed::LeftOut };
        local.timeline.note(&placed, now);
        Placed::Moved(placed)
    }

    /// The publisher's audio is no longer Opus: all subscribers get it unchanged.
    pub(super) fn leave_opus(&mut self, key: StreamKey) {
        self.close_transcoder(key);
        self.hub.forget_opus(key);
        if let Some(local) = self.local_mut(key) {
            local.timeline.forget_opus();
        }
        self.expect_audio(key, false);
    }

    /// Joins a successor's first frame: silence ends there, and the cached frames belong to another publish.
    pub(super) fn splice(&mut self, key: StreamKey, first: &Frame) {
        self.splice_at(key, |timeline, now| timeline.splice(first.timestamp, now));
    }

    /// The same for a cached GOP: its video from `first` to `newest`, and the number of these frames.
    pub(super) fn splice_group(
        &mut self,
        key: StreamKey,
        first: Timestamp,
        newest: Timestamp,
        frames: usize,
    ) {
        self.splice_at(key, |timeline, now| timeline.splice_group(first, newest, frames, now));
    }

    fn splice_at(&mut self, key: StreamKey, join: impl FnOnce(&mut Timeline, Instant)) {
        self.write_silence(key);
        let now = self.now;
        let Some(local) = self.local_mut(key) else {
            return;
        };
        local.stage.go_on_air(now);
        join(&mut local.timeline, now);
        let pushes = local.pushes.clone();
        self.timers.disarm(TimerOwner::Stream(key));
        self.hub.forget_frames(key);
        for push in pushes {
            self.turn_push(push, |push, _, _| push.handle_successor());
        }
    }

    /// Writes silence up to now, on the tracks that the lost publish had.
    fn write_silence(&mut self, key: StreamKey) {
        let now = self.now;
        self.close_transcoder(key);
        let configuration = self.hub.audio_configuration(key);
        let aac = configuration.and_then(|frame| aac::silence(&frame.data));
        let Some(local) = self.local_mut(key) else {
            return;
        };
        let position = local.timeline.position(now);
        let (frames, pushes) =
            (local.timeline.silence(position, aac.as_ref(), now), local.pushes.clone());
        let limited = local.timeline.take_limited();
        if limited > 0
            && let Some(live) = self.hub.stream(key)
        {
            live.record.note_irregularity(Irregularity::FillerLimited, limited);
        }
        for frame in &frames {
            self.hub.publish(key, frame, &mut self.woken);
        }
        for push in pushes {
            // A push whose stream never had audio makes its own silence.
            let mut made = None;
            self.turn_push(push, |push, now, _| {
                push.write_silence(position, now);
                made = push.take_made();
            });
            let reads = self.sessions.get(push).and_then(|entry| entry.reads);
            if let (Some(subscriber), Some(made)) = (reads, made) {
                self.hub.count_made(subscriber, made);
            }
        }
    }
}
