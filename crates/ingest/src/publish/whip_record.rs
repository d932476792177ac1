//! The WHIP part of a publish's record: both halves of its ICE session, whether it is connected, diagnostics.

use std::fmt;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant};

use headgate_whip::sdp::{Fragment, Offer, OfferError, OwnOffer, write_fragment};
use headgate_whip::{Credentials, Diagnostics, Identity, TrackDiagnostics};

use super::lock::lock;
use super::loss_window::LossWindow;

/// Pause between two ICE restarts of one session.
const RESTART_PAUSE: Duration = Duration::from_secs(2);

/// Result of a fragment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WhipPatched {
    /// It added candidates to the running ICE session: there is no answer.
    Added,
    /// It restarted ICE: our half of the new ICE session (`application/trickle-ice-sdpfrag`).
    Restarted(String),
}

/// Why a fragment was rejected; the ICE session stays as it is.
#[derive(Debug, thiserror::Error)]
pub enum WhipPatchError {
    /// The session does not exist or has ended.
    #[error("It has ended or never existed")]
    Unknown,
    /// The text is not a valid fragment.
    #[error("The fragment is not valid")]
    Malformed(OfferError),
    /// A restart must change both user name and password.
    #[error("An ICE restart must change both ice-ufrag and ice-pwd")]
    HalfRestart,
    /// It came too soon after the previous restart.
    #[error("ICE was restarted a moment ago")]
    TooSoon,
    /// No random numbers for new credentials.
    #[error(transparent)]
    Identity(#[from] headgate_whip::IdentityError),
}

/// An ICE restart for the session to apply: it accepts these credentials as well.
#[derive(Debug)]
pub(crate) struct IceRestart {
    pub(crate) ufrag: String,
    pub(crate) password: String,
    /// The client's new user name fragment.
    pub(crate) theirs: String,
    /// The answer for the client.
    pub(crate) answer: String,
}

/// The WHIP part of a publish's record.
#[derive(Debug)]
pub(crate) struct WhipRecord {
    offer: Offer,
    candidates: Vec<SocketAddr>,
    client: Mutex<ClientIce>,
    /// Our own offer, until the client has answered it.
    unanswered: Mutex<Option<Unanswered>>,
    is_connected: AtomicBool,
    reported: Mutex<Reported>,
    /// SDP of the client and of the service, kept if captures are enabled.
    client_text: OnceLock<String>,
    our_text: OnceLock<String>,
}

/// What the session reports once a second.
#[derive(Debug, Default)]
struct Reported {
    diagnostics: Option<Diagnostics>,
    /// Loss of video and audio together.
    loss: LossWindow,
}

/// State of the network path from the sender; `None` for what is unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct NetworkNumbers {
    /// Round trip, ms.
    pub(crate) rtt_ms: Option<f64>,
    /// Percentage of packets lost for good in the last five seconds.
    pub(crate) loss_percent: Option<f64>,
    /// Offset between video and audio, ms; positive if video is early.
    pub(crate) skew_ms: Option<f64>,
}

/// An offer of ours that waits for its answer.
pub(crate) struct Unanswered {
    pub(crate) offer: OwnOffer,
    pub(crate) credentials: Credentials,
    /// Bitrate that the sender is asked to stay below, kbit/s; 0 means no limit.
    pub(crate) max_bitrate_kbps: u32,
}

impl fmt::Debug for Unanswered {
    /// Without the ICE credentials.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Unanswered").field("offer", &self.offer).finish_non_exhaustive()
    }
}

/// Why an answer to our offer was rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AnswerError {
    /// There is no such publish, it has ended, or its offer was already answered.
    #[error("No offer is waiting for an answer")]
    NotAwaited,
    /// It does not match the offer; another answer may follow.
    #[error("The answer does not fit the offer")]
    Refused(OfferError),
}

/// The client's half of the running ICE session.
#[derive(Debug)]
struct ClientIce {
    ufrag: String,
    password: String,
    restarted_at: Option<Instant>,
}

impl WhipRecord {
    /// Keeps the client's offer or answer for captures.
    pub(crate) fn keep_client_text(&self, text: &str) {
        let _ = self.client_text.set(text.to_owned());
    }

    /// Keeps our answer or offer for captures.
    pub(crate) fn keep_our_text(&self, text: &str) {
        let _ = self.our_text.set(text.to_owned());
    }

    /// The client's SDP and ours, if both were kept.
    pub(crate) fn texts(&self) -> Option<(&str, &str)> {
        self.client_text.get().zip(self.our_text.get()).map(|(client, ours)| (&**client, &**ours))
    }

    /// What the client sends.
    pub(crate) const fn offer(&self) -> &Offer {
        &self.offer
    }

    /// A session for the client's `offer`; our answer named `candidates`.
    pub(crate) fn new(offer: Offer, candidates: Vec<SocketAddr>) -> Self {
        let (ufrag, password) = (offer.ufrag.clone(), offer.pwd.clone());
        let client = Mutex::new(ClientIce { ufrag, password, restarted_at: None });
        let (is_connected, reported) = (AtomicBool::new(false), Mutex::default());
        let unanswered = Mutex::default();
        let (client_text, our_text) = (OnceLock::new(), OnceLock::new());
        Self {
            offer,
            candidates,
            client,
            unanswered,
            is_connected,
            reported,
            client_text,
            our_text,
        }
    }

    /// A session for our own offer; see [`WhipRecord::take_answer`].
    pub(crate) fn with_own_offer(
        offer: &OwnOffer,
        credentials: Credentials,
        max_bitrate_kbps: u32,
        candidates: Vec<SocketAddr>,
    ) -> Self {
        let unanswered = Unanswered { offer: offer.clone(), credentials, max_bitrate_kbps };
        let record = Self::new(offer.expected().clone(), candidates);
        Self { unanswered: Mutex::new(Some(unanswered)), ..record }
    }

    /// Accepts the client's answer to our offer, once. Returns what the client will send and what we offered.
    pub(crate) fn take_answer(&self, text: &str) -> Result<(Offer, Unanswered), AnswerError> {
        let mut unanswered = lock(&self.unanswered);
        let awaited = unanswered.take().ok_or(AnswerError::NotAwaited)?;
        match awaited.offer.read_answer(text) {
            Ok(answer) => Ok((answer, awaited)),
            Err(error) => {
                *unanswered = Some(awaited);
                Err(AnswerError::Refused(error))
            }
        }
    }

    /// Applies a trickled fragment (RFC 9725 4.3): its credentials determine whether it adds candidates (`None`) or
    /// restarts ICE.
    pub(crate) fn patch(
        &self,
        fragment: Fragment,
        identity: &Identity,
        now: Instant,
    ) -> Result<Option<IceRestart>, WhipPatchError> {
        let mut client = lock(&self.client);
        match (client.ufrag == fragment.ufrag, client.password == fragment.pwd) {
            // Nothing to do: ICE-lite sends no checks, and the client's own checks reveal its address.
            (true, true) => return Ok(None),
            (false, false) => {}
            (true, false) | (false, true) => return Err(WhipPatchError::HalfRestart),
        }
        if client.restarted_at.is_some_and(|at| now < at + RESTART_PAUSE) {
            return Err(WhipPatchError::TooSoon);
        }
        let Credentials { ufrag, password, .. } = Credentials::generate(identity)?;
        let answer = write_fragment(&self.offer, &ufrag, &password, &self.candidates);
        let theirs = fragment.ufrag.clone();
        *client =
            ClientIce { ufrag: fragment.ufrag, password: fragment.pwd, restarted_at: Some(now) };
        Ok(Some(IceRestart { ufrag, password, theirs, answer }))
    }

    /// Marks ICE and DTLS as complete.
    pub(crate) fn set_connected(&self) {
        self.is_connected.store(true, Ordering::Release);
    }

    /// Whether ICE and DTLS are complete.
    pub(crate) fn is_connected(&self) -> bool {
        self.is_connected.load(Ordering::Acquire)
    }

    /// Sets the newest diagnostics of the session.
    pub(crate) fn put_diagnostics(&self, diagnostics: Diagnostics) {
        let packets = sum_over(&diagnostics, |track| track.packets);
        let lost = sum_over(&diagnostics, |track| track.lost);
        let mut reported = lock(&self.reported);
        let layer = diagnostics.video.as_ref().map_or("", |video| &video.layer);
        reported.loss.note(layer, packets, lost);
        reported.diagnostics = Some(diagnostics);
    }

    /// At most two seconds old; `None` during the first second.
    pub(crate) fn diagnostics(&self) -> Option<Diagnostics> {
        lock(&self.reported).diagnostics.clone()
    }

    /// Packets of both tracks lost for good, as of then.
    pub(super) fn packets_lost(&self) -> u64 {
        lock(&self.reported).diagnostics.as_ref().map_or(0, |of| sum_over(of, |track| track.lost))
    }

    /// State of the network path, equally old.
    pub(crate) fn network(&self) -> NetworkNumbers {
        let reported = lock(&self.reported);
        let diagnostics = reported.diagnostics.as_ref();
        NetworkNumbers {
            rtt_ms: diagnostics.and_then(|of| of.rtt_ms),
            loss_percent: reported.loss.percent(),
            skew_ms: diagnostics.and_then(|of| of.skew_ms),
        }
    }
}

/// Over both tracks.
fn sum_over(diagnostics: &Diagnostics, of: fn(&TrackDiagnostics) -> u64) -> u64 {
    let video = diagnostics.video.as_ref().map(|video| &video.track);
    let audio = diagnostics.audio.as_ref().map(|audio| &audio.track);
    [video, audio].into_iter().flatten().map(of).sum()
}
