//! Pulls a stream from another node for the players of this one: connects, receives, reconnects after a loss.
//! `headgate_rtmp` implements the protocol, the reactor the socket. Players read its stream like any other.

mod receiving;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use headgate_media::Timestamp;
use headgate_rtmp::{ClientConfig, ClientRole, ClientSession, OUR_FOUR_CCS, Output};

use super::effect::Effect;
use super::publish_session::PublishSession;
use super::rtmp_frames::TrackClocks;
use crate::publish::end_reason::EndReason;
use crate::publish::pull_record::{PullEnd, PullSource, PullState};
use crate::publish::record::PublishRecord;

/// How long a source has to send the first frame, and again after a loss; players wait during that time.
pub(crate) const START_LIMIT: Duration = Duration::from_secs(5);
/// How long a pull continues without players, so that players who come back find it running.
const UNREAD_LIMIT: Duration = Duration::from_secs(5);
/// Limit of the TCP connect.
const CONNECT_LIMIT: Duration = Duration::from_secs(2);
/// Pause between attempts after a loss; the first attempt follows immediately.
const RETRY_PAUSE: Duration = Duration::from_millis(500);
/// How long the source has to read the closing commands.
const CLOSING_LIMIT: Duration = Duration::from_secs(2);

enum State {
    /// Waiting for the gateway to name the node that has the stream.
    Locating,
    Connecting {
        until: Instant,
    },
    Talking {
        session: Box<ClientSession>,
        /// Whether the source has accepted the play.
        is_ready: bool,
    },
    Pausing {
        until: Instant,
    },
    /// The pull has ended; the closing commands are being sent.
    Closing {
        session: Box<ClientSession>,
        until: Instant,
    },
    Over,
}

/// A pull of one stream.
///
/// The owner calls [`RtmpPull::start`] once, carries out the effects of every call in order, and answers
/// [`Effect::Connect`] by [`RtmpPull::handle_connected`] or [`RtmpPull::handle_connect_failed`] and [`Effect::Locate`]
/// by [`RtmpPull::handle_source`]. Input is handled as for [`super::rtmp_push::RtmpPush`]. It calls
/// [`RtmpPull::set_unread`] whenever subscribers join or leave. The pull is over once it has pushed [`Effect::Close`].
pub(crate) struct RtmpPull {
    source: PullSource,
    publish: PublishSession,
    clocks: TrackClocks,
    seed: u64,
    /// When the first media is due, initially or after a loss; `None` once it has arrived, or a source after a loss has
    /// turned out to have none.
    media_due: Option<Instant>,
    /// Whether any media has arrived.
    has_media: bool,
    /// Decode timestamp of the newest frame of each track.
    newest: NewestFrames,
    /// The same at the time the connection was lost: frames up to there that the source repeats are dropped.
    repeats: NewestFrames,
    /// Since when its stream has had no subscriber.
    unread_since: Option<Instant>,
    state: State,
}

/// Decode timestamps of the newest frames.
#[derive(Clone, Copy, Default)]
struct NewestFrames {
    video: Option<Timestamp>,
    audio: Option<Timestamp>,
}

impl RtmpPull {
    /// A pull without subscribers; `seed` is random.
    pub(crate) fn new(
        source: PullSource,
        record: Arc<PublishRecord>,
        seed: u64,
        now: Instant,
    ) -> Self {
        Self {
            source,
            publish: PublishSession::new(record, now),
            clocks: TrackClocks::of_node(),
            seed,
            media_due: Some(now + START_LIMIT),
            has_media: false,
            newest: NewestFrames::default(),
            repeats: NewestFrames::default(),
            unread_since: Some(now),
            state: State::Over,
        }
    }

    /// Connects to the source.
    pub(crate) fn start(&mut self, now: Instant, effects: &mut Vec<Effect>) {
        self.connect(now, effects);
    }

    /// The gateway's answer to [`Effect::Locate`]; `None` if no node has the stream any more.
    pub(crate) fn handle_source(
        &mut self,
        source: Option<PullSource>,
        now: Instant,
        effects: &mut Vec<Effect>,
    ) {
        if !matches!(self.state, State::Locating) {
            return;
        }
        // Another publish of that name is another stream, whose clock and codecs may differ.
        match source.filter(|source| source.client_id == self.source.client_id) {
            Some(source) => {
                if let Some(pull) = &self.publish.record().pull {
                    pull.set_source(&source);
                }
                self.source = source;
                self.connect(now, effects);
            }
            None => self.end(PullEnd::SourceEnded, "it is no longer live", now, effects),
        }
    }

    /// The TCP connection is established: RTMP begins.
    pub(crate) fn handle_connected(&mut self, now: Instant) {
        if !matches!(self.state, State::Connecting { .. }) {
            return;
        }
        let url = &self.source.url;
        let config = ClientConfig {
            app: url.app.clone(),
            tc_url: url.tc_url(),
            name: url.name.clone().into_bytes(),
            seed: self.seed.to_ne_bytes(),
            four_cc_list: OUR_FOUR_CCS.map(str::to_owned).to_vec(),
            ..ClientConfig::new(ClientRole::Play)
        };
        // Silence is measured from this point.
        self.publish.handle_input(0, now);
        let session = Box::new(ClientSession::new(config, now));
        self.state = State::Talking { session, is_ready: false };
    }

    /// The connection could not be established; `fault` is the reason, if a specific one is known.
    pub(crate) fn handle_connect_failed(
        &mut self,
        fault: Option<&str>,
        now: Instant,
        effects: &mut Vec<Effect>,
    ) {
        if matches!(self.state, State::Connecting { .. }) {
            self.lose(fault.unwrap_or("cannot connect"), now, effects);
        }
    }

    /// The connection closed or broke; `fault` is why TLS failed.
    pub(crate) fn handle_closed(
        &mut self,
        fault: Option<&str>,
        now: Instant,
        effects: &mut Vec<Effect>,
    ) {
        match &self.state {
            State::Talking { .. } => {
                self.lose(fault.unwrap_or("closed by the source"), now, effects);
            }
            State::Closing { .. } => effects.push(Effect::Close(EndReason::Unpublished)),
            State::Locating | State::Connecting { .. } | State::Pausing { .. } | State::Over => {}
        }
    }

    /// Sets whether the stream has no subscribers. The pull ends if that lasts for [`UNREAD_LIMIT`].
    pub(crate) fn set_unread(&mut self, is_unread: bool, now: Instant) {
        self.unread_since = is_unread.then(|| self.unread_since.unwrap_or(now));
    }

    /// When [`RtmpPull::handle_timeout`] has something to do.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        let of_state = match &self.state {
            State::Closing { until, .. } => return Some(*until),
            State::Over => return None,
            State::Locating => None,
            State::Connecting { until } | State::Pausing { until } => Some(*until),
            State::Talking { session, .. } => {
                let silence = self.media_due.is_none().then(|| self.publish.silence_deadline());
                session.poll_timeout().into_iter().chain(silence).min()
            }
        };
        let unread = self.unread_since.map(|since| since + UNREAD_LIMIT);
        [of_state, unread, self.media_due].into_iter().flatten().min()
    }

    /// Performs what is due at `now`.
    pub(crate) fn handle_timeout(&mut self, now: Instant, effects: &mut Vec<Effect>) {
        let is_due = |at: Option<Instant>| at.is_some_and(|at| now >= at);
        if is_due(self.unread_since.map(|since| since + UNREAD_LIMIT)) {
            self.end(PullEnd::Unread, "", now, effects);
        } else if is_due(self.media_due) {
            self.handle_no_media(now, effects);
        }
        match &mut self.state {
            State::Connecting { until } if now >= *until => {
                self.lose("cannot connect", now, effects);
            }
            State::Pausing { until } if now >= *until => self.locate(effects),
            State::Talking { session, .. } => {
                let error = session.handle_timeout(now).err();
                if let Some(error) = error {
                    self.lose(&error.to_string(), now, effects);
                } else if self.media_due.is_none() && now >= self.publish.silence_deadline() {
                    // Not even pings arrive.
                    self.lose("the source is silent", now, effects);
                }
            }
            State::Closing { until, .. } if now >= *until => {
                effects.push(Effect::Close(EndReason::Unpublished));
            }
            State::Locating
            | State::Connecting { .. }
            | State::Pausing { .. }
            | State::Closing { .. }
            | State::Over => {}
        }
    }

    /// Ends the pull: its stream ends, and a connected source gets the closing commands.
    pub(crate) fn end(
        &mut self,
        end: PullEnd,
        detail: &str,
        now: Instant,
        effects: &mut Vec<Effect>,
    ) {
        if matches!(self.state, State::Closing { .. } | State::Over) {
            return;
        }
        if let Some(pull) = &self.publish.record().pull {
            pull.set_end(end, self.source.url.conceal(detail));
        }
        (self.media_due, self.unread_since) = (None, None);
        effects.push(Effect::EndPublish(EndReason::Unpublished));
        match std::mem::replace(&mut self.state, State::Over) {
            State::Talking { mut session, .. } => {
                session.end();
                self.state = State::Closing { session, until: now + CLOSING_LIMIT };
            }
            State::Locating
            | State::Connecting { .. }
            | State::Pausing { .. }
            | State::Closing { .. }
            | State::Over => effects.push(Effect::Close(EndReason::Unpublished)),
        }
    }

    /// Bytes to write; `None` without a connection.
    pub(crate) fn output_mut(&mut self) -> Option<&mut Output> {
        match &mut self.state {
            State::Talking { session, .. } | State::Closing { session, .. } => {
                Some(session.output_mut())
            }
            State::Locating | State::Connecting { .. } | State::Pausing { .. } | State::Over => {
                None
            }
        }
    }

    /// Whether the write side of the socket shuts down once the remaining output is written.
    pub(crate) const fn is_closing(&self) -> bool {
        matches!(self.state, State::Closing { .. })
    }

    fn connect(&mut self, now: Instant, effects: &mut Vec<Effect>) {
        let PullSource { url, address, .. } = &self.source;
        let tls_host = url.is_tls.then(|| url.host.clone());
        let address = SocketAddr::new(*address, url.port);
        self.state = State::Connecting { until: now + CONNECT_LIMIT };
        effects.push(Effect::Connect { address, tls_host });
    }

    fn locate(&mut self, effects: &mut Vec<Effect>) {
        self.state = State::Locating;
        let record = self.publish.record();
        if let Some(pull) = &record.pull {
            let (client_id, name) = (record.client_id, pull.name.clone());
            effects.push(Effect::Locate { client_id, name });
        }
    }

    /// The connection was lost. A pull that has received media reconnects, at once and then after pauses, until media
    /// is due.
    fn lose(&mut self, detail: &str, now: Instant, effects: &mut Vec<Effect>) {
        effects.push(Effect::Disconnect);
        self.state = State::Pausing { until: now + RETRY_PAUSE };
        if !self.has_media {
            self.end(PullEnd::Lost, detail, now, effects);
            return;
        }
        if self.media_due.is_none() {
            self.media_due = Some(now + START_LIMIT);
            self.repeats = self.newest;
            self.set_state(PullState::Reconnecting);
            self.locate(effects);
        }
    }

    /// No media has arrived in time. After a loss, a play that the source has accepted and still serves is enough: its
    /// stream may have no media at the moment. Checked only now, so that a source that accepts every play and closes is
    /// given up.
    fn handle_no_media(&mut self, now: Instant, effects: &mut Vec<Effect>) {
        if self.has_media && matches!(self.state, State::Talking { is_ready: true, .. }) {
            self.media_due = None;
            // What the source repeats has arrived: if a timestamp goes back from here on, so has the publisher's clock.
            self.repeats = NewestFrames::default();
            self.set_state(PullState::Playing);
        } else {
            self.end(PullEnd::Lost, "no media arrived in time", now, effects);
        }
    }

    fn set_state(&self, state: PullState) {
        if let Some(pull) = &self.publish.record().pull {
            pull.set_state(state);
        }
    }
}
