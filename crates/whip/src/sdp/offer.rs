//! A WHIP offer, read and validated (RFC 9725 4.2, 4.4; P4 of the decisions).

use std::fmt;
use std::net::SocketAddr;

use super::OFFER_LIMIT_BYTES;
use super::connection::{Connection, read_bundle, read_candidates};
use super::error::OfferError;
use super::lines::split;
use super::section::Sending;

/// Which side says hello first in DTLS (RFC 8842).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Setup {
    /// The client does.
    Active,
    /// We do.
    Passive,
    /// We choose: the client does.
    ActPass,
}

/// A valid offer.
#[derive(Clone)]
pub struct Offer {
    /// ICE user name of the BUNDLE's tagged section: all share its transport.
    pub ufrag: String,
    /// ICE password of the same.
    pub pwd: String,
    /// SHA-256 of the client's certificate.
    pub fingerprint: [u8; 32],
    /// DTLS role.
    pub setup: Setup,
    /// The audio, if any.
    pub audio: Option<AudioSection>,
    /// The video, if any.
    pub video: Option<VideoSection>,
    /// The client's UDP addresses, as far as they are literal.
    pub candidates: Vec<SocketAddr>,
    /// Sections in the offer's order.
    pub(super) order: Vec<Kind>,
    /// The BUNDLE group's mids in its order; empty when a lone section is in none.
    pub(super) bundle: Vec<String>,
}

impl fmt::Debug for Offer {
    /// Without the ICE credentials.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Offer")
            .field("setup", &self.setup)
            .field("audio", &self.audio)
            .field("video", &self.video)
            .field("bundle", &self.bundle)
            .finish_non_exhaustive()
    }
}

/// What a section carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Audio,
    Video,
}

/// The offered audio.
#[derive(Clone, Debug)]
pub struct AudioSection {
    /// Section id; empty when a lone section has none.
    pub mid: String,
    /// Opus.
    pub payload_type: u8,
    /// The client takes stereo.
    pub stereo: bool,
    /// The sender, when the offer names it.
    pub ssrc: Option<u32>,
    /// Header extension of the transport-wide sequence number.
    pub transport_cc_id: Option<u8>,
    /// Transport-wide feedback was offered.
    pub has_transport_cc: bool,
    /// The sender answers requests for packets.
    pub has_nack: bool,
    pub(super) protocol: &'static str,
    pub(super) mid_id: Option<u8>,
    pub(super) has_rsize: bool,
}

/// Retransmissions in a stream of their own (RFC 4588).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rtx {
    /// Its payload type.
    pub payload_type: u8,
    /// Its sender, when the offer names it.
    pub ssrc: Option<u32>,
}

/// The offered video.
#[derive(Clone, Debug)]
pub struct VideoSection {
    /// Section id; empty when a lone section has none.
    pub mid: String,
    /// H.264.
    pub payload_type: u8,
    /// 0 or 1.
    pub packetization_mode: u8,
    /// Profile, constraints and level; none when absent or malformed.
    pub profile_level_id: Option<[u8; 3]>,
    /// SPS and PPS that the offer carries.
    pub parameter_sets: Vec<Vec<u8>>,
    /// The sender, when the offer names it.
    pub ssrc: Option<u32>,
    /// Retransmissions of this payload type.
    pub rtx: Option<Rtx>,
    /// Header extension of the transport-wide sequence number.
    pub transport_cc_id: Option<u8>,
    /// The sender answers requests for packets.
    pub has_nack: bool,
    /// The sender answers requests for a keyframe.
    pub has_pli: bool,
    /// The sender knows full intra requests.
    pub has_fir: bool,
    /// Transport-wide feedback was offered.
    pub has_transport_cc: bool,
    /// The sender obeys REMB.
    pub has_remb: bool,
    /// Simulcast layers in the offer's order; empty without simulcast.
    pub rids: Vec<String>,
    /// Header extension of a packet's layer.
    pub rid_id: Option<u8>,
    /// Header extension of the layer that a retransmission is of.
    pub repaired_rid_id: Option<u8>,
    pub(super) protocol: &'static str,
    pub(super) mid_id: Option<u8>,
    pub(super) has_rsize: bool,
}

/// We say hello first.
#[must_use]
pub fn is_dtls_client(offer: &Offer) -> bool {
    offer.setup == Setup::Passive
}

/// Reads and validates an offer.
///
/// # Errors
/// Why it is refused.
pub fn read_offer(text: &str) -> Result<Offer, OfferError> {
    if text.len() > OFFER_LIMIT_BYTES {
        return Err(OfferError::TooLong);
    }
    let (session, lines) = split(text)?;
    let sending: Result<Vec<_>, _> =
        lines.iter().take(3).map(|section| Sending::read(&session, section)).collect();
    let sending = sending?;
    let mids: Vec<&str> = sending.iter().map(|section| section.mid).collect();
    match sending.as_slice() {
        [_] => {}
        [one, other] if one.kind != other.kind => {
            if one.mid == other.mid && !one.mid.is_empty() {
                return Err(OfferError::Malformed);
            }
        }
        _ => return Err(OfferError::Sections),
    }
    let bundle = read_bundle(&session, &mids)?;
    let tagged = bundle.first().and_then(|tag| mids.iter().position(|mid| mid == tag));
    let tagged = lines.get(tagged.unwrap_or(0)).ok_or(OfferError::Sections)?;
    let Connection { ufrag, pwd, fingerprint, setup } = Connection::read(&session, tagged)?;
    let every = std::iter::once(&session).chain(&lines);
    let candidates = read_candidates(every.flat_map(|lines| lines.attributes("candidate")))?;
    let section_of = |kind| sending.iter().find(|section| section.kind == kind);
    let audio = section_of(Kind::Audio).map(Sending::to_audio).transpose()?;
    let video = section_of(Kind::Video).map(Sending::to_video).transpose()?;
    // One payload type means one thing in a bundle (RFC 9143 9.1).
    if let (Some(audio), Some(video)) = (&audio, &video)
        && audio.payload_type == video.payload_type
    {
        return Err(OfferError::Malformed);
    }
    let order = sending.iter().map(|section| section.kind).collect();
    Ok(Offer { ufrag, pwd, fingerprint, setup, audio, video, candidates, order, bundle })
}
