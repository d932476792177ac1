//! Those who read a broadcast: they join at the cached GOP, pushes when their upstream has accepted, and other workers
//! through a relay.

use std::sync::Arc;

use headgate_media::{Codec, Frame, FrameKind, Timestamp};

use super::super::join_point::is_header;
use super::super::keys::{SessionKey, SubscriberKey};
use super::super::queue::SubscriberQueue;
use super::super::relay::Relay;
use super::super::sessions::{Reading, Sessions};
use super::subscriber::{Role, Subscriber};
use super::{Broadcast, Stage};
use crate::publish::play_guard::PlayGuard;
use crate::publish::upstreams::Delivery;
use crate::session::effect::AudioForm;
use crate::session::shared_frame::SharedFrame;

/// A push that reconnects waits for the next keyframe if they follow each other within this time, ms. Otherwise its
/// upstream gets the cached GOP although an earlier connection sent part of it: it would have no picture for too long.
const KEYFRAME_WAIT_LIMIT_MS: u64 = 4_000;

impl Broadcast {
    /// Adds a subscriber. While the form of a push is undecided its upstream has not accepted the stream.
    pub(in crate::switchboard) fn subscribe(
        &mut self,
        reader: SessionKey,
        form: AudioForm,
        role: Role,
    ) -> SubscriberKey {
        let mut queue = self.queue_for(form, role);
        if matches!(role, Role::Push { .. }) && form == AudioForm::Undecided {
            queue.set_pending();
        }
        let (offered, delivery, _player) = (0, None, None);
        let subscriber = Subscriber { reader, form, queue, offered, delivery, _player, role };
        self.record.add_subscribers(i64::from(subscriber.is_counted()));
        self.subscribers.insert(subscriber)
    }

    /// The same for a session of this worker, which reads this broadcast and no other.
    pub(in crate::switchboard) fn join(
        &mut self,
        reader: SessionKey,
        form: AudioForm,
        role: Role,
        sessions: &mut Sessions,
    ) -> SubscriberKey {
        let subscriber = self.subscribe(reader, form, role);
        if let Some(entry) = sessions.get_mut(reader) {
            entry.reads = Some(Reading { stream: self.key, subscriber });
        }
        sessions.woken.readers.push(reader);
        self.note_form();
        self.note_readers(sessions);
        match &self.standby {
            Some(standby) if role == Role::OfStandby => {
                super::want_keyframe(&standby.publisher, sessions);
            }
            _ => self.want_keyframe(sessions),
        }
        subscriber
    }

    /// Counts bytes and dropped frames of this subscriber in `delivery` as well.
    pub(in crate::switchboard) fn count(&mut self, key: SubscriberKey, delivery: Arc<Delivery>) {
        if let Some(subscriber) = self.subscribers.get_mut(key) {
            subscriber.delivery = Some(delivery);
        }
    }

    /// The subscriber is a player: `player` is dropped when it stops reading. Frames of the codecs `left_out` are neither
    /// queued for it nor counted.
    pub(in crate::switchboard) fn hold(
        &mut self,
        key: SubscriberKey,
        player: PlayGuard,
        left_out: Vec<Codec>,
    ) {
        if let Some(subscriber) = self.subscribers.get_mut(key) {
            subscriber.delivery = Some(player.delivery().clone());
            subscriber._player = Some(player);
            subscriber.queue.leave_out(left_out);
        }
    }

    /// The upstream of a push has accepted, and takes Opus audio in this form. If frames were dropped meanwhile, it joins
    /// afresh.
    pub(in crate::switchboard) fn accept(
        &mut self,
        key: SubscriberKey,
        form: AudioForm,
        sessions: &mut Sessions,
    ) {
        let afresh = match self.subscribers.get_mut(key).map(|of| (of.queue.accept(), of.role)) {
            None => return,
            Some((true, _)) => None,
            Some((false, role)) => Some(self.queue_for(form, role)),
        };
        let (has_opus, awaits_video) = (self.join.has_opus(), self.awaits_video());
        let Some(subscriber) = self.subscribers.get_mut(key) else { return };
        subscriber.form = form;
        match afresh {
            Some(queue) => subscriber.queue = queue,
            None => {
                subscriber.queue.forget(|frame| !form.takes(frame.codec, has_opus));
                if awaits_video {
                    subscriber.queue.await_video();
                }
            }
        }
        let (reader, awaits_keyframe) = (subscriber.reader, subscriber.queue.awaits_video());
        if self.timeline.has_paused_audio() {
            sessions.turn_push(reader, |push, _, _| push.set_audio_stopped());
        }
        self.note_form();
        sessions.woken.readers.push(reader);
        if awaits_keyframe {
            self.want_keyframe(sessions);
        }
    }

    /// The subscriber takes at this point what its socket has room for.
    pub(in crate::switchboard) fn note_turn(&mut self, key: SubscriberKey) {
        if let Some(subscriber) = self.subscribers.get_mut(key) {
            subscriber.queue.note_turn();
        }
    }

    /// Removes a subscriber with its queue.
    pub(in crate::switchboard) fn unsubscribe(&mut self, key: SubscriberKey) {
        if let Some(gone) = self.subscribers.remove(key) {
            self.record.add_subscribers(-i64::from(gone.is_counted()));
            self.note_form();
        }
    }

    /// The next frame for a subscriber, counted as sent.
    pub(in crate::switchboard) fn next_frame(&mut self, key: SubscriberKey) -> Option<SharedFrame> {
        let subscriber = self.subscribers.get_mut(key)?;
        let frame = subscriber.queue.pop()?;
        if let Some(delivery) = &subscriber.delivery {
            delivery.add_out(frame.payload_bytes());
        }
        if subscriber.is_counted() {
            self.record.add_out(frame.payload_bytes());
        }
        Some(frame)
    }

    /// Bytes that the stream has offered a subscriber so far.
    pub(in crate::switchboard) fn offered(&self, key: SubscriberKey) -> u64 {
        self.subscribers.get(key).map_or(0, |subscriber| subscriber.offered)
    }

    /// Whether it has ended and the subscriber has taken all frames.
    pub(in crate::switchboard) fn is_finished(&self, key: SubscriberKey) -> bool {
        self.subscribers.get(key).is_none_or(|subscriber| subscriber.queue.is_finished())
    }

    /// Whether frames wait for the subscriber.
    pub(in crate::switchboard) fn has_frames(&self, key: SubscriberKey) -> bool {
        self.subscribers.get(key).is_some_and(|subscriber| !subscriber.queue.is_empty())
    }

    /// Whether only audio waits for the subscriber and may wait for a video frame to be written with. Not for other
    /// nodes, which are uncounted: their own players wait there.
    pub(in crate::switchboard) fn may_wait_for_video(&self, key: SubscriberKey) -> bool {
        let subscriber = self.subscribers.get(key);
        !self.stage.is_ended()
            && subscriber.is_some_and(|of| of.is_counted() && of.queue.holds_only_audio())
    }

    /// Whether no more frames come for the subscriber.
    pub(in crate::switchboard) fn is_ended(&self, key: SubscriberKey) -> bool {
        self.stage.is_ended() || !self.subscribers.contains_key(key)
    }

    /// Whether there has been video, and audio, for this subscriber.
    pub(in crate::switchboard) fn tracks_of(&self, key: SubscriberKey) -> (bool, bool) {
        let reads_standby = self.subscribers.get(key).is_some_and(Subscriber::reads_standby);
        let standby = self.standby.as_ref().filter(|_| reads_standby);
        standby.map_or(&self.join, |standby| &standby.join).tracks()
    }

    /// The video codec of a stream without audio, if the subscriber does not take that codec.
    pub(in crate::switchboard) fn only_left_out(&self, key: SubscriberKey) -> Option<Codec> {
        let codec = self.join.only_video()?;
        self.subscribers.get(key)?.queue.leaves_out(codec).then_some(codec)
    }

    /// Whether its pushes' audio may have to be transcoded first.
    pub(in crate::switchboard) fn expects_audio(&self) -> bool {
        self.join.has_opus_audio() && self.record.transcoder_error().is_none()
    }

    /// Whether it has had audio, but none for some time while its video continued.
    pub(in crate::switchboard) fn has_paused_audio(&self) -> bool {
        self.timeline.has_paused_audio()
    }

    /// Whether it has no subscribers, neither here nor through a relay.
    pub(in crate::switchboard) fn is_unread(&self) -> bool {
        self.subscribers.is_empty() && self.relays.is_empty()
    }

    /// Adds a worker that reads it: `relay` begins with the cached GOP.
    pub(in crate::switchboard) fn attach(&mut self, worker: usize, relay: Arc<Relay>) {
        if self.stage.is_ended() {
            relay.end();
        }
        relay.tell(self.record.clone(), Some(self.join.burst().collect()));
        self.relays.push((worker, relay));
    }

    /// Handles what other workers that read it ask for. True if one of them has no player of it any more.
    pub(in crate::switchboard) fn hear_readers(&mut self, sessions: &mut Sessions) -> bool {
        let (before, mut wants_keyframe) = (self.relays.len(), false);
        self.relays.retain(|(_, relay)| {
            wants_keyframe |= relay.take_keyframe_wanted();
            if relay.has_left() {
                self.record.add_dropped(relay.poll_dropped());
            }
            !relay.has_left()
        });
        if wants_keyframe {
            self.want_keyframe(sessions);
        }
        self.relays.len() < before
    }

    /// Takes what its relay brings, if it lives on another worker: the burst, and the frames that follow it.
    pub(in crate::switchboard) fn drain_relay(&mut self, sessions: &mut Sessions) {
        let Stage::Elsewhere { relay, is_seeded, .. } = &mut self.stage else { return };
        let relay = relay.clone();
        // Checked before draining: if it has ended, the frames drained now are the last ones.
        let (is_ended, news) = (relay.is_ended(), relay.take_news());
        *is_seeded |= news.burst.is_some();
        if !*is_seeded && !is_ended {
            return;
        }
        if let Some(record) = news.record.filter(|of| of.stream != self.record.stream) {
            // A player here may have joined it under its new id already.
            let known = sessions.by_id.get(&record.stream).copied();
            self.succeed(&record, sessions);
            sessions.by_id.extend(known.map(|known| (record.stream, known)));
        }
        let woken = &mut sessions.woken;
        if let Some(burst) = news.burst {
            burst.iter().for_each(|frame| self.publish(frame, woken));
            for subscriber in self.subscribers.values_mut() {
                subscriber.queue.note_joined();
            }
        }
        while let Some(frame) = relay.pop() {
            if Relay::ends_opus(&frame) {
                self.forget_opus();
            } else {
                self.publish(&frame, woken);
            }
        }
        if is_ended {
            self.end(woken);
        }
    }

    /// A new subscriber's queue. It begins with the cached GOP; that of a push that reconnects with the next keyframe,
    /// if its upstream has the cached one already and the next one comes soon.
    fn queue_for(&self, form: AudioForm, role: Role) -> SubscriberQueue {
        let join = match &self.standby {
            Some(standby) if role == Role::OfStandby => &standby.join,
            _ => &self.join,
        };
        let after = match role {
            Role::Push { after } => after.filter(|after| !self.repeats_gop(*after)),
            Role::Player | Role::Uncounted | Role::OfStandby => None,
        };
        let is_new = |frame: &Frame| {
            is_header(frame.kind) || after.is_none_or(|after| frame.timestamp > after)
        };
        let takes = |frame: &Frame| form.takes(frame.codec, join.has_opus()) && is_new(frame);
        let mut queue = SubscriberQueue::new(join.burst().filter(takes));
        let is_push = matches!(role, Role::Push { .. });
        if is_push && form != AudioForm::Undecided && self.awaits_video() {
            queue.await_video();
        }
        if self.stage.is_ended() {
            queue.end();
        }
        queue
    }

    /// Without a keyframe in its queue, an upstream gets no audio either, unless the stream has had no video yet.
    const fn awaits_video(&self) -> bool {
        self.join.has_begun_video() && !self.stage.is_ended()
    }

    /// Whether the cached GOP is sent to an upstream that has had its frames up to `after`.
    fn repeats_gop(&self, after: Timestamp) -> bool {
        let keyframe = self.join.burst().find(|frame| frame.kind == FrameKind::Keyframe);
        let is_known = keyframe.is_some_and(|frame| frame.timestamp <= after);
        // WHIP publishers are asked for a keyframe.
        is_known
            && self.record.whip.is_none()
            && !self.record.has_gop_within(KEYFRAME_WAIT_LIMIT_MS)
    }
}
