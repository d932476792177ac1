//! Reads and validates the offer, writes the answer, and handles trickled fragments. Lenient in form, strict in
//! substance. Pure.
//!
//! Sources: RFC 8866, RFC 9725; RFC 8829 for what browsers write; `reference/whip.md` §2 for other clients.

mod answer;
mod connection;
mod error;
mod fragment;
mod h264;
mod lines;
mod offer;
mod offered;
mod own_offer;
mod section;
mod summary;

pub use answer::{AnswerSettings, write_answer};
pub use connection::{Setup, offers_role};
pub use error::OfferError;
pub use fragment::{Fragment, read_fragment, write_fragment};
pub use offer::{Offer, examine_offer, is_dtls_client, read_offer};
pub use offered::{AudioSection, LayerSource, Rtx, VideoSection};
pub use own_offer::OwnOffer;
pub use summary::{MediaSummary, OfferSummary};

/// Most bytes of an offer; browsers write 5 to 8 kB.
pub const OFFER_LIMIT_BYTES: usize = 64 * 1024;

#[cfg(test)]
mod golden_tests;
#[cfg(test)]
mod hostile_tests;
#[cfg(test)]
mod own_offer_tests;
#[cfg(test)]
mod summary_tests;
#[cfg(test)]
mod tests;
