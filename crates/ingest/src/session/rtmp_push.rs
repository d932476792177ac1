//! Pushes one stream to one upstream: requests the address, connects, sends, and retries. `headgate_rtmp` implements
//! the protocol, the reactor the socket.

mod connecting;
mod failing;
mod failure;
mod holding;
mod ordering;
mod talking;
mod testing;
mod upstream_test;

use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use headgate_media::Timestamp;
use headgate_rtmp::{ClientSession, ConnectArguments, Output};

use self::failure::Failure;
use self::upstream_test::UpstreamTest;

use super::effect::{AudioForm, Effect};
use super::keep_alive::KeepAlive;
use super::retry::Retry;
use super::silence::Silence;
use super::silence_budget::Made;
use crate::publish::end_reason::EndReason;
use crate::publish::upstream_cause::UpstreamCause;
use crate::publish::upstream_url::UpstreamUrl;
use crate::publish::upstreams::UpstreamRecord;

/// An upstream that accepts no bytes for this long is considered lost.
const STALL_LIMIT: Duration = Duration::from_secs(10);
/// How long the upstream has to read our closing commands.
const CLOSING_LIMIT: Duration = Duration::from_secs(2);

enum State {
    /// The gateway resolves the host.
    Resolving {
        until: Instant,
    },
    Connecting {
        until: Instant,
    },
    Talking {
        session: Box<ClientSession>,
        /// The handshake of TLS is complete, or there is none.
        is_secured: bool,
        ready_since: Option<Instant>,
    },
    Closing {
        session: Box<ClientSession>,
        until: Instant,
    },
    /// Until the next attempt.
    Pausing {
        until: Instant,
    },
    /// Until the gateway resumes it.
    Paused,
}

/// A push of one stream to one upstream.
///
/// The owner calls [`RtmpPush::start`] once, carries out the effects of every call in order, and answers
/// [`Effect::Resolve`] by [`RtmpPush::handle_addresses`] and [`Effect::Connect`] by [`RtmpPush::handle_connected`] or
/// [`RtmpPush::handle_connect_failed`]. Input is handled as for [`super::rtmp_server::RtmpServer`]. While
/// [`RtmpPush::takes_frames`], it passes frames to [`RtmpPush::write_frame`] and calls [`RtmpPush::finish`] after the
/// last one. It calls [`RtmpPush::handle_stream_ended`] when the publisher is gone and
/// [`RtmpPush::handle_stream_closed`] when the drain time is over. The push ends when it pushes [`Effect::Close`].
pub(crate) struct RtmpPush {
    client_id: u64,
    /// The upstream, and its state as the gateway sees it.
    record: Arc<UpstreamRecord>,
    /// What the broadcaster adds to its own upstream's connect command (AMF0).
    connect_info: Bytes,
    /// Whether silence is added while the stream has no audio (R5).
    adds_silence: bool,
    /// Whether the stream has audio that is still being transcoded for the upstream.
    expects_audio: bool,
    was_accepted: bool,
    /// Whether the publisher is still connected.
    is_live: bool,
    /// Whether it has a queue on its stream.
    reads: bool,
    /// Whether frames waited in that queue when the publisher left.
    has_backlog: bool,
    /// Decode time of the newest frame sent to the upstream, over all connections.
    sent: Option<Timestamp>,
    /// Fills the pauses of the stream's audio; new for each connection, `None` if no silence is added.
    silence: Option<Silence>,
    /// What silence was written and not counted yet.
    made: Made,
    /// What the upstream gets while the publisher sends nothing; new for each connection.
    keep_alive: KeepAlive,
    addresses: VecDeque<IpAddr>,
    /// Address of the current connection.
    address: Option<IpAddr>,
    /// What the upstream requested for the next connection (authentication).
    arguments: ConnectArguments,
    /// The upstream's latest redirect, and their number; the next attempt starts at the original URL again.
    redirect: Option<UpstreamUrl>,
    redirects: u8,
    retry: Retry,
    seed: u64,
    draws: u64,
    last_progress: Instant,
    /// Why the latest address could not be connected to.
    address_cause: UpstreamCause,
    /// What it sends in place of a stream; `None` for a stream's push.
    test: Option<Box<UpstreamTest>>,
    state: State,
}

impl RtmpPush {
    /// A push of a live stream; `seed` is random.
    pub(crate) fn new(
        client_id: u64,
        record: Arc<UpstreamRecord>,
        connect_info: Bytes,
        adds_silence: bool,
        seed: u64,
        now: Instant,
    ) -> Self {
        Self {
            client_id,
            record,
            connect_info,
            adds_silence,
            expects_audio: false,
            was_accepted: false,
            is_live: true,
            reads: false,
            has_backlog: false,
            sent: None,
            silence: None,
            made: Made::default(),
            keep_alive: KeepAlive::default(),
            addresses: VecDeque::new(),
            address: None,
            arguments: ConnectArguments::default(),
            redirect: None,
            redirects: 0,
            retry: Retry::default(),
            seed,
            draws: 0,
            last_progress: now,
            address_cause: UpstreamCause::Dns,
            test: None,
            state: State::Pausing { until: now },
        }
    }

    /// Starts to queue the stream's frames, and requests the upstream's address; not while it is paused.
    pub(crate) fn start(&mut self, now: Instant, effects: &mut Vec<Effect>) {
        if self.record.is_paused() {
            self.state = State::Paused;
            return;
        }
        self.read(AudioForm::Undecided, effects);
        self.resolve(now, effects);
    }

    /// The upstream's state as the gateway sees it.
    pub(crate) const fn record(&self) -> &Arc<UpstreamRecord> {
        &self.record
    }

    /// Stops pushing to the upstream; sends the closing commands if it had accepted the stream.
    pub(crate) fn leave(&mut self, now: Instant, effects: &mut Vec<Effect>) {
        if self.takes_frames() {
            self.close(now, effects);
        } else if !matches!(self.state, State::Closing { .. }) {
            effects.push(Effect::Close(EndReason::Unpublished));
        }
    }

    /// The publisher is gone; `has_backlog`: whether frames still wait in this push's queue.
    pub(crate) fn handle_stream_ended(&mut self, has_backlog: bool, effects: &mut Vec<Effect>) {
        (self.is_live, self.has_backlog) = (false, has_backlog);
        if self.is_done() && !self.takes_frames() && !matches!(self.state, State::Closing { .. }) {
            effects.push(Effect::Close(EndReason::Unpublished));
        }
    }

    /// The stream's drain time is over: frames that still wait are dropped.
    pub(crate) fn handle_stream_closed(&mut self, now: Instant, effects: &mut Vec<Effect>) {
        (self.is_live, self.reads, self.has_backlog) = (false, false, false);
        self.leave(now, effects);
    }

    /// Sets whether the stream has audio that is still being transcoded for the upstream: silence waits for it.
    pub(crate) fn expect_audio(&mut self, expects_audio: bool) {
        self.expects_audio = expects_audio;
        if let Some(silence) = &mut self.silence {
            silence.set_audio_expected(expects_audio);
        }
    }

    /// What silence was written since the last call; `None` if none was.
    pub(crate) fn take_made(&mut self) -> Option<Made> {
        self.made.take()
    }

    /// The stream has had audio, which has stopped before its upstream accepted.
    pub(crate) const fn set_audio_stopped(&mut self) {
        if let Some(silence) = &mut self.silence {
            silence.set_audio_stopped();
        }
    }

    /// Whether frames may be written: the upstream accepted the stream.
    pub(crate) const fn takes_frames(&self) -> bool {
        matches!(self.state, State::Talking { ready_since: Some(_), .. })
    }

    /// When [`RtmpPush::handle_timeout`] has something to do.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        [self.state_deadline(), self.test_deadline()].into_iter().flatten().min()
    }

    fn state_deadline(&self) -> Option<Instant> {
        match &self.state {
            State::Resolving { until }
            | State::Connecting { until }
            | State::Closing { until, .. }
            | State::Pausing { until } => Some(*until),
            State::Paused => None,
            State::Talking { session, .. } => {
                let stall =
                    (!session.output().is_empty()).then(|| self.last_progress + STALL_LIMIT);
                let keep_alive = self.keep_alive_deadline();
                [session.poll_timeout(), stall, keep_alive].into_iter().flatten().min()
            }
        }
    }

    /// Performs what is due at `now`.
    pub(crate) fn handle_timeout(&mut self, now: Instant, effects: &mut Vec<Effect>) {
        self.advance_test(now, effects);
        if self.state_deadline().is_none_or(|at| now < at) {
            return;
        }
        match &mut self.state {
            State::Resolving { .. } => {
                let failure =
                    Failure::lost(UpstreamCause::Dns, "the name was not resolved in time");
                self.fail(&failure, now, effects);
            }
            State::Connecting { .. } => {
                self.address_cause = UpstreamCause::TimedOut;
                self.connect_next(now, effects);
            }
            State::Paused => {}
            State::Closing { .. } => effects.push(Effect::Close(EndReason::Unpublished)),
            State::Pausing { .. } => self.resolve(now, effects),
            State::Talking { session, .. } => {
                let is_stalled =
                    !session.output().is_empty() && now >= self.last_progress + STALL_LIMIT;
                let failure = if is_stalled {
                    let words = "the upstream accepts no more bytes";
                    Some(Failure::lost(UpstreamCause::TooSlow, words))
                } else {
                    session.handle_timeout(now).err().map(Failure::from)
                };
                match failure {
                    Some(failure) => self.fail(&failure, now, effects),
                    None => self.write_keep_alive(now),
                }
            }
        }
    }

    /// The socket accepted bytes, or there were none to write.
    pub(crate) const fn handle_written(&mut self, now: Instant) {
        self.last_progress = now;
    }

    /// Bytes to write; `None` without a connection.
    pub(crate) fn output_mut(&mut self) -> Option<&mut Output> {
        match &mut self.state {
            State::Talking { session, .. } | State::Closing { session, .. } => {
                Some(session.output_mut())
            }
            State::Resolving { .. }
            | State::Connecting { .. }
            | State::Pausing { .. }
            | State::Paused => None,
        }
    }

    /// Whether the write side of the socket shuts down once the remaining output is written.
    pub(crate) const fn is_closing(&self) -> bool {
        matches!(self.state, State::Closing { .. })
    }

    /// The URL to connect to: the upstream's own, or that of a redirect.
    fn target(&self) -> &UpstreamUrl {
        self.redirect.as_ref().unwrap_or(&self.record.upstream.url)
    }

    fn read(&mut self, form: AudioForm, effects: &mut Vec<Effect>) {
        if self.test.is_some() {
            // Its frames come from no stream.
            return;
        }
        self.reads = true;
        effects.push(Effect::Read { form, after: self.sent });
    }

    fn stop_reading(&mut self, effects: &mut Vec<Effect>) {
        if std::mem::take(&mut self.reads) {
            effects.push(Effect::StopReading);
        }
    }

    /// Whether the stream has ended and no frames wait for the upstream. Waiting frames have the stream's drain time,
    /// wherever the upstream redirects us meanwhile.
    const fn is_done(&self) -> bool {
        !(self.is_live || self.reads && self.has_backlog)
    }

    /// The stream has ended and all frames are written: sends the closing commands.
    fn close(&mut self, now: Instant, effects: &mut Vec<Effect>) {
        let talking = std::mem::replace(&mut self.state, State::Pausing { until: now });
        if let State::Talking { mut session, .. } = talking {
            session.end();
            self.state = State::Closing { session, until: now + CLOSING_LIMIT };
        }
        self.stop_reading(effects);
    }

    /// 64 bits that are unpredictable without the seed.
    fn random(&mut self) -> u64 {
        self.draws += 1;
        let mut hasher = DefaultHasher::new();
        (self.seed, self.draws).hash(&mut hasher);
        hasher.finish()
    }
}
