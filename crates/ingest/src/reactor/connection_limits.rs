//! How many connections the process holds: in all, so that HTTP and the store keep their share of the descriptors, and
//! from one address.

use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustc_hash::FxHashMap;

/// The share of the descriptors that is kept for HTTP and the store, within the bounds below.
const KEPT_SHARE: usize = 4;
/// At least so many: the store's files, the polls, and some HTTP clients.
const KEPT_LEAST: usize = 64;
/// More than HTTP ever needs.
const KEPT_MOST: usize = 1_024;

/// The connections of all workers.
#[derive(Debug)]
pub(crate) struct ConnectionLimits {
    in_all: usize,
    per_address: usize,
    held: Mutex<Held>,
}

#[derive(Debug, Default)]
struct Held {
    in_all: usize,
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
    /// `in_all` and `per_address` as configured, 0 for none; `descriptors`: what the process may open, if known.
    pub(crate) fn new(in_all: usize, per_address: usize, descriptors: Option<usize>) -> Arc<Self> {
        let or_none = |limit: usize| if limit == 0 { usize::MAX } else { limit };
        let of_descriptors = descriptors.map_or(usize::MAX, |all| {
            all.saturating_sub((all / KEPT_SHARE).clamp(KEPT_LEAST, KEPT_MOST)).max(1)
        });
        Arc::new(Self {
            in_all: or_none(in_all).min(of_descriptors),
            per_address: or_none(per_address),
            held: Mutex::default(),
        })
    }

    /// A place for a connection from `address`, or for one of ours to an upstream. `None`: there is none.
    pub(crate) fn admit(self: &Arc<Self>, address: Option<IpAddr>) -> Option<ConnectionPermit> {
        let mut held = self.lock();
        let of_address = address.and_then(|address| held.by_address.get(&address).copied());
        if held.in_all >= self.in_all || of_address.unwrap_or(0) >= self.per_address {
            held.refused += 1;
            return None;
        }
        held.in_all += 1;
        if let Some(address) = address {
            *held.by_address.entry(address).or_default() += 1;
        }
        Some(ConnectionPermit { limits: self.clone(), address })
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
        if let Some(address) = self.address
            && let Some(count) = held.by_address.get_mut(&address)
        {
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
        let held = [limits.admit(Some(a)), limits.admit(Some(a))];
        assert!(held.iter().all(Option::is_some));
        assert!(limits.admit(Some(a)).is_none());
        let other = limits.admit(Some(b));
        assert!(other.is_some());
        assert!(limits.admit(None).is_none(), "three in all");
        drop(held);
        assert!(limits.admit(Some(a)).is_some() && limits.admit(None).is_some());
        assert_eq!(limits.refused(), 2);
        drop(other);
        assert!(limits.lock().by_address.is_empty());
    }

    #[test]
    fn a_share_of_the_descriptors_is_kept_for_others() {
        for (descriptors, places) in [(256, 192), (1_024, 768), (100_000, 98_976), (10, 1)] {
            assert_eq!(ConnectionLimits::new(0, 0, Some(descriptors)).in_all, places);
        }
        assert_eq!(ConnectionLimits::new(5, 0, Some(1_024)).in_all, 5);
    }
}
