//! A WHIP offer, read and validated (RFC 9725 4.2, 4.4; P4 of the decisions).

use std::fmt;
use std::net::SocketAddr;

use super::OFFER_LIMIT_BYTES;
use super::connection::{Connection, Setup, read_bundle, read_candidates};
use super::error::OfferError;
use super::lines::Parts;
use super::offered::{AudioSection, Kind, VideoSection};
use super::section::Sending;
use super::summary::OfferSummary;

/// A valid offer.
#[derive(Clone)]
pub struct Offer {
    /// ICE user name fragment of the BUNDLE's tagged section, whose transport all sections share.
    pub ufrag: String,
    /// All ICE user name fragments in the offer: checks may carry that of another section.
    pub ufrags: Vec<String>,
    /// ICE password that belongs to `ufrag`.
    pub pwd: String,
    /// SHA-256 fingerprints of which the client's certificate has one; at least one.
    pub fingerprints: Vec<[u8; 32]>,
    /// DTLS role.
    pub setup: Setup,
    /// The audio, if any.
    pub audio: Option<AudioSection>,
    /// The video, if any.
    pub video: Option<VideoSection>,
    /// The client's UDP addresses, as far as they are literal addresses.
    pub candidates: Vec<SocketAddr>,
    /// Sections in the offer's order.
    pub(super) order: Vec<Kind>,
    /// Mids of the BUNDLE group, in its order; empty when the only section is in no group.
    pub(super) bundle: Vec<String>,
}

impl fmt::Debug for Offer {
    /// Omits the ICE credentials.
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

/// Whether we send the ClientHello.
#[must_use]
pub fn is_dtls_client(offer: &Offer) -> bool {
    offer.setup == Setup::Passive
}

/// Reads and validates an offer.
///
/// # Errors
/// Why it is refused.
pub fn read_offer(text: &str) -> Result<Offer, OfferError> {
    examine_offer(text).1
}

/// The same with a summary, also of a refused offer: as far as it could be read.
pub fn examine_offer(text: &str) -> (OfferSummary, Result<Offer, OfferError>) {
    let mut parts = Parts::default();
    if text.len() > OFFER_LIMIT_BYTES {
        return (OfferSummary::default(), Err(OfferError::TooLong));
    }
    let offer = parts.read(text).and_then(|()| validate(&parts));
    (OfferSummary::new(&parts, offer.as_ref().ok()), offer)
}

fn validate(parts: &Parts<'_>) -> Result<Offer, OfferError> {
    let Parts { session, sections: lines } = parts;
    let sending: Result<Vec<_>, _> =
        lines.iter().take(3).map(|section| Sending::read(session, section)).collect();
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
    let bundle = read_bundle(session, &mids)?;
    let tagged = bundle.first().and_then(|tag| mids.iter().position(|mid| mid == tag));
    let tagged = lines.get(tagged.unwrap_or(0)).ok_or(OfferError::Sections)?;
    let Connection { ufrag, pwd, fingerprints, setup } = Connection::read(session, tagged)?;
    let every = std::iter::once(session).chain(lines);
    let candidates = read_candidates(every.flat_map(|lines| lines.attributes("candidate")));
    let ufrags = std::iter::once(session).chain(lines).flat_map(|of| of.attributes("ice-ufrag"));
    let ufrags = ufrags.map(str::to_owned).collect();
    let section_of = |kind| sending.iter().find(|section| section.kind == kind);
    let audio = section_of(Kind::Audio).map(Sending::to_audio).transpose()?;
    let video = section_of(Kind::Video).map(Sending::to_video).transpose()?;
    // A payload type has one meaning within a bundle (RFC 9143 9.1).
    if let (Some(audio), Some(video)) = (&audio, &video)
        && audio.payload_type == video.payload_type
    {
        return Err(OfferError::Malformed);
    }
    let order = sending.iter().map(|section| section.kind).collect();
    Ok(Offer { ufrag, ufrags, pwd, fingerprints, setup, audio, video, candidates, order, bundle })
}
