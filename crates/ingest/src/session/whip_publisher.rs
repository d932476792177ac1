//! A WHIP publish on its worker: connects the session of `headgate_whip` with frames, metadata and the end of the
//! publish.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use headgate_capture::Kind;
use headgate_media::{Codec, Frame, FrameKind, TimePolicy, Timestamp, Track};
use headgate_rtmp::{encode_metadata_with, read_metadata};
use headgate_whip::{Path, WhipCounters, WhipEnd, WhipEvent, WhipSession, scrub_sdp};

use super::effect::Effect;
use super::frame_rates::Verdict;
use super::publish_session::PublishSession;
use super::rtmp_frames::place;
use crate::publish::capture::Tap;
use crate::publish::end_reason::EndReason;
use crate::publish::record::PublishRecord;

/// How often the diagnostics in the publish's record are updated.
const DIAGNOSTICS_PAUSE: Duration = Duration::from_secs(1);

/// An order of the gateway to a running WHIP session.
pub(crate) enum WhipOrder {
    /// Accept these credentials as well.
    RestartIce { ufrag: String, password: String, theirs: String },
    /// Send the AMF0 values to all subscribers of the stream.
    SendData(Bytes),
    /// Ask the sender to stay below this bitrate in kbit/s; 0 means no limit.
    LimitBitrate(u32),
    /// The session that results from the client's answer to our offer.
    Answer(Box<WhipSession>),
}

impl fmt::Debug for WhipOrder {
    /// Leaves out credentials and metadata.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::RestartIce { .. } => "RestartIce",
            Self::SendData(_) => "SendData",
            Self::LimitBitrate(_) => "LimitBitrate",
            Self::Answer(_) => "Answer",
        })
    }
}

/// One WHIP publish.
///
/// The owner passes datagrams to [`WhipPublisher::handle_datagram`] and calls [`WhipPublisher::settle`] once for the
/// whole batch, which pushes the effects of all of them. At [`WhipPublisher::deadline`] it calls
/// [`WhipPublisher::handle_timeout`], followed by `settle` as well. After [`Effect::EndPublish`] the session continues
/// to send the client its DTLS close_notify until it pushes [`Effect::Close`].
pub(crate) struct WhipPublisher {
    session: Box<WhipSession>,
    /// Our offer is not answered yet: the session only enforces the time limit, and no datagram reaches it.
    awaits_answer: bool,
    /// The latest limit that the gateway has set since the start; `None` if it has set none.
    limit_kbps: Option<u32>,
    publish: PublishSession,
    /// The last word on timestamps; the session has mapped RTP clocks to them.
    policy: TimePolicy,
    tap: Tap,
    diagnostics_at: Instant,
    /// The metadata that the broadcaster sent last; players get it together with the video's size.
    custom_metadata: Option<Bytes>,
    /// Timestamp of the newest frame.
    newest: Timestamp,
    /// Why the publish ended, while close_notify is being sent.
    ended: Option<EndReason>,
    /// Bytes received since the last `settle`.
    unsettled_bytes: usize,
}

impl WhipPublisher {
    /// A session for an answered offer, or for one of ours that awaits its answer; allowed at `now`.
    pub(crate) fn new(
        session: WhipSession,
        awaits_answer: bool,
        record: Arc<PublishRecord>,
        now: Instant,
    ) -> Self {
        // Before the answer there is nothing to capture.
        let tap = if awaits_answer { Tap::default() } else { record.take_capture() };
        Self {
            session: Box::new(session),
            awaits_answer,
            limit_kbps: None,
            publish: PublishSession::new(record, now),
            policy: TimePolicy::default(),
            tap,
            diagnostics_at: now,
            custom_metadata: None,
            newest: Timestamp::ZERO,
            ended: None,
            unsettled_bytes: 0,
        }
    }

    /// When [`WhipPublisher::handle_timeout`] has something to do.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        let session = self.session.poll_timeout();
        match self.ended {
            Some(_) => session,
            None => session.map(|at| at.min(self.diagnostics_at + DIAGNOSTICS_PAUSE)),
        }
    }

    /// Handles a datagram of the client; it is decrypted in place.
    pub(crate) fn handle_datagram(&mut self, source: Path, datagram: &mut [u8], now: Instant) {
        self.unsettled_bytes += datagram.len();
        let opened = self.session.handle_datagram(now, source, datagram);
        if let Some(packet) = opened.and_then(|length| datagram.get(..length)) {
            self.tap.put(Kind::Input, now, || packet.to_vec());
        }
    }

    /// Captures the running publish from now on and requests a keyframe, from which its frames can be compared. Returns
    /// false if it is already being captured.
    pub(crate) fn capture(&mut self, tap: Tap, now: Instant) -> bool {
        let is_free = !self.tap.is_on();
        if is_free {
            self.tap = tap;
            self.want_keyframe(now);
        }
        is_free
    }

    /// Packets lost, requested again and recovered so far.
    pub(crate) fn counters(&self) -> WhipCounters {
        self.session.counters()
    }

    /// Handles input from a capture.
    pub(crate) fn replay(&mut self, kind: Kind, packet: &[u8], now: Instant) {
        match kind {
            Kind::Input => {
                self.unsettled_bytes += packet.len();
                self.session.replay_packet(now, packet);
            }
            Kind::Timeout => self.session.handle_timeout(now),
            Kind::Settled => self.session.replay_time(now),
            Kind::Connected => self.session.replay_connected(now),
            Kind::KeyframeWanted => self.session.want_keyframe(),
            _ => {}
        }
    }

    /// Performs what is due at `now`.
    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        self.tap.put(Kind::Timeout, now, Vec::new);
        self.session.handle_timeout(now);
    }

    /// Pushes the effects of all calls since the previous `settle`.
    pub(crate) fn settle(&mut self, now: Instant, effects: &mut Vec<Effect>) {
        if self.unsettled_bytes > 0 {
            self.publish.handle_input(std::mem::take(&mut self.unsettled_bytes), now);
        }
        self.tap.put(Kind::Settled, self.session.last_input(), Vec::new);
        self.pass_frames(now, effects);
        while let Some(event) = self.session.poll_event() {
            match event {
                WhipEvent::Proven(path) => effects.push(Effect::Route(path)),
                WhipEvent::Forgotten(path) => effects.push(Effect::Unroute(path)),
                WhipEvent::Source(ssrc) => effects.push(Effect::RouteSource(ssrc)),
                WhipEvent::Connected => {
                    self.tap.put(Kind::Connected, now, Vec::new);
                    if let Some(whip) = &self.publish.record().whip {
                        whip.set_connected();
                    }
                }
                WhipEvent::Ended(end) => {
                    let reason = reason_of(end);
                    // A capture does not contain what the client sent by DTLS.
                    self.tap.end(reason.code(), end == WhipEnd::Closed, now);
                    effects.push(match end {
                        // A closed page also sends close_notify; an intended end is a DELETE.
                        WhipEnd::Closed => Effect::LosePublish(reason),
                        WhipEnd::HandshakeFailed(_) | WhipEnd::Lost | WhipEnd::NoMedia => {
                            Effect::EndPublish(reason)
                        }
                    });
                    self.end(reason, now, effects);
                }
            }
        }
        self.send_datagrams(effects);
        if self.ended.is_none() && now >= self.diagnostics_at + DIAGNOSTICS_PAUSE {
            self.diagnostics_at = now;
            let diagnostics = self.session.diagnostics(now);
            if let Some(whip) = &self.publish.record().whip {
                whip.put_diagnostics(diagnostics);
            }
            self.note_irregularities();
        }
        self.finish(effects);
    }

    /// Closes DTLS with the client; the caller ends the publish.
    pub(crate) fn end(&mut self, reason: EndReason, now: Instant, effects: &mut Vec<Effect>) {
        if self.ended.is_none() {
            self.ended = Some(reason);
            self.tap.end(reason.code(), true, now);
            self.session.close(now);
            self.note_irregularities();
            effects.extend(self.session.revoke().map(Effect::Revoke));
            self.send_datagrams(effects);
            self.finish(effects);
        }
    }

    fn note_irregularities(&mut self) {
        self.publish.record().note_irregularities(&self.session.take_irregularities());
        if let Some(counts) = self.policy.take_irregularities() {
            self.publish.record().note_irregularities(&counts);
        }
    }

    /// Carries out an order of the gateway.
    pub(crate) fn handle_order(
        &mut self,
        order: WhipOrder,
        now: Instant,
        effects: &mut Vec<Effect>,
    ) {
        match order {
            WhipOrder::RestartIce { ufrag, password, theirs } => {
                self.session.restart_ice(ufrag, password, theirs);
            }
            WhipOrder::SendData(data) => effects.push(Effect::Publish(self.data_frame(data))),
            WhipOrder::LimitBitrate(kbps) => {
                self.limit_kbps = Some(kbps);
                self.session.limit_bitrate(kbps);
            }
            WhipOrder::Answer(session) => {
                if self.awaits_answer && self.ended.is_none() {
                    self.session = session;
                    if let Some(kbps) = self.limit_kbps {
                        self.session.limit_bitrate(kbps);
                    }
                    self.awaits_answer = false;
                    self.begin_capture(now);
                }
            }
        }
    }

    /// A capture of a publish with our own offer begins with the client's answer, which describes the media.
    fn begin_capture(&mut self, now: Instant) {
        self.tap = self.publish.record().take_capture();
        let texts = self.publish.record().whip.as_ref().and_then(|whip| whip.texts());
        if let Some((client, ours)) = texts {
            self.tap.put(Kind::Offer, now, || scrub_sdp(client).into_bytes());
            self.tap.put(Kind::Answer, now, || scrub_sdp(ours).into_bytes());
        }
    }

    /// A subscriber joins: requests a keyframe for it.
    pub(crate) fn want_keyframe(&mut self, now: Instant) {
        self.tap.put(Kind::KeyframeWanted, now, Vec::new);
        self.session.want_keyframe();
    }

    /// Our ufrags: the local halves of the STUN user names that belong to this session.
    pub(crate) fn ufrags(&self) -> Vec<Vec<u8>> {
        if self.awaits_answer {
            return Vec::new();
        }
        self.session.ufrags().map(|ufrag| ufrag.as_bytes().to_vec()).collect()
    }

    fn pass_frames(&mut self, now: Instant, effects: &mut Vec<Effect>) {
        while let Some(frame) = self.session.poll_frame() {
            if self.ended.is_some() {
                continue;
            }
            let frame = place(&mut self.policy, frame, now);
            match self.publish.handle_frame(&frame, now) {
                Verdict::Pass => {}
                Verdict::PassAfter(configuration) => {
                    self.pass_frame(configuration, now, effects);
                }
                Verdict::Drop => continue,
            }
            self.newest = self.newest.max(frame.timestamp);
            self.pass_frame(frame, now, effects);
        }
    }

    fn pass_frame(&mut self, frame: Frame, now: Instant, effects: &mut Vec<Effect>) {
        if frame.kind == FrameKind::Configuration && frame.track() == Track::Video {
            let metadata = self.metadata(frame.timestamp);
            self.tap.frame(&metadata, now);
            effects.push(Effect::Publish(metadata));
        }
        self.tap.frame(&frame, now);
        effects.push(Effect::Publish(frame));
    }

    fn send_datagrams(&mut self, effects: &mut Vec<Effect>) {
        while let Some((path, datagram)) = self.session.poll_transmit() {
            effects.push(Effect::Send(path, datagram));
        }
    }

    fn finish(&self, effects: &mut Vec<Effect>) {
        if let Some(reason) = self.ended.filter(|_| self.session.is_closed()) {
            effects.push(Effect::Close(reason));
        }
    }

    /// Metadata with the video's size, so that players know it before they decode, and the broadcaster's own entries.
    fn metadata(&self, timestamp: Timestamp) -> Frame {
        /// FLV's codec id of H.264.
        const AVC: f64 = 7.0;
        let (width, height) = self.session.resolution().unwrap_or((0, 0));
        let mut entries = vec![("videocodecid", AVC)];
        if width > 0 {
            entries.push(("width", f64::from(width)));
            entries.push(("height", f64::from(height)));
        }
        let custom = self.custom_metadata.as_deref().unwrap_or_default();
        script(encode_metadata_with(&entries, custom), timestamp)
    }

    /// A data message of the broadcaster. Its `onMetaData` is merged with ours, so that players get both.
    fn data_frame(&mut self, data: Bytes) -> Frame {
        match read_metadata(&data) {
            Some(custom) => {
                self.custom_metadata = Some(custom);
                self.metadata(self.newest)
            }
            None => script(data, self.newest),
        }
    }
}

fn script(data: Bytes, timestamp: Timestamp) -> Frame {
    let (codec, kind) = (Codec::Amf0, FrameKind::Script);
    Frame { codec, kind, timestamp, composition_ms: 0, data }
}

const fn reason_of(end: WhipEnd) -> EndReason {
    match end {
        WhipEnd::HandshakeFailed(fault) => EndReason::HandshakeFailed(fault),
        WhipEnd::Closed => EndReason::Unpublished,
        WhipEnd::Lost => EndReason::Silent,
        WhipEnd::NoMedia => EndReason::NoMedia,
    }
}
