//! One stream on its way to one upstream: asks for the address, dials, sends, and tries again. The protocol is
//! `headgate_rtmp`'s.

mod dialling;

use std::collections::VecDeque;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use headgate_media::Timestamp;
use headgate_rtmp::{ClientEvent, ClientSession, ConnectArguments};

use crate::directory::StreamId;
use crate::hub::SoundForm;
use crate::link::{Link, Received};
use crate::mailbox::{Event, UpstreamChanged};
use crate::pump::{Pumped, PushWriter, pump};
use crate::retry::{GOOD_SENDING, Retry};
use crate::rtmp_frames::sound_form;
use crate::seat::{After, Ready};
use crate::session::EndReason;
use crate::silence::Silence;
use crate::upstream_url::UpstreamUrl;
use crate::upstreams::{UpstreamRecord, UpstreamSource, UpstreamState};
use crate::worker::Worker;

/// An upstream that takes no byte for so long is lost.
const STALL_LIMIT: Duration = Duration::from_secs(10);
/// Redirects that are followed in a row.
const REDIRECTS_LIMIT: u8 = 3;
/// What the upstream gets to read our goodbye.
const CLOSING_LIMIT: Duration = Duration::from_secs(2);

enum State {
    Resolving { push: u64, until: Instant },
    Connecting { link: Link, until: Instant },
    Talking { link: Link, session: Box<ClientSession>, ready_since: Option<Instant> },
    Closing { link: Link, session: Box<ClientSession>, until: Instant },
    Pausing { until: Instant },
}

/// A push of one stream.
pub(crate) struct Push {
    stream: StreamId,
    client_id: u64,
    /// Where to, and what the gateway sees of it.
    record: Arc<UpstreamRecord>,
    /// What the broadcaster adds to its own upstream's connect command (AMF0).
    connect_info: Bytes,
    was_accepted: bool,
    /// Decode time of the newest frame that the upstream was handed, over all connections.
    sent: Option<Timestamp>,
    /// While the stream has no sound of its own; anew for each connection.
    silence: Option<Silence>,
    addresses: VecDeque<IpAddr>,
    /// Where the running connection goes.
    address: Option<IpAddr>,
    /// What the upstream wants to hear on the next connection (authentication).
    arguments: ConnectArguments,
    /// Where the upstream sent us, and how often it did; the next try begins at home again.
    detour: Option<UpstreamUrl>,
    redirects: u8,
    retry: Retry,
    state: State,
}

/// Why a connection to the upstream was given up.
struct Failure {
    detail: String,
    is_refusal: bool,
    next: Next,
}

/// What follows when a connection was given up.
enum Next {
    /// A pause, then another try.
    Pause,
    /// The same address at once, with what the upstream asked for.
    Reconnect(ConnectArguments),
    /// The address that the upstream named.
    Follow(Box<UpstreamUrl>),
}

impl Failure {
    fn lost(detail: impl Into<String>) -> Self {
        Self { detail: detail.into(), is_refusal: false, next: Next::Pause }
    }
}

impl Push {
    pub(crate) fn new(
        stream: StreamId,
        client_id: u64,
        record: Arc<UpstreamRecord>,
        connect_info: Bytes,
        now: Instant,
    ) -> Self {
        Self {
            stream,
            client_id,
            record,
            connect_info,
            was_accepted: false,
            sent: None,
            silence: None,
            addresses: VecDeque::new(),
            address: None,
            arguments: ConnectArguments::default(),
            detour: None,
            redirects: 0,
            retry: Retry::default(),
            state: State::Pausing { until: now },
        }
    }

    /// The stream's frames wait for the upstream from here on, and it is dialled.
    pub(crate) fn start(&mut self, worker: &mut Worker, key: usize) -> After {
        self.read(worker, key, SoundForm::Undecided);
        self.ask_address(worker, key)
    }

    /// Whether this is upstream `id` of publish `client_id`.
    pub(crate) fn is(&self, client_id: u64, id: u64) -> bool {
        self.client_id == client_id && self.record.id == id
    }

    /// The upstream is to have the stream no longer: says goodbye if it listens.
    pub(crate) fn leave(&mut self, worker: &mut Worker, key: usize) -> After {
        if matches!(self.state, State::Talking { ready_since: Some(_), .. }) {
            self.close(worker, key);
        }
        self.wind_up(worker, key, Ready::NO)
    }

    fn read(&self, worker: &mut Worker, key: usize, form: SoundForm) -> bool {
        let reads = worker.read_stream(key, self.stream, form, self.sent);
        if let Some((_, subscriber)) = worker.seats.get(key).and_then(|seat| seat.reads) {
            worker.hub.count(subscriber, self.record.delivery.clone());
        }
        reads
    }

    /// Where we go: home, or where the upstream sent us.
    fn target(&self) -> &UpstreamUrl {
        self.detour.as_ref().unwrap_or(&self.record.upstream.url)
    }

    pub(crate) fn deadline(&self) -> Option<Instant> {
        match &self.state {
            State::Resolving { until, .. }
            | State::Connecting { until, .. }
            | State::Closing { until, .. }
            | State::Pausing { until } => Some(*until),
            State::Talking { link, session, .. } => {
                let stall =
                    (!session.output().is_empty()).then(|| link.last_progress() + STALL_LIMIT);
                [session.poll_timeout(), stall].into_iter().flatten().min()
            }
        }
    }

    pub(crate) fn handle_ready(&mut self, worker: &mut Worker, key: usize, ready: Ready) -> After {
        let is_accepted = matches!(self.state, State::Talking { ready_since: Some(_), .. });
        if matches!(self.state, State::Closing { .. }) || self.is_late(worker, key) && !is_accepted
        {
            return self.wind_up(worker, key, ready);
        }
        let outcome = match &mut self.state {
            State::Connecting { .. } if ready.writable => return self.finish_connect(worker, key),
            State::Talking { .. } => self.talk(worker, key, ready),
            State::Resolving { .. }
            | State::Connecting { .. }
            | State::Closing { .. }
            | State::Pausing { .. } => Ok(()),
        };
        match outcome {
            Ok(()) => After::Stay,
            Err(failure) => self.fail(worker, key, &failure),
        }
    }

    pub(crate) fn handle_timeout(&mut self, worker: &mut Worker, key: usize) -> After {
        let now = worker.now;
        match &mut self.state {
            State::Resolving { until, .. } if now >= *until => {
                self.fail(worker, key, &Failure::lost("the name was not resolved in time"))
            }
            State::Connecting { until, .. } if now >= *until => self.connect_next(worker, key),
            State::Closing { until, .. } if now >= *until => {
                self.go(worker, key, EndReason::Unpublished)
            }
            State::Pausing { until } if now >= *until => self.ask_address(worker, key),
            State::Talking { link, session, .. } => {
                let is_stalled =
                    !session.output().is_empty() && now >= link.last_progress() + STALL_LIMIT;
                let outcome = if is_stalled {
                    Err(Failure::lost("the upstream takes no more bytes"))
                } else {
                    session.handle_timeout(now).map_err(|error| Failure::lost(error.to_string()))
                };
                match outcome.and_then(|()| self.talk(worker, key, Ready::NO)) {
                    Ok(()) => After::Stay,
                    Err(failure) => self.fail(worker, key, &failure),
                }
            }
            State::Resolving { .. }
            | State::Connecting { .. }
            | State::Closing { .. }
            | State::Pausing { .. } => After::Stay,
        }
    }

    /// The stream is over and nothing of it waits for the upstream any more. What does wait has the stream's time to
    /// drain, on whatever detour to the upstream it is.
    fn is_late(&self, worker: &Worker, key: usize) -> bool {
        let reads = worker.seats.get(key).and_then(|seat| seat.reads);
        let waits = reads.is_some_and(|(_, subscriber)| !worker.hub.is_finished(subscriber));
        !worker.is_live(self.stream) && !waits
    }

    /// Nothing more is to be sent: what is left of the connection may close.
    fn wind_up(&mut self, worker: &mut Worker, key: usize, ready: Ready) -> After {
        let State::Closing { link, session, .. } = &mut self.state else {
            return self.go(worker, key, EndReason::Unpublished);
        };
        link.handle_ready(ready);
        if link.flush(session.output_mut(), worker.now).is_err() {
            return self.go(worker, key, EndReason::Unpublished);
        }
        if session.output().is_empty() {
            link.shut_writing();
        }
        let mut scrap = [0; 4096];
        loop {
            let received = if ready.readable { link.read(&mut scrap) } else { Received::Blocked };
            match received {
                Received::Bytes(_) => {}
                Received::Blocked => return After::Stay,
                Received::Closed => return self.go(worker, key, EndReason::Unpublished),
            }
        }
    }

    fn go(&self, worker: &mut Worker, key: usize, reason: EndReason) -> After {
        worker.forget_push(self.stream, key);
        After::Gone(reason)
    }

    fn talk(&mut self, worker: &mut Worker, key: usize, ready: Ready) -> Result<(), Failure> {
        let now = worker.now;
        let State::Talking { link, session, ready_since } = &mut self.state else { return Ok(()) };
        link.handle_ready(ready);
        // What the upstream said before it closed is the better reason.
        let received = if ready.readable { receive(worker, link, session) } else { Ok(()) };
        let mut consent = None;
        while let Some(event) = session.poll_event() {
            match event {
                ClientEvent::Ready => {
                    *ready_since = Some(now);
                    self.was_accepted = true;
                    self.redirects = 0;
                    let form = sound_form(session.four_cc_list());
                    self.silence = worker.shared.pushes_silence.then(Silence::default);
                    self.record.set_sending();
                    worker.shared.mailbox.put(Event::UpstreamChanged(UpstreamChanged {
                        client_id: self.client_id,
                        upstream: self.record.upstream.url.to_string(),
                        sending: true,
                        detail: String::new(),
                    }));
                    consent = Some(form);
                }
                ClientEvent::Refused { code, description, kind } => {
                    let detail = format!("{code}: {description}");
                    let is_refusal = kind.is_fatal();
                    return Err(Failure { detail, is_refusal, next: Next::Pause });
                }
                ClientEvent::Reconnect { arguments } => {
                    let next = Next::Reconnect(arguments);
                    return Err(Failure { next, ..Failure::lost("asked for credentials") });
                }
                ClientEvent::Redirected { url } => {
                    let name = &self.record.upstream.url.name;
                    let Some(url) = UpstreamUrl::parse(&format!("{url}/{name}")) else {
                        return Err(Failure::lost("redirected to what is no RTMP address"));
                    };
                    let next = Next::Follow(Box::new(url));
                    return Err(Failure { next, ..Failure::lost("redirected") });
                }
                ClientEvent::Ended { code, description } if description.is_empty() => {
                    return Err(Failure::lost(code));
                }
                ClientEvent::Ended { code, description } => {
                    return Err(Failure::lost(format!("{code}: {description}")));
                }
                ClientEvent::Close => return Err(Failure::lost("closed")),
                ClientEvent::Media(_) => {}
            }
        }
        received?;
        if let Some(form) = consent {
            if worker.seats.get(key).is_some_and(|seat| seat.reads.is_some()) {
                worker.decide_form(key, form);
            } else if !self.read(worker, key, form) {
                // It said yes to a stream that is over by now.
                self.close(worker, key);
                return Ok(());
            }
        }
        let State::Talking { link, session, ready_since } = &mut self.state else { return Ok(()) };
        if let Some(since) = *ready_since {
            if now >= since + GOOD_SENDING {
                self.retry.reset();
            }
            let (silence, sent) = (&mut self.silence, &mut self.sent);
            if let Some(silence) = silence
                && let Some((_, subscriber)) = worker.seats.get(key).and_then(|seat| seat.reads)
            {
                silence.set_audio_expected(worker.hub.has_opus(subscriber));
            }
            let mut writer = PushWriter { session, silence, sent, record: &self.record, now };
            match pump(worker, key, link, &mut writer, now) {
                Pumped::Waiting => {}
                Pumped::Finished => {
                    self.close(worker, key);
                    return Ok(());
                }
                Pumped::Broken => return Err(Failure::lost("connection lost")),
            }
        }
        link.flush(session.output_mut(), now).map_err(|error| Failure::lost(error.to_string()))
    }

    /// The stream is over and everything is handed out: say goodbye.
    fn close(&mut self, worker: &mut Worker, key: usize) {
        let now = worker.now;
        let talking = std::mem::replace(&mut self.state, State::Pausing { until: now });
        if let State::Talking { link, mut session, .. } = talking {
            session.end();
            self.state = State::Closing { link, session, until: now + CLOSING_LIMIT };
        }
        worker.stop_reading(key);
        worker.woken.readers.push(key);
    }

    fn fail(&mut self, worker: &mut Worker, key: usize, failure: &Failure) -> After {
        // On a detour that the upstream asked for, nothing has been sent yet: what waits goes on waiting.
        let was_accepted = matches!(self.state, State::Talking { ready_since: Some(_), .. });
        if was_accepted || matches!(failure.next, Next::Pause) {
            worker.stop_reading(key);
        }
        if self.is_late(worker, key) {
            return self.go(worker, key, EndReason::Unpublished);
        }
        match (&failure.next, self.address) {
            (Next::Reconnect(arguments), Some(address)) => {
                self.arguments = arguments.clone();
                self.addresses = VecDeque::from([address]);
                return self.connect_next(worker, key);
            }
            (Next::Follow(url), _) if self.redirects < REDIRECTS_LIMIT => {
                self.redirects += 1;
                self.arguments = ConnectArguments::default();
                // The gateway's guard is asked about the new host; our credentials are not for it.
                self.detour = Some((**url).clone());
                return self.ask_address(worker, key);
            }
            (Next::Pause | Next::Reconnect(_) | Next::Follow(_), _) => {}
        }
        worker.stop_reading(key);
        self.arguments = ConnectArguments::default();
        self.detour = None;
        self.redirects = 0;
        let url = &self.record.upstream.url;
        let detail = url.conceal(&failure.detail);
        let state =
            if failure.is_refusal { UpstreamState::Refused } else { UpstreamState::Waiting };
        self.record.set_failed(state, &detail);
        worker.shared.mailbox.put(Event::UpstreamChanged(UpstreamChanged {
            client_id: self.client_id,
            upstream: url.to_string(),
            sending: false,
            detail,
        }));
        let is_own = self.record.upstream.source == UpstreamSource::Own;
        if failure.is_refusal && is_own && !self.was_accepted {
            worker.end_refused(self.stream);
            return self.go(worker, key, EndReason::UpstreamRefused);
        }
        let pause = self.retry.pause(failure.is_refusal, worker.random());
        self.state = State::Pausing { until: worker.now + pause };
        After::Stay
    }
}

fn receive(
    worker: &mut Worker,
    link: &mut Link,
    session: &mut ClientSession,
) -> Result<(), Failure> {
    let mut buffer = std::mem::take(&mut worker.buffer);
    let outcome = loop {
        match link.read(&mut buffer) {
            Received::Bytes(length) => {
                let input = buffer.get(..length).unwrap_or_default();
                if let Err(error) = session.handle_input(input, worker.now) {
                    break Err(Failure::lost(error.to_string()));
                }
            }
            Received::Blocked => break Ok(()),
            Received::Closed => {
                break Err(match link.fault() {
                    Some(fault) => Failure::lost(format!("TLS: {fault}")),
                    None => Failure::lost("closed by the upstream"),
                });
            }
        }
    };
    worker.buffer = buffer;
    outcome
}
