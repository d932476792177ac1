//! The counters of a running publish, and of what was irregular about publishers; `null` means none.

use headgate_ingest::{IrregularityCounts, Tracks};
use napi_derive::napi;

use crate::MediaCore;
use crate::names::Irregularity;
use crate::transfer::{UpstreamStatus, number};

/// Counters of one running publish session.
#[napi(object, use_nullable = true, object_from_js = false)]
pub struct PublishSnapshot {
    pub client_id: f64,
    /// False: it is on standby for another publish with the same name.
    pub on_air: bool,
    /// Newest packet timestamp in ms, extended to 64 bits, non-negative.
    pub timestamp_ms: f64,
    /// Audio and video payload bytes from the broadcaster.
    pub bytes_in: f64,
    /// Audio and video payload bytes sent to all upstreams and players.
    pub bytes_out: f64,
    /// All bytes received on the broadcaster's connection, metadata and protocol included.
    pub received_bytes: f64,
    /// Milliseconds since anything was received from the broadcaster.
    pub silent_ms: f64,
    pub subscribers: f64,
    pub dropped_frames: f64,
    /// Video frames from the broadcaster: two readings give the frame rate.
    pub video_frames: f64,
    /// Time between the two newest keyframes on the broadcaster's clock, ms; null before the second one.
    pub gop_ms: Option<f64>,
    /// How long there has been no keyframe while readers wait for one, ms; null while none waits.
    pub keyframe_awaited_ms: Option<f64>,
    /// Round-trip time to the broadcaster, ms: for WHIP measured by answered requests, for RTMP that of the TCP
    /// connection (behind a TLS terminator, that to the terminator). At most two seconds old; null while unknown.
    pub rtt_ms: Option<f64>,
    /// Packets of a WHIP publish lost for good in the last five seconds, percent; null while unknown and for RTMP.
    pub loss_percent: Option<f64>,
    /// Offset between video and audio of a WHIP publish on the sender's clocks, ms, positive: the video is early; null
    /// while unknown and for RTMP.
    pub skew_ms: Option<f64>,
    pub tracks: PublishTracks,
    pub upstreams: Vec<UpstreamStatus>,
    /// Why its audio is not transcoded to AAC although a reader needs that; null when there is no problem.
    pub transcoder_error: Option<String>,
    /// What was irregular about the publisher; only kinds that have occurred.
    pub irregularities: Vec<IrregularityCount>,
}

/// The tracks of a publish; null for what is absent or not known yet.
#[napi(object, use_nullable = true, object_from_js = false)]
pub struct PublishTracks {
    pub video: Option<VideoTrack>,
    pub audio: Option<AudioTrack>,
}

/// How often something was irregular about a publisher.
#[napi(object, object_from_js = false)]
pub struct IrregularityCount {
    pub code: Irregularity,
    pub count: f64,
}

fn irregularity_counts(counts: IrregularityCounts) -> Vec<IrregularityCount> {
    let counts = counts.iter();
    counts
        .map(|(kind, count)| IrregularityCount { code: kind.into(), count: number(count) })
        .collect()
}

/// The video of a publish.
#[napi(object, use_nullable = true, object_from_js = false)]
pub struct VideoTrack {
    pub codec: String,
    pub width: Option<u32>,
    pub height: Option<u32>,
}

/// The audio of a publish.
#[napi(object, use_nullable = true, object_from_js = false)]
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

impl PublishSnapshot {
    pub(crate) fn new(client_id: f64, snapshot: headgate_ingest::PublishSnapshot) -> Self {
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
            tracks: snapshot.tracks.into(),
            upstreams: snapshot.upstreams.into_iter().map(UpstreamStatus::from).collect(),
            transcoder_error: snapshot.transcoder_error,
            irregularities: irregularity_counts(snapshot.irregularities),
        }
    }
}

impl From<Tracks> for PublishTracks {
    fn from(Tracks { video, audio }: Tracks) -> Self {
        Self {
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
        }
    }
}
