//! The kinds of records in a capture file.

/// The kinds of records, by their number in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// RTMP: bytes as they were read from the connection. WHIP: a decrypted RTP or RTCP packet.
    Input,
    /// The session's timeout was handled.
    Timeout,
    /// WHIP: the frames of all packets so far were polled.
    Settled,
    /// RTMP: the publish was allowed.
    Allowed,
    /// WHIP: the media keys were negotiated.
    Connected,
    /// WHIP: a keyframe was requested by a subscriber.
    KeyframeWanted,
    /// RTMP: the peer closed the connection.
    Closed,
    /// A frame was forwarded: a [`crate::FrameDigest`].
    Frame,
    /// The publish ended: an [`Ended`].
    Ended,
    /// WHIP: the client's offer, without its secrets.
    Offer,
    /// WHIP: our answer, without its secrets.
    Answer,
    /// RTMP: the reading state of the session when a capture began in the middle of a publish.
    State,
    /// The last record: why the capture ended, one of the codes of docs/capture.md.
    Finished,
}

/// All kinds, each at the index of its number minus one.
const KINDS: [Kind; 13] = [
    Kind::Input,
    Kind::Timeout,
    Kind::Settled,
    Kind::Allowed,
    Kind::Connected,
    Kind::KeyframeWanted,
    Kind::Closed,
    Kind::Frame,
    Kind::Ended,
    Kind::Offer,
    Kind::Answer,
    Kind::State,
    Kind::Finished,
];

impl Kind {
    pub(crate) fn number(self) -> u8 {
        let place = KINDS.iter().position(|kind| *kind == self);
        place.and_then(|place| u8::try_from(place + 1).ok()).unwrap_or(0)
    }

    pub(crate) fn of(number: u8) -> Option<Self> {
        KINDS.get(usize::from(number).checked_sub(1)?).copied()
    }
}

/// The body of [`Kind::Ended`]: who ended the publish, and the code of the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    /// True if the service ended it (an operator, the customer, a shutdown), false if the end resulted from the input.
    pub is_ordered: bool,
    /// Code of the `EndReason`.
    pub reason: String,
}

impl Ended {
    /// The body as written to the file.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = vec![u8::from(self.is_ordered)];
        bytes.extend_from_slice(self.reason.as_bytes());
        bytes
    }

    /// Reads the body; `None` for anything else.
    #[must_use]
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let (first, rest) = bytes.split_first()?;
        let reason = std::str::from_utf8(rest).ok()?.to_owned();
        (*first <= 1).then_some(Self { is_ordered: *first == 1, reason })
    }
}
