//! A session's state at one moment: measurements, and problems described in words. Pure.

use std::time::{Duration, Instant};

use headgate_media::Irregularity;
use headgate_media::opus::Channels;

use crate::audio::AudioTrack;
use crate::receiver::Receiver;
use crate::transport::path::Path;
use crate::video::VideoTrack;

/// A keyframe should arrive at least this often: players and upstreams start at one.
const KEYFRAME_LIMIT: Duration = Duration::from_secs(4);
/// Unanswered keyframe requests in a row after which the sender is reported as unresponsive.
const UNRESPONSIVE_AFTER: u32 = 3;
/// Share of packets lost for good that is reported, in percent.
const LOSS_LIMIT_PERCENT: f64 = 1.0;
/// Offset between video and audio that is reported, in ms.
const SKEW_LIMIT_MS: f64 = 60.0;

/// Fields common to both tracks.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TrackDiagnostics {
    /// Payload per second, over the last second.
    pub kbps: u32,
    /// Packets received.
    pub packets: u64,
    /// Packets given up as lost.
    pub lost: u64,
    /// Packets lost for good, as a share of all packets since the start.
    pub loss_percent: f64,
    /// Packets recovered by retransmission.
    pub recovered: u64,
    /// Packets requested again; each request counts.
    pub nacks: u64,
    /// Interarrival jitter (RFC 3550), ms.
    pub jitter_ms: f64,
}

/// The video.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct VideoDiagnostics {
    /// Packets and rates.
    pub track: TrackDiagnostics,
    /// `H.264`.
    pub codec: &'static str,
    /// Profile name such as `Constrained Baseline`; empty before the first parameter set.
    pub profile: &'static str,
    /// Level such as `3.1`.
    pub level: String,
    /// Width in pixels.
    pub width: u32,
    /// Height in pixels.
    pub height: u32,
    /// Frames per second, over the last second.
    pub fps: f64,
    /// Time between the two newest keyframes, ms.
    pub gop_ms: Option<u64>,
    /// Time since the newest keyframe, ms.
    pub keyframe_age_ms: Option<u64>,
    /// Keyframe requests.
    pub plis: u64,
    /// Access units withheld.
    pub withheld: u64,
    /// How many frames may overtake one (B-frames).
    pub reorder_depth: u32,
    /// Name of the simulcast layer that is forwarded; empty without simulcast.
    pub layer: String,
    /// Simulcast layers being sent at this moment.
    pub layers: u32,
}

/// The audio.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AudioDiagnostics {
    /// Packets and rates.
    pub track: TrackDiagnostics,
    /// `Opus`.
    pub codec: &'static str,
    /// Channels: 1 or 2; 0 before the first packet.
    pub channels: u8,
}

/// A session's state and rates.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Diagnostics {
    /// ICE and DTLS are complete.
    pub is_connected: bool,
    /// The client's address and transport (UDP or TCP).
    pub path: Option<Path>,
    /// Our role in DTLS: `client` or `server`.
    pub dtls_role: &'static str,
    /// SRTP protection profile; empty before the handshake.
    pub srtp: &'static str,
    /// The video, if it was offered.
    pub video: Option<VideoDiagnostics>,
    /// The audio, if it was offered.
    pub audio: Option<AudioDiagnostics>,
    /// Round-trip time, measured by answered retransmission requests, ms.
    pub rtt_ms: Option<f64>,
    /// How far video and audio are still apart by the sender's own clocks, ms; positive means the video is early.
    pub skew_ms: Option<f64>,
    /// Packets dropped as forged, replayed, malformed or over a limit.
    pub rejected: u64,
    /// Each problem with its remedy, in words.
    pub problems: Vec<String>,
}

pub(crate) fn of_video(video: &mut VideoTrack, now: Instant) -> VideoDiagnostics {
    let layers = video.layers().filter(|layer| layer.is_live(now) && !layer.rid.is_empty()).count();
    let (plis, _) = video.plis();
    let withheld = video.withheld();
    let reorder_depth = video.reorder().depth() as u32;
    let (width, height) = video.resolution().unwrap_or((0, 0));
    let Some(layer) = video.shown_mut() else { return VideoDiagnostics::default() };
    let rates = layer.receiver.meter.read(now);
    let profile = layer.profile();
    let meter = &layer.receiver.meter;
    let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    VideoDiagnostics {
        track: of_receiver(&layer.receiver, rates.kbps),
        codec: "H.264",
        profile: profile.map_or("", profile_name),
        level: profile
            .map_or_else(String::new, |[.., level]| format!("{}.{}", level / 10, level % 10)),
        width,
        height,
        fps: rates.frames_per_second,
        gop_ms: meter.gop().map(millis),
        keyframe_age_ms: meter.last_keyframe().map(|at| millis(now.saturating_duration_since(at))),
        plis,
        withheld,
        reorder_depth,
        layer: layer.rid.clone(),
        layers: layers as u32,
    }
}

pub(crate) fn of_audio(audio: &mut AudioTrack, now: Instant) -> AudioDiagnostics {
    let kbps = audio.receiver.meter.read(now).kbps;
    let channels = audio.channels().map_or(0, |channels| match channels {
        Channels::Mono => 1,
        Channels::Stereo => 2,
    });
    AudioDiagnostics { track: of_receiver(&audio.receiver, kbps), codec: "Opus", channels }
}

fn of_receiver(receiver: &Receiver, kbps: u32) -> TrackDiagnostics {
    let counters = receiver.counters();
    let expected = (counters.received + counters.lost).max(1);
    TrackDiagnostics {
        kbps,
        packets: counters.received,
        lost: counters.lost,
        loss_percent: counters.lost as f64 * 100.0 / expected as f64,
        recovered: counters.recovered,
        nacks: counters.requested,
        jitter_ms: receiver.jitter().as_secs_f64() * 1000.0,
    }
}

/// H.264 A.2.
const fn profile_name([profile, constraints, _]: [u8; 3]) -> &'static str {
    match (profile, constraints & 0x40 != 0) {
        (66, true) => "Constrained Baseline",
        (66, false) => "Baseline",
        (77, _) => "Main",
        (88, _) => "Extended",
        (100, _) => "High",
        _ => "another",
    }
}

/// Lists the problems in words for the person at the encoder. `track`: the video, if it was offered.
pub(crate) fn problems(
    of: &Diagnostics,
    since_start: Duration,
    track: Option<&VideoTrack>,
) -> Vec<String> {
    let mut problems = Vec::new();
    if !of.is_connected {
        problems.push(format!(
            "not connected for {} s: check that UDP or TCP to the media port is open",
            since_start.as_secs()
        ));
        return problems;
    }
    if let (Some(video), Some(track)) = (&of.video, track) {
        of_keyframes(video, track, &mut problems);
        of_loss("video", &video.track, &mut problems);
        of_payloads(track, &mut problems);
        if video.track.packets == 0 {
            problems.push("no video arrives: is the camera on?".to_owned());
        }
        if track.reorder().is_undeclared() {
            problems.push(
                "B-frames arrive although the stream does not declare them: turn B-frames off"
                    .to_owned(),
            );
        }
    }
    if let Some(audio) = &of.audio {
        of_loss("audio", &audio.track, &mut problems);
        if audio.track.packets == 0 {
            problems.push("no audio arrives: is the microphone on?".to_owned());
        }
    }
    if let Some(skew) = of.skew_ms.filter(|skew| skew.abs() > SKEW_LIMIT_MS) {
        problems.push(format!(
            "video and audio are {:.0} ms apart and are being realigned",
            skew.abs()
        ));
    }
    if of.path.is_some_and(|path| path.is_tcp) {
        problems.push("media arrives over TCP: open UDP for lower latency".to_owned());
    }
    problems
}

fn of_keyframes(video: &VideoDiagnostics, track: &VideoTrack, problems: &mut Vec<String>) {
    const ADVICE: &str = "set the encoder's keyframe interval to 2 s";
    let limit = KEYFRAME_LIMIT.as_millis() as u64;
    let is_unresponsive = !track.can_ask_keyframe() || track.plis().1 >= UNRESPONSIVE_AFTER;
    match (video.keyframe_age_ms, video.gop_ms) {
        (None, _) if video.track.packets > 0 && is_unresponsive => {
            problems.push(format!("no keyframe yet: {ADVICE}"));
        }
        (Some(age), _) if age > limit => {
            problems.push(format!("no keyframe for {} s: {ADVICE}", age / 1000));
        }
        (Some(_), Some(gop)) if gop > limit => {
            problems.push(format!("{:.1} s between keyframes: {ADVICE}", gop as f64 / 1000.0));
        }
        (Some(_) | None, _) => {}
    }
}

fn of_payloads(track: &VideoTrack, problems: &mut Vec<String>) {
    let counts = track.irregularities();
    let malformed = counts.count(Irregularity::MalformedPayload);
    if malformed > 0 {
        problems.push(format!(
            "{malformed} RTP payloads violate RFC 6184 and were repaired or dropped: update the encoder"
        ));
    }
    if counts.count(Irregularity::MarkerMisplaced) > 0 {
        problems.push(
            "the RTP marker does not mark the ends of pictures: they leave one picture later"
                .to_owned(),
        );
    }
    if track.shown().is_some_and(|layer| layer.receiver.is_unanswered()) {
        problems.push(
            "lost packets are requested but never arrive: keyframes are requested instead"
                .to_owned(),
        );
    }
}

fn of_loss(kind: &str, track: &TrackDiagnostics, problems: &mut Vec<String>) {
    if track.loss_percent > LOSS_LIMIT_PERCENT {
        problems.push(format!(
            "{:.1} % of the {kind} packets are lost for good: lower the bitrate or use a better network",
            track.loss_percent
        ));
    }
}

#[cfg(test)]
#[path = "diagnostics_tests.rs"]
mod tests;
