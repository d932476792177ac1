//! WHIP as the gateway uses it: parse or create an offer, open a publish with it, and control the publish while it
//! runs.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use bytes::Bytes;
use headgate_transcode::AacBitrate;
use headgate_whip::sdp::{
    AnswerSettings, Offer, OfferError, OfferSummary, OwnOffer, examine_offer, read_fragment,
    write_answer,
};
use headgate_whip::{Credentials, Diagnostics, WhipSession};

use super::Ingest;
use crate::publish::hold::Hold;
use crate::publish::near::Near;
use crate::publish::record::PublishRecord;
use crate::publish::upstreams::Upstream;
use crate::publish::whip_record::{
    AnswerError, IceRestart, Unanswered, WhipPatchError, WhipPatched, WhipRecord,
};
use crate::session::whip_publisher::{WhipOrder, WhipPublisher};
use crate::switchboard::message::{Message, Opening};
use crate::transcoding::AUDIO_BITRATE;

/// A parsed and validated offer, or one of our own, for [`Ingest::open_whip`].
#[derive(Clone, Debug)]
pub struct ParsedOffer(Offered, Arc<str>);

#[derive(Clone, Debug)]
enum Offered {
    ByClient(Box<Offer>),
    ByUs(Box<OwnOffer>),
}

impl Offered {
    /// What the client sends; for our own offer, as much as is known before the answer.
    fn client_sends(&self) -> &Offer {
        match self {
            Self::ByClient(offer) => offer,
            Self::ByUs(offer) => offer.expected(),
        }
    }
}

/// Creates an offer of our own to receive audio, video or both; `None` if neither is requested.
#[must_use]
pub fn own_offer(audio: bool, video: bool) -> Option<ParsedOffer> {
    OwnOffer::new(audio, video)
        .map(|offer| ParsedOffer(Offered::ByUs(Box::new(offer)), Arc::default()))
}

/// Parses and validates an offer without opening anything; with what a person may read of it, also if it is refused.
pub fn parse_offer(text: &str) -> (OfferSummary, Result<ParsedOffer, OfferError>) {
    let (summary, offer) = examine_offer(text);
    let parsed = |offer| ParsedOffer(Offered::ByClient(Box::new(offer)), Arc::from(text));
    (summary, offer.map(parsed))
}

/// Validates a fragment without applying it to a session.
///
/// # Errors
/// The text is not a valid fragment.
pub fn validate_fragment(text: &str) -> Result<(), WhipPatchError> {
    read_fragment(text).map(|_| ()).map_err(WhipPatchError::Malformed)
}

/// A WHIP publish that the gateway allowed.
#[derive(Clone, Debug)]
pub struct WhipPublish {
    /// Issued by the gateway.
    pub client_id: u64,
    /// Stream name without arguments.
    pub name: Vec<u8>,
    /// The client's offer, or ours.
    pub offer: ParsedOffer,
    /// Upstreams to push it to.
    pub upstreams: Vec<Upstream>,
    /// Whether stereo was requested.
    pub stereo: bool,
    /// Bitrate that a browser starts at, kbit/s.
    pub start_bitrate_kbps: u32,
    /// Upper limit of that bitrate, kbit/s; 0 means no limit.
    pub max_bitrate_kbps: u32,
    /// Bitrate of AAC transcoded from its audio, bit/s, for mono and stereo alike; `None` for the default, which is
    /// halved for mono.
    pub audio_bitrate: Option<u32>,
    /// Encoded AMF0 object that is merged into the connect command to its own upstream; empty if there is none.
    pub connect_info: Vec<u8>,
    /// How its upstreams and players are held.
    pub hold: Hold,
}

/// Why a WHIP publish did not open.
#[derive(Debug, thiserror::Error)]
pub enum WhipError {
    /// No random numbers for its credentials.
    #[error(transparent)]
    Identity(#[from] headgate_whip::IdentityError),
}

impl Ingest {
    /// Opens an allowed WHIP publish and returns our answer, or our own offer. The client's answer to an offer of ours
    /// goes to [`Ingest::answer_whip`] and must come within the ten seconds that ICE and DTLS have. A
    /// [`crate::PublishEnded`] follows in every case, even after an error.
    ///
    /// # Errors
    /// No random numbers for the credentials.
    pub fn open_whip(&self, publish: WhipPublish) -> Result<String, WhipError> {
        let publishes = &self.shared.publishes;
        let near = Near::find(publishes, publish.client_id, &publish.hold);
        // Two publishes of one name live on the same worker.
        let worker = near.record().map_or_else(|| self.next_worker(), |near| near.worker);
        let now = Instant::now();
        let WhipPublish { client_id, name, offer: ParsedOffer(offered, text), upstreams, .. } =
            publish;
        self.prepare_tls(&upstreams);
        let port = self.media_ports.get(worker).copied().unwrap_or_default();
        let candidates: Vec<_> =
            self.public_addresses.iter().map(|address| SocketAddr::new(*address, port)).collect();
        let max_bitrate_kbps = publish.max_bitrate_kbps;
        let credentials = Credentials::generate(&self.identity);
        let record = match (&offered, &credentials) {
            (Offered::ByUs(offer), Ok(credentials)) => WhipRecord::with_own_offer(
                offer,
                credentials.clone(),
                max_bitrate_kbps,
                candidates.clone(),
            ),
            (Offered::ByUs(_) | Offered::ByClient(_), _) => {
                WhipRecord::new(offered.client_sends().clone(), candidates.clone())
            }
        };
        // From here on the guard reports the end, whatever happens.
        let guard = near.open(publishes, client_id, worker, Some(record), now);
        let credentials = credentials?;
        let settings = AnswerSettings {
            ufrag: &credentials.ufrag,
            pwd: &credentials.password,
            fingerprint: self.identity.fingerprint(),
            candidates: &candidates,
            session_id: client_id,
            start_bitrate_kbps: publish.start_bitrate_kbps,
            max_bitrate_kbps,
            stereo: publish.stereo,
            audio_bitrate: None,
        };
        let description = match &offered {
            Offered::ByClient(offer) => write_answer(offer, &settings),
            Offered::ByUs(offer) => offer.write(&settings),
        };
        if self.captures.is_on
            && let Some(whip) = &guard.record().whip
        {
            whip.keep_our_text(&description);
            if matches!(offered, Offered::ByClient(_)) {
                whip.keep_client_text(&text);
            }
            self.begin_armed(guard.record());
        }
        let expected = offered.client_sends();
        let session =
            WhipSession::new(&self.identity, expected, &credentials, max_bitrate_kbps, now);
        let (audio_bitrate, connect_info) = (
            publish.audio_bitrate.map_or(AUDIO_BITRATE, AacBitrate::Total),
            publish.connect_info.into(),
        );
        let awaits_answer = matches!(offered, Offered::ByUs(_));
        let whip = WhipPublisher::new(session, awaits_answer, guard.record().clone(), now);
        let window = publish.hold.window;
        let opening = Opening { guard, upstreams, audio_bitrate, connect_info, window, near };
        self.shared.tell(worker, Message::OpenWhip { whip: Box::new(whip), name, opening });
        Ok(description)
    }

    fn next_worker(&self) -> usize {
        self.next_whip.fetch_add(1, Ordering::Relaxed) % self.media_ports.len().max(1)
    }

    /// Applies the client's answer to our offer; the publish can then connect.
    ///
    /// # Errors
    /// See [`AnswerError`]; after [`AnswerError::Refused`] another answer is still awaited.
    pub fn answer_whip(&self, client_id: u64, text: &str) -> Result<(), AnswerError> {
        let record = self.whip_record(client_id).ok_or(AnswerError::NotAwaited)?;
        let whip = record.whip.as_ref().ok_or(AnswerError::NotAwaited)?;
        let (answer, Unanswered { credentials, max_bitrate_kbps, .. }) = whip.take_answer(text)?;
        if self.captures.is_on {
            whip.keep_client_text(text);
        }
        let now = Instant::now();
        let session =
            WhipSession::new(&self.identity, &answer, &credentials, max_bitrate_kbps, now);
        self.order(&record, WhipOrder::Answer(Box::new(session)));
        Ok(())
    }

    /// Applies a trickled fragment (RFC 9725 4.3): its credentials determine whether it adds candidates or restarts
    /// ICE.
    ///
    /// # Errors
    /// See [`WhipPatchError`].
    pub fn patch_whip(&self, client_id: u64, text: &str) -> Result<WhipPatched, WhipPatchError> {
        let fragment = read_fragment(text).map_err(WhipPatchError::Malformed)?;
        let record = self.shared.publishes.find(client_id).ok_or(WhipPatchError::Unknown)?;
        let whip = record.whip.as_ref().ok_or(WhipPatchError::Unknown)?;
        let Some(restart) = whip.patch(fragment, &self.identity, Instant::now())? else {
            return Ok(WhipPatched::Added);
        };
        let IceRestart { ufrag, password, theirs, answer } = restart;
        self.order(&record, WhipOrder::RestartIce { ufrag, password, theirs });
        Ok(WhipPatched::Restarted(answer))
    }

    /// Sends a data message (AMF0 values, starting with the handler's name) to all subscribers of the publish. Returns
    /// false if it is not running.
    #[must_use]
    pub fn send_whip_data(&self, client_id: u64, data: Bytes) -> bool {
        self.order_whip(client_id, WhipOrder::SendData(data))
    }

    /// Asks the sender to stay below `kbps` (REMB) from this moment; 0 means no limit. Returns false if the publish is
    /// not running.
    #[must_use]
    pub fn limit_whip_bitrate(&self, client_id: u64, kbps: u32) -> bool {
        self.order_whip(client_id, WhipOrder::LimitBitrate(kbps))
    }

    /// Whether ICE and DTLS of a publish are complete; false if it is not running.
    #[must_use]
    pub fn is_whip_connected(&self, client_id: u64) -> bool {
        let record = self.whip_record(client_id);
        record
            .as_deref()
            .and_then(|record| record.whip.as_ref())
            .is_some_and(WhipRecord::is_connected)
    }

    /// Diagnostics of a running WHIP publish, at most two seconds old; `None` during its first second.
    #[must_use]
    pub fn whip_diagnostics(&self, client_id: u64) -> Option<Diagnostics> {
        self.whip_record(client_id)?.whip.as_ref()?.diagnostics()
    }

    fn whip_record(&self, client_id: u64) -> Option<Arc<PublishRecord>> {
        self.shared.publishes.find(client_id).filter(|record| record.whip.is_some())
    }

    fn order_whip(&self, client_id: u64, order: WhipOrder) -> bool {
        let record = self.whip_record(client_id);
        if let Some(record) = &record {
            self.order(record, order);
        }
        record.is_some()
    }

    fn order(&self, record: &PublishRecord, order: WhipOrder) {
        self.shared.tell(record.worker, Message::Order { stream: record.stream, order });
    }
}
