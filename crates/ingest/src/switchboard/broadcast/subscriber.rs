//! One subscriber of a broadcast: a player, a push, a preview or another node.

use std::sync::Arc;

use headgate_media::{Codec, Frame, FrameKind, Timestamp};
use slotmap::SlotMap;

use super::super::keys::{SessionKey, SubscriberKey};
use super::super::queue::{SubscriberQueue, is_video};
use super::super::sessions::Woken;
use crate::publish::play_guard::PlayGuard;
use crate::publish::record::PublishRecord;
use crate::publish::upstreams::Delivery;
use crate::session::effect::AudioForm;
use crate::session::shared_frame::SharedFrame;

/// Its queue and its counters.
pub(in crate::switchboard) struct Subscriber {
    pub(super) reader: SessionKey,
    pub(super) form: AudioForm,
    pub(super) queue: SubscriberQueue,
    /// Bytes that the stream has offered it, including dropped ones.
    pub(super) offered: u64,
    /// Counters for this subscriber alone.
    pub(super) delivery: Option<Arc<Delivery>>,
    /// Reports its end, if it is a player.
    pub(super) _player: Option<PlayGuard>,
    pub(super) role: Role,
}

/// What a subscriber is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::switchboard) enum Role {
    Player,
    /// It does not count as a subscriber, nor do its bytes and dropped frames: previews are not charged, and another node
    /// counts its own players.
    Uncounted,
    /// A preview of the publish that stands by.
    OfStandby,
    /// `after`: decode timestamp of the newest frame that its upstream has from earlier connections.
    Push {
        after: Option<Timestamp>,
    },
}

impl Subscriber {
    pub(super) const fn is_counted(&self) -> bool {
        matches!(self.role, Role::Player | Role::Push { .. })
    }

    pub(super) const fn reads_standby(&self) -> bool {
        matches!(self.role, Role::OfStandby)
    }
}

/// Queues a frame for those subscribers that read the publish on air, or for those of the standby.
pub(super) fn offer(
    subscribers: &mut SlotMap<SubscriberKey, Subscriber>,
    of_standby: bool,
    frame: &Frame,
    has_opus: bool,
    record: &PublishRecord,
    woken: &mut Woken,
) {
    let shared = match subscribers.len() {
        0 => return,
        1 => SharedFrame::from(frame.clone()),
        _ => SharedFrame::for_many(frame.clone()),
    };
    let is_transcoded = has_opus && frame.codec == Codec::Aac && frame.kind == FrameKind::Audio;
    for subscriber in subscribers.values_mut() {
        if subscriber.reads_standby() != of_standby
            || !subscriber.form.takes(frame.codec, has_opus)
            // AAC that was transcoded from before the subscriber's first video frame would arrive after that.
            || is_transcoded && subscriber.queue.is_before_first_video(frame.timestamp)
            || !subscriber.queue.push(&shared)
        {
            continue;
        }
        if subscriber.queue.awaits_keyframe() && subscriber.is_counted() && is_video(frame.kind) {
            record.note_keyframe_awaited();
        }
        subscriber.offered += frame.data.len() as u64;
        let dropped = subscriber.queue.poll_dropped();
        if dropped > 0 && subscriber.is_counted() {
            record.add_dropped(dropped);
            if let Some(delivery) = &subscriber.delivery {
                delivery.add_dropped(dropped);
            }
        }
        woken.readers.push(subscriber.reader);
    }
}
