//! Connections from load balancers that send a PROXY protocol header.

use std::io::{Read, Write};
use std::net::{IpAddr, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use super::peer::Peer;
use super::{Core, Event, LOOPBACK, PATIENCE};
use crate::IngestConfig;

const CLIENT: [u8; 4] = [203, 0, 113, 7];

/// A core that trusts this machine, and allows so many connections of one address.
fn behind(trusted: &[&str], per_address: usize) -> Core {
    let config = IngestConfig {
        trusted_proxies: trusted.iter().map(|&text| text.to_owned()).collect(),
        rtmp_connections_per_address: per_address,
        ..Core::config(2, None, (LOOPBACK, LOOPBACK.ip()))
    };
    Core::open_as(&config, None)
}

fn version_1(client: &str) -> Vec<u8> {
    format!("PROXY TCP4 {client} 127.0.0.1 40000 1935\r\n").into_bytes()
}

fn version_2(client: [u8; 4], extensions: usize) -> Vec<u8> {
    let length = u16::try_from(12 + extensions).expect("16 bits").to_be_bytes();
    let fixed = [&b"\r\n\r\n\0\r\nQUIT\n\x21\x11"[..], &length, &client];
    [&fixed.concat()[..], &[127, 0, 0, 1, 1, 2, 7, 143], &vec![b'T'; extensions]].concat()
}

fn connect(core: &Core, header: &[u8]) -> TcpStream {
    let mut socket = TcpStream::connect(("127.0.0.1", core.port())).expect("the core listens");
    socket.write_all(header).expect("the core reads");
    socket
}

/// The address with which a publish arrives over a connection with this header.
fn address_of(core: &mut Core, header: &[u8]) -> IpAddr {
    let mut publisher = Peer::publish_on(connect(core, header), "cam");
    core.request_of(&mut publisher).address
}

fn refusal(core: &mut Core) -> (IpAddr, &'static str, String) {
    core.wait_for(|event| match event {
        Event::ConnectionRefused(of) => Some((of.address, of.code, of.detail.clone())),
        _ => None,
    })
}

/// Waits until the core closes the connection.
fn wait_closed(socket: &mut TcpStream) {
    socket.set_read_timeout(Some(PATIENCE)).expect("a socket option");
    let mut rest = Vec::new();
    // A reset is as good as a close.
    let end = socket.read_to_end(&mut rest);
    assert!(end.is_ok() || end.is_err_and(|e| e.kind() == std::io::ErrorKind::ConnectionReset));
}

#[test]
fn a_publish_has_the_address_that_its_trusted_proxy_names() {
    let mut core = behind(&["127.0.0.0/8"], 0);
    assert_eq!(address_of(&mut core, &version_1("203.0.113.7")), IpAddr::from(CLIENT));
    assert_eq!(address_of(&mut core, &version_2(CLIENT, 0)), IpAddr::from(CLIENT));
    assert_eq!(address_of(&mut core, &version_2(CLIENT, 40_000)), IpAddr::from(CLIENT));
    let v6 = b"PROXY TCP6 2001:db8::7 ::1 40000 1935\r\n";
    assert_eq!(address_of(&mut core, v6), "2001:db8::7".parse::<IpAddr>().expect("an address"));
}

#[test]
fn a_connection_of_the_proxy_itself_has_its_address() {
    let mut core = behind(&["127.0.0.1"], 1);
    let local = b"\r\n\r\n\0\r\nQUIT\n\x20\0\0\0".to_vec();
    assert_eq!(address_of(&mut core, b"PROXY UNKNOWN\r\n"), LOOPBACK.ip());
    let held = [connect(&core, &local), connect(&core, b"PROXY UNKNOWN\r\n")];
    assert_eq!(address_of(&mut core, &local), LOOPBACK.ip(), "without a limit of its own");
    drop(held);
}

#[test]
fn a_player_has_the_address_too() {
    let mut core = behind(&["127.0.0.1"], 0);
    let mut publisher = Peer::publish_on(connect(&core, &version_1("203.0.113.7")), "cam");
    let request = core.request_of(&mut publisher);
    core.ingest.allow(request.request, 1, Vec::new(), core.hold.clone());
    publisher.wait_ready();
    publisher.send_frame(0, 10);
    let mut player = Peer::play_on(connect(&core, &version_2([198, 51, 100, 9], 3)), "cam");
    player.wait_ready();
    player.next_media();
    let players = core.ingest.players(1);
    assert_eq!(players[0].address, IpAddr::from([198, 51, 100, 9]));
}

#[test]
fn a_header_may_arrive_byte_by_byte_and_with_what_follows() {
    let mut core = behind(&["127.0.0.1"], 0);
    for header in [version_1("203.0.113.7"), version_2(CLIENT, 200)] {
        let mut socket = connect(&core, b"");
        socket.set_nodelay(true).expect("a socket option");
        for byte in header {
            socket.write_all(&[byte]).expect("the core reads");
            thread::sleep(Duration::from_millis(1)); // so that each arrives by itself
        }
        let mut publisher = Peer::publish_on(socket, "cam");
        assert_eq!(core.request_of(&mut publisher).address, IpAddr::from(CLIENT));
    }
}

#[test]
fn a_trusted_proxy_without_a_header_is_refused_in_words() {
    let mut core = behind(&["127.0.0.1"], 0);
    for (bytes, words) in [
        (&[3; 1537][..], "the trusted proxy sent no PROXY protocol header"),
        (b"\x16\x03\x01", "the trusted proxy sent no PROXY protocol header"),
        (b"PROXY TCP4 what 127.0.0.1 1 2\r\n", "the PROXY protocol header is malformed"),
    ] {
        wait_closed(&mut connect(&core, bytes));
        assert_eq!(refusal(&mut core), (LOOPBACK.ip(), "proxy_header", words.to_owned()));
    }
    drop(connect(&core, b"PROXY TCP4 203"));
    assert!(refusal(&mut core).2.contains("ended within"), "cut");
    drop(connect(&core, b""));
    let asked = Instant::now();
    wait_closed(&mut connect(&core, b"PROXY TCP4 203"));
    let (least, most) = (Duration::from_millis(4_900), Duration::from_secs(10));
    assert!((least..most).contains(&asked.elapsed()), "{:?}", asked.elapsed());
    assert!(refusal(&mut core).2.contains("within 5 s"), "a health check is not reported");
}

#[test]
fn the_header_of_anybody_else_is_no_handshake() {
    for trusted in [&[][..], &["192.0.2.1"]] {
        let mut core = behind(trusted, 0);
        wait_closed(&mut connect(&core, &version_1("203.0.113.7")));
        assert_eq!(refusal(&mut core).0, LOOPBACK.ip());
        let mut publisher = Peer::publish(core.port(), "cam");
        assert_eq!(core.request_of(&mut publisher).address, LOOPBACK.ip());
    }
}

#[test]
fn connections_are_limited_by_the_address_of_the_client() {
    let mut core = behind(&["127.0.0.1"], 2);
    let one = version_1("203.0.113.7");
    let mut held = Vec::new();
    for header in [&one, &version_2(CLIENT, 0)] {
        let mut publisher = Peer::publish_on(connect(&core, header), "cam");
        core.request_of(&mut publisher);
        held.push(publisher);
    }
    wait_closed(&mut connect(&core, &one));
    assert_eq!(core.ingest.refused_connections(), 1);
    let other = IpAddr::from([203, 0, 113, 8]);
    assert_eq!(address_of(&mut core, &version_1("203.0.113.8")), other);
    drop(held);
    super::whip::wait_until("closed connections no longer count", || {
        core.ingest.connections().held == 0
    });
    assert_eq!(address_of(&mut core, &one), IpAddr::from(CLIENT));
}
