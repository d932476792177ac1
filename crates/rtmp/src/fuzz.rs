//! Fuzz bodies: any bytes, no panic, no unbounded memory. Shells in `crates/fuzz` and tests run them.

use std::time::Instant;

use crate::amf0::Reader;
use crate::chunk_reader::ChunkReader;
use crate::message::split_aggregate;
use crate::{
    ClientConfig, ClientRole, ClientSession, Limits, ServerConfig, ServerEvent, ServerSession,
};

/// The bytes as chunks, long messages allowed.
pub fn chunk_reader(bytes: &[u8]) {
    let mut reader = ChunkReader::new(Limits::default());
    reader.set_accepted();
    let mut input = bytes;
    while let Ok(Some(message)) = reader.read(&mut input) {
        if message.kind == 1 && message.payload.len() == 4 {
            let size = u32::from_be_bytes([0, 0, message.payload[2], message.payload[3]]);
            if reader.set_chunk_size(size).is_err() {
                return;
            }
        }
    }
}

/// The bytes as AMF0 values, and as an aggregate message.
pub fn amf0(bytes: &[u8]) {
    let mut reader = Reader::new(bytes);
    while reader.value().is_ok() {}
    // An aggregate is a list of lengths, too.
    let _ = split_aggregate(0, bytes.to_vec().into());
}

/// The first byte splits the rest; a server past its handshake reads it.
pub fn server_session(bytes: &[u8]) {
    let now = Instant::now();
    let mut session = ServerSession::new(ServerConfig::default(), now);
    let mut hello = vec![0; 1 + 2 * 1536];
    hello[0] = 3;
    let Some((split, rest)) = bytes.split_first() else { return };
    let (first, second) = rest.split_at(usize::from(*split).min(rest.len()));
    for part in [&hello[..], first, second] {
        if session.handle_input(part, now).is_err() {
            return;
        }
        while let Some(event) = session.poll_event() {
            match event {
                ServerEvent::PublishRequested(_) => session.allow(),
                ServerEvent::PlayRequested(_) => session.accept_play(),
                ServerEvent::Media(_)
                | ServerEvent::PublishEnded
                | ServerEvent::PlayEnded
                | ServerEvent::Close => {}
            }
        }
    }
}

/// A client past its handshake reads the bytes.
pub fn client_session(bytes: &[u8]) {
    let now = Instant::now();
    let config = ClientConfig {
        role: ClientRole::Publish,
        app: "live".into(),
        tc_url: "rtmp://h/live".into(),
        name: b"cam".to_vec(),
        seed: [1; 8],
        limits: Limits::default(),
        four_cc_list: Vec::new(),
        ..ClientConfig::new(ClientRole::Publish)
    };
    let mut session = ClientSession::new(config, now);
    let mut hello = vec![0; 1 + 2 * 1536];
    hello[0] = 3;
    if session.handle_input(&hello, now).is_ok() && session.handle_input(bytes, now).is_ok() {
        while session.poll_event().is_some() {}
    }
}
