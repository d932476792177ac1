//! Removes secrets and, if requested, media from offers, answers and packets of a WHIP publish. Length or form is kept,
//! so that they parse as before. Pure.

use headgate_media::h264;

use crate::rtp::RtpHeader;
use crate::sdp::Offer;

/// Bytes of an Opus packet that determine its duration (RFC 6716 3.1, 3.2.5).
const OPUS_HEADER: usize = 2;
/// Sequence number of the original in a retransmission (RFC 4588 4).
const RTX_HEADER: usize = 2;
/// First fragment of a NAL unit, and any fragment (RFC 6184 5.8): indicator and header.
const FU_HEADER: usize = 2;
/// After it, in the first fragment: the bytes of a slice header that a parser reads.
const FU_START: usize = 6;

/// Which payload types carry what.
#[derive(Clone, Copy, Debug)]
pub struct MediaBlanker {
    audio: Option<u8>,
    video: Option<u8>,
    rtx: Option<u8>,
}

impl MediaBlanker {
    /// Payload types as offered.
    #[must_use]
    pub fn new(offer: &Offer) -> Self {
        let video = offer.video.as_ref();
        Self {
            audio: offer.audio.as_ref().map(|audio| audio.payload_type),
            video: video.map(|video| video.payload_type),
            rtx: video.and_then(|video| video.rtx).map(|rtx| rtx.payload_type),
        }
    }

    /// Overwrites the media in a decrypted packet. RTCP is kept.
    pub fn blank(self, packet: &mut [u8]) {
        if matches!(packet.get(1), Some(192..=223)) {
            return;
        }
        let Some(header) = RtpHeader::read(packet) else { return packet.fill(0) };
        let payload_type = Some(header.payload_type);
        let Some(payload) = packet.get_mut(header.payload_at..header.payload_end) else { return };
        if payload_type == self.video {
            blank_video(payload);
        } else if payload_type == self.rtx {
            blank_video(payload.get_mut(RTX_HEADER..).unwrap_or_default());
        } else {
            let kept = if payload_type == self.audio { OPUS_HEADER } else { 0 };
            payload.iter_mut().skip(kept).for_each(|byte| *byte = 0);
        }
    }
}

/// A payload of H.264 (RFC 6184 5.4).
fn blank_video(payload: &mut [u8]) {
    let Some(first) = payload.first() else { return };
    match first & 0x1f {
        // STAP-A: NAL units, each after its length.
        24 => {
            let mut rest = payload.get_mut(1..).unwrap_or_default();
            while let Some((length, behind)) =
                std::mem::take(&mut rest).split_first_chunk_mut::<2>()
            {
                let length = usize::from(u16::from_be_bytes(*length)).min(behind.len());
                let (unit, behind) = behind.split_at_mut(length);
                h264::blank_unit(unit);
                rest = behind;
            }
        }
        28 => {
            let is_set = payload.get(1).is_some_and(|header| matches!(header & 0x1f, 7 | 8));
            let is_start = payload.get(1).is_some_and(|header| header & 0x80 != 0);
            let kept = FU_HEADER + if is_start { FU_START } else { 0 };
            if !is_set {
                payload.iter_mut().skip(kept).for_each(|byte| *byte = 0);
            }
        }
        _ => h264::blank_unit(payload),
    }
}

/// An offer or an answer with its ICE credentials, keys, identity, fingerprints and addresses overwritten.
#[must_use]
pub fn scrub_sdp(text: &str) -> String {
    text.split_inclusive('\n').map(scrub_line).collect()
}

fn scrub_line(line: &str) -> String {
    let end = line.trim_end_matches(['\r', '\n']).len();
    let (line, ending) = line.split_at(end);
    let filled = |text: &str| "x".repeat(text.len());
    let scrubbed = match line.split_once(':') {
        Some((name @ ("a=ice-pwd" | "a=ice-ufrag" | "a=crypto" | "a=identity"), value)) => {
            format!("{name}:{}", filled(value))
        }
        Some((name @ "a=fingerprint", value)) => {
            let (hash, digits) = value.split_once(' ').unwrap_or((value, ""));
            let zero = |digit: char| if digit == ':' { ':' } else { '0' };
            format!("{name}:{hash} {}", digits.chars().map(zero).collect::<String>())
        }
        Some((name @ "a=candidate", value)) => {
            let mut words: Vec<&str> = value.split(' ').collect();
            for place in 0..words.len() {
                let is_related = place > 0 && words.get(place - 1) == Some(&"raddr");
                if (place == 4 || is_related)
                    && let Some(word) = words.get_mut(place)
                {
                    *word = unspecified(word);
                }
            }
            format!("{name}:{}", words.join(" "))
        }
        _ if line.starts_with("o=") || line.starts_with("c=") => {
            let (before, address) = line.rsplit_once(' ').unwrap_or((line, ""));
            format!("{before} {}", unspecified(address))
        }
        _ => line.to_owned(),
    };
    scrubbed + ending
}

/// The unspecified address of the same family.
fn unspecified(address: &str) -> &'static str {
    if address.contains(':') { "::" } else { "0.0.0.0" }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fuzz::OFFER;
    use crate::sdp::read_offer;

    #[test]
    fn a_scrubbed_offer_has_no_secrets_or_addresses_and_still_parses() {
        let candidate =
            "a=candidate:1 1 udp 2130706431 203.0.113.7 50000 typ srflx raddr 10.1.2.3 rport 9\r\n";
        let offer = OFFER.replace("0.0.0.0", "203.0.113.7") + candidate;
        let scrubbed = scrub_sdp(&offer);
        for secret in ["fuzz\r", "0123456789abcdef", "00:01:02", "203.0.113.7", "10.1.2.3"] {
            assert!(offer.contains(secret) && !scrubbed.contains(secret), "{secret}");
        }
        let (before, after) = (read_offer(&offer).expect("valid"), read_offer(&scrubbed));
        let after = after.expect("still an offer");
        let of = |offer: Offer| format!("{:?} {:?}", offer.audio, offer.video);
        assert_eq!(of(before), of(after));
    }

    #[test]
    fn packets_keep_their_headers_and_lengths() {
        let blanker = MediaBlanker::new(&read_offer(OFFER).expect("valid"));
        let packet = |kind: u8, payload: &[u8]| {
            let mut packet = vec![0x80, kind, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3];
            packet.extend_from_slice(payload);
            blanker.blank(&mut packet);
            packet.split_off(12)
        };
        assert_eq!(packet(111, &[9; 5]), [9, 9, 0, 0, 0]);
        assert_eq!(packet(96, &[0x67, 9, 9]), [0x67, 9, 9]);
        assert_eq!(packet(96, &[0x61, 9, 9, 9, 9, 9, 9, 9, 9])[7..], [0, 0]);
        assert_eq!(packet(96, &[28, 0x05, 9, 9]), [28, 0x05, 0, 0]);
        assert_eq!(
            packet(96, &[24, 0, 2, 0x67, 9, 0, 2, 0x06, 9]),
            [24, 0, 2, 0x67, 9, 0, 2, 6, 0]
        );
        assert_eq!(packet(97, &[0, 7, 0x06, 9]), [0, 7, 6, 0]);
        assert_eq!(packet(5, &[9; 2]), [0, 0]);
    }
}
