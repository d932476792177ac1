//! One publish takes over the stream of another: its readers stay.

use std::sync::Arc;

use super::{Hub, StreamKey, SubscriberKey};
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

    /// What was cached for joiners is of another publish; headers stay until there are others.
    pub(in crate::switchboard) fn forget_frames(&mut self, key: StreamKey) {
        if let Some(live) = self.streams.get_mut(key) {
            live.join.clear();
        }
    }
}

impl super::Stream {
    /// What it was called before, as long as somebody may mean it.
    pub(in crate::switchboard) const fn former(&self) -> Option<StreamId> {
        self.former
    }
}
