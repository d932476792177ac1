//! Secrets are removed, structure is kept.

use std::io::IoSlice;
use std::time::Instant;

use super::*;
use crate::Output;
use crate::{
    ClientConfig, ClientEvent, ClientRole, ClientSession, ServerConfig, ServerEvent, ServerSession,
};
use bytes::Bytes;

/// A broadcaster's bytes: handshake, commands with secrets, and a frame of 5,000 bytes.
fn broadcast() -> Vec<u8> {
    let now = Instant::now();
    let config = ClientConfig {
        app: "live".into(),
        tc_url: "rtmp://secret-host/live".into(),
        name: "secret-name?token=secret-token".into(),
        ..ClientConfig::new(ClientRole::Publish)
    };
    let mut client = ClientSession::new(config, now);
    let mut server = ServerSession::new(ServerConfig::default(), now);
    let mut sent = Vec::new();
    for _ in 0..20 {
        let bytes = take(client.output_mut());
        sent.extend_from_slice(&bytes);
        server.begin_turn();
        server.handle_input(&bytes, now).expect("valid");
        while let Some(event) = server.poll_event() {
            if matches!(event, ServerEvent::PublishRequested(_)) {
                server.allow();
            }
        }
        let bytes = take(server.output_mut());
        client.begin_turn();
        client.handle_input(&bytes, now).expect("valid");
        while let Some(event) = client.poll_event() {
            if matches!(event, ClientEvent::Ready) {
                let payload = Bytes::from(vec![7; 5000]);
                client.send_media(MediaKind::Video, 40, &[0x27, 1, 0, 0, 0], &payload);
            }
        }
    }
    sent
}

fn take(output: &mut Output) -> Vec<u8> {
    let mut bytes = Vec::new();
    while !output.is_empty() {
        let mut slices = [IoSlice::new(&[]); 8];
        let count = output.io_slices(&mut slices);
        let part: Vec<u8> = slices[..count].iter().flat_map(|slice| slice.to_vec()).collect();
        output.consume(part.len());
        bytes.extend(part);
    }
    bytes
}

fn scrubbed(bytes: &[u8], size: usize, blank: Option<fn(MediaKind, &mut [u8])>) -> Vec<u8> {
    let (mut scrubber, mut out) = (Scrubber::new(None, blank), Vec::new());
    for piece in bytes.chunks(size) {
        scrubber.handle_input(piece);
        out.extend(scrubber.take(scrubber.clean() - out.len()));
    }
    scrubber.finish();
    out.extend(scrubber.take(usize::MAX));
    out
}

fn has(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}

#[test]
fn no_secret_remains_and_the_session_parses_the_same() {
    let sent = broadcast();
    assert!(has(&sent, "secret-name") && has(&sent, "secret-token") && has(&sent, "secret-host"));
    let whole = scrubbed(&sent, sent.len(), None);
    assert_eq!(whole.len(), sent.len());
    assert!(!has(&whole, "secret"), "every secret is gone");
    for size in [1, 7, 1460] {
        assert_eq!(scrubbed(&sent, size, None), whole, "in pieces of {size}");
    }
    let now = Instant::now();
    let mut server = ServerSession::new(ServerConfig::default(), now);
    server.begin_turn();
    server.handle_input(&whole, now).expect("valid");
    let asked = server.poll_event();
    assert!(matches!(asked, Some(ServerEvent::PublishRequested(_))), "{asked:?}");
    server.allow();
    server.begin_turn();
    server.handle_input(&[], now).expect("valid");
    let media = server.poll_event();
    assert!(
        matches!(&media, Some(ServerEvent::Media(message)) if message.payload[5..] == [7; 5000]),
        "{media:?}"
    );
}

#[test]
fn without_media_the_payload_is_overwritten_wherever_chunks_split_it() {
    let sent = broadcast();
    let blanked = scrubbed(&sent, 1460, Some(|_, body| body[5..].fill(0)));
    assert_eq!(blanked.len(), sent.len());
    let run = [7; 100];
    assert!(sent.windows(100).any(|window| window == run));
    assert!(!blanked.windows(100).any(|window| window == run));
}

#[test]
fn a_message_that_another_replaces_is_overwritten() {
    let key = b"secret-key-that-is-long-enough-to-need-two-chunks-because-it-has-more-than-one-hundred-and-twenty-eight-bytes-as-most-keys-have-not";
    let length = u8::try_from(key.len() + 1).expect("short");
    let begun = [&[3, 0, 0, 0, 0, 0, length, 20, 0, 0, 0, 0], &key[..128]].concat();
    let next = [&[3, 0, 0, 0, 0, 0, 4, 9, 1, 0, 0, 0][..], &[0x27, 1, 8, 8]].concat();
    let bytes = [vec![3; HANDSHAKE_BYTES], begun, next.clone()].concat();
    for size in [1, 7, bytes.len()] {
        let out = scrubbed(&bytes, size, None);
        assert_eq!(out.len(), bytes.len());
        assert!(!has(&out, "secret-key") && !has(&out, "twenty-eight"), "pieces of {size}");
        assert!(out.ends_with(&next));
    }
}

#[test]
fn input_that_is_not_rtmp_is_zeroed() {
    let mut bytes = vec![0; HANDSHAKE_BYTES];
    bytes.extend_from_slice(&[0xc3; 10]);
    bytes.extend_from_slice(b"secret");
    assert!(!has(&scrubbed(&bytes, 5, None), "secret"));
}

/// A command as the scrubber returns it.
fn wiped(command: &[u8]) -> Vec<u8> {
    let mut bytes = command.to_vec();
    super::command::wipe(&mut bytes);
    bytes
}

fn string(text: &[u8]) -> Vec<u8> {
    [&[2][..], &(text.len() as u16).to_be_bytes(), text].concat()
}

fn long_string(text: &[u8]) -> Vec<u8> {
    [&[12][..], &(text.len() as u32).to_be_bytes(), text].concat()
}

#[test]
fn strings_of_any_length_are_overwritten_and_following_values_are_parsed() {
    for length in [1, 255, 256, 1_000, 65_535] {
        let secret = vec![b's'; length];
        let filled = vec![b'x'; length];
        for write in [string as fn(&[u8]) -> Vec<u8>, long_string] {
            let command = [string(b"publish"), write(&secret), string(b"live")].concat();
            let want = [string(b"publish"), write(&filled), string(b"live")].concat();
            assert_eq!(wiped(&command), want, "{length} bytes");
        }
    }
}

#[test]
fn values_of_every_kind_are_skipped() {
    let values: [&[u8]; 11] = [
        b"\x00\x3f\xf0\0\0\0\0\0\0",
        b"\x01\x01",
        b"\x03\0\x01a\x05\0\0\x09",
        b"\x05",
        b"\x06",
        b"\x07\0\x01",
        b"\x08\0\0\0\x01\0\x01a\x06\0\0\x09",
        b"\x0a\0\0\0\x02\x05\x05",
        b"\x0b\0\0\0\0\0\0\0\0\0\0",
        b"\x0d",
        b"\x0f\0\0\0\0",
    ];
    for value in values {
        let command = |text| [&string(b"connect")[..], value, &string(text)].concat();
        assert_eq!(wiped(&command(b"secret")), command(b"xxxxxx"), "{value:x?}");
    }
}

#[test]
fn values_are_parsed_15_levels_deep_and_deeper_ones_are_zeroed() {
    let nested = |depth: usize, text: &[u8]| {
        let arrays = b"\x0a\0\0\0\x01".repeat(depth);
        [string(b"x"), arrays, string(text)].concat()
    };
    assert_eq!(wiped(&nested(15, b"secret")), nested(15, b"xxxxxx"));
    assert!(!has(&wiped(&nested(16, b"secret")), "secret"));
    assert_ne!(wiped(&nested(16, b"secret")), nested(16, b"xxxxxx"));
}

#[test]
fn secrets_in_odd_and_overlong_messages_are_removed_too() {
    let sent = broadcast();
    let message = |kind: u8, length: usize, payload: &[u8]| {
        let [.., l0, l1, l2] = length.to_be_bytes();
        [&[20, 0, 0, 0, l0, l1, l2, kind, 1, 0, 0, 0][..], payload].concat()
    };
    let own = b"\x02\0\x07publish\0\0\0\0\0\0\0\0\0\x05\x02\0\x09a-secret!";
    let odd = [&b"\x02\0\x07publish\x11\x01"[..], b"\x06\x13a-secret!"].concat();
    let plain: Vec<u8> = own.iter().chain(&[0; 40]).copied().collect();
    for (kind, payload) in
        [(20, &own[..]), (17, own), (17, &[&[0][..], own].concat()), (20, &odd), (20, &plain)]
    {
        let bytes = [&sent[..], &message(kind, payload.len(), payload)].concat();
        for size in [1, 7, bytes.len()] {
            let scrubbed = scrubbed(&bytes, size, None);
            assert!(!has(&scrubbed, "a-secret!") && scrubbed.len() == bytes.len(), "{kind}");
        }
    }
    // Chunks of 65,536 bytes, as our client announces; three of a command that is never kept.
    let mut scrubber = Scrubber::new(None, None);
    scrubber.handle_input(&[&sent[..], &message(20, 10 << 20, own)].concat());
    assert_eq!(scrubber.clean(), sent.len() + 12 + own.len(), "nothing is held back");
    let count = scrubber.clean();
    assert!(!has(&scrubber.take(count), "a-secret!"));
}
