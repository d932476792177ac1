//! Captures: a publish recorded to a file, and the replay of a file.

use std::fs;
use std::io::{BufWriter, Write};
use std::time::{Duration, Instant};

use headgate_ingest::{
    CaptureError, CaptureHandle, CaptureSettings, Replayed, ReplayedTrack, replay,
};
use napi::bindgen_prelude::Result;
use napi::{Error, Status};
use napi_derive::napi;

use crate::MediaCore;
use crate::transfer::number;
use crate::whole::whole;

/// What to capture, and to which file.
#[napi(object, object_to_js = false)]
pub struct CaptureOptions {
    /// A file that does not exist yet.
    pub path: String,
    /// A JSON object with information for people.
    pub header: String,
    /// False: audio and video are overwritten with zeros.
    pub media: bool,
    /// Largest size of the file in bytes.
    pub bytes_limit: f64,
    /// Longest duration of the capture.
    pub time_limit_ms: f64,
}

/// Progress of a capture.
#[napi(object, object_from_js = false)]
pub struct CaptureCounters {
    /// Bytes of the file so far.
    pub bytes: f64,
    /// Frames forwarded during the capture.
    pub frames: f64,
    /// Why the capture ended; none while it is running.
    pub ended: Option<String>,
}

/// One capture.
#[napi]
pub struct MediaCapture(CaptureHandle);

#[napi]
impl MediaCapture {
    /// The progress of the capture.
    #[napi(catch_unwind)]
    pub fn status(&self) -> CaptureCounters {
        let status = self.0.status();
        CaptureCounters {
            bytes: number(status.bytes),
            frames: number(status.frames),
            ended: status.ended.map(Into::into),
        }
    }

    /// Ends the capture; its file is closed shortly afterwards.
    #[napi(catch_unwind)]
    pub fn stop(&self) {
        self.0.stop();
    }
}

#[napi]
impl MediaCore {
    /// Captures a running publish from this moment on; null when it does not run here, or our offer (v5) is not answered
    /// yet. Throws when the file cannot be created.
    #[napi(catch_unwind)]
    pub fn capture(&self, client_id: f64, options: CaptureOptions) -> Result<Option<MediaCapture>> {
        let (client_id, settings) = (whole(client_id)?, settings_of(options)?);
        match self.ingest.capture(client_id, &settings) {
            Ok(handle) => Ok(Some(MediaCapture(handle))),
            Err(CaptureError::NotRunning | CaptureError::Unanswered) => Ok(None),
            Err(error) => Err(Error::new(Status::GenericFailure, error.to_string())),
        }
    }

    /// Captures, from its first byte on, the publish that is allowed under this client id next.
    #[napi(catch_unwind)]
    pub fn capture_next(&self, client_id: f64, options: CaptureOptions) -> Result<MediaCapture> {
        let (client_id, settings) = (whole(client_id)?, settings_of(options)?);
        Ok(MediaCapture(self.ingest.capture_next(client_id, settings)))
    }
}

fn settings_of(options: CaptureOptions) -> Result<CaptureSettings> {
    Ok(CaptureSettings {
        path: options.path.into(),
        header: options.header,
        without_media: !options.media,
        bytes_limit: whole(options.bytes_limit)?,
        time_limit: Duration::from_millis(whole(options.time_limit_ms)?),
    })
}

/// One track in a replay.
#[napi(object, use_nullable = true, object_from_js = false)]
pub struct ReplayTrack {
    /// Name of the codec.
    pub codec: String,
    /// Frames forwarded.
    pub frames: f64,
    /// Payload bytes.
    pub bytes: f64,
    /// Keyframes; 0 for audio.
    pub keyframes: f64,
    /// Decode time of the first frame.
    pub first_ms: f64,
    /// Decode time of the last frame.
    pub last_ms: f64,
    /// Decode time of the first keyframe; null for audio.
    pub first_keyframe_ms: Option<f64>,
    /// Gaps of more than a second between frames.
    pub holes: f64,
    /// Timestamps lower than the one before.
    pub steps_back: f64,
}

/// The result of replaying a capture.
#[napi(object, use_nullable = true, object_from_js = false)]
pub struct ReplayOutcome {
    /// The header given to the capture.
    pub header: String,
    /// True for WHIP, false for RTMP.
    pub whip: bool,
    /// False: audio and video are overwritten with zeros.
    pub media: bool,
    /// The capture began in the middle of the publish.
    pub from_middle: bool,
    /// The tracks, video first.
    pub tracks: Vec<ReplayTrack>,
    /// Hash of the bodies and times of all media messages, 16 hexadecimal digits.
    pub hash: String,
    /// Frames forwarded.
    pub frames: f64,
    /// Bytes of audio and video payload.
    pub bytes_in: f64,
    /// Packets lost; null for RTMP, as the next three.
    pub lost: Option<f64>,
    /// Retransmission requests.
    pub nacks: Option<f64>,
    /// Packets recovered by retransmission.
    pub recovered: Option<f64>,
    /// Keyframe requests.
    pub plis: Option<f64>,
    /// Code of the reason why the publish ended; null when it did not.
    pub end: Option<String>,
    /// Why the capture ended; null when the file does not say.
    pub finished: Option<String>,
    /// Where the file is damaged.
    pub fault: Option<String>,
    /// Frames that were compared with those of the live publish.
    pub compared: f64,
    /// Frames of the live publish before the first one that is compared.
    pub skipped: f64,
    /// How the outcome differs from the live publish; null when it does not.
    pub difference: Option<String>,
}

/// Replays a capture; `flv` is a file to write its frames to. Throws when a file cannot be read or created, or is not a
/// capture.
#[napi(catch_unwind)]
pub fn replay_capture(path: String, flv: Option<String>) -> Result<ReplayOutcome> {
    let failed = |error: std::io::Error| Error::new(Status::GenericFailure, error.to_string());
    let bytes = fs::read(path).map_err(failed)?;
    let mut file = flv.map(fs::File::create).transpose().map_err(failed)?.map(BufWriter::new);
    let mut written = Ok(());
    let outcome = replay(&bytes, Instant::now(), &mut |tag| {
        if let (Some(file), Ok(())) = (&mut file, &written) {
            written = file.write_all(tag);
        }
    });
    let outcome = outcome.map_err(|error| Error::new(Status::InvalidArg, error.to_string()))?;
    written.map_err(failed)?;
    file.map_or(Ok(()), |mut file| file.flush()).map_err(failed)?;
    Ok(outcome_of(&outcome))
}

fn outcome_of(outcome: &Replayed) -> ReplayOutcome {
    let requests = outcome.requests;
    ReplayOutcome {
        header: outcome.head.json.clone(),
        whip: outcome.head.is_whip,
        media: !outcome.head.without_media,
        from_middle: outcome.head.from_middle,
        tracks: outcome.tracks.iter().map(track_of).collect(),
        hash: format!("{:016x}", outcome.hash),
        frames: number(outcome.frames),
        bytes_in: number(outcome.bytes_in),
        lost: requests.map(|of| number(of.lost)),
        nacks: requests.map(|of| number(of.nacks)),
        recovered: requests.map(|of| number(of.recovered)),
        plis: requests.map(|of| number(of.plis)),
        end: outcome.end.clone(),
        finished: outcome.finished.clone(),
        fault: outcome.fault.clone(),
        compared: outcome.comparison.compared as f64,
        skipped: outcome.comparison.skipped as f64,
        difference: outcome.difference(),
    }
}

fn track_of(track: &ReplayedTrack) -> ReplayTrack {
    ReplayTrack {
        codec: track.codec.into(),
        frames: number(track.frames),
        bytes: number(track.bytes),
        keyframes: number(track.keyframes),
        first_ms: track.first_ms as f64,
        last_ms: track.last_ms as f64,
        first_keyframe_ms: track.first_keyframe_ms.map(|ms| ms as f64),
        holes: number(track.holes),
        steps_back: number(track.steps_back),
    }
}
