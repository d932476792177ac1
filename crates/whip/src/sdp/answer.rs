//! Writes the answer (RFC 9725 4.2, 4.4; RFC 8829 5.3.1) from the parsed offer; no line of the offer is copied. Our own
//! offer differs in only a few lines.

use std::fmt;
use std::net::SocketAddr;

use super::connection::Setup;
use super::offer::Offer;
use super::offered::{AudioSection, Kind, VideoSection};
use super::section::{SDES_MID, SDES_REPAIRED_RID, SDES_RID, TRANSPORT_CC};

/// Lowest bitrate a browser is asked to use, kbit/s: below it the browser would reduce the resolution.
const LEAST_BITRATE_KBPS: u32 = 300;
/// Values allowed for `maxaveragebitrate`, bit/s (RFC 7587 6.1).
const OPUS_BITRATES: std::ops::RangeInclusive<u32> = 6_000..=510_000;

/// Codecs of an answer, as in `a=rtpmap`.
pub(super) const OPUS: &str = "opus/48000/2";
pub(super) const H264: &str = "H264/90000";
pub(super) const RTX: &str = "rtx/90000";

/// Our side of the session, as written into the answer.
#[derive(Clone, Copy)]
pub struct AnswerSettings<'a> {
    /// Our ICE user name fragment.
    pub ufrag: &'a str,
    /// Our ICE password.
    pub pwd: &'a str,
    /// SHA-256 of our certificate.
    pub fingerprint: &'a [u8; 32],
    /// Public UDP addresses, the best first.
    pub candidates: &'a [SocketAddr],
    /// Session id of the `o=` line; only 63 bits are used (RFC 8829 5.2.1).
    pub session_id: u64,
    /// Initial bitrate for a browser, which otherwise begins at 320x180. 0 leaves it to the browser.
    pub start_bitrate_kbps: u32,
    /// Highest bitrate of a sender; 0 is no limit.
    pub max_bitrate_kbps: u32,
    /// Stereo was requested.
    pub stereo: bool,
    /// Requested Opus bitrate, bit/s.
    pub audio_bitrate: Option<u32>,
}

impl fmt::Debug for AnswerSettings<'_> {
    /// Omits the ICE credentials.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("AnswerSettings")
            .field("candidates", &self.candidates)
            .field("start_bitrate_kbps", &self.start_bitrate_kbps)
            .field("max_bitrate_kbps", &self.max_bitrate_kbps)
            .finish_non_exhaustive()
    }
}

/// Which kind of description we write.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    Answer,
    Offer,
}

impl Role {
    /// Clients of the deprecated signalling split parameters at `"; "`, and drop those they cannot split.
    const fn separator(self) -> &'static str {
        match self {
            Self::Answer => ";",
            Self::Offer => "; ",
        }
    }

    const fn setup(self, offered: Setup) -> &'static str {
        match (self, offered) {
            (Self::Offer, _) => "actpass",
            (Self::Answer, Setup::Passive) => "active",
            (Self::Answer, Setup::Active | Setup::ActPass) => "passive",
        }
    }
}

/// Writes the answer to an accepted offer: every line ends in CRLF, with no blank line at the end.
#[must_use]
pub fn write_answer(offer: &Offer, settings: &AnswerSettings<'_>) -> String {
    write_description(Role::Answer, offer, settings)
}

/// Writes our description of the media in `offer`, which the client sends.
pub(super) fn write_description(
    role: Role,
    offer: &Offer,
    settings: &AnswerSettings<'_>,
) -> String {
    let mut sdp = Sdp::new();
    sdp.line("v=0");
    sdp.line(&format!("o=- {} 1 IN IP4 0.0.0.0", settings.session_id & i64::MAX as u64));
    sdp.line("s=-");
    sdp.line("t=0 0");
    sdp.line("a=ice-lite");
    if !offer.bundle.is_empty() {
        sdp.line(&format!("a=group:BUNDLE {}", offer.bundle.join(" ")));
    }
    sdp.line("a=msid-semantic: WMS *");
    for kind in &offer.order {
        match kind {
            Kind::Audio => {
                if let Some(audio) = &offer.audio {
                    write_audio(&mut sdp, role, offer, audio, settings);
                }
            }
            Kind::Video => {
                if let Some(video) = &offer.video {
                    write_video(&mut sdp, role, offer, video, settings);
                }
            }
        }
    }
    sdp.into_text()
}

/// An SDP text under construction.
pub(super) struct Sdp(String);

impl Sdp {
    pub(super) fn new() -> Self {
        Self(String::with_capacity(2048))
    }

    /// The complete text, with CRLF after every line.
    pub(super) fn into_text(self) -> String {
        self.0
    }

    pub(super) fn line(&mut self, line: &str) {
        self.0.push_str(line);
        self.0.push_str("\r\n");
    }
}

fn write_audio(
    sdp: &mut Sdp,
    role: Role,
    offer: &Offer,
    audio: &AudioSection,
    settings: &AnswerSettings<'_>,
) {
    let format = audio.payload_type;
    sdp.line(&format!("m=audio 9 {} {format}", audio.protocol));
    sdp.line("c=IN IP4 0.0.0.0");
    write_transport(sdp, role.setup(offer.setup), settings, &audio.mid, audio.has_rsize);
    sdp.line(&format!("a=rtpmap:{format} {OPUS}"));
    let mut parameters = vec!["minptime=10".to_owned(), "useinbandfec=1".to_owned()];
    // Only when requested: a browser that reads it sends a mono microphone in stereo.
    if audio.stereo || settings.stereo {
        parameters.extend(["stereo=1".to_owned(), "sprop-stereo=1".to_owned()]);
    }
    if let Some(bitrate) = settings.audio_bitrate {
        let bitrate = bitrate.clamp(*OPUS_BITRATES.start(), *OPUS_BITRATES.end());
        parameters.push(format!("maxaveragebitrate={bitrate}"));
    }
    sdp.line(&format!("a=fmtp:{format} {}", parameters.join(role.separator())));
    // Transport-wide feedback needs the sequence number extension: GStreamer offers the feedback without it.
    let transport_cc = audio.transport_cc_id.filter(|_| audio.has_transport_cc);
    write_feedback(
        sdp,
        format,
        &[(transport_cc.is_some(), "transport-cc"), (audio.has_nack, "nack")],
    );
    write_extensions(sdp, &[(audio.mid_id, SDES_MID), (transport_cc, TRANSPORT_CC)]);
}

fn write_video(
    sdp: &mut Sdp,
    role: Role,
    offer: &Offer,
    video: &VideoSection,
    settings: &AnswerSettings<'_>,
) {
    let format = video.payload_type;
    let rtx = video.answered_rtx();
    let formats = rtx.map_or_else(|| format.to_string(), |rtx| format!("{format} {rtx}"));
    sdp.line(&format!("m=video 9 {} {formats}", video.protocol));
    // RFC 8866 5: `c=` precedes `b=`, and both precede `a=`.
    sdp.line("c=IN IP4 0.0.0.0");
    // Not in an offer: its client inserts its own `b=AS`, which `b=TIAS` would override.
    if settings.max_bitrate_kbps > 0 && role == Role::Answer {
        sdp.line(&format!("b=AS:{}", settings.max_bitrate_kbps));
        sdp.line(&format!("b=TIAS:{}", u64::from(settings.max_bitrate_kbps) * 1000));
    }
    write_transport(sdp, role.setup(offer.setup), settings, &video.mid, video.has_rsize);
    sdp.line(&format!("a=rtpmap:{format} {H264}"));
    let parameters = h264_parameters(video, settings).join(role.separator());
    sdp.line(&format!("a=fmtp:{format} {parameters}"));
    let transport_cc = video.transport_cc_id.filter(|_| video.has_transport_cc);
    let feedback = [
        (transport_cc.is_some(), "transport-cc"),
        (video.has_fir, "ccm fir"),
        (video.has_nack, "nack"),
        (video.has_pli, "nack pli"),
        // Beside transport-wide feedback REMB is a limit, the only one that can still change during a session.
        (video.has_remb, "goog-remb"),
    ];
    write_feedback(sdp, format, &feedback);
    // Retransmissions in a separate stream: without it a browser probes the bandwidth with empty packets among its
    // frames, which it cannot retransmit (RFC 4588 8.1).
    if let Some(rtx) = rtx {
        sdp.line(&format!("a=rtpmap:{rtx} {RTX}"));
        sdp.line(&format!("a=fmtp:{rtx} apt={format}"));
    }
    let layers = |id: Option<u8>| id.filter(|_| !video.rids.is_empty());
    let extensions = [
        (video.mid_id, SDES_MID),
        (transport_cc, TRANSPORT_CC),
        (layers(video.rid_id), SDES_RID),
        (layers(video.repaired_rid_id), SDES_REPAIRED_RID),
    ];
    write_extensions(sdp, &extensions);
    // Every layer: OBS gives up if one is missing (RFC 8853 5.3.2).
    for rid in &video.rids {
        sdp.line(&format!("a=rid:{rid} recv"));
    }
    if !video.rids.is_empty() {
        sdp.line(&format!("a=simulcast:recv {}", video.rids.join(";")));
    }
}

/// The offered configuration (RFC 6184 8.2.2), and a browser's bitrates in the order min ≤ start ≤ max.
fn h264_parameters(video: &VideoSection, settings: &AnswerSettings<'_>) -> Vec<String> {
    let mut parameters = vec![
        "level-asymmetry-allowed=1".to_owned(),
        format!("packetization-mode={}", video.packetization_mode),
    ];
    parameters.extend(video.profile_level().map(|digits| format!("profile-level-id={digits}")));
    let max = Some(settings.max_bitrate_kbps).filter(|max| *max > 0);
    let start = settings.start_bitrate_kbps.min(max.unwrap_or(u32::MAX));
    if start > 0 {
        parameters.push(format!("x-google-min-bitrate={}", LEAST_BITRATE_KBPS.min(start)));
        parameters.push(format!("x-google-start-bitrate={start}"));
    }
    parameters.extend(max.map(|max| format!("x-google-max-bitrate={max}")));
    parameters
}

fn write_feedback(sdp: &mut Sdp, format: u8, feedback: &[(bool, &str)]) {
    for (_, name) in feedback.iter().filter(|(is_offered, _)| *is_offered) {
        sdp.line(&format!("a=rtcp-fb:{format} {name}"));
    }
}

fn write_extensions(sdp: &mut Sdp, extensions: &[(Option<u8>, &str)]) {
    for (id, uri) in extensions {
        if let Some(id) = id {
            sdp.line(&format!("a=extmap:{id} {uri}"));
        }
    }
}

fn write_transport(
    sdp: &mut Sdp,
    setup: &str,
    settings: &AnswerSettings<'_>,
    mid: &str,
    has_rsize: bool,
) {
    sdp.line("a=rtcp:9 IN IP4 0.0.0.0");
    sdp.line(&format!("a=ice-ufrag:{}", settings.ufrag));
    sdp.line(&format!("a=ice-pwd:{}", settings.pwd));
    let digits: Vec<_> = settings.fingerprint.iter().map(|byte| format!("{byte:02X}")).collect();
    sdp.line(&format!("a=fingerprint:sha-256 {}", digits.join(":")));
    sdp.line(&format!("a=setup:{setup}"));
    if !mid.is_empty() {
        sdp.line(&format!("a=mid:{mid}"));
    }
    sdp.line("a=recvonly");
    sdp.line("a=rtcp-mux");
    sdp.line("a=rtcp-mux-only");
    if has_rsize {
        sdp.line("a=rtcp-rsize");
    }
    write_candidates(sdp, settings.candidates);
}

/// The UDP addresses, best first: FFmpeg uses only the first. Then the same addresses over TCP, on the same port (RFC
/// 6544).
pub(super) fn write_candidates(sdp: &mut Sdp, candidates: &[SocketAddr]) {
    /// RFC 8445 5.1.2.1, RFC 6544 4.2: the type preference is 126 for UDP and 105 for TCP; passive TCP has direction
    /// preference 4.
    const UDP: u32 = 126 << 24;
    const TCP: u32 = 105 << 24 | 4 << 21;
    let mut foundation = 0;
    let mut write = |rest: &str, base: u32, least: u16, candidate: &SocketAddr| {
        foundation += 1;
        let priority = base + (u32::from(least) << 8) + 255;
        let (ip, port) = (candidate.ip(), candidate.port());
        let transport = if rest.is_empty() { "udp" } else { "tcp" };
        sdp.line(&format!(
            "a=candidate:{foundation} 1 {transport} {priority} {ip} {port} typ host{rest}"
        ));
    };
    for (candidate, n) in candidates.iter().zip(0_u16..) {
        write("", UDP, u16::MAX - n, candidate);
    }
    for (candidate, n) in candidates.iter().zip(0_u16..) {
        write(" tcptype passive", TCP, 8_191 - n, candidate);
    }
    sdp.line("a=end-of-candidates");
}
