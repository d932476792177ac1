//! Captures: a publish to a file, and a file played again. Same names and order as in `ts/media/captures.ts`.

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
use crate::transfer::{number, whole};

/// What to capture, and where to.
#[napi(object)]
pub struct CaptureOptions {
    /// A file that does not exist yet.
    pub path: String,
    /// A JSON object, for people.
    pub header: String,
    /// False: audio and video are overwritten.
    pub media: bool,
    /// Of the file.
    pub bytes_limit: f64,
    /// From its beginning.
    pub time_limit_ms: f64,
}

/// How a capture does.
#[napi(object)]
pub struct CaptureCounters {
    /// Of it, so far.
    pub bytes: f64,
    /// That were handed on.
    pub frames: f64,
    /// Why it ended; none while it runs.
    pub ended: Option<String>,
}

/// One capture.
#[napi]
pub struct MediaCapture(CaptureHandle);

#[napi]
impl MediaCapture {
    /// How it does.
    #[napi(catch_unwind)]
    pub fn status(&self) -> CaptureCounters {
        let status = self.0.status();
        CaptureCounters {
            bytes: number(status.bytes),
            frames: number(status.frames),
            ended: status.ended.map(Into::into),
        }
    }

    /// Ends it; its file is closed soon.
    #[napi(catch_unwind)]
    pub fn stop(&self) {
        self.0.stop();
    }
}

#[napi]
impl MediaCore {
    /// Captures a publish that runs; null when it does not run here, or cannot be captured. Throws when the file cannot be
    /// made.
    #[napi(catch_unwind)]
    pub fn capture(&self, client_id: f64, options: CaptureOptions) -> Result<Option<MediaCapture>> {
        let (client_id, settings) = (whole(client_id)?, settings_of(options)?);
        let Some(ingest) = &self.ingest else { return Ok(None) };
        match ingest.capture(client_id, &settings) {
            Ok(handle) => Ok(Some(MediaCapture(handle))),
            Err(CaptureError::NotRunning | CaptureError::Unanswered) => Ok(None),
            Err(error) => Err(Error::new(Status::GenericFailure, error.to_string())),
        }
    }

    /// Captures the publish that is allowed under this client id right after, from its first byte on.
    #[napi(catch_unwind)]
    pub fn capture_next(
        &self,
        client_id: f64,
        options: CaptureOptions,
    ) -> Result<Option<MediaCapture>> {
        let (client_id, settings) = (whole(client_id)?, settings_of(options)?);
        let Some(ingest) = &self.ingest else { return Ok(None) };
        Ok(Some(MediaCapture(ingest.capture_next(client_id, settings))))
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

/// One track of a replay.
#[napi(object)]
pub struct ReplayTrack {
    /// Its name.
    pub codec: String,
    /// That were handed on.
    pub frames: f64,
    /// Of it, so far.
    pub bytes: f64,
    /// 0 for audio.
    pub keyframes: f64,
    /// Decode time of the first frame.
    pub first_ms: f64,
    /// Decode time of the last.
    pub last_ms: f64,
    /// Decode time of the first keyframe.
    pub first_keyframe_ms: Option<f64>,
    /// Steps of more than a second.
    pub holes: f64,
    /// Timestamps that go back.
    pub steps_back: f64,
}

/// What came of a capture.
#[napi(object)]
pub struct ReplayOutcome {
    /// The header that it was captured with.
    pub header: String,
    /// By WHIP; else by RTMP.
    pub whip: bool,
    /// False: audio and video are overwritten.
    pub media: bool,
    /// It began in mid-publish.
    pub from_middle: bool,
    /// Video first.
    pub tracks: Vec<ReplayTrack>,
    /// Of the bodies and times of all RTMP messages, 16 hexadecimal digits.
    pub hash: String,
    /// That were handed on.
    pub frames: f64,
    /// Audio and video payload.
    pub bytes_in: f64,
    /// WHIP: packets lost, asked for and recovered, keyframes asked for.
    pub lost: Option<f64>,
    /// Requests for packets.
    pub nacks: Option<f64>,
    /// Packets that a request brought.
    pub recovered: Option<f64>,
    /// Requests for a keyframe.
    pub plis: Option<f64>,
    /// Code of the reason of its end.
    pub end: Option<String>,
    /// Why the capture ended.
    pub finished: Option<String>,
    /// Where the file is damaged.
    pub fault: Option<String>,
    /// Frames that were compared with those of the live publish, and those before.
    pub compared: f64,
    /// Before the first one that is compared.
    pub skipped: f64,
    /// What is not as it was live; none: the outcome is the same.
    pub difference: Option<String>,
}

/// Plays a capture; `flv`: a file for its frames. Throws when one of them cannot be read or made, or is no capture.
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
