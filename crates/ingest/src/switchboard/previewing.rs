//! Previews: subscribers whose frames go to the gateway as FLV, and that are not counted.

use super::{SessionKey, Switchboard};
use crate::publish::preview_pipe::{PreviewEnd, PreviewWriter};
use crate::publish::record::StreamId;
use crate::session::Session;
use crate::session::effect::AudioForm;
use crate::session::flv_preview::FlvPreview;

impl Switchboard {
    /// Opens a preview of a stream that lives here.
    pub(super) fn open_preview(&mut self, stream: StreamId, mut writer: PreviewWriter) {
        let Some(stream) = self.stream(stream) else {
            // The stream ended while the message was in flight.
            writer.set_end(PreviewEnd::PublishEnded);
            return;
        };
        let key = self.insert(Session::Preview(Box::new(FlvPreview::new(writer, self.now))));
        let subscriber = self.hub.subscribe_uncounted(stream, key, AudioForm::Opus);
        if let Some(entry) = self.sessions.get_mut(key) {
            entry.reads = subscriber;
        }
        self.woken.readers.push(key);
        self.note_readers(stream);
        self.want_keyframe(stream);
    }

    /// Passes waiting frames of a preview to the gateway, until its pipe is full.
    pub(super) fn serve_preview(&mut self, key: SessionKey) {
        let Some(subscriber) = self.sessions.get(key).and_then(|entry| entry.reads) else { return };
        self.run(key, |switchboard, session, _, effects| {
            let Session::Preview(preview) = session else { return };
            while preview.takes_frames() {
                let Some(frame) = switchboard.hub.next_frame(subscriber) else { break };
                if !preview.has_begun() {
                    let tracks = switchboard.hub.tracks_of(subscriber);
                    let (has_video, has_audio) = tracks.unwrap_or((true, true));
                    preview.begin(has_video, has_audio);
                }
                preview.write_frame(&frame);
            }
            preview.hand_over();
            if switchboard.hub.is_finished(subscriber) {
                preview.finish(effects);
            }
        });
        if self.hub.has_frames(subscriber) {
            // Nothing notifies us when the gateway takes batches: check again after a while.
            self.hold_full_preview(key);
        }
    }
}
