//! One session's place on its worker: what remains known of it while, and after, its own code runs.

use std::time::Instant;

use crate::directory::StreamId;
use crate::hub::SubscriberKey;
use crate::rtmp_push::Push;
use crate::rtmp_server::ServerConnection;
use crate::session::EndReason;
use crate::whip_session::{Routes, WhipConnection};

/// A session of one of the kinds a worker carries.
pub(crate) enum Entry {
    /// A broadcaster or a player that came to us.
    Server(Box<ServerConnection>),
    /// A broadcaster who came by WHIP.
    Whip(Box<WhipConnection>),
    /// A stream on its way to an upstream.
    Push(Box<Push>),
}

/// What the poll says of a session's socket.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Ready {
    pub(crate) readable: bool,
    pub(crate) writable: bool,
    /// The peer has sent its last byte: reading must go on until that shows, no further event will come.
    pub(crate) read_closed: bool,
}

impl Ready {
    /// Nothing new on the socket; there may be something to write.
    pub(crate) const NO: Self = Self { readable: false, writable: false, read_closed: false };
    /// There is more to read.
    pub(crate) const READ: Self = Self { readable: true, ..Self::NO };
    /// Just connected.
    pub(crate) const BOTH: Self = Self { writable: true, ..Self::READ };
}

/// What a session's turn means for its seat.
pub(crate) enum After {
    /// It goes on.
    Stay,
    /// It is over; a publish on it ends for this reason.
    Gone(EndReason),
}

/// A seat: the session itself is taken out while its turn runs, so that a panic leaves nothing of it behind.
pub(crate) struct Seat {
    /// Tells this occupant from earlier ones of the same seat.
    pub(crate) generation: u64,
    pub(crate) entry: Option<Entry>,
    /// The stream that is published from here.
    pub(crate) publishes: Option<StreamId>,
    /// The stream that is read here, and its queue.
    pub(crate) reads: Option<(StreamId, SubscriberKey)>,
    /// How datagrams find a WHIP session that sits here.
    pub(crate) routes: Option<Routes>,
    /// The earliest timer that is set for this seat.
    pub(crate) timer: Option<Instant>,
    /// Audio waits for the next picture until then.
    pub(crate) audio_held_until: Option<Instant>,
}

impl Seat {
    pub(crate) const fn new(generation: u64, entry: Entry) -> Self {
        Self {
            generation,
            entry: Some(entry),
            publishes: None,
            reads: None,
            routes: None,
            timer: None,
            audio_held_until: None,
        }
    }
}
