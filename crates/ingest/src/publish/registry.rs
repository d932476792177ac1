//! The running publishes of the process, by client id and by live name. Used by the gateway and when a publish or
//! player starts, never per packet.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Instant, SystemTime};

use rustc_hash::FxHashMap;

use super::end_reason::EndReason;
use super::lock::lock;
use super::mailbox::{Event, Mailbox, PublishEnded, PullEnded};
use super::pull_record::{PullRecord, PullSource, PullStatus};
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
    /// Of lost publishes whose streams are held, by their client ids.
    held: FxHashMap<u64, Arc<PublishRecord>>,
    /// Pulled streams that players may join. A pull never begins under a name that is in `by_name`.
    pulls_by_name: FxHashMap<Vec<u8>, Arc<PublishRecord>>,
    /// All pulls, also those that only drain, until their end is reported.
    pulls: FxHashMap<StreamId, Arc<PublishRecord>>,
}

/// Result of opening a pull.
pub(crate) enum Pulled {
    /// It is already running: a pull of the same publish, or a publish that has started on this node in the meantime.
    Running(Arc<PublishRecord>),
    /// A new pull: the caller opens its stream.
    Opened(PublishGuard),
}

impl Publishes {
    /// An empty registry; ends are reported to `mailbox`.
    pub(crate) fn new(mailbox: Arc<Mailbox>) -> Arc<Self> {
        let (next_stream, indexes) = (AtomicU64::new(0), Mutex::default());
        Arc::new(Self { mailbox, next_stream, indexes })
    }

    /// The events for the gateway.
    pub(crate) fn mailbox(&self) -> &Mailbox {
        &self.mailbox
    }

    /// Registers an allowed publish that will live on `worker`. Its end is reported when the guard is dropped.
    pub(crate) fn open(
        self: &Arc<Self>,
        client_id: u64,
        worker: usize,
        whip: Option<WhipRecord>,
        now: Instant,
    ) -> PublishGuard {
        self.enter(PublishRecord::new(client_id, self.new_stream(), worker, whip, now))
    }

    /// Registers a publish that continues `lost`, or stands by for it while it runs; it lives on the same worker.
    pub(crate) fn open_successor(
        self: &Arc<Self>,
        lost: &PublishRecord,
        client_id: u64,
        whip: Option<WhipRecord>,
        now: Instant,
    ) -> PublishGuard {
        let record = PublishRecord::new(client_id, self.new_stream(), lost.worker, whip, now);
        self.enter(record.continuing(lost))
    }

    fn enter(self: &Arc<Self>, record: PublishRecord) -> PublishGuard {
        let record = Arc::new(record);
        lock(&self.indexes).by_client_id.insert(record.client_id, record.clone());
        PublishGuard::new(self.clone(), record)
    }

    /// Opens a pull of `name` from `source` on `worker`, unless it already runs here. A pull of another publish of that
    /// name keeps its players until it ends. The end is reported when the guard is dropped.
    pub(crate) fn open_pull(
        self: &Arc<Self>,
        name: &[u8],
        source: &PullSource,
        worker: usize,
        now: Instant,
    ) -> Pulled {
        let mut indexes = lock(&self.indexes);
        if let Some(record) = indexes.by_name.get(name) {
            return Pulled::Running(record.clone());
        }
        let client_id = source.client_id;
        let running =
            indexes.pulls_by_name.get(name).filter(|record| record.client_id == client_id);
        if let Some(record) = running {
            return Pulled::Running(record.clone());
        }
        let pull = PullRecord::new(name, source, now);
        let record = PublishRecord::of_pull(client_id, self.new_stream(), worker, pull, now);
        let record = Arc::new(record);
        indexes.pulls_by_name.insert(name.to_vec(), record.clone());
        indexes.pulls.insert(record.stream, record.clone());
        drop(indexes);
        Pulled::Opened(PublishGuard::new(self.clone(), record))
    }

    /// All pulls, including draining ones, in no particular order.
    pub(crate) fn pulls(&self, now: Instant, wall: SystemTime) -> Vec<PullStatus> {
        let indexes = lock(&self.indexes);
        indexes.pulls.values().filter_map(|record| record.pull_status(now, wall)).collect()
    }

    /// The running publish with this client id, or the pull of one.
    pub(crate) fn find_readable(&self, client_id: u64) -> Option<Arc<PublishRecord>> {
        let indexes = lock(&self.indexes);
        let pulled = || indexes.pulls_by_name.values().find(|record| record.client_id == client_id);
        indexes.by_client_id.get(&client_id).or_else(pulled).cloned()
    }

    fn new_stream(&self) -> StreamId {
        StreamId(self.next_stream.fetch_add(1, Ordering::Relaxed))
    }

    /// The running publish with this client id.
    pub(crate) fn find(&self, client_id: u64) -> Option<Arc<PublishRecord>> {
        lock(&self.indexes).by_client_id.get(&client_id).cloned()
    }

    /// Assigns the name to `record`; the previous owner keeps its players until it ends. Returns the pull of that name,
    /// which the publish replaces.
    pub(crate) fn enter_name(
        &self,
        name: &[u8],
        record: &Arc<PublishRecord>,
    ) -> Option<Arc<PublishRecord>> {
        let mut indexes = lock(&self.indexes);
        indexes.by_name.insert(name.to_vec(), record.clone());
        indexes.pulls_by_name.remove(name)
    }

    /// Frees the name if it still belongs to `stream`.
    pub(crate) fn leave_name(&self, name: &[u8], stream: StreamId) {
        let mut indexes = lock(&self.indexes);
        let Indexes { by_name, pulls_by_name, .. } = &mut *indexes;
        for names in [by_name, pulls_by_name] {
            if names.get(name).is_some_and(|record| record.stream == stream) {
                names.remove(name);
            }
        }
    }

    /// A lost publish, while its stream is held.
    pub(crate) fn find_held(&self, client_id: u64) -> Option<Arc<PublishRecord>> {
        lock(&self.indexes).held.get(&client_id).cloned()
    }

    pub(super) fn enter_held(&self, lost: Arc<PublishRecord>) {
        lock(&self.indexes).held.insert(lost.client_id, lost);
    }

    pub(super) fn leave_held(&self, client_id: u64) {
        lock(&self.indexes).held.remove(&client_id);
    }

    /// This node's live publish of this name.
    pub(crate) fn find_name(&self, name: &[u8]) -> Option<Arc<PublishRecord>> {
        lock(&self.indexes).by_name.get(name).cloned()
    }
}

/// Guarantees exactly one [`PublishEnded`], or [`PullEnded`] for a pull: it is reported when this is dropped, for
/// whatever reason.
#[derive(Debug)]
pub(crate) struct PublishGuard {
    publishes: Arc<Publishes>,
    record: Arc<PublishRecord>,
    reason: EndReason,
    is_held: bool,
}

impl PublishGuard {
    const fn new(publishes: Arc<Publishes>, record: Arc<PublishRecord>) -> Self {
        Self { publishes, record, reason: EndReason::InternalError, is_held: false }
    }

    /// Sets the reason that the drop reports, and that the stream is held.
    pub(super) const fn set_held(&mut self, reason: EndReason) {
        (self.reason, self.is_held) = (reason, true);
    }

    pub(super) const fn publishes(&self) -> &Arc<Publishes> {
        &self.publishes
    }

    /// The publish.
    #[must_use]
    pub(crate) const fn record(&self) -> &Arc<PublishRecord> {
        &self.record
    }

    /// Sets the reason that the drop reports; the default is [`EndReason::InternalError`].
    pub(crate) const fn set_reason(&mut self, reason: EndReason) {
        self.reason = reason;
    }
}

impl Drop for PublishGuard {
    fn drop(&mut self) {
        let PublishRecord { client_id, stream, .. } = *self.record;
        let (bytes_in, bytes_out) = self.record.bytes();
        if let Some(pull) = &self.record.pull {
            self.publishes.leave_name(&pull.name, stream);
            lock(&self.publishes.indexes).pulls.remove(&stream);
            let ((end, detail), name) = (pull.end(), pull.name.clone());
            let ended = PullEnded { client_id, name, end, detail, bytes_in, bytes_out };
            self.publishes.mailbox.put(Event::PullEnded(ended));
            return;
        }
        let mut indexes = lock(&self.publishes.indexes);
        if indexes.by_client_id.get(&client_id).is_some_and(|record| record.stream == stream) {
            indexes.by_client_id.remove(&client_id);
        }
        drop(indexes);
        let (video_frames, dropped_frames) = self.record.frames();
        self.publishes.mailbox.put(Event::PublishEnded(PublishEnded {
            client_id,
            reason: self.reason,
            bytes_in,
            bytes_out,
            video_frames,
            dropped_frames,
            tracks: self.record.tracks(),
            packets_lost: self.record.whip.as_ref().map(WhipRecord::packets_lost),
            is_held: self.is_held,
        }));
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
    fn an_end_reports_the_figures_of_that_moment() {
        let publishes = Publishes::new(Mailbox::new(Box::new(|| {})));
        let guard = publishes.open(5, 0, None, Instant::now());
        for frame in 0..76 {
            guard.record().add_in(10, frame * 40);
            guard.record().add_video_frame();
        }
        guard.record().add_dropped(3);
        guard.record().add_out(700);
        drop(guard);
        let [Event::PublishEnded(ended)] = publishes.mailbox().drain()[..] else {
            panic!("one end is reported");
        };
        assert_eq!((ended.bytes_in, ended.bytes_out), (760, 700));
        assert_eq!((ended.video_frames, ended.dropped_frames), (76, 3));
    }

    #[test]
    fn a_name_that_was_taken_over_survives_the_end_of_its_former_owner() {
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
