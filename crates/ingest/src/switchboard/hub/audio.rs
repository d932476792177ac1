//! The forms of a stream's audio: as its publisher sends it, and AAC transcoded from Opus.

use headgate_media::{Codec, Frame, FrameKind};

use super::{Hub, StreamKey, SubscriberKey};
use crate::session::effect::AudioForm;

impl Hub {
    /// Whether a subscriber, here or behind a relay, takes the stream's audio only as AAC.
    #[must_use]
    pub(in crate::switchboard) fn needs_aac(&self, stream: StreamKey) -> bool {
        let Some(stream) = self.streams.get(stream) else { return false };
        let needs = |key: &SubscriberKey| {
            self.subscribers.get(*key).is_some_and(|of| of.form == AudioForm::Aac)
        };
        stream.subscribers.iter().any(needs)
            || stream.relays.iter().any(|(_, relay)| relay.needs_aac())
    }

    /// Whether the stream has had Opus packets.
    #[must_use]
    pub(in crate::switchboard) fn has_opus_audio(&self, stream: StreamKey) -> bool {
        self.streams.get(stream).is_some_and(|stream| stream.has_opus_audio)
    }

    /// The Opus frames that a new subscriber would get, starting with their configuration.
    pub(in crate::switchboard) fn opus_frames(&self, stream: StreamKey) -> Vec<Frame> {
        self.streams.get(stream).map_or_else(Vec::new, |live| live.join.opus_frames().collect())
    }

    /// Drops the cached AAC, which is no longer transcoded because no subscriber takes it, and what is queued for subscribers
    /// whose form is undecided: it would be transcoded once more for them. Its header is kept.
    pub(in crate::switchboard) fn forget_aac(&mut self, stream: StreamKey) {
        let Some(live) = self.streams.get_mut(stream) else { return };
        live.join.forget_aac();
        for key in &live.subscribers {
            let subscriber = self.subscribers.get_mut(*key);
            if let Some(of) = subscriber.filter(|of| of.form == AudioForm::Undecided) {
                let is_aac =
                    |frame: &Frame| (frame.codec, frame.kind) == (Codec::Aac, FrameKind::Audio);
                of.queue.forget(is_aac);
            }
        }
    }

    /// The publisher's audio is not, or no longer, Opus: subscribers that take Opus get it unchanged, on other workers too.
    pub(in crate::switchboard) fn forget_opus(&mut self, stream: StreamKey) {
        if let Some(live) = self.streams.get_mut(stream) {
            (live.has_opus, live.has_opus_audio) = (false, false);
            live.join.forget_opus();
            for (_, relay) in &live.relays {
                relay.end_opus();
            }
        }
    }

    /// The decoder configuration of the stream's AAC.
    pub(in crate::switchboard) fn audio_configuration(&self, stream: StreamKey) -> Option<&Frame> {
        let configuration = self.streams.get(stream)?.join.audio()?;
        Some(configuration)
    }
}
