//! A stream of another node, played from there for the players of this one: connects, receives, tries again after a loss.
//! The protocol is `headgate_rtmp`'s, the socket the reactor's. Not its players: they read its stream like any other.

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

/// A source has so long to send the first frame, and as long again after a loss: players wait meanwhile.
pub(crate) const START_LIMIT: Duration = Duration::from_secs(5);
/// A pull goes on for so long without players: those who come back find it running.
const UNREAD_LIMIT: Duration = Duration::from_secs(5);
/// TCP connect.
const CONNECT_LIMIT: Duration = Duration::from_secs(2);
/// Between two attempts after a loss; the first one is made at once.
const RETRY_PAUSE: Duration = Duration::from_millis(500);
/// What the source gets to read our goodbye.
const CLOSING_LIMIT: Duration = Duration::from_secs(2);

enum State {
    /// The gateway says where the stream is now.
    Locating,
    Connecting {
        until: Instant,
    },
    Talking {
        session: Box<ClientSession>,
    },
    Pausing {
        until: Instant,
    },
    /// The pull is over; the source is told so.
    Closing {
        session: Box<ClientSession>,
        until: Instant,
    },
    Over,
}

/// A pull of one stream.
///
/// The owner calls [`RtmpPull::start`] once, carries out the effects of every call in order, and answers
/// [`Effect::Connect`] by [`RtmpPull::handle_connected`] or [`RtmpPull::handle_connect_failed`] and [`Effect::Locate`] by
/// [`RtmpPull::handle_source`]. Input is handled as for [`super::rtmp_push::RtmpPush`]. [`RtmpPull::set_unread`] comes
/// whenever readers come or go. It is over once it pushed [`Effect::Close`].
pub(crate) struct RtmpPull {
    source: PullSource,
    publish: PublishSession,
    clocks: TrackClocks,
    seed: u64,
    /// Until media comes (again); `None` while it does.
    media_due: Option<Instant>,
    /// There has been media.
    has_media: bool,
    /// Decode time of the newest frame of each track.
    newest: NewestFrames,
    /// The same when the connection was lost: what the source repeats up to there is dropped.
    repeats: NewestFrames,
    /// Since when nobody reads its stream.
    unread_since: Option<Instant>,
    state: State,
}

/// Decode times of the newest frames.
#[derive(Clone, Copy, Default)]
struct NewestFrames {
    video: Option<Timestamp>,
    audio: Option<Timestamp>,
}

impl RtmpPull {
    /// A pull that nobody reads yet; `seed` is random.
    pub(crate) fn new(
        source: PullSource,
        record: Arc<PublishRecord>,
        seed: u64,
        now: Instant,
    ) -> Self {
        Self {
            source,
            publish: PublishSession::new(record, now),
            clocks: TrackClocks::default(),
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

    /// The gateway's answer to [`Effect::Locate`]; `None`: the stream is nowhere any more.
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
            None => self.end(PullEnd::SourceEnded, "it is not live any more", now, effects),
        }
    }

    /// The connection is there: RTMP begins.
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
        // Silence counts from here.
        self.publish.handle_input(0, now);
        self.state = State::Talking { session: Box::new(ClientSession::new(config, now)) };
    }

    /// The connection could not be made; `fault`: why, if it says more than that.
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

    /// The connection closed or broke; `fault`: why TLS failed.
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

    /// Whether anybody reads the stream. A pull that nobody reads for [`UNREAD_LIMIT`] ends.
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
            State::Talking { session } => {
                let silence = self.media_due.is_none().then(|| self.publish.silence_deadline());
                session.poll_timeout().into_iter().chain(silence).min()
            }
        };
        let unread = self.unread_since.map(|since| since + UNREAD_LIMIT);
        [of_state, unread, self.media_due].into_iter().flatten().min()
    }

    /// Time has passed.
    pub(crate) fn handle_timeout(&mut self, now: Instant, effects: &mut Vec<Effect>) {
        let is_due = |at: Option<Instant>| at.is_some_and(|at| now >= at);
        if is_due(self.unread_since.map(|since| since + UNREAD_LIMIT)) {
            self.end(PullEnd::Unread, "", now, effects);
        } else if is_due(self.media_due) {
            self.end(PullEnd::Lost, "no media in time", now, effects);
        }
        match &mut self.state {
            State::Connecting { until } if now >= *until => {
                self.lose("cannot connect", now, effects);
            }
            State::Pausing { until } if now >= *until => self.locate(effects),
            State::Talking { session } => {
                let error = session.handle_timeout(now).err();
                if let Some(error) = error {
                    self.lose(&error.to_string(), now, effects);
                } else if self.media_due.is_none() && now >= self.publish.silence_deadline() {
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

    /// Ends the pull: its stream ends, and a source that sends is told.
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
            State::Talking { mut session } => {
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
            State::Talking { session } | State::Closing { session, .. } => {
                Some(session.output_mut())
            }
            State::Locating | State::Connecting { .. } | State::Pausing { .. } | State::Over => {
                None
            }
        }
    }

    /// Everything is said: the socket's sending side closes once the output is written.
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
        effects.push(Effect::Locate);
    }

    /// The connection is gone. A pull that has had media is tried again: at once, then after pauses, until media is due.
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

    fn set_state(&self, state: PullState) {
        if let Some(pull) = &self.publish.record().pull {
            pull.set_state(state);
        }
    }
}
