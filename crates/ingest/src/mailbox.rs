//! What the core tells the gateway. Workers put things in and wake it; the gateway drains.
//!
//! An end is never lost: every allowed publish holds an [`EndSlot`], and dropping it, for whatever reason, fills it in.

use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use rustc_hash::FxHashMap;

use crate::session::{Counters, EndReason};
use crate::upstreams::UpstreamSource;

/// Publish requests that may wait for the gateway; the next one is denied at once.
const REQUESTS_LIMIT: usize = 10_000;

/// A broadcaster reached `publish` and waits for `allow` or `deny`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublishRequested {
    /// The core's own handle of the question.
    pub request: u64,
    /// First segment of the path.
    pub app: String,
    /// Stream name without arguments, as sent.
    pub name: Vec<u8>,
    /// Bytes after the first `?`, as sent.
    pub arguments: Option<Vec<u8>>,
    /// The broadcaster.
    pub address: IpAddr,
}

/// A publish that was allowed is over. Exactly one comes for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PublishEnded {
    /// As given with `allow`.
    pub client_id: u64,
    /// Why.
    pub reason: EndReason,
    /// Audio and video payload from the broadcaster.
    pub bytes_in: u64,
    /// The same measure, handed to all upstreams and players.
    pub bytes_out: u64,
}

/// A push is about to dial and needs addresses that the gateway's guard has passed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddressWanted {
    /// The core's own handle of the push.
    pub push: u64,
    /// Whose stream it carries.
    pub client_id: u64,
    /// Host of the upstream's URL.
    pub host: String,
    /// Port of the upstream's URL.
    pub port: u16,
    /// Who wants the upstream.
    pub source: UpstreamSource,
}

/// What a push did, for the operator's eyes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpstreamChanged {
    /// Whose stream it carries.
    pub client_id: u64,
    /// Host and port; the rest of the URL is secret.
    pub upstream: String,
    /// True when it sends, false when it stopped or failed to start.
    pub sending: bool,
    /// Why it stopped; empty when it sends.
    pub detail: String,
}

/// One thing the gateway must know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// See [`PublishRequested`].
    PublishRequested(PublishRequested),
    /// See [`PublishEnded`].
    PublishEnded(PublishEnded),
    /// See [`AddressWanted`].
    AddressWanted(AddressWanted),
    /// See [`UpstreamChanged`].
    UpstreamChanged(UpstreamChanged),
}

type Wake = Box<dyn Fn() + Send + Sync>;

/// The box itself, shared by all workers.
pub(crate) struct Mailbox {
    state: Mutex<State>,
    woken: AtomicBool,
    wake: Wake,
}

#[derive(Default)]
struct State {
    events: Vec<Event>,
    requests: usize,
    running: FxHashMap<u64, Running>,
}

struct Running {
    counters: Arc<Counters>,
    worker: usize,
}

impl Mailbox {
    /// `wake` is called from any thread when something came after a drain; it must not block.
    pub(crate) fn new(wake: Wake) -> Arc<Self> {
        Arc::new(Self { state: Mutex::default(), woken: AtomicBool::new(false), wake })
    }

    /// Everything since the last drain, oldest first.
    pub(crate) fn drain(&self) -> Vec<Event> {
        self.woken.store(false, Ordering::Release);
        let mut state = self.lock();
        state.requests = 0;
        std::mem::take(&mut state.events)
    }

    /// Puts a request in; false when too many wait.
    pub(crate) fn put_request(&self, request: PublishRequested) -> bool {
        let mut state = self.lock();
        if state.requests >= REQUESTS_LIMIT {
            return false;
        }
        state.requests += 1;
        state.events.push(Event::PublishRequested(request));
        drop(state);
        self.wake();
        true
    }

    /// Puts anything else in; bounded by the number of running publishes and their pushes.
    pub(crate) fn put(&self, event: Event) {
        self.lock().events.push(event);
        self.wake();
    }

    /// Opens the end slot of a publish that was just allowed on `worker`.
    pub(crate) fn open_slot(
        self: &Arc<Self>,
        client_id: u64,
        worker: usize,
        now: Instant,
    ) -> EndSlot {
        let counters = Arc::new(Counters::new(now));
        self.lock().running.insert(client_id, Running { counters: counters.clone(), worker });
        EndSlot { mailbox: self.clone(), client_id, counters, reason: EndReason::InternalError }
    }

    /// The counters of a running publish.
    pub(crate) fn counters(&self, client_id: u64) -> Option<Arc<Counters>> {
        self.lock().running.get(&client_id).map(|running| running.counters.clone())
    }

    /// The worker of a running publish.
    pub(crate) fn worker(&self, client_id: u64) -> Option<usize> {
        self.lock().running.get(&client_id).map(|running| running.worker)
    }

    fn wake(&self) {
        if !self.woken.swap(true, Ordering::AcqRel) {
            (self.wake)();
        }
    }

    /// A panic while the lock was held left nothing half-done that matters: every change is a single push or insert.
    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The promise of exactly one [`PublishEnded`]: kept when this is dropped.
pub(crate) struct EndSlot {
    mailbox: Arc<Mailbox>,
    client_id: u64,
    counters: Arc<Counters>,
    reason: EndReason,
}

impl EndSlot {
    /// The publish's counters.
    #[must_use]
    pub(crate) fn counters(&self) -> &Arc<Counters> {
        &self.counters
    }

    /// The publish's client id.
    #[must_use]
    pub(crate) const fn client_id(&self) -> u64 {
        self.client_id
    }

    /// Names the reason that the drop will report; without it, a bug of ours is reported.
    pub(crate) const fn name_reason(&mut self, reason: EndReason) {
        self.reason = reason;
    }
}

impl Drop for EndSlot {
    fn drop(&mut self) {
        let (bytes_in, bytes_out) = self.counters.bytes();
        let (client_id, reason) = (self.client_id, self.reason);
        let ended = PublishEnded { client_id, reason, bytes_in, bytes_out };
        let mut state = self.mailbox.lock();
        state.running.remove(&client_id);
        state.events.push(Event::PublishEnded(ended));
        drop(state);
        self.mailbox.wake();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;

    #[test]
    fn a_dropped_slot_reports_one_end() {
        let wakes = Arc::new(AtomicUsize::new(0));
        let counted = wakes.clone();
        let mailbox = Mailbox::new(Box::new(move || {
            counted.fetch_add(1, Ordering::Relaxed);
        }));
        let slot = mailbox.open_slot(5, 0, Instant::now());
        let mut named = mailbox.open_slot(6, 0, Instant::now());
        named.name_reason(EndReason::Unpublished);
        drop(slot);
        drop(named);
        assert_eq!(wakes.load(Ordering::Relaxed), 1);
        let reasons: Vec<_> = mailbox
            .drain()
            .into_iter()
            .filter_map(|event| match event {
                Event::PublishEnded(ended) => Some((ended.client_id, ended.reason)),
                Event::PublishRequested(_)
                | Event::AddressWanted(_)
                | Event::UpstreamChanged(_) => None,
            })
            .collect();
        assert_eq!(reasons, [(5, EndReason::InternalError), (6, EndReason::Unpublished)]);
        assert!(mailbox.counters(5).is_none());
    }
}
