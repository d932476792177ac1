//! The answer (RFC 9725 4.2, 4.4; RFC 8829 5.3.1): built from what was judged, no line of the offer is copied.

use std::fmt::Write;
use std::net::SocketAddr;

use super::offer::{AudioSection, Kind, Offer, Setup, VideoSection};

/// Bitrate a browser is told never to go below, kbit/s: it would rather shrink the picture.
const LEAST_BITRATE_KBPS: u32 = 300;

/// What the answer says of us.
#[derive(Clone, Copy, Debug)]
pub struct AnswerSettings<'a> {
    /// Our ICE user name.
    pub ufrag: &'a str,
    /// Our ICE password.
    pub pwd: &'a str,
    /// SHA-256 of our certificate.
    pub fingerprint: &'a [u8; 32],
    /// Public UDP addresses, the best first.
    pub candidates: &'a [SocketAddr],
    /// `o=`.
    pub session_id: u64,
    /// What a browser begins with: without it, it begins at 320x180.
    pub start_bitrate_kbps: u32,
    /// What a sender may rise to; 0 is no limit.
    pub max_bitrate_kbps: u32,
    /// Stereo was asked for.
    pub stereo: bool,
    /// Opus bitrate asked for, bit/s.
    pub audio_bitrate: Option<u32>,
}

/// Writes the answer to a judged offer: CRLF everywhere, one at the end.
#[must_use]
pub fn write_answer(offer: &Offer, settings: &AnswerSettings<'_>) -> String {
    let mut sdp = Sdp(String::with_capacity(2048));
    sdp.line("v=0");
    sdp.line(&format!("o=- {} 1 IN IP4 0.0.0.0", settings.session_id));
    sdp.line("s=-");
    sdp.line("t=0 0");
    sdp.line("a=ice-lite");
    if offer.is_bundled {
        let mids: Vec<_> = offer.order.iter().filter_map(|kind| mid_of(offer, *kind)).collect();
        sdp.line(&format!("a=group:BUNDLE {}", mids.join(" ")));
    }
    sdp.line("a=msid-semantic: WMS *");
    for kind in &offer.order {
        match kind {
            Kind::Audio => {
                if let Some(audio) = &offer.audio {
                    write_audio(&mut sdp, offer, audio, settings);
                }
            }
            Kind::Video => {
                if let Some(video) = &offer.video {
                    write_video(&mut sdp, offer, video, settings);
                }
            }
        }
    }
    sdp.0
}

struct Sdp(String);

impl Sdp {
    fn line(&mut self, line: &str) {
        self.0.push_str(line);
        self.0.push_str("\r\n");
    }
}

fn mid_of(offer: &Offer, kind: Kind) -> Option<&str> {
    match kind {
        Kind::Audio => offer.audio.as_ref().map(|section| section.mid.as_str()),
        Kind::Video => offer.video.as_ref().map(|section| section.mid.as_str()),
    }
}

fn write_audio(sdp: &mut Sdp, offer: &Offer, audio: &AudioSection, settings: &AnswerSettings<'_>) {
    let format = audio.payload_type;
    sdp.line(&format!("m=audio 9 UDP/TLS/RTP/SAVPF {format}"));
    write_transport(sdp, offer, settings, &audio.mid, audio.has_rsize);
    sdp.line(&format!("a=rtpmap:{format} opus/48000/2"));
    let mut parameters = String::from("minptime=10;useinbandfec=1");
    // Only when asked for: a browser told so sends stereo of a mono microphone.
    if audio.stereo || settings.stereo {
        parameters.push_str(";stereo=1;sprop-stereo=1");
    }
    if let Some(bitrate) = settings.audio_bitrate {
        let _ = write!(parameters, ";maxaveragebitrate={bitrate}");
    }
    sdp.line(&format!("a=fmtp:{format} {parameters}"));
    if audio.has_transport_cc {
        sdp.line(&format!("a=rtcp-fb:{format} transport-cc"));
    }
    if audio.has_nack {
        sdp.line(&format!("a=rtcp-fb:{format} nack"));
    }
    write_extensions(sdp, audio.mid_id, audio.transport_cc_id.filter(|_| audio.has_transport_cc));
}

fn write_video(sdp: &mut Sdp, offer: &Offer, video: &VideoSection, settings: &AnswerSettings<'_>) {
    let format = video.payload_type;
    sdp.line(&format!("m=video 9 UDP/TLS/RTP/SAVPF {format}"));
    let max = settings.max_bitrate_kbps;
    if max > 0 {
        sdp.line(&format!("b=AS:{max}"));
        sdp.line(&format!("b=TIAS:{}", u64::from(max) * 1000));
    }
    write_transport(sdp, offer, settings, &video.mid, video.has_rsize);
    sdp.line(&format!("a=rtpmap:{format} H264/90000"));
    let mut parameters = String::from("level-asymmetry-allowed=1");
    let _ = write!(parameters, ";packetization-mode={}", video.packetization_mode);
    if let Some([profile, constraints, level]) = video.profile_level_id {
        let _ = write!(parameters, ";profile-level-id={profile:02x}{constraints:02x}{level:02x}");
    }
    let start = settings.start_bitrate_kbps;
    let _ = write!(parameters, ";x-google-min-bitrate={}", LEAST_BITRATE_KBPS.min(start));
    let _ = write!(parameters, ";x-google-start-bitrate={start}");
    if max > 0 {
        let _ = write!(parameters, ";x-google-max-bitrate={max}");
    }
    sdp.line(&format!("a=fmtp:{format} {parameters}"));
    let feedback = [
        (video.has_transport_cc, "transport-cc"),
        (video.has_fir, "ccm fir"),
        (video.has_nack, "nack"),
        (video.has_pli, "nack pli"),
    ];
    for (_, name) in feedback.iter().filter(|(is_offered, _)| *is_offered) {
        sdp.line(&format!("a=rtcp-fb:{format} {name}"));
    }
    write_extensions(sdp, video.mid_id, video.transport_cc_id.filter(|_| video.has_transport_cc));
}

fn write_extensions(sdp: &mut Sdp, mid: Option<u8>, transport_cc: Option<u8>) {
    if let Some(id) = mid {
        sdp.line(&format!("a=extmap:{id} urn:ietf:params:rtp-hdrext:sdes:mid"));
    }
    if let Some(id) = transport_cc {
        let uri = "http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01";
        sdp.line(&format!("a=extmap:{id} {uri}"));
    }
}

fn write_transport(
    sdp: &mut Sdp,
    offer: &Offer,
    settings: &AnswerSettings<'_>,
    mid: &str,
    has_rsize: bool,
) {
    sdp.line("c=IN IP4 0.0.0.0");
    sdp.line("a=rtcp:9 IN IP4 0.0.0.0");
    sdp.line(&format!("a=ice-ufrag:{}", settings.ufrag));
    sdp.line(&format!("a=ice-pwd:{}", settings.pwd));
    let digits: Vec<_> = settings.fingerprint.iter().map(|byte| format!("{byte:02X}")).collect();
    sdp.line(&format!("a=fingerprint:sha-256 {}", digits.join(":")));
    let setup = match offer.setup {
        Setup::Passive => "active",
        Setup::Active | Setup::ActPass => "passive",
    };
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
    // RFC 8445 5.1.2.1: type preference 126 for hosts, falling local preference.
    for (n, candidate) in settings.candidates.iter().enumerate() {
        let local = 65_535_u32.saturating_sub(n as u32);
        let priority = (126 << 24) + (local << 8) + 255;
        sdp.line(&format!(
            "a=candidate:{} 1 udp {priority} {} {} typ host",
            n + 1,
            candidate.ip(),
            candidate.port()
        ));
    }
    sdp.line("a=end-of-candidates");
}
