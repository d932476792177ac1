//! Packs H.264 into RTP payloads (RFC 6184): single NAL units, STAP-A for parameter sets, FU-A for large NAL units.

use crate::PAYLOAD_LIMIT;

const SPS: u8 = 7;
const PPS: u8 = 8;
const STAP_A: u8 = 24;
const FU_A: u8 = 28;
const FU_START: u8 = 0x80;
const FU_END: u8 = 0x40;

/// Calls `send` with each payload of one access unit; the last has the marker.
pub(crate) fn packetize(nal_units: &[&[u8]], mut send: impl FnMut(&[u8], bool)) {
    let mut payload = Vec::with_capacity(PAYLOAD_LIMIT);
    let mut rest: Vec<&[u8]> = nal_units.iter().copied().filter(|unit| !unit.is_empty()).collect();
    while !rest.is_empty() {
        let aggregated = aggregate(&rest, &mut payload);
        let taken: Vec<&[u8]> = rest.drain(..aggregated.max(1)).collect();
        let is_last = rest.is_empty();
        match taken.as_slice() {
            [unit] if unit.len() <= PAYLOAD_LIMIT => send(unit, is_last),
            [unit] => fragment(unit, &mut payload, is_last, &mut send),
            _ => send(&payload, is_last),
        }
    }
}

/// Packs the leading parameter sets into one STAP-A (RFC 6184 5.7.1) and returns their number; fewer than two are not
/// packed.
fn aggregate(units: &[&[u8]], payload: &mut Vec<u8>) -> usize {
    payload.clear();
    payload.push(STAP_A);
    let mut count = 0;
    for unit in units {
        let header = unit.first().copied().unwrap_or(0);
        let Ok(length) = u16::try_from(unit.len()) else { break };
        if !matches!(header & 0x1f, SPS | PPS) || payload.len() + 2 + unit.len() > PAYLOAD_LIMIT {
            break;
        }
        // The aggregate has the highest importance of its parts (nal_ref_idc).
        payload[0] = STAP_A | (payload[0] & 0x60).max(header & 0x60);
        payload.extend_from_slice(&length.to_be_bytes());
        payload.extend_from_slice(unit);
        count += 1;
    }
    if count < 2 { 0 } else { count }
}

/// FU-A (RFC 6184 5.8). All fragments but the last have the same size.
fn fragment(unit: &[u8], payload: &mut Vec<u8>, is_last: bool, send: &mut impl FnMut(&[u8], bool)) {
    let Some((&header, body)) = unit.split_first() else { return };
    let mut pieces = body.chunks(PAYLOAD_LIMIT - 2).peekable();
    let mut mark = FU_START;
    while let Some(piece) = pieces.next() {
        let is_end = pieces.peek().is_none();
        if is_end {
            mark |= FU_END;
        }
        payload.clear();
        payload.extend_from_slice(&[FU_A | (header & 0xe0), mark | (header & 0x1f)]);
        payload.extend_from_slice(piece);
        send(payload, is_last && is_end);
        mark = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn payloads(units: &[&[u8]]) -> Vec<(Vec<u8>, bool)> {
        let mut sent = Vec::new();
        packetize(units, |payload, marker| sent.push((payload.to_vec(), marker)));
        sent
    }

    #[test]
    fn parameter_sets_travel_together_before_the_picture() {
        let sent = payloads(&[&[0x67, 1], &[0x68, 2], &[0x65, 3]]);
        assert_eq!(sent[0], (vec![0x78, 0, 2, 0x67, 1, 0, 2, 0x68, 2], false));
        assert_eq!(sent[1], (vec![0x65, 3], true));
    }

    #[test]
    fn a_single_parameter_set_is_a_single_nal_unit() {
        assert_eq!(payloads(&[&[0x67, 1], &[0x65, 3]])[0], (vec![0x67, 1], false));
    }

    #[test]
    fn a_large_unit_is_fragmented_and_only_its_end_carries_the_marker() {
        let mut unit = vec![0x41];
        unit.extend((0..3_000).map(|byte| byte as u8));
        let sent = payloads(&[&unit]);
        assert_eq!(sent.len(), 3);
        let marks: Vec<u8> = sent.iter().map(|(payload, _)| payload[1]).collect();
        assert_eq!(marks, [0x81, 0x01, 0x41]);
        assert!(
            sent.iter().all(|(payload, _)| payload[0] == 0x5c && payload.len() <= PAYLOAD_LIMIT)
        );
        assert_eq!(
            sent.iter().map(|(_, marker)| *marker).collect::<Vec<_>>(),
            [false, false, true]
        );
        let joined: Vec<u8> = sent.iter().flat_map(|(payload, _)| payload[2..].to_vec()).collect();
        assert_eq!(joined, unit[1..]);
    }
}
