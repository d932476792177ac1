//! A player: it waits for its stream if that comes from another node, gets the frames that it takes, and hears of the end.

use std::time::{Duration, Instant};

use headgate_media::Codec;

use super::{Role, RtmpServer};
use crate::publish::mailbox::Denial;
use crate::session::effect::{AudioForm, Effect};
use crate::session::frame_writer::write_to_player;
use crate::session::rtmp_frames::{audio_form, unlisted_video};
use crate::session::rtmp_pull::START_LIMIT;
use crate::session::shared_frame::SharedFrame;

/// A live stream's headers are all there after this.
const TRACKS_LIMIT: Duration = Duration::from_secs(2);
/// What a player is told of a name that is live nowhere.
const NO_SUCH_STREAM: &str = "No such stream";

impl RtmpServer {
    /// The player's stream is on its way.
    pub(crate) fn await_stream(&mut self, now: Instant) {
        self.role = Role::AwaitingStream { until: now + START_LIMIT };
    }

    /// Whether it is a player that waits for the first frame.
    pub(crate) const fn awaits_stream(&self) -> bool {
        matches!(self.role, Role::AwaitingStream { .. })
    }

    /// There is no stream of the name that the player asked for.
    pub(crate) fn refuse_stream(&mut self, now: Instant, effects: &mut Vec<Effect>) {
        effects.push(Effect::StopReading);
        self.deny(Denial::BadName, NO_SUCH_STREAM, now, effects);
    }

    /// The player's stream is there: its frames follow.
    pub(crate) fn accept_play(&mut self, now: Instant) {
        self.session.accept_play();
        self.role = Role::Playing { tracks_due: Some(now + TRACKS_LIMIT) };
    }

    /// In which form the player takes Opus audio, and the codecs that it does not take.
    pub(crate) fn takes(&self) -> (AudioForm, Vec<Codec>) {
        let four_ccs = self.session.four_cc_list();
        (audio_form(four_ccs), unlisted_video(four_ccs))
    }

    /// Whether the check that some track is for this player is due: the owner then says which video codec the stream
    /// has if it has nothing else and the player does not list it.
    pub(crate) fn poll_track_check(&mut self, now: Instant) -> bool {
        let Role::Playing { tracks_due } = &mut self.role else { return false };
        tracks_due.take_if(|at| now >= *at).is_some()
    }

    /// The stream has nothing but video of a codec that the player does not list: it would wait for ever.
    pub(crate) fn fail_play(&mut self, codec: Codec, now: Instant, effects: &mut Vec<Effect>) {
        let codec = codec.name();
        let description = format!("The stream is {codec} alone, which the player does not list");
        self.session.fail_play(&description);
        self.role = Role::Over;
        effects.push(Effect::StopReading);
        self.handle_events(now, effects);
    }

    /// The next frame of the stream that is played.
    pub(crate) fn write_frame(&mut self, frame: &SharedFrame) {
        write_to_player(&mut self.session, frame);
    }

    /// The stream that is played has ended and every frame is written.
    pub(crate) fn finish_play(&mut self, now: Instant, effects: &mut Vec<Effect>) {
        self.session.end_play();
        self.role = Role::Over;
        effects.push(Effect::StopReading);
        self.handle_events(now, effects);
    }
}
