//! How many connections the process holds: in all, so that HTTP and the store keep their share of the descriptors, and
//! from one address.

use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustc_hash::FxHashMap;

/// The share of the descriptors that is kept for HTTP and the store, within the bounds below.
const KEPT_SHARE: usize = 4;
/// At least so many: what the process itself has open, and some HTTP clients.
const KEPT_LEAST: usize = 96;
/// All that HTTP may have (ts/listen/http-port.ts), and what the process itself has open.
const KEPT_MOST: usize = 11_024;
/// The share of what is left that only connections of ours may have: upstreams of running publishes are dialled again
/// however many strangers came.
const OURS_SHARE: usize = 8;

/// How many connections the RTMP ports have, and may have; no limit where the system names none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionCount {
    /// That came to them, and are there.
    pub held: usize,
    /// From here on they are closed at once.
    pub limit: Option<usize>,
}

/// The connections of all workers.
#[derive(Debug)]
pub(crate) struct ConnectionLimits {
    /// Of those that came to the RTMP ports.
    inbound: usize,
    per_address: usize,
    /// Of those and ours: to upstreams, and for media.
    in_all: usize,
    held: Mutex<Held>,
}

#[derive(Debug, Default)]
struct Held {
    in_all: usize,
    inbound: usize,
    by_address: FxHashMap<IpAddr, usize>,
    refused: u64,
}

/// One connection's place; given back when it is dropped.
#[derive(Debug)]
pub(crate) struct ConnectionPermit {
    limits: Arc<ConnectionLimits>,
    address: Option<IpAddr>,
}

impl ConnectionLimits {
    /// `inbound` and `per_address` as configured, 0 for none; `descriptors`: what the process may open, if known.
    pub(crate) fn new(inbound: usize, per_address: usize, descriptors: Option<usize>) -> Arc<Self> {
        let or_none = |limit: usize| if limit == 0 { usize::MAX } else { limit };
        let of_descriptors = descriptors.map_or(usize::MAX, |all| {
            all.saturating_sub((all / KEPT_SHARE).clamp(KEPT_LEAST, KEPT_MOST)).max(1)
        });
        let of_strangers = of_descriptors - of_descriptors / OURS_SHARE;
        Arc::new(Self {
            inbound: or_none(inbound).min(of_strangers),
            per_address: or_none(per_address),
            in_all: of_descriptors,
            held: Mutex::default(),
        })
    }

    /// A place for a connection that came from `address` to an RTMP port. `None`: there is none.
    pub(crate) fn admit(self: &Arc<Self>, address: IpAddr) -> Option<ConnectionPermit> {
        let mut held = self.lock();
        let of_address = held.by_address.get(&address).copied().unwrap_or(0);
        let is_full = held.inbound >= self.inbound || of_address >= self.per_address;
        if is_full || held.in_all >= self.in_all {
            held.refused += 1;
            return None;
        }
        held.in_all += 1;
        held.inbound += 1;
        *held.by_address.entry(address).or_default() += 1;
        Some(ConnectionPermit { limits: self.clone(), address: Some(address) })
    }

    /// A place for a connection to an upstream, or to the media port: bounded by the descriptors alone, so that strangers
    /// at the RTMP port keep nobody from being pushed.
    pub(crate) fn admit_ours(self: &Arc<Self>) -> Option<ConnectionPermit> {
        let mut held = self.lock();
        if held.in_all >= self.in_all {
            held.refused += 1;
            return None;
        }
        held.in_all += 1;
        Some(ConnectionPermit { limits: self.clone(), address: None })
    }

    /// A connection was closed because there was no descriptor for it.
    pub(crate) fn note_refused(&self) {
        self.lock().refused += 1;
    }

    /// Those of the RTMP ports now.
    pub(crate) fn count(&self) -> ConnectionCount {
        let limit = (self.inbound != usize::MAX).then_some(self.inbound);
        ConnectionCount { held: self.lock().inbound, limit }
    }

    /// Connections that were refused so far.
    pub(crate) fn refused(&self) -> u64 {
        self.lock().refused
    }

    /// A panic while the lock was held left nothing half-done: counters alone change.
    fn lock(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        let mut held = self.limits.lock();
        held.in_all = held.in_all.saturating_sub(1);
        let Some(address) = self.address else { return };
        held.inbound = held.inbound.saturating_sub(1);
        if let Some(count) = held.by_address.get_mut(&address) {
            *count -= 1;
            if *count == 0 {
                held.by_address.remove(&address);
            }
        }
    }
}

/// Descriptors that the process may open (proc(5), "Max open files"); `None` where the system does not say.
pub(crate) fn descriptor_limit() -> Option<usize> {
    let limits = std::fs::read_to_string("/proc/self/limits").ok()?;
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_address_cannot_take_every_place_and_places_come_back() {
        let limits = ConnectionLimits::new(3, 2, None);
        let (a, b) = (IpAddr::from([192, 0, 2, 1]), IpAddr::from([192, 0, 2, 2]));
        let held = [limits.admit(a), limits.admit(a)];
        assert!(held.iter().all(Option::is_some));
        assert!(limits.admit(a).is_none());
        let other = limits.admit(b);
        assert!(other.is_some());
        assert!(limits.admit(IpAddr::from([192, 0, 2, 3])).is_none(), "three in all");
        assert!(limits.admit_ours().is_some(), "upstreams are still dialled");
        drop(held);
        assert!(limits.admit(a).is_some());
        assert_eq!(limits.refused(), 2);
        assert_eq!(limits.count(), ConnectionCount { held: 1, limit: Some(3) });
        drop(other);
        let left = limits.lock();
        assert!(left.by_address.is_empty());
        assert_eq!((left.in_all, left.inbound), (0, 0));
    }

    #[test]
    fn a_share_of_the_descriptors_is_kept_for_others() {
        for (descriptors, places, of_strangers) in
            [(256, 160, 140), (1_024, 768, 672), (100_000, 88_976, 77_854), (10, 1, 1)]
        {
            let limits = ConnectionLimits::new(0, 0, Some(descriptors));
            assert_eq!((limits.in_all, limits.inbound), (places, of_strangers));
        }
        let few = ConnectionLimits::new(0, 0, Some(10));
        let held = few.admit_ours();
        assert!(held.is_some() && few.admit(IpAddr::from([192, 0, 2, 1])).is_none());
    }
}
