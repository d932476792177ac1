//! RTCP: the sender reports we write (RFC 3550 6.4.1) and the feedback we read (RFC 4585, RFC 5104).

use std::time::Duration;

use crate::offer::CNAME;

const SENDER_REPORT: u8 = 200;
const SOURCE_DESCRIPTION: u8 = 202;
const TRANSPORT_FEEDBACK: u8 = 205;
const PAYLOAD_FEEDBACK: u8 = 206;
/// Feedback formats.
const NACK: u8 = 1;
const TRANSPORT_CC: u8 = 15;
const PLI: u8 = 1;
const FIR: u8 = 4;
/// NTP time at which the publisher was created, in seconds since 1900; the same for all publishers.
const NTP_BASE_S: u64 = 3_970_000_000;

/// A request from the server.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Feedback {
    Keyframe,
    /// SSRC of the media source, and missing sequence numbers.
    Nack(u32, Vec<u16>),
    TransportCc,
}

/// NTP time in 32.32 fixed point, `elapsed` after the base.
pub(crate) fn ntp_time(elapsed: Duration) -> u64 {
    let fraction = (u64::from(elapsed.subsec_nanos()) << 32) / 1_000_000_000;
    ((NTP_BASE_S + elapsed.as_secs()) << 32) | fraction
}

/// A compound packet: a sender report without report blocks, then our CNAME.
pub(crate) fn sender_report(
    ssrc: u32,
    ntp: u64,
    rtp_time: u32,
    packets: u32,
    octets: u32,
) -> Vec<u8> {
    let mut report = vec![0x80, SENDER_REPORT, 0, 6];
    report.extend_from_slice(&ssrc.to_be_bytes());
    report.extend_from_slice(&ntp.to_be_bytes());
    for word in [rtp_time, packets, octets] {
        report.extend_from_slice(&word.to_be_bytes());
    }
    let mut chunk = ssrc.to_be_bytes().to_vec();
    chunk.extend_from_slice(&[1, u8::try_from(CNAME.len()).unwrap_or(0)]);
    chunk.extend_from_slice(CNAME.as_bytes());
    // The item list ends with at least one zero, on a word boundary (RFC 3550 6.5).
    chunk.resize((chunk.len() + 1).next_multiple_of(4), 0);
    report.extend_from_slice(&[0x81, SOURCE_DESCRIPTION]);
    report.extend_from_slice(&u16::try_from(chunk.len() / 4).unwrap_or(0).to_be_bytes());
    report.extend_from_slice(&chunk);
    report
}

/// The feedback in a compound packet; unknown or malformed packets are ignored.
pub(crate) fn read_feedback(compound: &[u8]) -> Vec<Feedback> {
    let mut found = Vec::new();
    let mut rest = compound;
    while let Some(&[first, kind, l0, l1]) = rest.first_chunk() {
        let length = 4 + 4 * usize::from(u16::from_be_bytes([l0, l1]));
        let Some((packet, after)) = rest.split_at_checked(length) else { break };
        rest = after;
        let format = first & 0x1f;
        match (kind, format) {
            (TRANSPORT_FEEDBACK, NACK) => found.extend(read_nack(packet)),
            (TRANSPORT_FEEDBACK, TRANSPORT_CC) => found.push(Feedback::TransportCc),
            (PAYLOAD_FEEDBACK, PLI | FIR) => found.push(Feedback::Keyframe),
            _ => {}
        }
    }
    found
}

/// RFC 4585 6.2.1: each entry is a packet id and a mask of the 16 packets after it.
fn read_nack(packet: &[u8]) -> Option<Feedback> {
    let (media, entries) = packet.get(8..)?.split_first_chunk()?;
    let mut missing = Vec::new();
    for entry in entries.chunks_exact(4) {
        let id = u16::from_be_bytes([entry[0], entry[1]]);
        let mask = u16::from_be_bytes([entry[2], entry[3]]);
        missing.push(id);
        let followers = (0..16).filter(|bit| mask >> bit & 1 == 1);
        missing.extend(followers.map(|bit| id.wrapping_add(bit + 1)));
    }
    Some(Feedback::Nack(u32::from_be_bytes(*media), missing))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_compound_of_nack_and_pli_is_parsed() {
        let compound = [
            0x81,
            205,
            0,
            3,
            0,
            0,
            0,
            1,
            0,
            0,
            0,
            9,
            0xff,
            0xff,
            0b1000_0000,
            1, // NACK
            0x81,
            206,
            0,
            2,
            0,
            0,
            0,
            1,
            0,
            0,
            0,
            9, // PLI
        ];
        let nack = Feedback::Nack(9, vec![0xffff, 0, 15]);
        assert_eq!(read_feedback(&compound), [nack, Feedback::Keyframe]);
    }

    #[test]
    fn a_truncated_packet_is_ignored() {
        for length in 0..16 {
            let packet = [0x81, 205, 0, 3, 0, 0, 0, 1, 0, 0, 0, 9, 0, 7, 0, 0];
            assert_eq!(read_feedback(&packet[..length]), []);
        }
    }

    #[test]
    fn a_sender_report_is_whole_words_and_names_its_sender() {
        let report = sender_report(7, ntp_time(Duration::from_millis(500)), 9, 1, 2);
        assert_eq!(report.len() % 4, 0);
        assert_eq!(report[4..8], [0, 0, 0, 7]);
        assert_eq!(report[12..16], 0x8000_0000_u32.to_be_bytes());
        let words = u16::from_be_bytes([report[30], report[31]]);
        assert_eq!(usize::from(words) * 4 + 32, report.len());
    }
}
