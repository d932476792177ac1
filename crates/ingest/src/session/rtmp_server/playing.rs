//! A player: it waits for its stream if that comes from another node, gets the frames it supports, and is notified of
//! the end.

use std::time::{Duration, Instant};

use headgate_media::{Codec, flv};

use super::{Role, RtmpServer};
use crate::publish::mailbox::Denial;
use crate::session::effect::{AudioForm, Effect};
use crate::session::rtmp_frames::{
    audio_form, media_kind, takes_codec, unlisted_video, wire_timestamp,
};
use crate::session::rtmp_pull::START_LIMIT;
use crate::session::shared_frame::SharedFrame;

/// Another node that pulls the stream is pinged when nothing was written for this long: it cannot tell a stream without
/// media from a dead connection, and treats 15 s without input as one (`SILENCE_LIMIT`).
const PING_PAUSE: Duration = Duration::from_secs(5);
/// By this time all headers of a live stream have arrived.
const TRACKS_LIMIT: Duration = Duration::from_secs(2);
/// Description sent to a player whose stream is not live on any node.
const NO_SUCH_STREAM: &str = "No such stream";

impl RtmpServer {
    /// Waits for the player's stream, which is being pulled.
    pub(crate) fn await_stream(&mut self, now: Instant) {
        self.role = Role::AwaitingStream { until: now + START_LIMIT };
    }

    /// Whether it is a player that waits for the first frame.
    pub(crate) const fn awaits_stream(&self) -> bool {
        matches!(self.role, Role::AwaitingStream { .. })
    }

    /// The stream that the player requested does not exist.
    pub(crate) fn refuse_stream(&mut self, now: Instant, effects: &mut Vec<Effect>) {
        effects.push(Effect::StopReading);
        self.deny(Denial::BadName, NO_SUCH_STREAM, now, effects);
    }

    /// The player's stream is available: its frames follow.
    pub(crate) fn accept_play(&mut self, now: Instant) {
        self.session.accept_play();
        self.role = Role::Playing { tracks_due: Some(now + TRACKS_LIMIT), pinged_at: None };
    }

    /// The same for another node, which pulls the stream for its own players.
    pub(crate) fn accept_pull(&mut self, now: Instant) {
        self.session.accept_play();
        self.role = Role::Playing { tracks_due: Some(now + TRACKS_LIMIT), pinged_at: Some(now) };
    }

    /// How the player takes Opus audio, and the video codecs it does not support.
    pub(crate) fn takes(&self) -> (AudioForm, Vec<Codec>) {
        let four_ccs = self.session.four_cc_list();
        (audio_form(four_ccs), unlisted_video(four_ccs))
    }

    /// Whether to check that the player supports some track of its stream; true once. If the stream consists of
    /// unsupported video alone, the owner then calls [`RtmpServer::fail_play`].
    pub(crate) fn poll_track_check(&mut self, now: Instant) -> bool {
        let Role::Playing { tracks_due, .. } = &mut self.role else { return false };
        tracks_due.take_if(|at| now >= *at).is_some()
    }

    /// The stream consists only of video in a codec that the player does not list; without this it would wait forever.
    pub(crate) fn fail_play(&mut self, codec: Codec, now: Instant, effects: &mut Vec<Effect>) {
        let codec = codec.name();
        let description = format!("The stream has only {codec}, which the player does not list");
        self.session.fail_play(&description);
        self.role = Role::Over;
        effects.push(Effect::StopReading);
        self.handle_events(now, effects);
    }

    /// Writes the next frame of the stream that is played, if the player supports its codec.
    pub(crate) fn write_frame(&mut self, frame: &SharedFrame) {
        if !takes_codec(self.session.four_cc_list(), frame.codec) {
            return;
        }
        match frame.framed() {
            Some(framed) => self.session.send_framed(framed),
            None => {
                let (kind, timestamp) = (media_kind(frame), wire_timestamp(frame));
                let header = flv::tag_header(frame);
                self.session.send_media(kind, timestamp, header.as_slice(), &frame.data);
            }
        }
    }

    /// The stream that is played has ended, and every frame is written.
    pub(crate) fn finish_play(&mut self, now: Instant, effects: &mut Vec<Effect>) {
        self.session.end_play();
        self.role = Role::Over;
        effects.push(Effect::StopReading);
        self.handle_events(now, effects);
    }

    /// When another node is pinged. Output that waits is a sign of life already.
    pub(super) fn ping_deadline(&self) -> Option<Instant> {
        let Role::Playing { pinged_at: Some(pinged_at), .. } = &self.role else { return None };
        let is_quiet = self.session.output().is_empty();
        is_quiet.then(|| self.last_progress.max(*pinged_at) + PING_PAUSE)
    }
}
