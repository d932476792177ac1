//! Messages that are allowed individually and hostile in quantity.

use bytes::{BufMut, BytesMut};

use crate::load::HEADERS;

/// Below the limit of 64 KiB for script data.
const METADATA_BYTES: usize = 60_000;
/// The longest message that the service accepts.
const HUGE_BYTES: usize = 8 << 20;

/// `@setDataFrame` with thousands of numbers (AMF0 2.10), different each time.
pub(super) fn metadata(count: u32) -> BytesMut {
    let mut body = BytesMut::with_capacity(METADATA_BYTES + 64);
    body.put_slice(b"\x02\0\x0d@setDataFrame\x02\0\x0aonMetaData\x08\0\0\0\0");
    let mut at = 0;
    while body.len() < METADATA_BYTES {
        body.put_slice(format!("\0\x06k{at:05}\0").as_bytes());
        body.put_f64(f64::from(count) + f64::from(at));
        at += 1;
    }
    body.put_slice(&[0, 0, 9]);
    body
}

/// A keyframe of one NAL unit.
pub(super) fn huge_frame() -> Vec<u8> {
    let mut body = vec![0x17, 1, 0, 0, 0];
    body.extend_from_slice(&u32::try_from(HUGE_BYTES - 9).unwrap_or(0).to_be_bytes());
    body.push(0x65);
    body.resize(HUGE_BYTES, 0x55);
    body
}

/// The bench's decoder configuration with a PPS that was not used before.
pub(super) fn configuration(count: u32) -> BytesMut {
    let mut body = BytesMut::from(HEADERS[0].1);
    // The PPS comes last: its length is in the two bytes before its four.
    let length = body.len() - 6;
    if let Some(bytes) = body.get_mut(length..length + 2) {
        bytes.copy_from_slice(&8_u16.to_be_bytes());
    }
    body.put_u32(count);
    body
}

/// `releaseStream`, which every server answers or ignores.
pub(super) fn command(transaction: u32) -> BytesMut {
    let mut body = BytesMut::from(&b"\x02\0\x0dreleaseStream\0"[..]);
    body.put_f64(f64::from(transaction));
    body.put_slice(b"\x05\x02\0\x04name");
    body
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_is_60_kb_and_parses() {
        let body = metadata(1);
        assert!((METADATA_BYTES..METADATA_BYTES + 64).contains(&body.len()), "{}", body.len());
        // What follows the name of the command.
        let read = headgate_rtmp::read_metadata(&body.freeze().slice(16..));
        assert!(read.is_some());
    }

    #[test]
    fn every_configuration_is_different() {
        let (first, second) = (configuration(1), configuration(2));
        assert_eq!(first.len(), HEADERS[0].1.len() + 4);
        assert_ne!(first, second);
    }
}
