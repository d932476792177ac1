//! Replays a capture: the sessions that turned its input into frames when it was live do so again, with the timing of
//! the file and without sockets. Pure.

mod comparison;
mod outcome;

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use headgate_capture::{Ended, FileError, FrameDigest, Head, Kind, Reader, Record};
use headgate_media::{Frame, flv};
use headgate_whip::WhipSession;
use headgate_whip::sdp::{Offer, OwnOffer, offers_role, read_offer};

use crate::publish::record::{PublishRecord, StreamId};
use crate::session::effect::Effect;
use crate::session::rtmp_server::RtmpServer;
use crate::session::whip_publisher::WhipPublisher;
pub use comparison::Comparison;
use outcome::Tally;
pub use outcome::{Replayed, ReplayedTrack};

/// Frames that are compared; a capture of an hour has fewer.
const FRAMES_LIMIT: usize = 4 << 20;

/// Why a capture cannot be replayed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReplayError {
    /// The file is not a capture, or damaged at its start.
    #[error(transparent)]
    File(#[from] FileError),
    /// The capture contains no valid offer.
    #[error("the capture has no valid offer")]
    Offer,
    /// The session state at its beginning is invalid.
    #[error("the capture begins mid-publish, and the session state in it is invalid")]
    State,
    /// The system provides no random numbers.
    #[error("the system provides no random numbers")]
    Randomness,
}

enum Session {
    Rtmp(Box<RtmpServer>),
    Whip(Box<WhipPublisher>),
}

/// State of a replay.
struct Replay {
    start: Instant,
    head: Head,
    record: Arc<PublishRecord>,
    /// For WHIP: the client's offer, or its answer to ours.
    client_sdp: String,
    session: Option<Session>,
    effects: Vec<Effect>,
    tally: Tally,
    live: Vec<FrameDigest>,
    live_end: Option<Ended>,
    finished: Option<String>,
}

/// Replays the bytes of a file. `start` is arbitrary: only differences count. `write` gets an FLV file of the frames in
/// pieces.
///
/// # Errors
/// See [`ReplayError`]. A truncated file is replayed up to its end, and [`Replayed::fault`] reports it.
pub fn replay(
    bytes: &[u8],
    start: Instant,
    write: &mut dyn FnMut(&[u8]),
) -> Result<Replayed, ReplayError> {
    let (head, mut reader) = Reader::new(bytes)?;
    let mut replay = Replay {
        start,
        head,
        record: Arc::new(PublishRecord::new(0, StreamId(0), 0, None, start)),
        client_sdp: String::new(),
        session: None,
        effects: Vec::new(),
        tally: Tally::default(),
        live: Vec::new(),
        live_end: None,
        finished: None,
    };
    write(&flv::file_header(true, true));
    let mut fault = None;
    loop {
        match reader.next_record() {
            Ok(Some(record)) => replay.handle_record(&record, write)?,
            Ok(None) => break,
            Err(error) => {
                fault = Some(error.to_string());
                break;
            }
        }
    }
    let Replay { head, record, tally, live, live_end, finished, .. } = replay;
    let is_exact = !head.from_middle || !head.is_whip;
    let comparison = Comparison::new(&live, tally.frames(), head.without_media, is_exact);
    let snapshot_bytes = record.bytes().0;
    Ok(tally.outcome(head, comparison, live_end, finished, fault, snapshot_bytes))
}

impl Replay {
    fn handle_record(
        &mut self,
        record: &Record<'_>,
        write: &mut dyn FnMut(&[u8]),
    ) -> Result<(), ReplayError> {
        let now = self.start + Duration::from_nanos(record.at_ns.min(u64::MAX / 4));
        match record.kind {
            Kind::Frame => {
                let digest = FrameDigest::read(record.body);
                self.live.extend(digest.filter(|_| self.live.len() < FRAMES_LIMIT));
            }
            Kind::Ended => self.handle_end(record.body),
            Kind::Finished => {
                self.finished = Some(String::from_utf8_lossy(record.body).into_owned());
            }
            Kind::Offer => self.take_client_sdp(record.body, now)?,
            Kind::Answer => self.take_our_sdp(record.body, now)?,
            Kind::State => {
                let session = RtmpServer::resume(record.body, self.record.clone(), now);
                let session = session.ok_or(ReplayError::State)?;
                self.session = Some(Session::Rtmp(Box::new(session)));
            }
            kind => self.handle_input(kind, record.body, now, write)?,
        }
        Ok(())
    }

    /// Ends the replay if the live publish was ended from outside.
    fn handle_end(&mut self, body: &[u8]) {
        let Some(ended) = Ended::read(body) else { return };
        if ended.is_ordered {
            self.tally.end(&ended.reason);
        }
        self.live_end = Some(ended);
    }

    fn take_client_sdp(&mut self, sdp: &[u8], now: Instant) -> Result<(), ReplayError> {
        let text = std::str::from_utf8(sdp).map_err(|_| ReplayError::Offer)?;
        let offer = read_offer(text).map_err(|_| ReplayError::Offer)?;
        self.client_sdp = text.to_owned();
        self.open_whip(&offer, now)
    }

    /// If our SDP was the offer, as with v5, the client's SDP was the answer.
    fn take_our_sdp(&mut self, sdp: &[u8], now: Instant) -> Result<(), ReplayError> {
        if !std::str::from_utf8(sdp).is_ok_and(offers_role) {
            return Ok(());
        }
        let answer = read_offer(&self.client_sdp).map_err(|_| ReplayError::Offer)?;
        let ours = OwnOffer::new(answer.audio.is_some(), answer.video.is_some());
        let answer = ours.and_then(|ours| ours.read_answer(&self.client_sdp).ok());
        self.open_whip(&answer.ok_or(ReplayError::Offer)?, now)
    }

    fn open_whip(&mut self, offer: &Offer, now: Instant) -> Result<(), ReplayError> {
        let session = WhipSession::replay(offer, now).map_err(|_| ReplayError::Randomness)?;
        let publisher = WhipPublisher::new(session, false, self.record.clone(), now);
        self.session = Some(Session::Whip(Box::new(publisher)));
        Ok(())
    }

    fn handle_input(
        &mut self,
        kind: Kind,
        body: &[u8],
        now: Instant,
        write: &mut dyn FnMut(&[u8]),
    ) -> Result<(), ReplayError> {
        if self.session.is_none() {
            if self.head.is_whip {
                return Err(ReplayError::Offer);
            }
            let nobody = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
            let server = RtmpServer::new(nobody, 0, false, now);
            self.session = Some(Session::Rtmp(Box::new(server)));
        }
        if self.tally.is_over() {
            return Ok(());
        }
        let record = self.record.clone();
        match &mut self.session {
            Some(Session::Rtmp(server)) => {
                play_rtmp(server, kind, body, record, now, &mut self.effects);
            }
            Some(Session::Whip(whip)) => {
                whip.replay(kind, body, now);
                if kind == Kind::Settled {
                    whip.settle(now, &mut self.effects);
                    self.tally.set_requests(whip.counters());
                }
            }
            None => {}
        }
        for effect in std::mem::take(&mut self.effects) {
            match effect {
                Effect::Publish(frame) => self.publish(&frame, write),
                Effect::EndPublish(reason)
                | Effect::LosePublish(reason)
                | Effect::Close(reason) => self.tally.end(reason.code()),
                _ => {}
            }
        }
        Ok(())
    }

    fn publish(&mut self, frame: &Frame, write: &mut dyn FnMut(&[u8])) {
        if self.tally.frames().len() < FRAMES_LIMIT {
            let mut tag = Vec::new();
            flv::write_tag(frame, wire_time(frame), &mut tag);
            self.tally.add(frame, &tag);
            write(&tag);
        }
    }
}

fn play_rtmp(
    server: &mut RtmpServer,
    kind: Kind,
    body: &[u8],
    record: Arc<PublishRecord>,
    now: Instant,
    effects: &mut Vec<Effect>,
) {
    match kind {
        Kind::Input => {
            server.begin_turn();
            server.handle_input(body, now, effects);
        }
        Kind::Timeout => server.handle_timeout(now, effects),
        Kind::Allowed => server.allow(record, now, effects),
        Kind::Closed => server.handle_closed(now, effects),
        _ => {}
    }
    // The output has no receiver: treat it as written.
    let output = server.output_mut();
    let length = output.pending_bytes();
    output.consume(length);
    server.handle_written(now);
}

/// The wire format has 32 bits, which wrap after 49 days.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the low 32 bits are what is meant"
)]
const fn wire_time(frame: &Frame) -> u32 {
    frame.timestamp.as_millis() as u32
}
