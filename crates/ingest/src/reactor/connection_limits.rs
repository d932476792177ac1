//! Limits of open connections: in total, so that HTTP and the store keep their share of the file descriptors, and per
//! address.

use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustc_hash::FxHashMap;

/// One part in this many of the descriptors is reserved for HTTP and the store, within the bounds below.
const KEPT_SHARE: usize = 4;
/// Minimum reserve: the process's own files and some HTTP clients.
const KEPT_LEAST: usize = 96;
/// Maximum reserve: the limit of HTTP connections (ts/listen/http-port.ts) and the process's own files.
const KEPT_MOST: usize = 11_024;
/// One part in this many of the rest is reserved for outgoing connections, so that upstreams of running publishes can
/// be dialled again however many clients connect.
const OURS_SHARE: usize = 8;

/// Open connections to the RTMP ports and their limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionCount {
    /// Connections open.
    pub held: usize,
    /// Above this number connections are closed immediately; `None` if the system reports no limit.
    pub limit: Option<usize>,
}

/// Counts the connections of all workers.
#[derive(Debug)]
pub(crate) struct ConnectionLimits {
    /// Limit of connections to the RTMP ports.
    inbound: usize,
    per_address: usize,
    /// Limit of those plus upstream and media connections.
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

/// Counts as one open connection until it is dropped.
#[derive(Debug)]
pub(crate) struct ConnectionPermit {
    limits: Arc<ConnectionLimits>,
    counted: Counted,
}

/// What a connection counts as, besides one in all.
#[derive(Debug)]
enum Counted {
    /// A connection to an upstream or to the media port.
    Ours,
    /// A connection of a trusted proxy, to an RTMP port.
    Proxied,
    /// A connection of this network, to an RTMP port.
    Of(IpAddr),
}

impl ConnectionLimits {
    /// `inbound` and `per_address` as configured, 0 for no limit; `descriptors` is the process's limit of open files,
    /// if known.
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

    /// Admits a connection from `address` to an RTMP port; `None` if a limit is reached.
    pub(crate) fn admit(self: &Arc<Self>, address: IpAddr) -> Option<ConnectionPermit> {
        // Dropped, and not counted any more, if the address has too many.
        self.admit_proxied().and_then(|mut permit| permit.assign(address).then_some(permit))
    }

    /// Admits a connection from a trusted proxy to an RTMP port; `None` if a limit is reached. It counts as its client's
    /// once that is known ([`ConnectionPermit::assign`]).
    pub(crate) fn admit_proxied(self: &Arc<Self>) -> Option<ConnectionPermit> {
        let mut held = self.lock();
        if held.inbound >= self.inbound || held.in_all >= self.in_all {
            held.refused += 1;
            return None;
        }
        held.in_all += 1;
        held.inbound += 1;
        Some(ConnectionPermit { limits: self.clone(), counted: Counted::Proxied })
    }

    /// Admits a connection to an upstream or to the media port. Only the descriptors limit these, so that clients of
    /// the RTMP ports cannot prevent pushes.
    pub(crate) fn admit_ours(self: &Arc<Self>) -> Option<ConnectionPermit> {
        let mut held = self.lock();
        if held.in_all >= self.in_all {
            held.refused += 1;
            return None;
        }
        held.in_all += 1;
        Some(ConnectionPermit { limits: self.clone(), counted: Counted::Ours })
    }

    /// Counts a connection that was closed for lack of a descriptor.
    pub(crate) fn note_refused(&self) {
        self.lock().refused += 1;
    }

    /// Open connections to the RTMP ports.
    pub(crate) fn count(&self) -> ConnectionCount {
        let limit = (self.inbound != usize::MAX).then_some(self.inbound);
        ConnectionCount { held: self.lock().inbound, limit }
    }

    /// Connections that were refused so far.
    pub(crate) fn refused(&self) -> u64 {
        self.lock().refused
    }

    /// A panic while the lock was held cannot leave an inconsistent state: only counters change.
    fn lock(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ConnectionPermit {
    /// Counts a connection to an RTMP port as one of `address`; false if that has too many.
    pub(crate) fn assign(&mut self, address: IpAddr) -> bool {
        let address = network_of(address);
        let mut held = self.limits.lock();
        let of_address = held.by_address.get(&address).copied().unwrap_or(0);
        if of_address >= self.limits.per_address {
            held.refused += 1;
            return false;
        }
        *held.by_address.entry(address).or_default() += 1;
        self.counted = Counted::Of(address);
        true
    }
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        let mut held = self.limits.lock();
        held.in_all = held.in_all.saturating_sub(1);
        if matches!(self.counted, Counted::Ours) {
            return;
        }
        held.inbound = held.inbound.saturating_sub(1);
        let Counted::Of(address) = self.counted else { return };
        if let Some(count) = held.by_address.get_mut(&address) {
            *count -= 1;
            if *count == 0 {
                held.by_address.remove(&address);
            }
        }
    }
}

/// What counts as one address: of IPv6 the network of 64 bits, all of which one host may use (RFC 4291 2.5.1).
pub(super) fn network_of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from(u128::from(address) >> 64 << 64)),
        address @ IpAddr::V4(_) => address,
    }
}

/// Maximum number of open files of the process (proc(5), "Max open files"); `None` where the system does not report it.
pub(crate) fn descriptor_limit() -> Option<usize> {
    let limits = std::fs::read_to_string("/proc/self/limits").ok()?;
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_address_cannot_take_all_connections_and_closed_ones_are_freed() {
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
    fn a_connection_of_a_proxy_counts_as_one_of_its_client() {
        let limits = ConnectionLimits::new(4, 1, None);
        let client = IpAddr::from([192, 0, 2, 1]);
        let [mut first, mut second, third] = std::array::from_fn(|_| {
            limits.admit_proxied().expect("the proxy has no limit of its own")
        });
        assert!(first.assign(client) && !second.assign(client));
        assert!(limits.admit(client).is_none(), "connected directly or not");
        drop(second);
        drop(third);
        assert_eq!(limits.count().held, 1);
        drop(first);
        assert!(limits.lock().by_address.is_empty() && limits.admit(client).is_some());
    }

    #[test]
    fn an_ipv6_network_counts_as_one_address() {
        let limits = ConnectionLimits::new(0, 2, None);
        let of = |text: &str| limits.admit(text.parse().expect("an address"));
        let held = [of("2001:db8::1"), of("2001:db8::ffff:0:0:2")];
        assert!(held.iter().all(Option::is_some) && of("2001:db8::3").is_none());
        assert!(of("2001:db8:0:1::1").is_some());
        let mapped = [of("192.0.2.1"), of("::ffff:192.0.2.1")];
        assert!(mapped.iter().all(Option::is_some) && of("192.0.2.1").is_none());
    }

    #[test]
    fn a_share_of_the_descriptors_is_reserved_for_others() {
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
