//! What the gateway may ask of running WHIP publishes while they run: trickled fragments, ICE restarts, data messages,
//! diagnostics. Not their media, which never leaves its worker.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use headgate_whip::sdp::{Offer, OfferError, read_fragment, write_fragment};
use headgate_whip::{Credentials, Diagnostics};
use rustc_hash::FxHashMap;

use crate::Ingest;
use crate::shared::Command;

/// Pause between two ICE restarts of one session.
const RESTART_PAUSE: Duration = Duration::from_secs(2);

/// What the gateway orders of a running WHIP session.
pub(crate) enum WhipOrder {
    /// Answer to these credentials, too.
    RestartIce { ufrag: String, password: String },
    /// Send the values to everyone who reads the stream (AMF0).
    SendData(Bytes),
    /// Tell the sender to stay below so many kbit/s; 0 is no limit.
    LimitBitrate(u32),
}

/// What a fragment led to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WhipPatched {
    /// Candidates of the running ICE session: nothing to say.
    Added,
    /// A new ICE session, and our half of it (`application/trickle-ice-sdpfrag`).
    Restarted(String),
}

/// Why a fragment led to nothing; the ICE session stays as it is.
#[derive(Debug, thiserror::Error)]
pub enum WhipPatchError {
    /// There is no such session (any more).
    #[error("It has ended or never was")]
    Unknown,
    /// It is no fragment.
    #[error("The fragment is not valid")]
    Malformed(OfferError),
    /// A restart changes user name and password.
    #[error("An ICE restart must change both ice-ufrag and ice-pwd")]
    HalfRestart,
    /// One restart follows the other.
    #[error("ICE was restarted a moment ago")]
    TooSoon,
    /// No randomness for new credentials.
    #[error(transparent)]
    Identity(#[from] headgate_whip::IdentityError),
}

/// One running session.
pub(crate) struct Desk {
    pub(crate) worker: usize,
    offer: Offer,
    /// ICE user name and password that the client has now.
    client: (String, String),
    candidates: Vec<SocketAddr>,
    restarted_at: Option<Instant>,
    board: Arc<Board>,
}

/// What the worker writes for others to read.
#[derive(Debug, Default)]
pub(crate) struct Board {
    is_connected: AtomicBool,
    diagnostics: Mutex<Option<Diagnostics>>,
}

impl Board {
    /// Media may come.
    pub(crate) fn set_connected(&self) {
        self.is_connected.store(true, Ordering::Release);
    }

    pub(crate) fn put(&self, diagnostics: Diagnostics) {
        *self.diagnostics.lock().unwrap_or_else(PoisonError::into_inner) = Some(diagnostics);
    }
}

/// The desks of all running sessions, by client id.
#[derive(Default)]
pub(crate) struct WhipDesks(Mutex<FxHashMap<u64, Desk>>);

/// A session's place among them; it is given up when this is dropped.
pub(crate) struct DeskSeat {
    desks: Arc<WhipDesks>,
    client_id: u64,
    pub(crate) board: Arc<Board>,
}

impl Drop for DeskSeat {
    fn drop(&mut self) {
        self.desks.lock().remove(&self.client_id);
    }
}

impl WhipDesks {
    /// Takes a place for a session that is about to open on `worker`.
    pub(crate) fn open(
        self: &Arc<Self>,
        client_id: u64,
        worker: usize,
        offer: &Offer,
        candidates: Vec<SocketAddr>,
    ) -> DeskSeat {
        let board = Arc::new(Board::default());
        let client = (offer.ufrag.clone(), offer.pwd.clone());
        let (offer, restarted_at) = (offer.clone(), None);
        let desk = Desk { worker, offer, client, candidates, restarted_at, board: board.clone() };
        self.lock().insert(client_id, desk);
        DeskSeat { desks: self.clone(), client_id, board }
    }

    /// A panic while the lock was held left nothing half-done: every change is a single insert, remove or store.
    fn lock(&self) -> std::sync::MutexGuard<'_, FxHashMap<u64, Desk>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Judges a fragment without looking at any session.
///
/// # Errors
/// It is none.
pub fn judge_fragment(text: &str) -> Result<(), WhipPatchError> {
    read_fragment(text).map(|_| ()).map_err(WhipPatchError::Malformed)
}

impl Ingest {
    /// Takes a trickled fragment (RFC 9725 4.3): the credentials tell whether it adds candidates or restarts ICE.
    ///
    /// # Errors
    /// See [`WhipPatchError`].
    pub fn patch_whip(&self, client_id: u64, text: &str) -> Result<WhipPatched, WhipPatchError> {
        let fragment = read_fragment(text).map_err(WhipPatchError::Malformed)?;
        let now = Instant::now();
        let mut desks = self.whips.lock();
        let desk = desks.get_mut(&client_id).ok_or(WhipPatchError::Unknown)?;
        let (ufrag, pwd) = &desk.client;
        match (*ufrag == fragment.ufrag, *pwd == fragment.pwd) {
            // ICE-lite asks nobody: the client's checks tell where it is.
            (true, true) => return Ok(WhipPatched::Added),
            (false, false) => {}
            (true, false) | (false, true) => return Err(WhipPatchError::HalfRestart),
        }
        if desk.restarted_at.is_some_and(|at| now < at + RESTART_PAUSE) {
            return Err(WhipPatchError::TooSoon);
        }
        let Credentials { ufrag, password, .. } = Credentials::generate(&self.identity)?;
        desk.restarted_at = Some(now);
        desk.client = (fragment.ufrag, fragment.pwd);
        let answer = write_fragment(&desk.offer, &ufrag, &password, &desk.candidates);
        let order = WhipOrder::RestartIce { ufrag, password };
        self.shared.send(desk.worker, Command::Whip { client_id, order });
        Ok(WhipPatched::Restarted(answer))
    }

    /// Sends a data message (AMF0 values, the handler's name first) to everyone who reads the publish. False: it is not
    /// running.
    #[must_use]
    pub fn send_whip_data(&self, client_id: u64, data: Bytes) -> bool {
        self.order_whip(client_id, WhipOrder::SendData(data))
    }

    /// The sender is told to stay below `kbps` (REMB) from now on; 0 is no limit. False: it is not running.
    #[must_use]
    pub fn limit_whip_bitrate(&self, client_id: u64, kbps: u32) -> bool {
        self.order_whip(client_id, WhipOrder::LimitBitrate(kbps))
    }

    fn order_whip(&self, client_id: u64, order: WhipOrder) -> bool {
        let worker = self.whips.lock().get(&client_id).map(|desk| desk.worker);
        if let Some(worker) = worker {
            self.shared.send(worker, Command::Whip { client_id, order });
        }
        worker.is_some()
    }

    /// Whether a publish's ICE and DTLS are done; false for one that is not running.
    #[must_use]
    pub fn is_whip_connected(&self, client_id: u64) -> bool {
        let desks = self.whips.lock();
        desks.get(&client_id).is_some_and(|desk| desk.board.is_connected.load(Ordering::Acquire))
    }

    /// What there is to say about a running WHIP publish, not older than two seconds; `None` before its first second.
    #[must_use]
    pub fn whip_diagnostics(&self, client_id: u64) -> Option<Diagnostics> {
        let board = self.whips.lock().get(&client_id).map(|desk| desk.board.clone())?;
        board.diagnostics.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
