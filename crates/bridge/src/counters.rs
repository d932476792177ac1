//! The counters of a running publish, and of what was irregular about publishers. Same names and order as in
//! `ts/media/snapshot.ts`; `null` means none.

use headgate_ingest::{Irregularity, IrregularityCounts, PublishSnapshot};
use napi_derive::napi;

use crate::MediaCore;
use crate::transfer::{UpstreamCounters, number};

/// Counters of one running publish.
#[napi(object)]
pub struct PublishCounters {
    pub client_id: f64,
    /// False: it stands by for another publish with the same name.
    pub on_air: bool,
    pub timestamp_ms: f64,
    pub bytes_in: f64,
    pub bytes_out: f64,
    /// Bytes received, including metadata and protocol.
    pub received_bytes: f64,
    pub silent_ms: f64,
    pub subscribers: f64,
    pub dropped_frames: f64,
    pub video_frames: f64,
    pub gop_ms: Option<f64>,
    /// How long there has been no keyframe while readers wait for one.
    pub keyframe_awaited_ms: Option<f64>,
    pub rtt_ms: Option<f64>,
    pub loss_percent: Option<f64>,
    pub skew_ms: Option<f64>,
    pub video: Option<VideoTrack>,
    pub audio: Option<AudioTrack>,
    pub upstreams: Vec<UpstreamCounters>,
    /// Why its audio is not transcoded although a subscriber needs it.
    pub transcoder_error: Option<String>,
    /// Only kinds that have occurred.
    pub irregularities: Vec<IrregularityCount>,
}

/// How often something was irregular about a publisher.
#[napi(object)]
pub struct IrregularityCount {
    pub code: String,
    pub count: f64,
}

fn irregularity_counts(counts: IrregularityCounts) -> Vec<IrregularityCount> {
    let of = |(kind, count): (Irregularity, u64)| IrregularityCount {
        code: kind.code().into(),
        count: number(count),
    };
    counts.iter().map(of).collect()
}

/// The video of a publish.
#[napi(object)]
pub struct VideoTrack {
    pub codec: String,
    pub width: Option<u32>,
    pub height: Option<u32>,
}

/// The audio of a publish.
#[napi(object)]
pub struct AudioTrack {
    pub codec: String,
    pub sample_rate: Option<u32>,
    pub channels: Option<u32>,
}

#[napi]
impl MediaCore {
    /// What was irregular about publishers since the start of the process, by kind.
    #[napi(catch_unwind)]
    pub fn irregularities(&self) -> Vec<IrregularityCount> {
        irregularity_counts(headgate_ingest::irregularity_totals())
    }
}

impl PublishCounters {
    pub(crate) fn new(client_id: f64, snapshot: PublishSnapshot) -> Self {
        let (video, audio) = (snapshot.tracks.video, snapshot.tracks.audio);
        Self {
            client_id,
            on_air: snapshot.is_on_air,
            timestamp_ms: number(u64::try_from(snapshot.timestamp_ms).unwrap_or(0)),
            bytes_in: number(snapshot.bytes_in),
            bytes_out: number(snapshot.bytes_out),
            received_bytes: number(snapshot.received_bytes),
            silent_ms: number(u64::try_from(snapshot.silent.as_millis()).unwrap_or(u64::MAX)),
            subscribers: number(snapshot.subscribers),
            dropped_frames: number(snapshot.dropped_frames),
            video_frames: number(snapshot.video_frames),
            gop_ms: snapshot.gop_ms.map(number),
            keyframe_awaited_ms: snapshot.keyframe_awaited.map(|of| of.as_secs_f64() * 1_000.0),
            rtt_ms: snapshot.rtt_ms,
            loss_percent: snapshot.loss_percent,
            skew_ms: snapshot.skew_ms,
            video: video.map(|track| VideoTrack {
                codec: track.codec.name().into(),
                width: track.size.map(|(width, _)| width),
                height: track.size.map(|(_, height)| height),
            }),
            audio: audio.map(|track| AudioTrack {
                codec: track.codec.name().into(),
                sample_rate: track.form.map(|(rate, _)| rate),
                channels: track.form.map(|(_, channels)| channels.into()),
            }),
            upstreams: snapshot.upstreams.into_iter().map(UpstreamCounters::from).collect(),
            transcoder_error: snapshot.transcoder_error,
            irregularities: irregularity_counts(snapshot.irregularities),
        }
    }
}
