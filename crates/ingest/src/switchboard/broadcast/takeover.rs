//! Which publisher is on air: a lost one is held for a while with silence, so that upstreams and players stay, until the
//! publish that continues it or the one that stands by takes over. The gateway decides which may do so, and orders
//! switches.

use std::sync::Arc;
use std::time::{Duration, Instant};

use headgate_media::Frame;

use super::super::join_point::is_header;
use super::super::queue::is_video;
use super::super::sessions::Sessions;
use super::super::timeline::Timeline;
use super::super::timers::TimerOwner;
use super::publisher::own_frames;
use super::subscriber::{Role, Subscriber};
use super::{Broadcast, Publisher, Stage, Standby};
use crate::publish::end_reason::{EndReason, Ending};
use crate::publish::mailbox::OnAirCause;
use crate::publish::record::{PublishRecord, StreamId};
use crate::publish::upstreams::{Upstream, UpstreamSource};

/// How often a held broadcast gets silence.
const SILENCE_PAUSE: Duration = Duration::from_millis(100);
/// If the publish on air has sent no media for this long, a standby that sent media all the time takes over, even
/// though the other one is still connected.
const SILENCE_LIMIT: Duration = Duration::from_secs(3);
/// How long a broadcast stays without media if a publish that took over is lost before its first frame.
const FIRST_FRAME_LIMIT: Duration = Duration::from_secs(10);

impl Broadcast {
    /// Its publisher on air ends like this: the standby takes over, or it is held for a successor. False: it ends.
    pub(in crate::switchboard) fn outlasts(
        &mut self,
        ending: Ending,
        sessions: &mut Sessions,
    ) -> bool {
        let now = sessions.now;
        let may_pass_on = ending.reason.passes_on() && !sessions.is_stopping;
        if let Some(standby) = self.standby.take_if(|_| may_pass_on) {
            self.begin_hold(ending.reason, now + FIRST_FRAME_LIMIT, sessions);
            self.hand_over(*standby, OnAirCause::Lost, sessions);
            return true;
        }
        let until = self.stage.hold_until(now);
        let is_held =
            ending.is_loss && !sessions.is_stopping && now < until && self.timeline.has_begun();
        if is_held {
            self.begin_hold(ending.reason, until, sessions);
        }
        is_held
    }

    /// It has no publisher until another one takes over; at `until` it ends.
    fn begin_hold(&mut self, reason: EndReason, until: Instant, sessions: &mut Sessions) {
        if self.stage.lose(reason, until) {
            sessions.context.publishes.leave_name(&self.name, self.record.stream);
            let next = until.min(sessions.now + SILENCE_PAUSE);
            sessions.timers.arm(TimerOwner::Stream(self.key), next);
        }
    }

    /// Handles its timer between two publishers: silence, or the standby takes over. False: the hold is over.
    pub(in crate::switchboard) fn handle_timeout(&mut self, sessions: &mut Sessions) -> bool {
        match self.stage {
            Stage::Held { until, .. } if sessions.now >= until => {
                let standby = self.standby.take();
                let has_standby = standby.is_some();
                if let Some(standby) = standby {
                    self.hand_over(*standby, OnAirCause::Lost, sessions);
                }
                has_standby
            }
            Stage::Held { .. } | Stage::Awaited { .. } => {
                self.write_silence(sessions);
                let next = sessions.now + SILENCE_PAUSE;
                sessions.timers.arm(TimerOwner::Stream(self.key), next);
                true
            }
            Stage::Vacant | Stage::OnAir(_) | Stage::Draining { .. } | Stage::Elsewhere { .. } => {
                true
            }
        }
    }

    /// The publish that continues a held one takes over, with its own upstreams.
    pub(in crate::switchboard) fn take_over(
        &mut self,
        successor: Publisher,
        upstreams: Vec<Upstream>,
        sessions: &mut Sessions,
    ) {
        let (record, connect_info) =
            (successor.guard.record().clone(), successor.connect_info.clone());
        self.stage.take_over(successor, sessions.now);
        self.succeed(&record, sessions);
        sessions.enter_name(&self.name, &record);
        let mut kept = Vec::new();
        self.turn_pushes(sessions, |push, now, effects| {
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
        let missing = upstreams.into_iter().filter(|of| !kept.contains(&of.id)).collect();
        self.open_pushes(missing, &connect_info, sessions);
    }

    /// It belongs to another publish from now on: notifies other workers that read it.
    pub(in crate::switchboard) fn succeed(
        &mut self,
        record: &Arc<PublishRecord>,
        sessions: &mut Sessions,
    ) {
        let counted = self.subscribers.values().filter(|of| of.is_counted()).count();
        let counted = i64::try_from(counted).unwrap_or(0);
        self.record.add_subscribers(-counted);
        record.add_subscribers(counted);
        let stream = std::mem::replace(&mut self.record, record.clone()).stream;
        let forgotten = self.former.replace(stream);
        if let Some(id) = forgotten.filter(|id| self.publisher(*id).is_none()) {
            self.forget_id(id, sessions);
        }
        sessions.by_id.insert(record.stream, self.key);
        for (reader, relay) in &self.relays {
            relay.tell(record.clone(), None);
            sessions.woken.workers.push(*reader);
        }
    }

    fn forget_id(&self, id: StreamId, sessions: &mut Sessions) {
        if sessions.by_id.get(&id) == Some(&self.key) {
            sessions.by_id.remove(&id);
        }
    }

    /// Opens a publish beside the one on air: it stands by. If that was lost while the message was in flight, it takes
    /// over at once.
    pub(in crate::switchboard) fn open_standby(
        &mut self,
        publisher: Publisher,
        sessions: &mut Sessions,
    ) {
        self.stand_by(publisher, OnAirCause::Began, sessions);
        let is_held = self.stage.is_held();
        if let Some(standby) = self.standby.take_if(|_| is_held) {
            self.hand_over(*standby, OnAirCause::Lost, sessions);
        }
    }

    /// The gateway orders this publish on air, now or at its next keyframe.
    pub(in crate::switchboard) fn switch_to(&mut self, id: StreamId, sessions: &mut Sessions) {
        if let Some(mut standby) = self.standby.take() {
            // If it is already on air, a pending switch to the other one is cancelled.
            standby.is_wanted = standby.publisher.guard.record().stream == id;
            let cause = standby.is_wanted.then_some(OnAirCause::Switched);
            self.settle(standby, cause, sessions);
        }
    }

    /// Called after a frame of the standby: it takes over as soon as it should and can.
    pub(super) fn settle_standby(&mut self, sessions: &mut Sessions) {
        if let Some(mut standby) = self.standby.take() {
            let is_steady = standby.note_frame(sessions.now);
            let cause = if standby.is_wanted {
                Some(OnAirCause::Switched)
            } else {
                (is_steady && self.is_silent(sessions.now)).then_some(OnAirCause::Silent)
            };
            self.settle(standby, cause, sessions);
        }
    }

    /// The standby takes over if it has a cause; a keyframe of it is requested first if it cannot begin.
    fn settle(
        &mut self,
        standby: Box<Standby>,
        cause: Option<OnAirCause>,
        sessions: &mut Sessions,
    ) {
        match cause {
            // The publish on air ended before this one could take over.
            Some(_) if self.stage.is_vacant() => self.go_on_air(*standby, sessions),
            Some(cause) if standby.is_ready(sessions.now) => {
                self.hand_over(*standby, cause, sessions);
            }
            Some(_) => {
                super::want_keyframe(&standby.publisher, sessions);
                self.standby = Some(standby);
            }
            None => self.standby = Some(standby),
        }
    }

    /// Whether the publish on air sends nothing.
    fn is_silent(&self, now: Instant) -> bool {
        let newest = self.timeline.newest_at().map_or(self.since, |at| at.max(self.since));
        self.stage.running().is_some() && now >= newest + SILENCE_LIMIT
    }

    /// Puts the standby on air when nothing else is: its name is live from then on.
    fn go_on_air(&mut self, standby: Standby, sessions: &mut Sessions) {
        let Standby { publisher, join, timeline, .. } = standby;
        (self.join, self.timeline) = (join, timeline);
        self.join.set_caches_gop(sessions.context.caches_gop);
        for subscriber in self.subscribers.values_mut() {
            subscriber.role = Role::Uncounted;
        }
        let record = publisher.guard.record().clone();
        record.set_on_air(true);
        sessions.report_on_air(&record, true, None, OnAirCause::Switched);
        self.begin(publisher, record.upstreams.take(), sessions);
    }

    /// The standby takes over. The publish that was on air stands by itself, if it still runs.
    fn hand_over(&mut self, standby: Standby, cause: OnAirCause, sessions: &mut Sessions) {
        let now = sessions.now;
        let kept = standby.kept(now);
        for preview in self.take_previews() {
            sessions.woken.readers.push(preview.reader);
        }
        self.close_transcoder(&sessions.context.transcoders);
        let headers: Vec<_> = own_frames(&self.join).filter(|of| is_header(of.kind)).collect();
        let former_id = self.record.client_id;
        let record = standby.publisher.guard.record().clone();
        let former = self.stage.take_over(standby.publisher, now + FIRST_FRAME_LIMIT);
        self.since = now;
        self.succeed(&record, sessions);
        record.set_on_air(true);
        sessions.enter_name(&self.name, &record);
        self.turn_pushes(sessions, |push, _, _| push.set_client_id(record.client_id));
        sessions.report_on_air(&record, true, Some(former_id), cause);
        if let Some(former) = former {
            self.stand_by(former, cause, sessions);
            if let Some(standby) = &mut self.standby {
                for header in &headers {
                    standby.join.handle_frame(header);
                }
            }
        }
        self.begin_with(&kept, sessions);
    }

    /// Passes on the cached frames of a publish that has just taken over.
    fn begin_with(&mut self, kept: &[Frame], sessions: &mut Sessions) {
        let video = || kept.iter().filter(|frame| is_video(frame.kind));
        for header in kept.iter().filter(|frame| is_header(frame.kind)) {
            self.feed(header, sessions);
        }
        if let (Some(first), Some(last)) = (video().next(), video().next_back()) {
            let (first, newest, frames) = (first.timestamp, last.timestamp, video().count());
            self.splice(sessions, |timeline, now| {
                timeline.splice_group(first, newest, frames, now);
            });
            for frame in kept.iter().filter(|frame| !is_header(frame.kind)) {
                self.feed(frame, sessions);
            }
        } else {
            // No cached video: begin with the next frames.
            self.want_keyframe(sessions);
        }
    }

    /// Joins a successor's first frames: silence ends there, and the cached frames belong to another publish.
    pub(super) fn splice(
        &mut self,
        sessions: &mut Sessions,
        join: impl FnOnce(&mut Timeline, Instant),
    ) {
        self.write_silence(sessions);
        self.stage.go_on_air();
        join(&mut self.timeline, sessions.now);
        sessions.timers.disarm(TimerOwner::Stream(self.key));
        self.join.clear();
        self.turn_pushes(sessions, |push, _, _| push.handle_successor());
    }

    /// Takes out the previews of the standby.
    pub(in crate::switchboard) fn take_previews(&mut self) -> Vec<Subscriber> {
        let keys = self.subscribers.iter().filter(|(_, of)| of.reads_standby());
        let keys: Vec<_> = keys.map(|(key, _)| key).collect();
        keys.into_iter().filter_map(|key| self.subscribers.remove(key)).collect()
    }

    /// The standby leaves the one on air, with its previews, for the vacant broadcast `to`.
    pub(in crate::switchboard) fn part(&mut self, to: &mut Self, sessions: &mut Sessions) {
        to.standby = self.standby.take();
        for preview in self.take_previews() {
            let reader = preview.reader;
            let subscriber = to.subscribers.insert(preview);
            if let Some(entry) = sessions.get_mut(reader) {
                entry.reads = Some(super::super::sessions::Reading { stream: to.key, subscriber });
            }
        }
        let session = to.standby.as_ref().map(|of| of.publisher.session);
        if let Some(entry) = session.and_then(|session| sessions.get_mut(session))
            && entry.publishes == Some(self.key)
        {
            entry.publishes = Some(to.key);
        }
    }
}
