//! A server and a client connected in memory, on virtual time: no socket, no clock, controlled splits.

use std::io::IoSlice;
use std::time::{Duration, Instant};

use headgate_rtmp::{
    ClientConfig, ClientEvent, ClientRole, ClientSession, Error, Limits, MediaMessage, Output,
    ServerConfig, ServerEvent, ServerSession,
};

/// Two sessions and the bytes between them.
pub(crate) struct Pair {
    pub(crate) server: ServerSession,
    pub(crate) client: ClientSession,
    now: Instant,
    splits: Splits,
}

impl Pair {
    /// A client that publishes `live/cam?passcode=s%2Fx`; bytes arrive unsplit.
    pub(crate) fn publish() -> Self {
        Self::new(ServerConfig::default(), client_config(ClientRole::Publish), Splits::Whole)
    }

    /// The same, with bytes split as `seed` determines.
    pub(crate) fn publish_in_pieces(seed: u64) -> Self {
        let splits = Splits::Random(Random::new(seed));
        Self::new(ServerConfig::default(), client_config(ClientRole::Publish), splits)
    }

    /// A client that plays it.
    pub(crate) fn play() -> Self {
        Self::new(ServerConfig::default(), client_config(ClientRole::Play), Splits::Whole)
    }

    pub(crate) fn new(server: ServerConfig, client: ClientConfig, splits: Splits) -> Self {
        let now = Instant::now();
        let (server, client) = (ServerSession::new(server, now), ClientSession::new(client, now));
        Self { server, client, now, splits }
    }

    /// Publishing: requested, allowed, and known to both sides; their events up to here are removed.
    pub(crate) fn allowed(mut self) -> Self {
        self.exchange();
        self.server.allow();
        self.exchange();
        self.server_events();
        assert_eq!(self.client_events(), [ClientEvent::Ready]);
        self
    }

    /// Playing, in the same state.
    pub(crate) fn playing(mut self) -> Self {
        self.exchange();
        self.server.accept_play();
        self.exchange();
        self.server_events();
        assert!(self.client_events().contains(&ClientEvent::Ready));
        self
    }

    /// Carries bytes both ways until neither side has any left.
    pub(crate) fn exchange(&mut self) {
        while self.carry_to_server(usize::MAX) + self.carry_to_client(usize::MAX) > 0 {}
    }

    /// Carries at most `at_most` bytes to the server; returns how many there were.
    pub(crate) fn carry_to_server(&mut self, at_most: usize) -> usize {
        let bytes = take(self.client.output_mut(), at_most);
        for piece in self.splits.pieces(&bytes) {
            self.server.begin_turn();
            self.server.handle_input(piece, self.now).expect("the client keeps to the protocol");
            while self.server.has_unread_input() {
                self.server.begin_turn();
                self.server.handle_input(&[], self.now).expect("the client keeps to the protocol");
            }
        }
        bytes.len()
    }

    /// Carries at most `at_most` bytes to the client; returns how many there were.
    pub(crate) fn carry_to_client(&mut self, at_most: usize) -> usize {
        let bytes = take(self.server.output_mut(), at_most);
        for piece in self.splits.pieces(&bytes) {
            self.client.begin_turn();
            self.client.handle_input(piece, self.now).expect("the server keeps to the protocol");
            while self.client.has_unread_input() {
                self.client.begin_turn();
                self.client.handle_input(&[], self.now).expect("the server keeps to the protocol");
            }
        }
        bytes.len()
    }

    /// Advances the time; returns the result of the server's timeout, then the client's.
    pub(crate) fn advance(&mut self, by: Duration) -> (Result<(), Error>, Result<(), Error>) {
        self.now += by;
        (self.server.handle_timeout(self.now), self.client.handle_timeout(self.now))
    }

    pub(crate) fn server_events(&mut self) -> Vec<ServerEvent> {
        std::iter::from_fn(|| self.server.poll_event()).collect()
    }

    pub(crate) fn client_events(&mut self) -> Vec<ClientEvent> {
        std::iter::from_fn(|| self.client.poll_event()).collect()
    }

    /// The media among the server's events.
    pub(crate) fn media_at_server(&mut self) -> Vec<MediaMessage> {
        let media = |event| if let ServerEvent::Media(media) = event { Some(media) } else { None };
        self.server_events().into_iter().filter_map(media).collect()
    }

    /// The media among the client's events.
    pub(crate) fn media_at_client(&mut self) -> Vec<MediaMessage> {
        let media = |event| if let ClientEvent::Media(media) = event { Some(media) } else { None };
        self.client_events().into_iter().filter_map(media).collect()
    }
}

pub(crate) fn client_config(role: ClientRole) -> ClientConfig {
    ClientConfig {
        role,
        app: "live".into(),
        tc_url: "rtmp://server/live".into(),
        name: b"cam?passcode=s%2Fx".to_vec(),
        seed: *b"a client",
        limits: Limits::default(),
        four_cc_list: Vec::new(),
        ..ClientConfig::new(role)
    }
}

/// How the network splits what is written.
pub(crate) enum Splits {
    Whole,
    Random(Random),
}

impl Splits {
    fn pieces<'a>(&mut self, mut bytes: &'a [u8]) -> Vec<&'a [u8]> {
        let mut pieces = Vec::new();
        while !bytes.is_empty() {
            let size = match self {
                Self::Whole => bytes.len(),
                // Single bytes as often as whole segments.
                Self::Random(random) => {
                    let most = [1, 4, 200, 1460, 9000][random.below(5)];
                    1 + random.below(most)
                }
            };
            let (piece, rest) = bytes.split_at(size.min(bytes.len()));
            pieces.push(piece);
            bytes = rest;
        }
        pieces
    }
}

/// Random numbers with the same sequence in every run (xorshift).
pub(crate) struct Random(u64);

impl Random {
    pub(crate) const fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(crate) fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).expect("31 bits") % end
    }
}

fn take(output: &mut Output, at_most: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    while bytes.len() < at_most && !output.is_empty() {
        let mut slices = [IoSlice::new(&[]); 4];
        let count = output.io_slices(&mut slices);
        let before = bytes.len();
        bytes.extend(slices[..count].iter().flat_map(|slice| slice.iter().copied()));
        bytes.truncate(at_most);
        output.consume(bytes.len() - before);
    }
    bytes
}
