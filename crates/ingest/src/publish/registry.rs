//! The running publishes of the process, by client id and by live name. Asked when a publish or a player starts and by
//! the gateway, never per packet.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use rustc_hash::FxHashMap;

use super::end_reason::EndReason;
use super::lock::lock;
use super::mailbox::{Event, Mailbox, PublishEnded};
use super::record::{PublishRecord, StreamId};
use super::whip_record::WhipRecord;

/// Every running publish, once, and the names that lead to it.
#[derive(Debug)]
pub(crate) struct Publishes {
    mailbox: Arc<Mailbox>,
    next_stream: AtomicU64,
    indexes: Mutex<Indexes>,
}

#[derive(Debug, Default)]
struct Indexes {
    by_client_id: FxHashMap<u64, Arc<PublishRecord>>,
    by_name: FxHashMap<Vec<u8>, Arc<PublishRecord>>,
}

impl Publishes {
    /// None yet; ends are reported to `mailbox`.
    pub(crate) fn new(mailbox: Arc<Mailbox>) -> Arc<Self> {
        let (next_stream, indexes) = (AtomicU64::new(0), Mutex::default());
        Arc::new(Self { mailbox, next_stream, indexes })
    }

    /// What the gateway reads.
    pub(crate) fn mailbox(&self) -> &Mailbox {
        &self.mailbox
    }

    /// A publish was allowed and will live on `worker`. Its end is reported when the guard is dropped.
    pub(crate) fn open(
        self: &Arc<Self>,
        client_id: u64,
        worker: usize,
        whip: Option<WhipRecord>,
        now: Instant,
    ) -> PublishGuard {
        let stream = StreamId(self.next_stream.fetch_add(1, Ordering::Relaxed));
        let record = Arc::new(PublishRecord::new(client_id, stream, worker, whip, now));
        lock(&self.indexes).by_client_id.insert(client_id, record.clone());
        PublishGuard { publishes: self.clone(), record, reason: EndReason::InternalError }
    }

    /// The running publish with this client id.
    pub(crate) fn find(&self, client_id: u64) -> Option<Arc<PublishRecord>> {
        lock(&self.indexes).by_client_id.get(&client_id).cloned()
    }

    /// The name belongs to `record` from now on; who had it before keeps its players until it ends.
    pub(crate) fn enter_name(&self, name: &[u8], record: &Arc<PublishRecord>) {
        lock(&self.indexes).by_name.insert(name.to_vec(), record.clone());
    }

    /// Forgets the name if it still belongs to `stream`.
    pub(crate) fn leave_name(&self, name: &[u8], stream: StreamId) {
        let mut indexes = lock(&self.indexes);
        if indexes.by_name.get(name).is_some_and(|record| record.stream == stream) {
            indexes.by_name.remove(name);
        }
    }

    /// The publish that is live under this name.
    pub(crate) fn find_name(&self, name: &[u8]) -> Option<Arc<PublishRecord>> {
        lock(&self.indexes).by_name.get(name).cloned()
    }
}

/// The promise of exactly one [`PublishEnded`]: kept when this is dropped, for whatever reason.
#[derive(Debug)]
pub(crate) struct PublishGuard {
    publishes: Arc<Publishes>,
    record: Arc<PublishRecord>,
    reason: EndReason,
}

impl PublishGuard {
    /// The publish.
    #[must_use]
    pub(crate) const fn record(&self) -> &Arc<PublishRecord> {
        &self.record
    }

    /// Sets the reason that the drop reports; without one, a bug of ours is reported.
    pub(crate) const fn set_reason(&mut self, reason: EndReason) {
        self.reason = reason;
    }
}

impl Drop for PublishGuard {
    fn drop(&mut self) {
        let PublishRecord { client_id, stream, .. } = *self.record;
        let (bytes_in, bytes_out) = self.record.bytes();
        let mut indexes = lock(&self.publishes.indexes);
        if indexes.by_client_id.get(&client_id).is_some_and(|record| record.stream == stream) {
            indexes.by_client_id.remove(&client_id);
        }
        drop(indexes);
        let ended = PublishEnded { client_id, reason: self.reason, bytes_in, bytes_out };
        self.publishes.mailbox.put(Event::PublishEnded(ended));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;

    #[test]
    fn a_dropped_guard_reports_one_end() {
        let wakes = Arc::new(AtomicUsize::new(0));
        let counted = wakes.clone();
        let publishes = Publishes::new(Mailbox::new(Box::new(move || {
            counted.fetch_add(1, Ordering::Relaxed);
        })));
        let guard = publishes.open(5, 0, None, Instant::now());
        let mut named = publishes.open(6, 0, None, Instant::now());
        named.set_reason(EndReason::Unpublished);
        drop(guard);
        drop(named);
        assert_eq!(wakes.load(Ordering::Relaxed), 1);
        let reasons: Vec<_> = publishes
            .mailbox()
            .drain()
            .into_iter()
            .filter_map(|event| match event {
                Event::PublishEnded(ended) => Some((ended.client_id, ended.reason)),
                _ => None,
            })
            .collect();
        assert_eq!(reasons, [(5, EndReason::InternalError), (6, EndReason::Unpublished)]);
        assert!(publishes.find(5).is_none());
    }

    #[test]
    fn a_name_that_was_taken_over_is_not_forgotten_by_its_former_owner() {
        let publishes = Publishes::new(Mailbox::new(Box::new(|| {})));
        let first = publishes.open(1, 0, None, Instant::now());
        let second = publishes.open(2, 0, None, Instant::now());
        publishes.enter_name(b"cam", first.record());
        publishes.enter_name(b"cam", second.record());
        publishes.leave_name(b"cam", first.record().stream);
        assert_eq!(publishes.find_name(b"cam").map(|record| record.client_id), Some(2));
        publishes.leave_name(b"cam", second.record().stream);
        assert!(publishes.find_name(b"cam").is_none());
    }
}
