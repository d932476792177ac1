//! Where a push joins its stream: at the cached GOP, when its upstream has accepted.

use headgate_media::{Frame, FrameKind, Timestamp};

use super::super::join_point::is_header;
use super::{AudioForm, Hub, Role, SessionKey, Stream, StreamKey, SubscriberKey};
use crate::switchboard::queue::SubscriberQueue;

/// A push that reconnects waits for the next keyframe if they follow each other within this time, ms. Otherwise its
/// upstream gets the cached GOP although an earlier connection sent part of it: it would have no picture for too long.
const KEYFRAME_WAIT_LIMIT_MS: u64 = 4_000;

impl Hub {
    /// Adds a push, which starts as [`Stream::queue_for`] says. While its form is undecided its upstream has not
    /// accepted the stream. `None` if the stream is gone.
    pub(in crate::switchboard) fn subscribe_push(
        &mut self,
        stream: StreamKey,
        reader: SessionKey,
        form: AudioForm,
        after: Option<Timestamp>,
    ) -> Option<SubscriberKey> {
        let key = self.join(stream, reader, form, Role::Push { after })?;
        self.streams.get(stream)?.record.add_subscribers(1);
        Some(key)
    }

    /// Sets how a push takes Opus audio: its upstream has accepted the stream. If frames were dropped meanwhile, it
    /// joins afresh. Returns whether it waits for a keyframe.
    pub(in crate::switchboard) fn accept(&mut self, key: SubscriberKey, form: AudioForm) -> bool {
        let Some(subscriber) = self.subscribers.get_mut(key) else { return false };
        let Some(live) = self.streams.get(subscriber.stream) else { return false };
        subscriber.form = form;
        if subscriber.queue.accept() {
            subscriber.queue.forget(|frame| !form.takes(frame.codec, live.has_opus));
            live.await_video(&mut subscriber.queue);
        } else {
            subscriber.queue = live.queue_for(form, subscriber.role);
        }
        subscriber.queue.awaits_video()
    }
}

impl Stream {
    /// A new subscriber's queue. It begins with the cached GOP; that of a push that reconnects with the next keyframe,
    /// if its upstream has the cached one already and the next one comes soon.
    pub(super) fn queue_for(&self, form: AudioForm, role: Role) -> SubscriberQueue {
        let after = match role {
            Role::Push { after } => after.filter(|after| !self.repeats_gop(*after)),
            Role::Player | Role::Uncounted => None,
        };
        let is_new = |frame: &Frame| {
            is_header(frame.kind) || after.is_none_or(|after| frame.timestamp > after)
        };
        let takes = |frame: &Frame| form.takes(frame.codec, self.has_opus) && is_new(frame);
        let mut queue = SubscriberQueue::new(self.join.burst().filter(takes));
        if matches!(role, Role::Push { .. }) && form != AudioForm::Undecided {
            self.await_video(&mut queue);
        }
        if self.ended {
            queue.end();
        }
        queue
    }

    /// Without a keyframe in its queue, an upstream gets no audio either, unless the stream has had no video yet.
    fn await_video(&self, queue: &mut SubscriberQueue) {
        if self.join.has_begun_video() && !self.ended {
            queue.await_video();
        }
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
