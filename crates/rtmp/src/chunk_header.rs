//! The header of a chunk (RTMP 5.3.1). Pure.

/// A 24-bit time field with this value is followed by an extended timestamp (RTMP 5.3.1.3).
pub(crate) const EXTENDED: u32 = 0x00ff_ffff;
/// Longest header: 3 basic, 11 message, 4 extended time.
pub(crate) const HEADER_LIMIT: usize = 18;

/// A complete chunk header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ChunkHeader {
    /// The chunk stream.
    pub(crate) id: u32,
    pub(crate) form: Form,
    /// The extended timestamp, if the header has one.
    pub(crate) extended: Option<u32>,
    /// Its bytes.
    pub(crate) length: usize,
}

/// What a header says of its message (RTMP 5.3.1.2). Times are extended where the header extends them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// Type 0.
    Whole { time: u32, length: u32, kind: u8, stream: u32 },
    /// Type 1: on the message stream of the message before.
    SameStream { delta: u32, length: u32, kind: u8 },
    /// Type 2: with that one's length and kind too.
    Delta { delta: u32 },
    /// Type 3: the message goes on, or another like it begins.
    Repeated,
}

impl ChunkHeader {
    /// The chunk stream, and the length of the basic header (RTMP 5.3.1.1); `None` when it is incomplete.
    pub(crate) fn chunk_stream(bytes: &[u8]) -> Option<(u32, usize)> {
        match *bytes.first()? & 0x3f {
            0 => Some((64 + u32::from(*bytes.get(1)?), 2)),
            1 => {
                let (low, high) = (*bytes.get(1)?, *bytes.get(2)?);
                Some((64 + u32::from(low) + 256 * u32::from(high), 3))
            }
            id => Some((u32::from(id), 1)),
        }
    }

    /// Reads a header whose chunk stream and basic header's length are known; `None` when it is incomplete. `last` is
    /// the extended timestamp of the chunk stream's last header: one of type 3 repeats it, or omits it as some peers
    /// do.
    pub(crate) fn read(bytes: &[u8], (id, basic): (u32, usize), last: Option<u32>) -> Option<Self> {
        let message = bytes.get(basic..)?;
        let (mut form, fields) = match (bytes.first()? >> 6, message) {
            (0, &[t0, t1, t2, l0, l1, l2, kind, s0, s1, s2, s3, ..]) => {
                let (time, length) = (be24(t0, t1, t2), be24(l0, l1, l2));
                let stream = u32::from_le_bytes([s0, s1, s2, s3]);
                (Form::Whole { time, length, kind, stream }, 11)
            }
            (1, &[t0, t1, t2, l0, l1, l2, kind, ..]) => {
                let (delta, length) = (be24(t0, t1, t2), be24(l0, l1, l2));
                (Form::SameStream { delta, length, kind }, 7)
            }
            (2, &[t0, t1, t2, ..]) => (Form::Delta { delta: be24(t0, t1, t2) }, 3),
            (3, _) => (Form::Repeated, 0),
            _ => return None,
        };
        let (mut extended, mut length) = (None, basic + fields);
        let is_extended = form.time().map_or(last.is_some(), |time| *time == EXTENDED);
        if is_extended {
            let field = u32::from_be_bytes(*bytes.get(length..)?.first_chunk()?);
            match form.time() {
                Some(time) => (*time, extended) = (field, Some(field)),
                None => extended = last,
            }
            // Where a peer omits it, these four bytes are payload.
            if extended == Some(field) {
                length += 4;
            }
        }
        Some(Self { id, form, extended, length })
    }
}

impl Form {
    /// Its time field.
    const fn time(&mut self) -> Option<&mut u32> {
        match self {
            Self::Whole { time, .. } => Some(time),
            Self::SameStream { delta, .. } | Self::Delta { delta } => Some(delta),
            Self::Repeated => None,
        }
    }
}

const fn be24(high: u8, middle: u8, low: u8) -> u32 {
    u32::from_be_bytes([0, high, middle, low])
}
