//! The basic header of a chunk: its format and its chunk stream (RTMP 5.3.1.1).

/// Format, chunk stream id and length of the basic header; `None` when it is incomplete.
pub(crate) fn basic_header(header: &[u8]) -> Option<(u8, u32, usize)> {
    let first = *header.first()?;
    let format = first >> 6;
    match first & 0x3f {
        0 => Some((format, 64 + u32::from(*header.get(1)?), 2)),
        1 => {
            let (low, high) = (*header.get(1)?, *header.get(2)?);
            Some((format, 64 + u32::from(low) + 256 * u32::from(high), 3))
        }
        id => Some((format, u32::from(id), 1)),
    }
}
