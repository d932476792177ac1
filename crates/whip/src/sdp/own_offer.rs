//! Our own offer for clients of the deprecated v5 signalling, and the client's answer to it. Pure.

use std::fmt;

use super::answer::{AnswerSettings, Role, write_description};
use super::connection::Setup;
use super::error::OfferError;
use super::offer::{Offer, read_offer};
use super::offered::{AudioSection, Kind, Rtx, VideoSection};

const PROTOCOL: &str = "UDP/TLS/RTP/SAVPF";
const AUDIO_MID: &str = "0";
const VIDEO_MID: &str = "1";
/// Payload types with the numbers browsers use.
const OPUS: u8 = 111;
const H264: u8 = 102;
const H264_RTX: u8 = 103;
/// Constrained Baseline, level 3.1: every browser sends it, and a higher level is not another format (RFC 6184 8.2.2).
const PROFILE: [u8; 3] = [0x42, 0xe0, 0x1f];
/// Ids of the header extensions, with the numbers Chromium uses.
const MID_ID: u8 = 4;
const TRANSPORT_CC_ID: u8 = 3;

/// What we offer to receive: Opus, H.264, or both.
#[derive(Clone)]
pub struct OwnOffer {
    /// The offer the client would have made for the same session; its side of the transport is not known yet.
    expected: Offer,
}

impl OwnOffer {
    /// `None` when the offer would have no section.
    #[must_use]
    pub fn new(audio: bool, video: bool) -> Option<Self> {
        let audio = audio.then(audio_section);
        let video = video.then(video_section);
        let kinds = [(audio.is_some(), Kind::Audio), (video.is_some(), Kind::Video)];
        let order: Vec<Kind> =
            kinds.into_iter().filter(|(is_there, _)| *is_there).map(|(_, kind)| kind).collect();
        if order.is_empty() {
            return None;
        }
        let mid = |kind: &Kind| match kind {
            Kind::Audio => AUDIO_MID.to_owned(),
            Kind::Video => VIDEO_MID.to_owned(),
        };
        let bundle = order.iter().map(mid).collect();
        let expected = Offer {
            ufrag: String::new(),
            ufrags: Vec::new(),
            pwd: String::new(),
            fingerprints: Vec::new(),
            setup: Setup::Active,
            audio,
            video,
            candidates: Vec::new(),
            order,
            bundle,
        };
        Some(Self { expected })
    }

    /// The SDP: CRLF everywhere, `a=setup:actpass`, parameters separated by `"; "`, no `b=` line.
    #[must_use]
    pub fn write(&self, settings: &AnswerSettings<'_>) -> String {
        write_description(Role::Offer, &self.expected, settings)
    }

    /// What the client will send, as far as it is known before its answer: it has no fingerprint, so that no
    /// certificate is accepted.
    #[must_use]
    pub const fn expected(&self) -> &Offer {
        &self.expected
    }

    /// Reads and validates the client's answer: every section accepted, with our payload types (RFC 8829 5.10). Returns
    /// the offer that would have led to the same session.
    ///
    /// # Errors
    /// Why it is refused.
    pub fn read_answer(&self, text: &str) -> Result<Offer, OfferError> {
        let mut answer = read_offer(text)?;
        let ours = &self.expected;
        let is_same_bundle = answer.bundle == ours.bundle
            // A single section needs no group.
            || (answer.bundle.is_empty() && ours.bundle.len() == 1);
        if answer.order != ours.order || !is_same_bundle {
            return Err(OfferError::Sections);
        }
        if answer.setup == Setup::ActPass {
            return Err(OfferError::Setup);
        }
        let transport_cc = |id: Option<u8>| id.filter(|id| *id == TRANSPORT_CC_ID);
        let mid = |id: Option<u8>| id.filter(|id| *id == MID_ID);
        if let Some(audio) = &mut answer.audio {
            check_transport(&audio.mid, AUDIO_MID, audio.protocol)?;
            if audio.payload_type != OPUS {
                return Err(OfferError::AudioCodec);
            }
            audio.transport_cc_id = transport_cc(audio.transport_cc_id);
            audio.mid_id = mid(audio.mid_id);
        }
        if let Some(video) = &mut answer.video {
            check_transport(&video.mid, VIDEO_MID, video.protocol)?;
            if video.payload_type != H264 || video.packetization_mode != 1 {
                return Err(OfferError::VideoCodec);
            }
            // Simulcast was not offered; retransmissions only count with the payload type we offered.
            video.rids.clear();
            (video.rid_id, video.repaired_rid_id) = (None, None);
            video.rtx = video.rtx.filter(|rtx| rtx.payload_type == H264_RTX);
            video.transport_cc_id = transport_cc(video.transport_cc_id);
            video.mid_id = mid(video.mid_id);
        }
        Ok(answer)
    }
}

impl fmt::Debug for OwnOffer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("OwnOffer").field("expected", &self.expected).finish()
    }
}

fn check_transport(mid: &str, ours: &str, protocol: &str) -> Result<(), OfferError> {
    if mid != ours {
        return Err(OfferError::Sections);
    }
    if protocol != PROTOCOL {
        return Err(OfferError::Transport);
    }
    Ok(())
}

fn audio_section() -> AudioSection {
    AudioSection {
        mid: AUDIO_MID.to_owned(),
        payload_type: OPUS,
        stereo: false,
        ssrc: None,
        transport_cc_id: Some(TRANSPORT_CC_ID),
        has_transport_cc: true,
        has_nack: false,
        protocol: PROTOCOL,
        mid_id: Some(MID_ID),
        has_rsize: true,
    }
}

fn video_section() -> VideoSection {
    VideoSection {
        mid: VIDEO_MID.to_owned(),
        payload_type: H264,
        packetization_mode: 1,
        profile_level_id: Some(PROFILE),
        parameter_sets: Vec::new(),
        ssrc: None,
        rtx: Some(Rtx { payload_type: H264_RTX, ssrc: None }),
        transport_cc_id: Some(TRANSPORT_CC_ID),
        has_nack: true,
        has_pli: true,
        has_fir: true,
        has_transport_cc: true,
        has_remb: true,
        rids: Vec::new(),
        sources: Vec::new(),
        rid_id: None,
        repaired_rid_id: None,
        protocol: PROTOCOL,
        mid_id: Some(MID_ID),
        has_rsize: true,
    }
}
