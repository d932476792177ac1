//! A list of IP addresses and networks, and membership in it.

use std::io::{self, ErrorKind};
use std::net::IpAddr;

/// Addresses (`192.0.2.1`) and networks (`10.0.0.0/8`, `2001:db8::/32`).
#[derive(Debug, Default)]
pub(super) struct Networks(Vec<(IpAddr, u32)>);

impl Networks {
    /// Parses each; an invalid one is an error.
    pub(super) fn parse(list: &[String]) -> io::Result<Self> {
        let networks = list.iter().map(|text| {
            let network = parse_network(text);
            network.ok_or_else(|| {
                io::Error::new(ErrorKind::InvalidInput, format!("{text} is no network"))
            })
        });
        Ok(Self(networks.collect::<io::Result<_>>()?))
    }

    /// Whether the address is in one of them. IPv4-mapped addresses are IPv4.
    pub(super) fn contains(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.0.iter().any(|(network, bits)| match (network, address) {
            (IpAddr::V4(network), IpAddr::V4(address)) => {
                let shift = 32 - *bits;
                u64::from(network.to_bits()) >> shift == u64::from(address.to_bits()) >> shift
            }
            (IpAddr::V6(network), IpAddr::V6(address)) => {
                let differing = network.to_bits() ^ address.to_bits();
                differing.leading_zeros() >= *bits
            }
            (IpAddr::V4(_), IpAddr::V6(_)) | (IpAddr::V6(_), IpAddr::V4(_)) => false,
        })
    }
}

fn parse_network(text: &str) -> Option<(IpAddr, u32)> {
    let (address, bits) = text.split_once('/').map_or((text, None), |(a, b)| (a, Some(b)));
    let address: IpAddr = address.parse().ok()?;
    let most = if address.is_ipv4() { 32 } else { 128 };
    let bits = bits.map_or(Some(most), |bits| bits.parse().ok().filter(|bits| *bits <= most))?;
    Some((address, bits))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_belong_to_their_networks() {
        let list = ["192.0.2.1", "10.0.0.0/8", "2001:db8::/33", "::1"].map(str::to_owned);
        let networks = Networks::parse(&list).expect("valid");
        let contains = |text: &str| networks.contains(text.parse().expect("an address"));
        for inside in ["192.0.2.1", "10.255.0.1", "::ffff:10.0.0.1", "2001:db8:7fff::1", "::1"] {
            assert!(contains(inside), "{inside}");
        }
        for outside in ["192.0.2.2", "11.0.0.1", "2001:db8:8000::1", "::2", "::"] {
            assert!(!contains(outside), "{outside}");
        }
        let all = Networks::parse(&["0.0.0.0/0".into(), "::/0".into()]).expect("valid");
        assert!(all.contains(IpAddr::from([1, 2, 3, 4])) && all.contains(IpAddr::from([0; 16])));
        assert!(!Networks::default().contains(IpAddr::from([127, 0, 0, 1])));
    }

    #[test]
    fn other_text_is_invalid() {
        for text in ["", "10.0.0.0/33", "10.0.0/8", "::/129", "host", "10.0.0.0/"] {
            assert!(Networks::parse(&[text.to_owned()]).is_err(), "{text}");
        }
    }
}
