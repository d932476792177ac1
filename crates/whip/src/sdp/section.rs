//! One media section: whether it is acceptable, and which of its payload types we use (P4 of the decisions).

use super::error::OfferError;
use super::h264;
use super::lines::Lines;
use super::offered::{AudioSection, Kind, LayerSource, Rtx, VideoSection};

/// Layers used of a simulcast offer; the answer takes these and no others.
const RID_LIMIT: usize = 4;
/// Bytes of a section's or a layer's id; real ones have 1 to 8.
const NAME_LIMIT: usize = 64;
/// RTP over DTLS-SRTP in the spellings of RFC 8829 5.1.2; the answer uses the offer's.
const PROTOCOLS: [&str; 6] = [
    "UDP/TLS/RTP/SAVPF",
    "UDP/TLS/RTP/SAVP",
    "TCP/DTLS/RTP/SAVPF",
    "TCP/DTLS/RTP/SAVP",
    "TCP/TLS/RTP/SAVPF",
    "RTP/SAVPF",
];

pub(super) const TRANSPORT_CC: &str =
    "http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01";
pub(super) const SDES_MID: &str = "urn:ietf:params:rtp-hdrext:sdes:mid";
pub(super) const SDES_RID: &str = "urn:ietf:params:rtp-hdrext:sdes:rtp-stream-id";
pub(super) const SDES_REPAIRED_RID: &str = "urn:ietf:params:rtp-hdrext:sdes:repaired-rtp-stream-id";

/// A section that is acceptable in an offer to us.
pub(super) struct Sending<'a> {
    pub(super) kind: Kind,
    pub(super) mid: &'a str,
    protocol: &'static str,
    formats: Vec<u8>,
    lines: &'a Lines<'a>,
}

impl<'a> Sending<'a> {
    /// Checks everything except the codecs.
    pub(super) fn read(
        session: &Lines<'_>,
        section: &'a Lines<'a>,
    ) -> Result<Sending<'a>, OfferError> {
        let mut words = section.media.split_whitespace();
        let [Some(kind), Some(port), Some(protocol)] = [words.next(), words.next(), words.next()]
        else {
            return Err(OfferError::Malformed);
        };
        let kind = match kind {
            "audio" => Kind::Audio,
            "video" => Kind::Video,
            _ => return Err(OfferError::Sections),
        };
        // Port 0 marks a rejected section, unless the section uses the bundle's port.
        if port == "0" && !section.has("bundle-only") {
            return Err(OfferError::Sections);
        }
        let protocol = PROTOCOLS.into_iter().find(|of| *of == protocol);
        let protocol = protocol.ok_or(OfferError::Transport)?;
        let sends = |lines: &Lines<'_>| lines.has("sendonly") || lines.has("sendrecv");
        let is_silent = |lines: &Lines<'_>| lines.has("recvonly") || lines.has("inactive");
        if is_silent(section) || (is_silent(session) && !sends(section)) {
            return Err(OfferError::Direction);
        }
        let mid = section.attribute("mid").unwrap_or("");
        if section.has("mid") && !is_name(mid) {
            return Err(OfferError::Malformed);
        }
        // There are 96 of them, however often a line names them.
        let mut formats: Vec<u8> = Vec::new();
        for format in words.filter_map(|word| word.parse().ok()).filter(is_usable) {
            if !formats.contains(&format) {
                formats.push(format);
            }
        }
        Ok(Self { kind, mid, protocol, formats, lines: section })
    }

    pub(super) fn to_audio(&self) -> Result<AudioSection, OfferError> {
        let payload_type = self.opus()?;
        let mut parameters = self.lines.parameters(payload_type);
        let offers = |feedback| self.offers(payload_type, feedback);
        Ok(AudioSection {
            mid: self.mid.to_owned(),
            payload_type,
            stereo: parameters.any(|(name, on)| name.eq_ignore_ascii_case("stereo") && on == "1"),
            ssrc: self.ssrcs().0,
            transport_cc_id: self.extension_id(TRANSPORT_CC),
            has_transport_cc: offers("transport-cc"),
            has_nack: offers("nack"),
            protocol: self.protocol,
            mid_id: self.extension_id(SDES_MID),
            has_rsize: self.lines.has("rtcp-rsize"),
        })
    }

    pub(super) fn to_video(&self) -> Result<VideoSection, OfferError> {
        let format = h264::choose(self.lines, &self.formats).ok_or(OfferError::VideoCodec)?;
        let payload_type = format.payload_type;
        let (ssrc, rtx_ssrc) = self.ssrcs();
        let rtx = self.rtx_of(payload_type);
        let rids = self.layers()?;
        let offers = |feedback| self.offers(payload_type, feedback);
        Ok(VideoSection {
            mid: self.mid.to_owned(),
            payload_type,
            packetization_mode: format.packetization_mode,
            profile_level_id: format.profile_level_id,
            parameter_sets: format.parameter_sets,
            ssrc,
            rtx: rtx.map(|payload_type| Rtx { payload_type, ssrc: rtx_ssrc }),
            transport_cc_id: self.extension_id(TRANSPORT_CC),
            has_nack: offers("nack"),
            has_pli: offers("nack pli"),
            has_fir: offers("ccm fir"),
            has_transport_cc: offers("transport-cc"),
            has_remb: offers("goog-remb"),
            sources: if rids.is_empty() { self.sources() } else { Vec::new() },
            rids,
            rid_id: self.extension_id(SDES_RID),
            repaired_rid_id: self.extension_id(SDES_REPAIRED_RID),
            protocol: self.protocol,
            mid_id: self.extension_id(SDES_MID),
            has_rsize: self.lines.has("rtcp-rsize"),
        })
    }

    /// The Opus payload type. Its channel count is always 2 (RFC 7587 7), but some senders write 1 or omit it.
    fn opus(&self) -> Result<u8, OfferError> {
        let is_opus = |format: &u8| self.lines.is_codec(*format, "opus", "48000");
        let is_stereo_at_most = |format: &u8| {
            self.lines.channels(*format).is_none_or(|count| matches!(count, "1" | "2"))
        };
        let mut offered = self.formats.iter().copied().filter(is_opus);
        if let Some(payload_type) = offered.clone().find(is_stereo_at_most) {
            return Ok(payload_type);
        }
        let is_multichannel = |format: &u8| self.lines.is_codec(*format, "multiopus", "48000");
        if offered.next().is_some() || self.formats.iter().any(is_multichannel) {
            return Err(OfferError::AudioChannels);
        }
        Err(OfferError::AudioCodec)
    }

    fn offers(&self, payload_type: u8, feedback: &str) -> bool {
        let mut offered = self.lines.of_format("rtcp-fb", payload_type);
        offered.any(|value| value.eq_ignore_ascii_case(feedback))
    }

    /// The payload type of retransmissions (RFC 4588 8.6).
    fn rtx_of(&self, payload_type: u8) -> Option<u8> {
        self.formats.iter().copied().find(|format| {
            let mut parameters = self.lines.parameters(*format);
            self.lines.is_codec(*format, "rtx", "90000")
                && parameters.any(|(name, of)| name == "apt" && of.parse() == Ok(payload_type))
        })
    }

    /// The SSRCs of the media and of its retransmissions (RFC 5576 4.2, RFC 4588 8.6).
    fn ssrcs(&self) -> (Option<u32>, Option<u32>) {
        for group in self.lines.attributes("ssrc-group") {
            let mut words = group.split_whitespace();
            if words.next() == Some("FID") {
                let mut ssrcs = words.map(|word| word.parse().ok());
                return (ssrcs.next().flatten(), ssrcs.next().flatten());
            }
        }
        let first = self.lines.attribute("ssrc").and_then(|value| value.split_whitespace().next());
        (first.and_then(|ssrc| ssrc.parse().ok()), None)
    }

    /// The SSRCs of `a=ssrc-group:SIM 1 2 3` with those of their retransmissions, in the offer's order; empty without
    /// such a group. Further layers than the limit are ignored: their packets belong to no source.
    fn sources(&self) -> Vec<LayerSource> {
        let of = |semantics: &'static str| {
            self.lines.attributes("ssrc-group").filter_map(move |group| {
                let mut words = group.split_whitespace();
                let is_named = words.next().is_some_and(|word| word == semantics);
                is_named.then(|| words.filter_map(|word| word.parse().ok()).collect::<Vec<u32>>())
            })
        };
        let mut sources: Vec<LayerSource> = Vec::new();
        for ssrc in of("SIM").next().unwrap_or_default() {
            if sources.len() < RID_LIMIT && sources.iter().all(|source| source.ssrc != ssrc) {
                let rtx_ssrc = of("FID").find_map(|pair| match pair[..] {
                    [of, rtx, ..] if of == ssrc => Some(rtx),
                    _ => None,
                });
                sources.push(LayerSource { ssrc, rtx_ssrc });
            }
        }
        if sources.len() > 1 { sources } else { Vec::new() }
    }

    /// `a=rid:h send …` (RFC 8851), in the offer's order.
    fn rids(&self) -> Result<Vec<String>, OfferError> {
        let mut rids = Vec::new();
        for value in self.lines.attributes("rid") {
            let mut words = value.split_whitespace();
            let name = words.next().unwrap_or("");
            if words.next() != Some("send") {
                continue;
            }
            if !is_name(name) {
                return Err(OfferError::Malformed);
            }
            rids.push(name.to_owned());
        }
        Ok(rids)
    }

    /// The layers of `a=simulcast:send h;m,n;~l` (RFC 8853 5.1), the first of each set of alternatives. Empty when at
    /// most one layer is sent, or when packets do not carry the id that tells the layers apart.
    fn layers(&self) -> Result<Vec<String>, OfferError> {
        let rids = self.rids()?;
        let value = self.lines.attribute("simulcast").unwrap_or("");
        let sent = value.split_whitespace().skip_while(|word| *word != "send").nth(1).unwrap_or("");
        let first =
            |layer: &str| layer.split(',').next().unwrap_or("").trim_start_matches('~').to_owned();
        let mut layers: Vec<String> = Vec::new();
        for layer in sent.split(';').map(first) {
            let is_new = rids.contains(&layer) && !layers.contains(&layer);
            if is_new && layers.len() < RID_LIMIT {
                layers.push(layer);
            }
        }
        let is_marked = layers.len() > 1 && self.extension_id(SDES_RID).is_some();
        Ok(if is_marked { layers } else { Vec::new() })
    }

    /// `a=extmap:3[/direction] uri` (RFC 8285 5): its id, in the one- or two-byte form.
    fn extension_id(&self, uri: &str) -> Option<u8> {
        self.lines.attributes("extmap").find_map(|value| {
            let mut words = value.split_whitespace();
            let (id, of) = (words.next()?, words.next()?);
            let (id, direction) = id.split_once('/').unwrap_or((id, "sendrecv"));
            let id = id.parse().ok()?;
            let is_sent = matches!(direction, "sendrecv" | "sendonly");
            (of == uri && is_sent && !matches!(id, 0 | 15)).then_some(id)
        })
    }
}

/// 64 to 95 could be mistaken for RTCP (RFC 5761 4); payload types end at 127.
const fn is_usable(format: &u8) -> bool {
    matches!(format, 0..=63 | 96..=127)
}

/// It is written into a line of the answer: graphic ASCII only.
fn is_name(text: &str) -> bool {
    (1..=NAME_LIMIT).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic())
}
