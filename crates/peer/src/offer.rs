//! SDP: the offer we write, and the few lines of an answer that we need. Not a general SDP parser.

use std::fmt::Write;
use std::net::{IpAddr, SocketAddr};

use crate::{Error, Result, Settings};

/// Payload type of H.264.
pub const VIDEO_PAYLOAD_TYPE: u8 = 102;
/// Payload type of Opus.
pub(crate) const AUDIO_PAYLOAD_TYPE: u8 = 111;
/// Header extension id of the transport-wide sequence number.
pub(crate) const TRANSPORT_CC_ID: u8 = 3;
const TRANSPORT_CC: &str =
    "http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01";
/// RFC 3550 6.5.1.
pub(crate) const CNAME: &str = "headgate-peer";

/// Our side of the session, as written into the offer.
pub(crate) struct Offer<'a> {
    pub(crate) settings: Settings,
    pub(crate) ufrag: &'a str,
    pub(crate) password: &'a str,
    pub(crate) fingerprint: [u8; 32],
    pub(crate) audio_ssrc: u32,
    pub(crate) video_ssrc: u32,
}

/// The server's side, as read from the answer.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) ufrag: String,
    pub(crate) password: String,
    pub(crate) fingerprint: [u8; 32],
    /// `setup:active`: the server sends the ClientHello.
    pub(crate) is_active: bool,
    /// The first UDP host candidate.
    pub(crate) address: SocketAddr,
    pub(crate) has_transport_cc: bool,
}

impl Offer<'_> {
    /// The SDP text, with CRLF line ends.
    pub(crate) fn to_sdp(&self) -> String {
        let sections =
            [self.settings.audio.then(|| self.audio()), self.settings.video.then(|| self.video())];
        let mut sdp =
            String::from("v=0\r\no=- 4611731400430051336 2 IN IP4 127.0.0.1\r\ns=-\r\nt=0 0\r\n");
        let mids: String =
            (0..sections.iter().flatten().count()).map(|mid| format!(" {mid}")).collect();
        // Writing to a String cannot fail.
        let _ = write!(
            sdp,
            "a=group:BUNDLE{mids}\r\na=extmap-allow-mixed\r\na=msid-semantic: WMS stream\r\n"
        );
        for (mid, section) in sections.iter().flatten().enumerate() {
            sdp.push_str(&section.replace("{mid}", &mid.to_string()));
        }
        sdp
    }

    fn audio(&self) -> String {
        let payload_type = AUDIO_PAYLOAD_TYPE;
        let stereo = if self.settings.stereo { ";stereo=1;sprop-stereo=1" } else { "" };
        let codec = format!(
            "a=rtpmap:{payload_type} opus/48000/2\r\n\
             a=fmtp:{payload_type} minptime=10;useinbandfec=1{stereo}\r\n\
             a=rtcp-fb:{payload_type} nack\r\n"
        );
        self.section("audio", payload_type, self.audio_ssrc, &codec)
    }

    fn video(&self) -> String {
        let payload_type = VIDEO_PAYLOAD_TYPE;
        let codec = format!(
            "a=rtpmap:{payload_type} H264/90000\r\n\
             a=rtcp-fb:{payload_type} ccm fir\r\n\
             a=rtcp-fb:{payload_type} nack\r\n\
             a=rtcp-fb:{payload_type} nack pli\r\n\
             a=fmtp:{payload_type} level-asymmetry-allowed=1;packetization-mode=1;profile-level-id=42e01f\r\n"
        );
        self.section("video", payload_type, self.video_ssrc, &codec)
    }

    fn section(&self, kind: &str, payload_type: u8, ssrc: u32, codec: &str) -> String {
        let setup = if self.settings.dtls_server { "passive" } else { "actpass" };
        let feedback = if self.settings.transport_cc {
            format!(
                "a=extmap:{TRANSPORT_CC_ID} {TRANSPORT_CC}\r\na=rtcp-fb:{payload_type} transport-cc\r\n"
            )
        } else {
            String::new()
        };
        format!(
            "m={kind} 9 UDP/TLS/RTP/SAVPF {payload_type}\r\nc=IN IP4 0.0.0.0\r\na=rtcp:9 IN IP4 0.0.0.0\r\n\
             a=ice-ufrag:{}\r\na=ice-pwd:{}\r\na=ice-options:trickle\r\na=fingerprint:sha-256 {}\r\n\
             a=setup:{setup}\r\na=mid:{{mid}}\r\na=sendonly\r\na=msid:stream {kind}\r\n\
             a=rtcp-mux\r\na=rtcp-mux-only\r\n{codec}{feedback}a=ssrc:{ssrc} cname:{CNAME}\r\n",
            self.ufrag,
            self.password,
            hex(&self.fingerprint),
        )
    }
}

impl Answer {
    /// Reads what is needed to connect. The first of each attribute is used, since all sections of a BUNDLE agree.
    pub(crate) fn parse(sdp: &str) -> Result<Self> {
        let attribute = |name: &str| {
            sdp.lines().find_map(|line| line.strip_prefix("a=")?.strip_prefix(name)).map(str::trim)
        };
        let require = |name, what| attribute(name).ok_or(Error::Answer(what));
        let is_active = match require("setup:", "setup")? {
            "active" => true,
            "passive" => false,
            _ => return Err(Error::Answer("setup")),
        };
        Ok(Self {
            ufrag: require("ice-ufrag:", "ice-ufrag")?.to_owned(),
            password: require("ice-pwd:", "ice-pwd")?.to_owned(),
            fingerprint: attribute("fingerprint:sha-256 ")
                .and_then(from_hex)
                .ok_or(Error::Answer("fingerprint"))?,
            is_active,
            address: sdp.lines().find_map(host_candidate).ok_or(Error::Answer("candidate"))?,
            has_transport_cc: attribute(&format!("extmap:{TRANSPORT_CC_ID} "))
                == Some(TRANSPORT_CC),
        })
    }
}

/// RFC 8839 5.1: `a=candidate:FOUNDATION COMPONENT TRANSPORT PRIORITY ADDRESS PORT typ host …`.
fn host_candidate(line: &str) -> Option<SocketAddr> {
    let words: Vec<&str> = line.strip_prefix("a=candidate:")?.split_ascii_whitespace().collect();
    let &[_, _, transport, _, address, port, "typ", "host", ..] = words.as_slice() else {
        return None;
    };
    if !transport.eq_ignore_ascii_case("udp") {
        return None;
    }
    Some(SocketAddr::new(address.parse::<IpAddr>().ok()?, port.parse().ok()?))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02X}")).collect::<Vec<_>>().join(":")
}

fn from_hex(text: &str) -> Option<[u8; 32]> {
    let bytes: Option<Vec<u8>> =
        text.split(':').map(|pair| u8::from_str_radix(pair, 16).ok()).collect();
    bytes?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(candidates: &str) -> String {
        let fingerprint = hex(&[0xab; 32]);
        format!(
            "v=0\r\na=ice-lite\r\nm=audio 9 UDP/TLS/RTP/SAVPF 111\r\na=ice-ufrag:abcd\r\na=ice-pwd:0123456789\r\n\
             a=fingerprint:sha-256 {fingerprint}\r\na=setup:passive\r\n{candidates}"
        )
    }

    #[test]
    fn the_first_udp_host_candidate_is_used() {
        let sdp = answer(
            "a=candidate:1 1 tcp 9 10.0.0.1 9 typ host tcptype passive\r\n\
             a=candidate:1 1 udp 9 10.0.0.2 5 typ srflx raddr 1.1.1.1 rport 1\r\n\
             a=candidate:1 1 UDP 9 10.0.0.3 4000 typ host\r\n",
        );
        let answer = Answer::parse(&sdp).expect("usable");
        assert_eq!(answer.address, SocketAddr::from(([10, 0, 0, 3], 4000)));
        assert_eq!((answer.ufrag.as_str(), answer.password.as_str()), ("abcd", "0123456789"));
        assert!(!answer.is_active && !answer.has_transport_cc);
    }

    #[test]
    fn an_answer_without_a_candidate_is_rejected() {
        assert!(matches!(Answer::parse(&answer("")), Err(Error::Answer("candidate"))));
    }

    #[test]
    fn an_offer_ends_each_line_with_crlf_and_numbers_its_sections() {
        let offer = Offer {
            settings: Settings { stereo: true, ..Settings::default() },
            ufrag: "u",
            password: "p",
            fingerprint: [0xab; 32],
            audio_ssrc: 1,
            video_ssrc: 2,
        };
        let sdp = offer.to_sdp();
        assert!(sdp.ends_with("\r\n") && sdp.matches('\n').count() == sdp.matches("\r\n").count());
        assert!(sdp.contains("a=group:BUNDLE 0 1\r\n"));
        assert!(sdp.contains("a=mid:0\r\n") && sdp.contains("a=mid:1\r\n"));
        assert!(sdp.contains("stereo=1") && sdp.contains("a=setup:actpass\r\n"));
    }
}
