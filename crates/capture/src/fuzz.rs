//! The fuzz body: reads any bytes as a capture file.

use crate::{FrameDigest, Kind, Reader, Writer};

/// Reads the bytes as a file.
///
/// # Panics
/// When the file reads differently after being written again, or time goes back.
pub fn capture_reader(bytes: &[u8]) {
    let Ok((head, mut reader)) = Reader::new(bytes) else { return };
    let (mut again, mut writer) = (Writer::head(&head), Writer::default());
    let (mut last, mut records) = (0, Vec::new());
    while let Ok(Some(record)) = reader.next_record() {
        assert!(record.at_ns >= last, "time goes back");
        last = record.at_ns;
        writer.record(record.kind, record.at_ns, record.body, &mut again);
        if record.kind == Kind::Frame
            && let Some(digest) = FrameDigest::read(record.body)
        {
            assert_eq!(FrameDigest::read(&digest.to_bytes()), Some(digest));
        }
        records.push(record);
    }
    let (same, mut reader) = Reader::new(&again).expect("it was written by us");
    assert_eq!(same, head);
    for record in records {
        assert_eq!(reader.next_record(), Ok(Some(record)));
    }
}
