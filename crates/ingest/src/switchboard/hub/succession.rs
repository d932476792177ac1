//! One publish takes over the stream of another: its readers stay.

use std::sync::Arc;

use headgate_media::{Codec, Frame};

use super::super::join_point::is_header;
use super::{Hub, Relay, Stream, StreamKey, SubscriberKey};
use crate::publish::record::{PublishRecord, StreamId};

/// What changed hands.
pub(in crate::switchboard) struct Succession {
    /// What the stream was called so far, and still is by messages that are on their way.
    pub(in crate::switchboard) former: StreamId,
    /// What it was called before that: nobody means it any more.
    pub(in crate::switchboard) forgotten: Option<StreamId>,
    /// Other workers that read it.
    pub(in crate::switchboard) readers: Vec<usize>,
}

impl Hub {
    /// The stream is that of `record` from now on, and so are its readers.
    pub(in crate::switchboard) fn succeed(
        &mut self,
        key: StreamKey,
        record: &Arc<PublishRecord>,
    ) -> Option<Succession> {
        let live = self.streams.get_mut(key)?;
        let is_counted =
            |key: &SubscriberKey| self.subscribers.get(*key).is_some_and(|of| of.is_counted);
        let readers = live.subscribers.iter().filter(|key| is_counted(key)).count();
        let readers = i64::try_from(readers).unwrap_or(0);
        live.record.add_subscribers(-readers);
        record.add_subscribers(readers);
        let former = std::mem::replace(&mut live.record, record.clone()).stream;
        let forgotten = live.former.replace(former);
        let readers = live.relays.iter().map(|(worker, _)| *worker).collect();
        Some(Succession { former, forgotten, readers })
    }

    /// What a joiner would get of a publisher's own: headers, and the newest group of pictures.
    pub(in crate::switchboard) fn kept(&self, key: StreamKey) -> Vec<Frame> {
        let Some(live) = self.streams.get(key) else { return Vec::new() };
        // AAC of a stream of Opus was made here.
        let is_own = |frame: &Frame| !(live.has_opus && frame.codec == Codec::Aac);
        live.join.burst().filter(is_own).collect()
    }

    /// The headers of the same.
    pub(in crate::switchboard) fn kept_headers(&self, key: StreamKey) -> Vec<Frame> {
        let mut kept = self.kept(key);
        kept.retain(|frame| is_header(frame.kind));
        kept
    }

    /// A keyframe of the stream is cached, or it has no video.
    pub(in crate::switchboard) fn can_begin(&self, key: StreamKey) -> bool {
        self.streams.get(key).is_some_and(|live| live.join.can_begin())
    }

    /// Whether joiners get the newest group of pictures.
    pub(in crate::switchboard) fn set_caches_gop(&mut self, key: StreamKey, caches_gop: bool) {
        if let Some(live) = self.streams.get_mut(key) {
            live.join.set_caches_gop(caches_gop);
        }
    }

    /// The stream that another worker reads by this relay.
    pub(in crate::switchboard) fn stream_of_relay(&self, relay: &Arc<Relay>) -> Option<StreamKey> {
        let reads = |live: &Stream| live.relays.iter().any(|(_, other)| Arc::ptr_eq(other, relay));
        self.streams.iter().find(|(_, live)| reads(live)).map(|(key, _)| key)
    }

    /// What was cached for joiners is of another publish; headers stay until there are others.
    pub(in crate::switchboard) fn forget_frames(&mut self, key: StreamKey) {
        if let Some(live) = self.streams.get_mut(key) {
            live.join.clear();
        }
    }
}

impl Stream {
    /// What it was called before, as long as somebody may mean it.
    pub(in crate::switchboard) const fn former(&self) -> Option<StreamId> {
        self.former
    }
}
