//! A scripted upstream: it sends exactly the bytes a test specifies, and exposes what the client wrote. Not our server.

use std::io::IoSlice;
use std::time::{Duration, Instant};

use headgate_rtmp::{ClientConfig, ClientEvent, ClientRole, ClientSession, Error};

/// Chunk message types.
pub(crate) const COMMAND: u8 = 20;
/// The client's transaction id for each command.
pub(crate) const CONNECT: f64 = 1.0;
pub(crate) const CREATE_STREAM: f64 = 4.0;

/// AMF0, as a server writes it.
pub(crate) enum Amf<'a> {
    Number(f64),
    Text(&'a str),
    Null,
    Object(Vec<(&'a str, Amf<'a>)>),
}

impl Amf<'_> {
    fn write(&self, out: &mut Vec<u8>) {
        let short = |out: &mut Vec<u8>, text: &str| {
            out.extend(u16::try_from(text.len()).expect("short").to_be_bytes());
            out.extend(text.as_bytes());
        };
        match self {
            Amf::Number(number) => {
                out.push(0);
                out.extend(number.to_be_bytes());
            }
            Amf::Text(text) => {
                out.push(2);
                short(out, text);
            }
            Amf::Null => out.push(5),
            Amf::Object(properties) => {
                out.push(3);
                for (key, value) in properties {
                    short(out, key);
                    value.write(out);
                }
                out.extend([0, 0, 9]);
            }
        }
    }
}

/// A client and the scripted server it is connected to.
pub(crate) struct Upstream {
    pub(crate) client: ClientSession,
    now: Instant,
    /// Size of the chunks that it sends.
    pub(crate) chunk_size: usize,
}

impl Upstream {
    /// The handshake is complete, and the client's connect is in its output.
    pub(crate) fn shaken(config: ClientConfig) -> Self {
        let now = Instant::now();
        let mut upstream = Self { client: ClientSession::new(config, now), now, chunk_size: 128 };
        let mut hello = vec![0; 1 + 2 * 1536];
        hello[0] = 3;
        upstream.says(&hello);
        upstream
    }

    /// The client has sent createStream and waits for the stream id.
    pub(crate) fn creating() -> Self {
        let mut upstream = Self::shaken(publisher());
        upstream.answers("_result", CONNECT, &[Amf::Null, status("status", "x", "")]);
        upstream
    }

    /// The client has sent publish.
    pub(crate) fn starting() -> Self {
        let mut upstream = Self::creating();
        upstream.answers("_result", CREATE_STREAM, &[Amf::Null, Amf::Number(1.0)]);
        upstream
    }

    /// The same for a client with another configuration; its output so far is discarded.
    pub(crate) fn starting_with(config: ClientConfig) -> Self {
        let mut upstream = Self::shaken(config);
        upstream.answers("_result", CONNECT, &[Amf::Null, status("status", "x", "")]);
        upstream.answers("_result", CREATE_STREAM, &[Amf::Null, Amf::Number(1.0)]);
        upstream.events();
        upstream.written();
        upstream
    }

    pub(crate) fn says(&mut self, bytes: &[u8]) {
        self.try_says(bytes).expect("the client takes it");
    }

    pub(crate) fn try_says(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.client.begin_turn();
        self.client.handle_input(bytes, self.now)
    }

    /// One message in chunks on this message stream.
    pub(crate) fn sends(&mut self, kind: u8, stream: u32, payload: &[u8]) {
        let [_, a, b, c] = u32::try_from(payload.len()).expect("short").to_be_bytes();
        let mut bytes = vec![3, 0, 0, 0, a, b, c, kind];
        bytes.extend(stream.to_le_bytes());
        for (n, chunk) in payload.chunks(self.chunk_size).enumerate() {
            if n > 0 {
                bytes.push(0xc3);
            }
            bytes.extend(chunk);
        }
        self.says(&bytes);
    }

    /// A command with only these values after its name.
    pub(crate) fn command(&mut self, stream: u32, name: &str, values: &[Amf<'_>]) {
        let mut payload = Vec::new();
        Amf::Text(name).write(&mut payload);
        for value in values {
            value.write(&mut payload);
        }
        self.sends(COMMAND, stream, &payload);
    }

    /// A command with a transaction id, on stream 0.
    pub(crate) fn answers(&mut self, name: &str, transaction: f64, values: &[Amf<'_>]) {
        let mut payload = Vec::new();
        Amf::Text(name).write(&mut payload);
        Amf::Number(transaction).write(&mut payload);
        for value in values {
            value.write(&mut payload);
        }
        self.sends(COMMAND, 0, &payload);
    }

    /// Rejects the connect with this description.
    pub(crate) fn rejects(&mut self, description: &str) {
        let information = status("error", "NetConnection.Connect.Rejected", description);
        self.answers("_error", CONNECT, &[Amf::Null, information]);
    }

    pub(crate) fn events(&mut self) -> Vec<ClientEvent> {
        std::iter::from_fn(|| self.client.poll_event()).collect()
    }

    pub(crate) fn after(&mut self, by: Duration) -> Result<(), Error> {
        self.now += by;
        self.client.handle_timeout(self.now)
    }

    /// What the client has written since the last call; text in it can be searched for.
    pub(crate) fn written(&mut self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let output = self.client.output_mut();
        while !output.is_empty() {
            let mut slices = [IoSlice::new(&[]); 4];
            let count = output.io_slices(&mut slices);
            let before = bytes.len();
            bytes.extend(slices[..count].iter().flat_map(|slice| slice.iter().copied()));
            output.consume(bytes.len() - before);
        }
        bytes
    }

    /// A string property of the connect command.
    pub(crate) fn connect_property(&mut self, key: &str) -> String {
        let written = self.written();
        let key = [&u16::try_from(key.len()).expect("short").to_be_bytes(), key.as_bytes(), &[2]];
        let key = key.concat();
        let at = position(&written, &key).expect("the property is there") + key.len();
        let length = usize::from(u16::from_be_bytes([written[at], written[at + 1]]));
        String::from_utf8(written[at + 2..at + 2 + length].to_vec()).expect("text")
    }
}

/// An information object; an empty level is left out.
pub(crate) fn status<'a>(level: &'a str, code: &'a str, description: &'a str) -> Amf<'a> {
    let mut properties = vec![("code", Amf::Text(code)), ("description", Amf::Text(description))];
    if !level.is_empty() {
        properties.insert(0, ("level", Amf::Text(level)));
    }
    Amf::Object(properties)
}

pub(crate) fn publisher() -> ClientConfig {
    ClientConfig {
        app: "live".into(),
        tc_url: "rtmp://upstream/live".into(),
        name: b"cam".to_vec(),
        seed: [0xde, 0xad, 0xbe, 0xef, 0, 0, 0, 0],
        ..ClientConfig::new(ClientRole::Publish)
    }
}

pub(crate) fn player() -> ClientConfig {
    ClientConfig { role: ClientRole::Play, ..publisher() }
}

pub(crate) fn position(bytes: &[u8], part: &[u8]) -> Option<usize> {
    bytes.windows(part.len()).position(|window| window == part)
}
