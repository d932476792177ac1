//! Offers before a publish: the client's, parsed, with a summary for people, and our own.

use napi::bindgen_prelude::Either;
use napi_derive::napi;

use crate::transfer::SdpRefused;

/// An offer that was parsed and validated, or our own: for `openWhip`.
#[napi]
pub struct WhipOffer(pub(crate) headgate_ingest::ParsedOffer);

/// A valid offer.
#[napi(object, object_from_js = false)]
pub struct OfferParsed {
    #[napi(ts_type = "'parsed'")]
    pub outcome: &'static str,
    pub offer: WhipOffer,
}

/// A media section of an offer or an answer.
#[napi(object, object_from_js = false)]
pub struct MediaSummary {
    #[napi(ts_type = "'audio' | 'video' | 'application' | 'other'")]
    pub kind: &'static str,
    /// The port is 0: rejected, or bundle-only.
    pub is_off: bool,
    #[napi(ts_type = "'sendrecv' | 'sendonly' | 'recvonly' | 'inactive'")]
    pub direction: &'static str,
    /// As in `a=rtpmap`, for H.264 with its profile: `H264/90000 42e01f`.
    pub codecs: Vec<String>,
}

/// What people read of an offer: no credential, address or free text.
#[napi(object, object_from_js = false)]
pub struct OfferSummary {
    pub media: Vec<MediaSummary>,
    /// Number of each kind: `2 host udp`.
    pub candidates: Vec<String>,
    /// Sections of our answer; empty for a refused offer.
    pub agreed: Vec<MediaSummary>,
}

/// An offer that was read.
#[napi(object, object_from_js = false)]
pub struct OfferRead {
    /// As far as it could be read.
    pub summary: OfferSummary,
    pub result: Either<OfferParsed, SdpRefused>,
}

impl From<headgate_ingest::OfferSummary> for OfferSummary {
    fn from(of: headgate_ingest::OfferSummary) -> Self {
        let sections = |of: Vec<headgate_ingest::MediaSummary>| {
            of.into_iter().map(MediaSummary::from).collect()
        };
        Self { media: sections(of.media), candidates: of.candidates, agreed: sections(of.agreed) }
    }
}

impl From<headgate_ingest::MediaSummary> for MediaSummary {
    fn from(of: headgate_ingest::MediaSummary) -> Self {
        let headgate_ingest::MediaSummary { kind, is_off, direction, codecs } = of;
        Self { kind, is_off, direction, codecs }
    }
}
