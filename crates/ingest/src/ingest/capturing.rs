//! Captures of a running publish, or of one from its first byte.

use std::io;
use std::sync::Arc;
use std::time::Instant;

use headgate_capture::{Head, Kind};
use headgate_whip::{MediaBlanker, scrub_sdp};

use super::Ingest;
use super::armed::Armed;
use crate::publish::capture::{CaptureSettings, CaptureState, CaptureStatus, Tap, capture_pipe};
use crate::publish::record::PublishRecord;
use crate::reactor::capture_file::{Cleaning, start_capture};
use crate::switchboard::message::Message;

/// Why a capture did not begin.
#[derive(Debug, thiserror::Error)]
pub enum CaptureError {
    /// No such publish runs here.
    #[error("the publish is not running on this node")]
    NotRunning,
    /// The client has not answered our offer (v5) yet.
    #[error("the offer of the publish is not answered yet")]
    Unanswered,
    /// The file cannot be made.
    #[error("the file cannot be created: {0}")]
    File(#[from] io::Error),
}

/// The gateway's end of a capture.
#[derive(Clone, Debug)]
pub struct CaptureHandle(Arc<CaptureState>);

impl CaptureHandle {
    /// Current state and counters.
    #[must_use]
    pub fn status(&self) -> CaptureStatus {
        self.0.status()
    }

    /// Ends the capture with reason `stopped`; its file is closed shortly after.
    pub fn stop(&self) {
        self.0.stop("stopped");
    }
}

impl Ingest {
    /// Captures a running publish from this moment.
    ///
    /// # Errors
    /// See [`CaptureError`].
    pub fn capture(
        &self,
        client_id: u64,
        settings: &CaptureSettings,
    ) -> Result<CaptureHandle, CaptureError> {
        let record = self.shared.publishes.find(client_id).ok_or(CaptureError::NotRunning)?;
        let (mut tap, notes, state) = capture_pipe(settings.time_limit);
        let cleaning = self.begin_file(&record, &mut tap, settings, true)?;
        start_capture(settings, &head(&record, settings, true), cleaning, notes, state.clone())?;
        self.shared.tell(record.worker, Message::Capture { stream: record.stream, tap });
        Ok(CaptureHandle(state))
    }

    /// Captures the publish that will be allowed under this client id, from its first byte. Call it right before
    /// allowing the publish.
    #[must_use]
    pub fn capture_next(&self, client_id: u64, settings: CaptureSettings) -> CaptureHandle {
        let (tap, notes, state) = capture_pipe(settings.time_limit);
        let armed = Armed { settings, tap, notes, state: state.clone() };
        self.captures.arm(client_id, armed);
        CaptureHandle(state)
    }

    /// Starts the capture that waits for this publish, if there is one.
    pub(super) fn begin_armed(&self, record: &PublishRecord) {
        if !self.captures.is_on {
            return;
        }
        let Some(armed) = self.captures.take(record.client_id) else { return };
        let Armed { settings, mut tap, notes, state } = armed;
        let begun = self.begin_file(record, &mut tap, &settings, false).and_then(|cleaning| {
            let head = head(record, &settings, false);
            Ok(start_capture(&settings, &head, cleaning, notes, state.clone())?)
        });
        match begun {
            Ok(()) => record.put_capture(tap),
            Err(error) => {
                say!("a capture did not begin: {error}");
                state.stop("not_begun");
                state.close();
            }
        }
    }

    /// Notes the SDP and returns what the file writer must blank or scrub.
    fn begin_file(
        &self,
        record: &PublishRecord,
        tap: &mut Tap,
        settings: &CaptureSettings,
        from_middle: bool,
    ) -> Result<Cleaning, CaptureError> {
        let Some(whip) = &record.whip else { return Ok(Cleaning::Rtmp) };
        let texts = whip.texts();
        if from_middle && texts.is_none() {
            return Err(CaptureError::Unanswered);
        }
        let now = Instant::now();
        // The client answers our own offer later; the session notes both texts then.
        if let Some((client, ours)) = texts {
            tap.put(Kind::Offer, now, || scrub_sdp(client).into_bytes());
            tap.put(Kind::Answer, now, || scrub_sdp(ours).into_bytes());
        }
        if from_middle {
            tap.put(Kind::Connected, now, Vec::new);
        }
        Ok(Cleaning::Whip(settings.without_media.then(|| MediaBlanker::new(whip.offer()))))
    }
}

fn head(record: &PublishRecord, settings: &CaptureSettings, from_middle: bool) -> Head {
    Head {
        is_whip: record.whip.is_some(),
        without_media: settings.without_media,
        from_middle,
        json: settings.header.clone(),
    }
}
