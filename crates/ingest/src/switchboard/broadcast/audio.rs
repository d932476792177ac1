//! The forms of a broadcast's audio: as its publisher sends it, AAC transcoded from Opus, and silence.

use headgate_media::{Codec, Frame, FrameKind, Irregularity, aac};

use super::super::sessions::Sessions;
use super::{Broadcast, Stage};
use crate::session::effect::AudioForm;
use crate::session::silence_budget::Made;
use crate::switchboard::keys::SubscriberKey;
use crate::transcoding::Transcoders;

impl Broadcast {
    /// Sets whether it has audio that may have to be transcoded first: its pushes insert no silence meanwhile.
    pub(super) fn expect_audio(&self, expects_audio: bool, sessions: &mut Sessions) {
        self.turn_pushes(sessions, |push, _, _| push.expect_audio(expects_audio));
    }

    /// Passes an Opus frame to the transcoder, which only exists while a subscriber needs AAC.
    pub(super) fn transcode(&mut self, packet: &Frame, sessions: &mut Sessions) {
        let transcoders = &sessions.context.transcoders;
        match (&self.transcoder, self.needs_aac()) {
            (None, false) => {}
            (Some(transcoder), true) => transcoders.push(transcoder, packet.clone()),
            (None, true) => {
                let Some(running) = self.stage.running() else { return };
                let (id, worker) = (self.record.stream, sessions.context.worker);
                let transcoder = transcoders.open(id, worker, running.audio_bitrate);
                // Transcode the cached Opus frames first, so that a new subscriber's audio starts with its video.
                let mut cached: Vec<_> = self.join.opus_frames().collect();
                if !cached.iter().any(|frame| frame.kind == packet.kind) {
                    cached.push(packet.clone());
                }
                for packet in cached {
                    transcoders.push(&transcoder, packet);
                }
                self.transcoder = Some(transcoder);
            }
            (Some(_), false) => {
                self.close_transcoder(transcoders);
                self.record.set_transcoder_error(None);
                self.forget_aac();
                self.expect_audio(true, sessions);
            }
        }
    }

    /// Its transcoder has new output or a new failure.
    pub(in crate::switchboard) fn publish_transcoded(&mut self, sessions: &mut Sessions) {
        let Some(transcoder) = self.transcoder.clone() else { return };
        let failure = transcoder.failure();
        if failure != self.record.transcoder_error() {
            self.record.set_transcoder_error(failure.clone());
            self.expect_audio(failure.is_none(), sessions);
        }
        for frame in transcoder.drain() {
            if self.timeline.pass_made(&frame) {
                self.publish(&frame, &mut sessions.woken);
            }
        }
    }

    /// Stops transcoding.
    pub(in crate::switchboard) fn close_transcoder(&mut self, transcoders: &Transcoders) {
        if let Some(transcoder) = self.transcoder.take() {
            transcoders.close(&transcoder);
        }
    }

    /// The publisher's audio is no longer Opus: all subscribers get it unchanged, on other workers too.
    pub(super) fn leave_opus(&mut self, sessions: &mut Sessions) {
        self.close_transcoder(&sessions.context.transcoders);
        self.forget_opus();
        self.timeline.forget_opus();
        self.expect_audio(false, sessions);
    }

    /// See [`Broadcast::leave_opus`].
    pub(super) fn forget_opus(&mut self) {
        self.join.forget_opus();
        for (_, relay) in &self.relays {
            relay.end_opus();
        }
    }

    /// Drops the cached AAC, which is no longer transcoded because no subscriber takes it, and what is queued for subscribers
    /// whose form is undecided: it would be transcoded once more for them. Its header is kept.
    pub(super) fn forget_aac(&mut self) {
        self.join.forget_aac();
        let is_aac = |frame: &Frame| (frame.codec, frame.kind) == (Codec::Aac, FrameKind::Audio);
        for subscriber in self.subscribers.values_mut() {
            if subscriber.form == AudioForm::Undecided {
                subscriber.queue.forget(is_aac);
            }
        }
    }

    /// Whether a subscriber, here or behind a relay, takes the audio only as AAC.
    fn needs_aac(&self) -> bool {
        self.subscribers.values().any(|of| of.form == AudioForm::Aac)
            || self.relays.iter().any(|(_, relay)| relay.needs_aac())
    }

    /// Notifies the worker where it lives whether a subscriber here needs AAC.
    pub(super) fn note_form(&self) {
        if let Stage::Elsewhere { relay, .. } = &self.stage {
            relay.set_needs_aac(self.needs_aac());
        }
    }

    /// Writes silence up to now, on the tracks that the lost publish had.
    pub(super) fn write_silence(&mut self, sessions: &mut Sessions) {
        let now = sessions.now;
        self.close_transcoder(&sessions.context.transcoders);
        let aac = self.join.audio().and_then(|frame| aac::silence(&frame.data));
        let position = self.timeline.position(now);
        let frames = self.timeline.silence(position, aac.as_ref(), now);
        let limited = self.timeline.take_limited();
        if limited > 0 {
            self.record.note_irregularity(Irregularity::FillerLimited, limited);
        }
        for frame in &frames {
            self.publish(frame, &mut sessions.woken);
        }
        for push in &self.pushes {
            // A push whose stream never had audio makes its own silence.
            let mut made = None;
            sessions.turn_push(*push, |push, now, _| {
                push.write_silence(position, now);
                made = push.take_made();
            });
            let reads = sessions.get(*push).and_then(|entry| entry.reads);
            if let (Some(reads), Some(made)) = (reads, made) {
                self.count_made(reads.subscriber, made);
            }
        }
    }

    /// Counts silence that a push has added for its upstream.
    pub(in crate::switchboard) fn count_made(&self, key: SubscriberKey, made: Made) {
        let Some(subscriber) = self.subscribers.get(key) else { return };
        if let Some(delivery) = &subscriber.delivery {
            delivery.add_out(made.bytes);
        }
        self.record.add_out(made.bytes);
        if made.limited > 0 {
            self.record.note_irregularity(Irregularity::FillerLimited, made.limited);
        }
    }
}
