//! The gateway's operations on WHIP publishes, and their transfer objects.

use headgate_ingest::{
    AnswerError, AudioDiagnostics, Diagnostics, TrackDiagnostics, VideoDiagnostics, WhipPatchError,
    WhipPublish,
};
use napi::bindgen_prelude::{Result, Uint8Array};
use napi::{Error, Status};
use napi_derive::napi;

use crate::hold::hold_of;
use crate::offer::WhipOffer;
use crate::transfer::{SdpRefused, WhipOptions, number};
use crate::whole::whole;
use crate::{MediaCore, upstream};

/// The result of a trickled fragment.
#[napi(discriminant = "outcome", discriminant_case = "snake_case", object_from_js = false)]
pub enum WhipPatched {
    Added,
    Restarted {
        /// `application/trickle-ice-sdpfrag` with our half of the new ICE session.
        fragment: String,
    },
    Refused {
        code: String,
        /// HTTP status.
        status: u16,
        /// A description for people; never repeats the SDP.
        detail: String,
    },
}

/// Packets and rates of a track.
#[napi(object, object_from_js = false)]
pub struct TrackReport {
    pub kbps: u32,
    pub packets: f64,
    pub lost: f64,
    pub loss_percent: f64,
    pub recovered: f64,
    pub nacks: f64,
    pub jitter_ms: f64,
}

/// The video of a WHIP publish.
#[napi(object, object_from_js = false)]
pub struct VideoReport {
    pub codec: String,
    pub profile: String,
    pub level: String,
    pub width: u32,
    pub height: u32,
    pub fps: f64,
    pub gop_ms: Option<f64>,
    pub keyframe_age_ms: Option<f64>,
    pub plis: f64,
    pub withheld: f64,
    pub reorder_depth: u32,
    /// Simulcast layer that is forwarded; empty without simulcast.
    pub layer: String,
    pub layers: u32,
    pub track: TrackReport,
}

/// The audio of a WHIP publish.
#[napi(object, object_from_js = false)]
pub struct AudioReport {
    pub codec: String,
    pub channels: u32,
    pub track: TrackReport,
}

/// Diagnostics of a running WHIP publish.
#[napi(object, object_from_js = false)]
pub struct WhipReport {
    pub is_connected: bool,
    /// The client's address and port; `transport` is `udp` or `tcp`.
    pub client: Option<String>,
    pub transport: Option<String>,
    /// Our DTLS role: `client` or `server`.
    pub dtls_role: String,
    pub srtp: String,
    pub video: Option<VideoReport>,
    pub audio: Option<AudioReport>,
    pub rtt_ms: Option<f64>,
    pub skew_ms: Option<f64>,
    pub rejected: f64,
    /// Each problem with its remedy, in words.
    pub problems: Vec<String>,
}

/// Stable name and HTTP status of an error (RFC 9725 4.3).
pub(crate) const fn code_of(error: &WhipPatchError) -> (&'static str, u16) {
    match error {
        WhipPatchError::Unknown => ("unknown_session", 404),
        WhipPatchError::Malformed(_) => ("fragment_malformed", 400),
        WhipPatchError::HalfRestart => ("fragment_half_restart", 400),
        WhipPatchError::TooSoon => ("too_many_requests", 429),
        WhipPatchError::Identity(_) => ("internal_error", 500),
    }
}

#[napi]
impl MediaCore {
    /// Opens a WHIP publish that was allowed and returns the answer, or our own offer. A publish_ended follows in any
    /// case.
    #[napi(catch_unwind)]
    pub fn open_whip(&self, offer: &WhipOffer, options: WhipOptions) -> Result<String> {
        let upstreams = options.upstreams.into_iter().map(upstream).collect::<Result<_>>()?;
        let publish = WhipPublish {
            client_id: whole(options.client_id)?,
            name: options.name.into_bytes(),
            offer: offer.0.clone(),
            upstreams,
            stereo: options.stereo,
            start_bitrate_kbps: options.start_bitrate_kbps,
            max_bitrate_kbps: options.max_bitrate_kbps,
            audio_bitrate: options.audio_bitrate,
            connect_info: options.connect_info.map_or_else(Vec::new, |info| info.to_vec()),
            hold: hold_of(&options.hold)?,
        };
        self.ingest
            .open_whip(publish)
            .map_err(|error| Error::new(Status::GenericFailure, error.to_string()))
    }

    /// Handles a client's answer to our own offer; null when it is accepted. After a refusal with status 422 another
    /// answer is still expected.
    #[napi(catch_unwind)]
    pub fn answer_whip(&self, client_id: f64, answer: String) -> Result<Option<SdpRefused>> {
        let client_id = whole(client_id)?;
        Ok(self.ingest.answer_whip(client_id, &answer).err().map(|error| {
            let (code, status) = match error {
                AnswerError::NotAwaited => ("answer_not_awaited", 400),
                AnswerError::Refused(ref error) => (error.code(), 422),
            };
            SdpRefused::new(code, status, &error)
        }))
    }

    /// Applies a trickled fragment to a running publish: more candidates, or an ICE restart.
    #[napi(catch_unwind)]
    pub fn patch_whip(&self, client_id: f64, fragment: String) -> Result<WhipPatched> {
        let client_id = whole(client_id)?;
        Ok(match self.ingest.patch_whip(client_id, &fragment) {
            Ok(headgate_ingest::WhipPatched::Added) => WhipPatched::Added,
            Ok(headgate_ingest::WhipPatched::Restarted(fragment)) => {
                WhipPatched::Restarted { fragment }
            }
            Err(error) => {
                let (code, status) = code_of(&error);
                WhipPatched::Refused { code: code.into(), status, detail: error.to_string() }
            }
        })
    }

    /// Sends a data message (AMF0 values, the handler's name first) to all subscribers of a WHIP publish; false when it is not running.
    #[napi(catch_unwind)]
    pub fn send_whip_data(&self, client_id: f64, data: Uint8Array) -> Result<bool> {
        let client_id = whole(client_id)?;
        let data = data.to_vec().into();
        Ok(self.ingest.send_whip_data(client_id, data))
    }

    /// Asks the sender of a WHIP publish to stay below `kbps` kbit/s from now on, 0 for no limit; false when it is not
    /// running.
    #[napi(catch_unwind)]
    pub fn limit_whip_bitrate(&self, client_id: f64, kbps: u32) -> Result<bool> {
        let client_id = whole(client_id)?;
        Ok(self.ingest.limit_whip_bitrate(client_id, kbps))
    }

    /// Whether ICE and DTLS of a WHIP publish are complete; false when it is not running.
    #[napi(catch_unwind)]
    pub fn is_whip_connected(&self, client_id: f64) -> Result<bool> {
        let client_id = whole(client_id)?;
        Ok(self.ingest.is_whip_connected(client_id))
    }

    /// Diagnostics of a running WHIP publish, at most two seconds old; null during its first second and for any other
    /// publish.
    #[napi(catch_unwind)]
    pub fn whip_diagnostics(&self, client_id: f64) -> Result<Option<WhipReport>> {
        let client_id = whole(client_id)?;
        let diagnostics = self.ingest.whip_diagnostics(client_id);
        Ok(diagnostics.map(WhipReport::from))
    }
}

impl From<Diagnostics> for WhipReport {
    fn from(of: Diagnostics) -> Self {
        let transport = |is_tcp: bool| if is_tcp { "tcp" } else { "udp" };
        Self {
            is_connected: of.is_connected,
            client: of.path.map(|path| path.address.to_string()),
            transport: of.path.map(|path| transport(path.is_tcp).into()),
            dtls_role: of.dtls_role.into(),
            srtp: of.srtp.into(),
            video: of.video.map(VideoReport::from),
            audio: of.audio.map(AudioReport::from),
            rtt_ms: of.rtt_ms,
            skew_ms: of.skew_ms,
            rejected: number(of.rejected),
            problems: of.problems,
        }
    }
}

impl From<VideoDiagnostics> for VideoReport {
    fn from(of: VideoDiagnostics) -> Self {
        Self {
            codec: of.codec.into(),
            profile: of.profile.into(),
            level: of.level,
            width: of.width,
            height: of.height,
            fps: of.fps,
            gop_ms: of.gop_ms.map(number),
            keyframe_age_ms: of.keyframe_age_ms.map(number),
            plis: number(of.plis),
            withheld: number(of.withheld),
            reorder_depth: of.reorder_depth,
            layer: of.layer,
            layers: of.layers,
            track: of.track.into(),
        }
    }
}

impl From<AudioDiagnostics> for AudioReport {
    fn from(of: AudioDiagnostics) -> Self {
        Self { codec: of.codec.into(), channels: of.channels.into(), track: of.track.into() }
    }
}

impl From<TrackDiagnostics> for TrackReport {
    fn from(of: TrackDiagnostics) -> Self {
        Self {
            kbps: of.kbps,
            packets: number(of.packets),
            lost: number(of.lost),
            loss_percent: of.loss_percent,
            recovered: number(of.recovered),
            nacks: number(of.nacks),
            jitter_ms: of.jitter_ms,
        }
    }
}
