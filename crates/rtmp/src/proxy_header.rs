//! The PROXY protocol header, versions 1 and 2, that a load balancer sends before the first byte of a connection (HAProxy,
//! doc/proxy-protocol.txt, 2020/03/05). Pure: it is shown the first bytes of a connection, and never more of them than
//! [`PROXY_HEADER_SHOWN_BYTES`].

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The longest header of version 1 (2.1); of a longer one of version 2 only the beginning is of interest.
pub const PROXY_HEADER_SHOWN_BYTES: usize = 107;

const SIGNATURE_1: &[u8] = b"PROXY ";
const SIGNATURE_2: &[u8] = b"\r\n\r\n\0\r\nQUIT\n";
/// Signature, version and command, family and transport, and the length of what follows (2.2).
const FIXED_2: usize = 16;

/// A complete header, or so much of it that its length is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProxyHeader {
    /// Length of the whole header, which may be longer than what was shown: the rest (TLVs, names of Unix sockets) is to
    /// be skipped.
    pub length: usize,
    /// Address of the client; `None` if the connection is the proxy's own (LOCAL) or its origin is unknown.
    pub source: Option<IpAddr>,
}

/// Why a connection does not begin with a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProxyHeaderError {
    /// The first bytes belong to something else.
    #[error("the trusted proxy sent no PROXY protocol header")]
    Absent,
    /// A header that breaks its own rules.
    #[error("the PROXY protocol header is malformed")]
    Malformed,
}

impl ProxyHeader {
    /// Reads the header at the beginning of a connection; `None` if more bytes are needed.
    ///
    /// # Errors
    /// The connection must be closed: a header is required from a proxy, or anyone behind it could pass for it.
    pub fn read(shown: &[u8]) -> Result<Option<Self>, ProxyHeaderError> {
        let starts =
            |signature: &[u8]| shown.iter().zip(signature).all(|(one, other)| one == other);
        match (starts(SIGNATURE_1), starts(SIGNATURE_2)) {
            (false, false) => Err(ProxyHeaderError::Absent),
            (true, _) if shown.len() > SIGNATURE_1.len() => read_version_1(shown),
            (_, true) if shown.len() >= FIXED_2 => read_version_2(shown),
            (true, _) | (_, true) => Ok(None),
        }
    }
}

fn read_version_1(shown: &[u8]) -> Result<Option<ProxyHeader>, ProxyHeaderError> {
    let shown = shown.get(..PROXY_HEADER_SHOWN_BYTES).unwrap_or(shown);
    let Some(end) = shown.iter().position(|byte| *byte == b'\n') else {
        let is_too_long = shown.len() == PROXY_HEADER_SHOWN_BYTES;
        return if is_too_long { Err(ProxyHeaderError::Malformed) } else { Ok(None) };
    };
    let line = shown[..end].strip_suffix(b"\r").and_then(|line| std::str::from_utf8(line).ok());
    let source = line.and_then(read_line).ok_or(ProxyHeaderError::Malformed)?;
    Ok(Some(ProxyHeader { length: end + 1, source }))
}

/// The address in a header of version 1; the outer `None` if it is malformed.
fn read_line(line: &str) -> Option<Option<IpAddr>> {
    let mut words = line.strip_prefix("PROXY ")?.split(' ');
    let family = words.next()?;
    if family == "UNKNOWN" {
        return Some(None);
    }
    let [source, destination, source_port, destination_port] =
        std::array::from_fn(|_| words.next());
    for port in [source_port, destination_port] {
        let port = port.filter(|port| port.bytes().all(|byte| byte.is_ascii_digit()))?;
        port.parse::<u16>().ok()?;
    }
    let is_over = words.next().is_none();
    let (source, destination): (IpAddr, IpAddr) =
        (source?.parse().ok()?, destination?.parse().ok()?);
    let fits = match family {
        "TCP4" => source.is_ipv4() && destination.is_ipv4(),
        "TCP6" => source.is_ipv6() && destination.is_ipv6(),
        _ => false,
    };
    (fits && is_over).then(|| Some(source.to_canonical()))
}

fn read_version_2(shown: &[u8]) -> Result<Option<ProxyHeader>, ProxyHeaderError> {
    let Some((fixed, rest)) = shown.split_first_chunk::<FIXED_2>() else { return Ok(None) };
    let [.., command, family, high, low] = *fixed;
    let announced = usize::from(u16::from_be_bytes([high, low]));
    let length = FIXED_2 + announced;
    // Version 2 with LOCAL or PROXY; reserved values must be rejected.
    let is_local = match command {
        0x20 => true,
        0x21 => false,
        _ => return Err(ProxyHeaderError::Malformed),
    };
    let is_transport = family & 0x0f <= 2;
    let addresses = match family >> 4 {
        0 if is_transport => 0,
        1 if is_transport => 12,
        2 if is_transport => 36,
        3 if is_transport => 216,
        _ => return Err(ProxyHeaderError::Malformed),
    };
    if is_local {
        return Ok(Some(ProxyHeader { length, source: None }));
    }
    if announced < addresses {
        return Err(ProxyHeaderError::Malformed);
    }
    // Source and destination, then the ports.
    let source = match addresses {
        12 => rest.first_chunk().map(|octets: &[u8; 4]| IpAddr::V4(Ipv4Addr::from(*octets))),
        36 => rest.first_chunk().map(|octets: &[u8; 16]| IpAddr::V6(Ipv6Addr::from(*octets))),
        _ => return Ok(Some(ProxyHeader { length, source: None })),
    };
    Ok(source.map(|address| ProxyHeader { length, source: Some(address.to_canonical()) }))
}

#[cfg(test)]
#[path = "proxy_header_tests.rs"]
mod tests;
