//! A WHIP offer, read and judged (RFC 9725 4.2, 4.4; P4 of the decisions).

use std::net::SocketAddr;

use super::OFFER_LIMIT_BYTES;
use super::h264::{Format, is_accepted, read_format};
use super::lines::{Lines, split};

/// Payload types of one section.
const FORMAT_LIMIT: usize = 64;
/// Candidates of one offer.
const CANDIDATE_LIMIT: usize = 100;
/// Layers of a simulcast offer.
const RID_LIMIT: usize = 4;
/// RFC 8839 5.4.
const UFRAG_LEAST: usize = 4;
const PASSWORD_LEAST: usize = 22;
const CREDENTIAL_LIMIT: usize = 256;
const MID_LIMIT: usize = 64;

/// Which side says hello first in DTLS (RFC 8842).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Setup {
    /// The client does.
    Active,
    /// We do.
    Passive,
    /// We choose: the client does.
    ActPass,
}

/// A judged offer.
#[derive(Clone, Debug)]
pub struct Offer {
    /// ICE user name of the first section: all share its transport.
    pub ufrag: String,
    /// ICE password of the first section.
    pub pwd: String,
    /// SHA-256 of the client's certificate.
    pub fingerprint: [u8; 32],
    /// DTLS role.
    pub setup: Setup,
    /// The sound, if any.
    pub audio: Option<AudioSection>,
    /// The picture, if any.
    pub video: Option<VideoSection>,
    /// The client's UDP addresses, as far as they are literal.
    pub candidates: Vec<SocketAddr>,
    /// Sections in the offer's order.
    pub(super) order: Vec<Kind>,
    /// There is a BUNDLE group.
    pub(super) is_bundled: bool,
}

/// What a section carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Audio,
    Video,
}

/// The offered sound.
#[derive(Clone, Debug)]
pub struct AudioSection {
    /// Section id.
    pub mid: String,
    /// Opus.
    pub payload_type: u8,
    /// The client would take stereo.
    pub stereo: bool,
    /// The sender, when the offer names it.
    pub ssrc: Option<u32>,
    /// Header extension of the transport-wide sequence number.
    pub transport_cc_id: Option<u8>,
    /// Transport-wide feedback was offered.
    pub has_transport_cc: bool,
    /// The sender answers requests for packets.
    pub has_nack: bool,
    pub(super) mid_id: Option<u8>,
    pub(super) has_rsize: bool,
}

/// Retransmissions in a stream of their own (RFC 4588).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rtx {
    /// Its payload type.
    pub payload_type: u8,
    /// Its sender, when the offer names it.
    pub ssrc: Option<u32>,
}

/// The offered picture.
#[derive(Clone, Debug)]
pub struct VideoSection {
    /// Section id.
    pub mid: String,
    /// H.264.
    pub payload_type: u8,
    /// 0 or 1.
    pub packetization_mode: u8,
    /// Profile, constraints and level; none when absent or malformed.
    pub profile_level_id: Option<[u8; 3]>,
    /// SPS and PPS that the offer carries.
    pub parameter_sets: Vec<Vec<u8>>,
    /// The sender, when the offer names it.
    pub ssrc: Option<u32>,
    /// Retransmissions of this payload type.
    pub rtx: Option<Rtx>,
    /// Header extension of the transport-wide sequence number.
    pub transport_cc_id: Option<u8>,
    /// The sender answers requests for packets.
    pub has_nack: bool,
    /// The sender answers requests for a keyframe.
    pub has_pli: bool,
    /// The sender knows full intra requests.
    pub has_fir: bool,
    /// Transport-wide feedback was offered.
    pub has_transport_cc: bool,
    /// The sender obeys REMB.
    pub has_remb: bool,
    /// Simulcast layers.
    pub rids: Vec<String>,
    pub(super) mid_id: Option<u8>,
    pub(super) has_rsize: bool,
}

/// Why an offer is refused; the words are for people and never repeat the SDP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OfferError {
    /// It is longer than any offer.
    #[error("The offer is too long")]
    TooLong,
    /// It is no SDP.
    #[error("The offer is not valid SDP")]
    Malformed,
    /// ICE credentials are missing or too short.
    #[error("The offer has no usable ICE credentials")]
    Credentials,
    /// There is no SHA-256 fingerprint.
    #[error("The offer has no SHA-256 certificate fingerprint")]
    Fingerprint,
    /// `a=setup` is unknown.
    #[error("The offer's DTLS setup is not supported")]
    Setup,
    /// Nothing, two of a kind, or something that is neither sound nor picture.
    #[error("The offer must have one audio or one video section, or one of each, and nothing else")]
    Sections,
    /// A section does not send.
    #[error("Every section of the offer must send media (sendonly or sendrecv)")]
    Direction,
    /// RTCP on a port of its own, or sections that are not bundled.
    #[error("The offer must bundle its sections and multiplex RTCP")]
    Transport,
    /// No Opus.
    #[error("The audio section must offer Opus")]
    AudioCodec,
    /// No H.264.
    #[error("The video section must offer H.264 (Baseline, Main or High, 8 bit 4:2:0)")]
    VideoCodec,
    /// Too many layers.
    #[error("The offer has too many simulcast layers")]
    Layers,
}

impl OfferError {
    /// Stable name.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::TooLong => "offer_too_long",
            Self::Malformed => "offer_malformed",
            Self::Credentials => "offer_credentials",
            Self::Fingerprint => "offer_fingerprint",
            Self::Setup => "offer_setup",
            Self::Sections => "offer_sections",
            Self::Direction => "offer_direction",
            Self::Transport => "offer_transport",
            Self::AudioCodec => "offer_audio_codec",
            Self::VideoCodec => "offer_video_codec",
            Self::Layers => "offer_layers",
        }
    }

    /// HTTP status (RFC 9725 4.2, 4.4.2): 400 is not an offer, 422 is one we cannot serve.
    #[must_use]
    pub const fn status(self) -> u16 {
        match self {
            Self::TooLong | Self::Malformed | Self::Credentials | Self::Fingerprint => 400,
            Self::Setup | Self::Sections | Self::Direction | Self::Transport => 422,
            Self::AudioCodec | Self::VideoCodec | Self::Layers => 422,
        }
    }
}

/// We say hello first.
#[must_use]
pub fn is_dtls_client(offer: &Offer) -> bool {
    offer.setup == Setup::Passive
}

/// Reads and judges an offer.
///
/// # Errors
/// Why it is refused.
pub fn read_offer(text: &str) -> Result<Offer, OfferError> {
    if text.len() > OFFER_LIMIT_BYTES {
        return Err(OfferError::TooLong);
    }
    if !text.trim_start().starts_with("v=0") {
        return Err(OfferError::Malformed);
    }
    let (session, sections) = split(text)?;
    let first = sections.first().ok_or(OfferError::Sections)?;
    let both = |name| first.attribute(name).or_else(|| session.attribute(name));
    let (ufrag, pwd) = (both("ice-ufrag").unwrap_or(""), both("ice-pwd").unwrap_or(""));
    if !is_credential(ufrag, UFRAG_LEAST) || !is_credential(pwd, PASSWORD_LEAST) {
        return Err(OfferError::Credentials);
    }
    let fingerprint = first.attributes("fingerprint").chain(session.attributes("fingerprint"));
    let fingerprint = fingerprint.filter_map(read_fingerprint).next();
    let mut offer = Offer {
        ufrag: ufrag.to_owned(),
        pwd: pwd.to_owned(),
        fingerprint: fingerprint.ok_or(OfferError::Fingerprint)?,
        setup: read_setup(both("setup"))?,
        audio: None,
        video: None,
        candidates: Vec::new(),
        order: Vec::new(),
        is_bundled: session.attributes("group").any(|group| group.starts_with("BUNDLE")),
    };
    for section in &sections {
        read_section(&mut offer, &session, section)?;
    }
    judge_bundle(&offer, &session)?;
    Ok(offer)
}

fn read_section(
    offer: &mut Offer,
    session: &Lines<'_>,
    section: &Lines<'_>,
) -> Result<(), OfferError> {
    let mut words = section.media.split_whitespace();
    let (kind, port) = (words.next().unwrap_or(""), words.next().unwrap_or(""));
    let formats: Vec<u8> = words.skip(1).filter_map(|word| word.parse().ok()).collect();
    if formats.len() > FORMAT_LIMIT {
        return Err(OfferError::TooLong);
    }
    // Port 0 is a rejected section unless it says that it shares the bundle's.
    if port == "0" && !section.has("bundle-only") {
        return Err(OfferError::Sections);
    }
    let sends = |lines: &Lines<'_>| lines.has("sendonly") || lines.has("sendrecv");
    let silent = |lines: &Lines<'_>| lines.has("recvonly") || lines.has("inactive");
    if silent(section) || (silent(session) && !sends(section)) {
        return Err(OfferError::Direction);
    }
    if !section.has("rtcp-mux") {
        return Err(OfferError::Transport);
    }
    let mid = section.attribute("mid").unwrap_or("").to_owned();
    let is_token = mid.bytes().all(|byte| byte.is_ascii_graphic());
    if mid.len() > MID_LIMIT || !is_token {
        return Err(OfferError::Malformed);
    }
    for candidate in section.attributes("candidate") {
        if offer.candidates.len() >= CANDIDATE_LIMIT {
            return Err(OfferError::TooLong);
        }
        offer.candidates.extend(read_candidate(candidate));
    }
    match kind {
        "audio" if offer.audio.is_none() => {
            offer.order.push(Kind::Audio);
            offer.audio = Some(read_audio(section, &formats, mid)?);
            Ok(())
        }
        "video" if offer.video.is_none() => {
            offer.order.push(Kind::Video);
            offer.video = Some(read_video(section, &formats, mid)?);
            Ok(())
        }
        _ => Err(OfferError::Sections),
    }
}

fn read_audio(
    section: &Lines<'_>,
    formats: &[u8],
    mid: String,
) -> Result<AudioSection, OfferError> {
    let is_opus = |format: &u8| codec_of(section, *format).is_some_and(|codec| codec == "opus");
    let payload_type = formats.iter().copied().find(is_opus).ok_or(OfferError::AudioCodec)?;
    let stereo = section
        .of_format("fmtp", payload_type)
        .flat_map(|line| line.split(';'))
        .any(|parameter| parameter.trim().eq_ignore_ascii_case("stereo=1"));
    let feedback = Feedback::read(section, payload_type);
    Ok(AudioSection {
        mid,
        payload_type,
        stereo,
        ssrc: read_ssrc(section),
        transport_cc_id: extension_id(section, "transport-wide-cc-extensions-01"),
        has_transport_cc: feedback.transport_cc,
        has_nack: feedback.nack,
        mid_id: extension_id(section, "sdes:mid"),
        has_rsize: section.has("rtcp-rsize"),
    })
}

fn read_video(
    section: &Lines<'_>,
    formats: &[u8],
    mid: String,
) -> Result<VideoSection, OfferError> {
    let mut accepted: Vec<Format> = formats
        .iter()
        .filter(|format| codec_of(section, **format).is_some_and(|codec| codec == "h264"))
        .map(|format| read_format(section, *format))
        .filter(is_accepted)
        .collect();
    // Mode 1 first, then as the client prefers: the sort is stable.
    accepted.sort_by_key(|format| format.packetization_mode != 1);
    let format = accepted.into_iter().next().ok_or(OfferError::VideoCodec)?;
    let rids: Vec<String> = section
        .attributes("rid")
        .filter_map(|rid| rid.split_whitespace().next())
        .map(str::to_owned)
        .collect();
    if rids.len() > RID_LIMIT {
        return Err(OfferError::Layers);
    }
    let feedback = Feedback::read(section, format.payload_type);
    Ok(VideoSection {
        mid,
        payload_type: format.payload_type,
        packetization_mode: format.packetization_mode,
        profile_level_id: format.profile_level_id,
        parameter_sets: format.parameter_sets,
        ssrc: read_ssrc(section),
        rtx: find_rtx(section, formats, format.payload_type),
        transport_cc_id: extension_id(section, "transport-wide-cc-extensions-01"),
        has_nack: feedback.nack,
        has_pli: feedback.pli,
        has_fir: feedback.fir,
        has_transport_cc: feedback.transport_cc,
        has_remb: feedback.remb,
        rids,
        mid_id: extension_id(section, "sdes:mid"),
        has_rsize: section.has("rtcp-rsize"),
    })
}

/// What `a=rtcp-fb` offers for one payload type.
#[derive(Default)]
struct Feedback {
    nack: bool,
    pli: bool,
    fir: bool,
    transport_cc: bool,
    remb: bool,
}

impl Feedback {
    fn read(section: &Lines<'_>, payload_type: u8) -> Self {
        let mut feedback = Self::default();
        for value in section.of_format("rtcp-fb", payload_type) {
            match value.to_ascii_lowercase().as_str() {
                "nack" => feedback.nack = true,
                "nack pli" => feedback.pli = true,
                "ccm fir" => feedback.fir = true,
                "transport-cc" => feedback.transport_cc = true,
                "goog-remb" => feedback.remb = true,
                _ => {}
            }
        }
        feedback
    }
}

/// Sections share one transport: all are in the group, each under its own name; one alone needs none.
fn judge_bundle(offer: &Offer, session: &Lines<'_>) -> Result<(), OfferError> {
    let mids = [
        offer.audio.as_ref().map(|section| section.mid.as_str()),
        offer.video.as_ref().map(|section| section.mid.as_str()),
    ];
    if let [Some(audio), Some(video)] = mids {
        let bundle = session.attributes("group").find_map(|group| group.strip_prefix("BUNDLE"));
        let names: Vec<_> = bundle.unwrap_or("").split_whitespace().collect();
        if audio == video || !names.contains(&audio) || !names.contains(&video) {
            return Err(OfferError::Transport);
        }
    }
    Ok(())
}

fn codec_of(section: &Lines<'_>, format: u8) -> Option<String> {
    let map = section.of_format("rtpmap", format).next()?;
    Some(map.split('/').next()?.to_ascii_lowercase())
}

fn find_rtx(section: &Lines<'_>, formats: &[u8], of: u8) -> Option<Rtx> {
    let is_of = |format: &u8| {
        codec_of(section, *format).is_some_and(|codec| codec == "rtx")
            && section.of_format("fmtp", *format).any(|line| line == format!("apt={of}"))
    };
    let payload_type = formats.iter().copied().find(is_of)?;
    let pair = section.attributes("ssrc-group").find_map(|group| group.strip_prefix("FID "));
    let ssrc = pair.and_then(|pair| pair.split_whitespace().nth(1)?.parse().ok());
    Some(Rtx { payload_type, ssrc })
}

fn read_ssrc(section: &Lines<'_>) -> Option<u32> {
    section.attribute("ssrc")?.split_whitespace().next()?.parse().ok()
}

/// `a=extmap:3[/direction] uri`: its id, 1 to 14.
fn extension_id(section: &Lines<'_>, ending: &str) -> Option<u8> {
    section.attributes("extmap").find_map(|value| {
        let mut words = value.split_whitespace();
        let id = words.next()?.split('/').next()?.parse().ok()?;
        (words.next()?.ends_with(ending) && (1..=14).contains(&id)).then_some(id)
    })
}

fn read_setup(value: Option<&str>) -> Result<Setup, OfferError> {
    match value {
        Some("actpass") => Ok(Setup::ActPass),
        Some("active") => Ok(Setup::Active),
        Some("passive") => Ok(Setup::Passive),
        _ => Err(OfferError::Setup),
    }
}

fn read_fingerprint(value: &str) -> Option<[u8; 32]> {
    let (algorithm, digits) = value.split_once(' ')?;
    if !algorithm.eq_ignore_ascii_case("sha-256") {
        return None;
    }
    let bytes: Option<Vec<u8>> =
        digits.trim().split(':').map(|two| u8::from_str_radix(two, 16).ok()).collect();
    bytes?.try_into().ok()
}

/// Foundation, component, transport, priority, address, port; names and other transports are passed over.
fn read_candidate(value: &str) -> Option<SocketAddr> {
    let mut words = value.split_whitespace().skip(2);
    if !words.next()?.eq_ignore_ascii_case("udp") {
        return None;
    }
    let (address, port) = (words.nth(1)?, words.next()?);
    Some(SocketAddr::new(address.parse().ok()?, port.parse().ok()?))
}

/// Graphic ASCII and bounded: it goes back into no line, but it goes into memory.
fn is_credential(text: &str, least: usize) -> bool {
    (least..=CREDENTIAL_LIMIT).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_graphic())
}
