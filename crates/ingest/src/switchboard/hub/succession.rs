//! Takeovers: one publish takes over the stream of another, whose subscribers stay.

use std::sync::Arc;

use headgate_media::{Codec, Frame};

use super::super::join_point::is_header;
use super::{Hub, Relay, Stream, StreamKey, Subscriber, SubscriberKey};
use crate::publish::record::{PublishRecord, StreamId};

/// Result of a takeover.
pub(in crate::switchboard) struct Succession {
    /// The stream's previous id, which messages in flight still use.
    pub(in crate::switchboard) former: StreamId,
    /// The id before that, which is no longer in use.
    pub(in crate::switchboard) forgotten: Option<StreamId>,
    /// Other workers that read it.
    pub(in crate::switchboard) readers: Vec<usize>,
}

impl Hub {
    /// Makes the stream and its subscribers those of `record`.
    pub(in crate::switchboard) fn succeed(
        &mut self,
        key: StreamKey,
        record: &Arc<PublishRecord>,
    ) -> Option<Succession> {
        let live = self.streams.get_mut(key)?;
        let is_counted =
            |key: &SubscriberKey| self.subscribers.get(*key).is_some_and(Subscriber::is_counted);
        let readers = live.subscribers.iter().filter(|key| is_counted(key)).count();
        let readers = i64::try_from(readers).unwrap_or(0);
        live.record.add_subscribers(-readers);
        record.add_subscribers(readers);
        let former = std::mem::replace(&mut live.record, record.clone()).stream;
        let forgotten = live.former.replace(former);
        let readers = live.relays.iter().map(|(worker, _)| *worker).collect();
        Some(Succession { former, forgotten, readers })
    }

    /// The frames of the publisher itself that a new subscriber would get: headers and the newest GOP.
    pub(in crate::switchboard) fn kept(&self, key: StreamKey) -> Vec<Frame> {
        let Some(live) = self.streams.get(key) else { return Vec::new() };
        // AAC in a stream with Opus was transcoded here.
        let is_own = |frame: &Frame| !(live.has_opus && frame.codec == Codec::Aac);
        live.join.burst().filter(is_own).collect()
    }

    /// Only the headers of [`Hub::kept`].
    pub(in crate::switchboard) fn kept_headers(&self, key: StreamKey) -> Vec<Frame> {
        let mut kept = self.kept(key);
        kept.retain(|frame| is_header(frame.kind));
        kept
    }

    /// Whether a keyframe of the stream is cached, or it has no video.
    pub(in crate::switchboard) fn can_begin(&self, key: StreamKey) -> bool {
        self.streams.get(key).is_some_and(|live| live.join.can_begin())
    }

    /// Sets whether new subscribers get the newest GOP.
    pub(in crate::switchboard) fn set_caches_gop(&mut self, key: StreamKey, caches_gop: bool) {
        if let Some(live) = self.streams.get_mut(key) {
            live.join.set_caches_gop(caches_gop);
        }
    }

    /// The stream that another worker reads through this relay.
    pub(in crate::switchboard) fn stream_of_relay(&self, relay: &Arc<Relay>) -> Option<StreamKey> {
        let reads = |live: &Stream| live.relays.iter().any(|(_, other)| Arc::ptr_eq(other, relay));
        self.streams.iter().find(|(_, live)| reads(live)).map(|(key, _)| key)
    }

    /// Drops the cached frames, which belong to another publish; headers stay until they are replaced.
    pub(in crate::switchboard) fn forget_frames(&mut self, key: StreamKey) {
        if let Some(live) = self.streams.get_mut(key) {
            live.join.clear();
        }
    }
}

impl Stream {
    /// The stream's previous id, as long as messages may use it.
    pub(in crate::switchboard) const fn former(&self) -> Option<StreamId> {
        self.former
    }
}
