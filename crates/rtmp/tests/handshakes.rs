//! Handshakes of the Flash family: C1 with a digest in either half, valid or invalid, in pieces, late.
//!
//! The client's side is implemented here, independently of the crate, and checked against Python's `hmac`.

use std::io::IoSlice;
use std::time::{Duration, Instant};

use headgate_rtmp::{Error, ServerConfig, ServerSession};
use hmac::{Hmac, Mac};
use sha2::Sha256;

const PACKET: usize = 1536;
const ANSWER: usize = 1 + 2 * PACKET;
/// FFmpeg's version, and therefore that of half the encoders.
const FLASH_9: [u8; 4] = [9, 0, 0x7c, 2];
const PLAYER: &[u8] = b"Genuine Adobe Flash Player 001";
const SERVER: &[u8] = b"Genuine Adobe Flash Media Server 001";
const KEY_END: &str = "f0eec24a8068bee82e00d0d1029e7e576eec5d2d29806fab93b8e636cfeb31ae";
/// Position of the four offset bytes in each scheme.
const PLACES: [usize; 2] = [8, 772];

fn hmac(key: &[u8], bytes: &[u8]) -> [u8; 32] {
    let hmac = Hmac::<Sha256>::new_from_slice(key).expect("any length");
    hmac.chain_update(bytes).finalize().into_bytes().into()
}

fn hex(text: &str) -> Vec<u8> {
    let byte = |at| u8::from_str_radix(&text[at..at + 2], 16).expect("hex");
    (0..text.len()).step_by(2).map(byte).collect()
}

fn full_server_key() -> Vec<u8> {
    [SERVER, &hex(KEY_END)].concat()
}

/// Position of the digest in a packet.
fn position(packet: &[u8], place: usize) -> usize {
    let sum: usize = packet[place..place + 4].iter().map(|byte| usize::from(*byte)).sum();
    place + 4 + sum % 728
}

/// The digest a packet should have at that position.
fn digest(packet: &[u8], at: usize, key: &[u8]) -> [u8; 32] {
    hmac(key, &[&packet[..at], &packet[at + 32..]].concat())
}

fn plain_c1(version: [u8; 4]) -> Vec<u8> {
    let mut c1: Vec<u8> = (0..PACKET).map(|n| ((n * n * 31 + n * 7 + 11) / 3) as u8).collect();
    c1[..4].fill(0);
    c1[4..8].copy_from_slice(&version);
    c1
}

fn signed(mut c1: Vec<u8>, place: usize) -> Vec<u8> {
    let at = position(&c1, place);
    let digest = digest(&c1, at, PLAYER);
    c1[at..at + 32].copy_from_slice(&digest);
    c1
}

fn session(seed: u8) -> (ServerSession, Instant) {
    let now = Instant::now();
    (ServerSession::new(ServerConfig { seed: [seed; 8], ..ServerConfig::default() }, now), now)
}

fn output(session: &mut ServerSession) -> Vec<u8> {
    let (output, mut bytes) = (session.output_mut(), Vec::new());
    while !output.is_empty() {
        let mut slices = [IoSlice::new(&[])];
        output.io_slices(&mut slices);
        bytes.extend_from_slice(&slices[0]);
        output.consume(slices[0].len());
    }
    bytes
}

/// S1 and S2 in response to a C1.
fn answer(c1: &[u8]) -> (Vec<u8>, Vec<u8>) {
    let (mut session, now) = session(1);
    session.handle_input(&[&[3], c1].concat(), now).expect("the handshake is accepted");
    let bytes = output(&mut session);
    assert_eq!((bytes.len(), bytes[0]), (ANSWER, 3));
    (bytes[1..=PACKET].to_vec(), bytes[1 + PACKET..].to_vec())
}

fn assert_plain(c1: &[u8], why: &str) {
    let (s1, s2) = answer(c1);
    assert!(s2 == c1, "{why}: S2 is C1");
    assert_eq!(s1[..8], [0; 8], "{why}: S1 has time 0 and version 0");
}

fn assert_digests(c1: &[u8], place: usize) {
    let (s1, s2) = answer(c1);
    assert_eq!(s1[..8], [0, 0, 0, 0, 3, 0, 1, 123]);
    let at = position(&s1, place);
    assert_eq!(s1[at..at + 32], digest(&s1, at, SERVER), "S1 has its digest where C1 has it");
    let asked = position(c1, place);
    let key = hmac(&full_server_key(), &c1[asked..asked + 32]);
    assert_eq!(s2[PACKET - 32..], hmac(&key, &s2[..PACKET - 32]), "S2 is signed");
}

/// connect to `live`, in one chunk.
fn connect() -> Vec<u8> {
    let mut payload = b"\x02\x00\x07connect\x00\x3f\xf0\0\0\0\0\0\0\x03\x00\x03app".to_vec();
    payload.extend(b"\x02\x00\x04live\0\0\x09");
    let length = u8::try_from(payload.len()).expect("short");
    [&[3, 0, 0, 0, 0, 0, length, 20, 0, 0, 0, 0], &payload[..]].concat()
}

#[test]
fn the_client_signs_like_the_hmac_module_of_python() {
    let want = [
        (
            567,
            "09cc78cbdd2188266fbaa62f50d34fcc0fff388f457197ebb72e2294bf38d676",
            "053e619565c6f24ffef30446c5dace44aa5d83839b5f8f7721d630ffc143826c",
        ),
        (
            1118,
            "94a8cf49e93e179a59c6019e33d70ec506b3280615dd82a7137d55c2d923cf41",
            "6bb300360721e076b692bdceed63b80f10f32ca9f28e849f16b8c764c5cd7b1a",
        ),
    ];
    for (place, (at, c1_digest, key)) in PLACES.into_iter().zip(want) {
        let c1 = plain_c1(FLASH_9);
        assert_eq!(position(&c1, place), at);
        assert_eq!(digest(&c1, at, PLAYER)[..], hex(c1_digest));
        assert_eq!(hmac(&full_server_key(), &hex(c1_digest))[..], hex(key));
    }
}

#[test]
fn a_digest_in_either_half_is_answered_with_a_digest_and_a_signature() {
    for place in PLACES {
        assert_digests(&signed(plain_c1(FLASH_9), place), place);
    }
}

#[test]
fn a_digest_is_found_wherever_the_offset_bytes_put_it() {
    for place in PLACES {
        for offset in [[0; 4], [1, 2, 3, 4], [255, 255, 217, 0], [255, 255, 218, 0], [255; 4]] {
            let mut c1 = plain_c1(FLASH_9);
            c1[place..place + 4].copy_from_slice(&offset);
            assert_digests(&signed(c1, place), place);
        }
    }
}

#[test]
fn any_version_except_zero_may_carry_a_digest() {
    for version in [[0, 0, 0, 1], [0x0c, 0, 0x0d, 0x0e], [0x80, 0, 7, 2]] {
        assert_digests(&signed(plain_c1(version), 8), 8);
    }
}

#[test]
fn a_digest_without_a_version_gets_the_plain_echo() {
    for place in PLACES {
        assert_plain(&signed(plain_c1([0; 4]), place), "version 0");
    }
}

#[test]
fn a_version_without_a_digest_gets_the_plain_echo() {
    assert_plain(&plain_c1(FLASH_9), "no digest");
    assert_plain(
        &[[0; 4], FLASH_9].concat().into_iter().chain([0; 1528]).collect::<Vec<_>>(),
        "zeros",
    );
    assert_plain(&[255; PACKET], "all ones");
}

#[test]
fn a_wrong_digest_gets_the_plain_echo() {
    for place in PLACES {
        let c1 = signed(plain_c1(FLASH_9), place);
        let at = position(&c1, place);
        // The time, before the digest, its first and last byte, after it; in bytes that do not move the digest.
        for wrong in [0, 5, at, at + 31, 1535, at + 32].into_iter().filter(|at| *at < PACKET) {
            let mut c1 = c1.clone();
            c1[wrong] ^= 1;
            assert_plain(&c1, &format!("place {place}, byte {wrong}"));
        }
    }
}

#[test]
fn a_digest_with_the_key_of_the_server_gets_the_plain_echo() {
    let mut c1 = plain_c1(FLASH_9);
    let at = position(&c1, 8);
    let digest = digest(&c1, at, SERVER);
    c1[at..at + 32].copy_from_slice(&digest);
    assert_plain(&c1, "a server's digest");
}

#[test]
fn input_after_the_handshake_arrives_the_same_whole_and_byte_by_byte() {
    for c1 in [plain_c1([0; 4]), signed(plain_c1(FLASH_9), 8), signed(plain_c1(FLASH_9), 772)] {
        // The content of C2 is not checked.
        let bytes = [vec![3], c1, vec![0x5a; PACKET], connect()].concat();
        let (mut whole, now) = session(9);
        whole.handle_input(&bytes, now).expect("whole");
        let (mut pieces, now) = session(9);
        for byte in &bytes {
            pieces.handle_input(std::slice::from_ref(byte), now).expect("byte by byte");
        }
        let want = output(&mut whole);
        assert!(want.len() > ANSWER, "connect was answered");
        assert!(output(&mut pieces) == want);
    }
}

#[test]
fn nothing_is_answered_before_c1_is_complete() {
    let c1 = signed(plain_c1(FLASH_9), 772);
    let (mut session, now) = session(1);
    session.handle_input(&[&[3], &c1[..PACKET - 1]].concat(), now).expect("a part");
    assert!(session.output().is_empty());
    session.handle_input(&c1[PACKET - 1..], now).expect("the rest");
    assert_eq!(session.output().pending_bytes(), ANSWER);
}

#[test]
fn sessions_with_different_seeds_send_different_bytes() {
    let hello = [vec![3], signed(plain_c1(FLASH_9), 8)].concat();
    let [one, two] = [1, 2].map(|seed| {
        let (mut session, now) = session(seed);
        session.handle_input(&hello, now).expect("welcome");
        output(&mut session)
    });
    assert!(one[9..=PACKET] != two[9..=PACKET] && one[1 + PACKET..] != two[1 + PACKET..]);
    assert!(one[9..=PACKET] != one[9 + PACKET..], "nor does S2 repeat S1");
}

#[test]
fn a_handshake_without_c2_ends_after_five_seconds() {
    for c1 in [plain_c1([0; 4]), signed(plain_c1(FLASH_9), 8)] {
        let (mut session, now) = session(1);
        session.handle_input(&[vec![3], c1, vec![0; PACKET - 1]].concat(), now).expect("most");
        let end = now + Duration::from_secs(5);
        assert_eq!(session.poll_timeout(), Some(end));
        assert_eq!(session.handle_timeout(end - Duration::from_millis(1)), Ok(()));
        assert_eq!(session.handle_timeout(end), Err(Error::HandshakeLimit));
    }
}

#[test]
fn a_text_protocol_is_rejected_at_its_first_byte() {
    let (mut session, now) = session(1);
    assert_eq!(session.handle_input(b"G", now), Err(Error::Version));
}

#[test]
fn every_version_below_the_text_protocols_is_accepted() {
    for (version, taken) in [(0, Ok(())), (31, Ok(())), (32, Err(Error::Version))] {
        let (mut session, now) = session(1);
        assert_eq!(session.handle_input(&[version], now), taken, "{version}");
    }
}
