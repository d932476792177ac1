//! The capture file: a head, then records. It is written sequentially, so that a truncated file is valid up to the cut.

use crate::kind::Kind;
use crate::varint;

/// First bytes of every capture file.
const MAGIC: &[u8; 8] = b"HGCAPT\r\n";
/// Version of the format described here. A reader rejects others.
const VERSION: u8 = 1;
/// Most bytes of the head's JSON.
const HEADER_LIMIT: usize = 64 << 10;
/// Most bytes of one record: several times what a worker reads from a connection at once, or an offer.
const RECORD_LIMIT: usize = 16 << 20;
/// Bits of the flags byte.
const IS_WHIP: u8 = 1;
const WITHOUT_MEDIA: u8 = 2;
const FROM_MIDDLE: u8 = 4;

/// The properties of a capture.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Head {
    /// True for WHIP, false for RTMP.
    pub is_whip: bool,
    /// Audio and video are replaced by zeros of the same length.
    pub without_media: bool,
    /// The capture began while the publish was running, not with its first byte.
    pub from_middle: bool,
    /// A JSON object written by the gateway, for people and for the command line.
    pub json: String,
}

/// Why bytes are not a capture, or a capture cannot be read further.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FileError {
    /// Not a capture file.
    #[error("this is not a Headgate capture")]
    NotACapture,
    /// An unknown version of the format.
    #[error("the capture has format version {0}, but only version 1 is supported")]
    Version(u8),
    /// The head is too long, or its JSON is not valid text.
    #[error("the head of the capture is damaged")]
    Head,
    /// A record of an unknown kind, or too long.
    #[error("record {0} of the capture is damaged")]
    Record(u64),
    /// The file ends within a record.
    #[error("the capture is cut off after record {0}")]
    CutOff(u64),
}

/// Writes a file in pieces: each method yields bytes to be appended.
#[derive(Debug, Default)]
pub struct Writer {
    last_ns: u64,
}

impl Writer {
    /// The beginning of the file. A JSON header that is too long is omitted.
    #[must_use]
    pub fn head(head: &Head) -> Vec<u8> {
        let json = if head.json.len() > HEADER_LIMIT { "{}" } else { &head.json };
        let mut flags = 0;
        for (is_set, bit) in [
            (head.is_whip, IS_WHIP),
            (head.without_media, WITHOUT_MEDIA),
            (head.from_middle, FROM_MIDDLE),
        ] {
            flags |= if is_set { bit } else { 0 };
        }
        let mut bytes = MAGIC.to_vec();
        bytes.extend_from_slice(&[VERSION, flags]);
        varint::put(json.len() as u64, &mut bytes);
        bytes.extend_from_slice(json.as_bytes());
        bytes
    }

    /// Appends one record, `at_ns` nanoseconds after the beginning; time must not go back.
    pub fn record(&mut self, kind: Kind, at_ns: u64, body: &[u8], out: &mut Vec<u8>) {
        out.push(kind.number());
        varint::put(at_ns.saturating_sub(self.last_ns), out);
        self.last_ns = self.last_ns.max(at_ns);
        varint::put(body.len() as u64, out);
        out.extend_from_slice(body);
    }
}

/// One record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// Kind of the record.
    pub kind: Kind,
    /// Nanoseconds since the beginning.
    pub at_ns: u64,
    /// Contents, depending on the kind.
    pub body: &'a [u8],
}

/// Reads a capture file from memory.
#[derive(Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
    at_ns: u64,
    records: u64,
}

impl<'a> Reader<'a> {
    /// Reads the head.
    ///
    /// # Errors
    /// See [`FileError`].
    pub fn new(bytes: &'a [u8]) -> Result<(Head, Self), FileError> {
        let rest = bytes.strip_prefix(&MAGIC[..]).ok_or(FileError::NotACapture)?;
        let (&[version, flags], mut rest) = rest.split_first_chunk().ok_or(FileError::Head)?;
        if version != VERSION {
            return Err(FileError::Version(version));
        }
        let json = take(&mut rest, HEADER_LIMIT).ok_or(FileError::Head)?;
        let head = Head {
            is_whip: flags & IS_WHIP != 0,
            without_media: flags & WITHOUT_MEDIA != 0,
            from_middle: flags & FROM_MIDDLE != 0,
            json: std::str::from_utf8(json).map_err(|_| FileError::Head)?.to_owned(),
        };
        Ok((head, Self { rest, at_ns: 0, records: 0 }))
    }

    /// The next record; `None` at the end.
    ///
    /// # Errors
    /// See [`FileError`]; the records before the error are valid.
    pub fn next_record(&mut self) -> Result<Option<Record<'a>>, FileError> {
        let Some((number, mut rest)) = self.rest.split_first() else { return Ok(None) };
        let kind = Kind::of(*number).ok_or(FileError::Record(self.records))?;
        let delta = varint::take(&mut rest).ok_or(FileError::CutOff(self.records))?;
        let body = take(&mut rest, RECORD_LIMIT).ok_or(FileError::CutOff(self.records))?;
        let at_ns = self.at_ns.checked_add(delta).ok_or(FileError::Record(self.records))?;
        (self.rest, self.at_ns, self.records) = (rest, at_ns, self.records + 1);
        Ok(Some(Record { kind, at_ns, body }))
    }
}

/// Takes a length and that many bytes; `None` when there are fewer, or when the length exceeds the limit.
fn take<'a>(rest: &mut &'a [u8], limit: usize) -> Option<&'a [u8]> {
    let length = usize::try_from(varint::take(rest)?).ok().filter(|length| *length <= limit)?;
    let (taken, left) = rest.split_at_checked(length)?;
    *rest = left;
    Some(taken)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_reads_back_and_a_truncated_one_up_to_the_cut() {
        let head = Head { is_whip: true, json: "{\"a\":1}".into(), ..Head::default() };
        let (mut bytes, mut writer) = (Writer::head(&head), Writer::default());
        writer.record(Kind::Input, 5, b"abc", &mut bytes);
        writer.record(Kind::Timeout, 2_000_000_000, b"", &mut bytes);
        let (read, mut reader) = Reader::new(&bytes).expect("a capture");
        assert_eq!(read, head);
        let first = Record { kind: Kind::Input, at_ns: 5, body: b"abc" };
        assert_eq!(reader.next_record(), Ok(Some(first)));
        let second = Record { kind: Kind::Timeout, at_ns: 2_000_000_000, body: b"" };
        assert_eq!(reader.next_record(), Ok(Some(second)));
        assert_eq!(reader.next_record(), Ok(None));
        let (_, mut cut) = Reader::new(&bytes[..bytes.len() - 1]).expect("a capture");
        assert_eq!(cut.next_record(), Ok(Some(first)));
        assert_eq!(cut.next_record(), Err(FileError::CutOff(1)));
    }

    #[test]
    fn invalid_files_are_rejected_with_a_named_error() {
        assert_eq!(Reader::new(b"FLV\x01").err(), Some(FileError::NotACapture));
        let mut bytes = Writer::head(&Head::default());
        bytes[8] = 9;
        assert_eq!(Reader::new(&bytes).err(), Some(FileError::Version(9)));
        bytes[8] = VERSION;
        bytes.push(200);
        let (_, mut reader) = Reader::new(&bytes).expect("a head");
        assert_eq!(reader.next_record(), Err(FileError::Record(0)));
    }
}

#[cfg(test)]
#[path = "../../fuzz/replay.rs"]
mod replay;

#[cfg(test)]
mod fuzz_tests {
    #[test]
    fn random_bytes_are_parsed_or_rejected() {
        super::replay::run_all(crate::fuzz::capture_reader, "capture_reader");
    }
}
