//! Headers as HAProxy, nginx and others send them, whole and cut at every byte.

use super::*;

fn version_2(command: u8, family: u8, rest: &[u8]) -> Vec<u8> {
    let length = u16::try_from(rest.len()).expect("16 bits").to_be_bytes();
    [SIGNATURE_2, &[command, family], &length, rest].concat()
}

/// The header, whatever follows it and however it is cut.
fn read(header: &[u8]) -> Option<IpAddr> {
    let mut found = None;
    for end in 0..=header.len() {
        let shown = &header[..end.min(PROXY_HEADER_SHOWN_BYTES)];
        if let Some(header) = ProxyHeader::read(shown).expect("a header") {
            assert_eq!(*found.get_or_insert(header), header, "at {end} bytes");
        } else {
            assert_eq!(found, None, "known before {end} bytes");
        }
    }
    let followed = [header, b"\x03more\r\n"].concat();
    let shown = &followed[..followed.len().min(PROXY_HEADER_SHOWN_BYTES)];
    assert_eq!(ProxyHeader::read(shown), Ok(found));
    let found = found.expect("the whole header");
    assert_eq!(found.length, header.len());
    found.source
}

fn address(text: &str) -> Option<IpAddr> {
    Some(text.parse().expect("an address"))
}

#[test]
fn version_1_names_the_client() {
    assert_eq!(read(b"PROXY TCP4 192.0.2.7 10.0.0.1 56324 1935\r\n"), address("192.0.2.7"));
    assert_eq!(read(b"PROXY TCP6 2001:db8::7 2001:db8::1 1 65535\r\n"), address("2001:db8::7"));
    assert_eq!(read(b"PROXY TCP6 ::ffff:192.0.2.7 ::1 1 2\r\n"), address("192.0.2.7"));
    let full = "ffff:".repeat(7) + "ffff";
    let longest = format!("PROXY TCP6 {full} {full} 65535 65535\r\n");
    assert_eq!(read(longest.as_bytes()), address(&full));
}

#[test]
fn version_1_may_not_know_the_client() {
    assert_eq!(read(b"PROXY UNKNOWN\r\n"), None);
    let mut longest = b"PROXY UNKNOWN ".to_vec();
    longest.resize(PROXY_HEADER_SHOWN_BYTES - 2, b'x');
    longest.extend_from_slice(b"\r\n");
    assert_eq!(read(&longest), None);
}

#[test]
fn version_2_names_the_client_and_its_extensions_are_skipped() {
    let v4 = [192, 0, 2, 7, 10, 0, 0, 1, 1, 2, 7, 143];
    assert_eq!(read(&version_2(0x21, 0x11, &v4)), address("192.0.2.7"));
    let v6 =
        ["2001:db8::7", "2001:db8::1"].map(|one| one.parse::<Ipv6Addr>().expect("IPv6").octets());
    let v6 = [&v6.concat()[..], &[1, 2, 7, 143]].concat();
    assert_eq!(read(&version_2(0x21, 0x21, &v6)), address("2001:db8::7"));
    for extensions in [3, 500, 65_000] {
        let long = [&v4[..], &vec![b'\n'; extensions]].concat();
        assert_eq!(read(&version_2(0x21, 0x11, &long)), address("192.0.2.7"));
    }
}

#[test]
fn version_2_may_not_know_the_client() {
    assert_eq!(read(&version_2(0x20, 0x00, &[])), None);
    assert_eq!(read(&version_2(0x20, 0x11, &[1; 12])), None, "a health check of the proxy");
    assert_eq!(read(&version_2(0x21, 0x00, &[9; 40])), None);
    assert_eq!(read(&version_2(0x21, 0x31, &[b'/'; 216])), None, "a Unix socket");
}

#[test]
fn what_is_no_header_is_noticed_at_its_first_byte_that_differs() {
    for first in [&b"\x03"[..], b"\x16\x03\x01", b"GET / ", b"\r\n\r\nG", b"PROXX", b"proxy ", b" "]
    {
        assert_eq!(ProxyHeader::read(first), Err(ProxyHeaderError::Absent), "{first:?}");
    }
    assert_eq!(ProxyHeader::read(b""), Ok(None));
}

#[test]
fn malformed_headers_are_refused() {
    let lines = [
        "PROXY TCP4 192.0.2.7 10.0.0.1 1 2\n",
        "PROXY TCP4 192.0.2.7 10.0.0.1 1\r\n",
        "PROXY TCP4 192.0.2.7 10.0.0.1 1 2 3\r\n",
        "PROXY TCP4 192.0.2.7 10.0.0.1 1 65536\r\n",
        "PROXY TCP4 192.0.2.7 10.0.0.1 +1 2\r\n",
        "PROXY TCP4 192.0.2.7 10.0.0.1 1 \r\n",
        "PROXY TCP4 2001:db8::7 10.0.0.1 1 2\r\n",
        "PROXY TCP6 192.0.2.7 10.0.0.1 1 2\r\n",
        "PROXY TCP4  192.0.2.7 10.0.0.1 1 2\r\n",
        "PROXY UDP4 192.0.2.7 10.0.0.1 1 2\r\n",
        "PROXY \r\n",
    ];
    for line in lines {
        let read = ProxyHeader::read(line.as_bytes());
        assert_eq!(read, Err(ProxyHeaderError::Malformed), "{line:?}");
    }
    let endless = [&b"PROXY UNKNOWN "[..], &[b'x'; 93]].concat();
    assert_eq!(ProxyHeader::read(&endless), Err(ProxyHeaderError::Malformed));
    for (command, family, rest) in [
        (0x11, 0x11, 12),
        (0x22, 0x11, 12),
        (0x21, 0x13, 12),
        (0x21, 0x41, 12),
        (0x21, 0x11, 11),
        (0x21, 0x21, 35),
        (0x21, 0x31, 215),
    ] {
        let header = version_2(command, family, &vec![0; rest]);
        let shown = &header[..header.len().min(PROXY_HEADER_SHOWN_BYTES)];
        assert_eq!(ProxyHeader::read(shown), Err(ProxyHeaderError::Malformed), "{header:?}");
    }
}
