//! What an offer offers and what our answer accepts, for people: media, directions, codecs and kinds of candidates.
//! Credentials, addresses, fingerprints and free text are left out; a codec is named only when it is syntactically one.

use super::answer::{H264, OPUS, RTX};
use super::lines::{Lines, Parts};
use super::offer::Offer;
use super::offered::Kind;

/// Sections listed of one offer; real ones have two.
const SECTION_LIMIT: usize = 16;
/// Codecs listed of one section; browsers offer about 30.
const CODEC_LIMIT: usize = 64;

const KINDS: [&str; 3] = ["audio", "video", "application"];
const DIRECTIONS: [&str; 4] = ["sendrecv", "sendonly", "recvonly", "inactive"];
const CANDIDATE_TYPES: [&str; 4] = ["host", "srflx", "prflx", "relay"];

/// One media section.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MediaSummary {
    /// `audio`, `video`, `application` or `other`.
    pub kind: &'static str,
    /// The port is 0: rejected, or bundle-only.
    pub is_off: bool,
    /// `sendrecv`, `sendonly`, `recvonly` or `inactive`.
    pub direction: &'static str,
    /// As in `a=rtpmap`, for H.264 with its profile: `H264/90000 42e01f`.
    pub codecs: Vec<String>,
}

/// An offer, and what our answer accepts of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OfferSummary {
    /// Sections in the offer's order.
    pub media: Vec<MediaSummary>,
    /// Number of each kind: `2 host udp`.
    pub candidates: Vec<String>,
    /// Sections of our answer; empty for a refused offer.
    pub agreed: Vec<MediaSummary>,
}

impl OfferSummary {
    /// `valid`: the offer if it is not refused.
    pub(super) fn new(parts: &Parts<'_>, valid: Option<&Offer>) -> Self {
        let Parts { session, sections } = parts;
        let media = sections.iter().take(SECTION_LIMIT).map(|section| media_of(session, section));
        Self {
            media: media.collect(),
            candidates: candidates_of(parts),
            agreed: valid.map(agreed_of).unwrap_or_default(),
        }
    }
}

fn media_of(session: &Lines<'_>, section: &Lines<'_>) -> MediaSummary {
    let mut words = section.media.split_whitespace();
    let kind = words.next().unwrap_or_default();
    let direction = |of: &Lines<'_>| DIRECTIONS.into_iter().find(|name| of.has(name));
    MediaSummary {
        kind: KINDS.into_iter().find(|name| *name == kind).unwrap_or("other"),
        is_off: words.next() == Some("0"),
        direction: direction(section).or_else(|| direction(session)).unwrap_or("sendrecv"),
        codecs: codecs_of(section),
    }
}

fn codecs_of(section: &Lines<'_>) -> Vec<String> {
    let mut formats: Vec<u8> = Vec::new();
    let mut codecs: Vec<String> = Vec::new();
    for map in section.attributes("rtpmap") {
        let (format, codec) = map.split_once([' ', '\t']).unwrap_or_default();
        let (Ok(format), codec) = (format.parse(), codec.trim()) else { continue };
        if formats.len() == CODEC_LIMIT {
            break;
        }
        if formats.contains(&format) || !is_codec(codec) {
            continue;
        }
        formats.push(format);
        let profile = section.parameters(format).find_map(|(name, value)| {
            (name.eq_ignore_ascii_case("profile-level-id") && is_profile(value)).then_some(value)
        });
        let named = profile.map_or_else(|| codec.to_owned(), |of| format!("{codec} {of}"));
        if !codecs.contains(&named) {
            codecs.push(named);
        }
    }
    codecs
}

/// `name/rate` or `name/rate/channels`.
fn is_codec(text: &str) -> bool {
    let is_name = |part: &str| {
        let is_in_names = |byte: u8| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte);
        (1..=24).contains(&part.len()) && part.bytes().all(is_in_names)
    };
    let is_number = |part: &str, digits: usize| {
        (1..=digits).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit())
    };
    match text.split('/').collect::<Vec<_>>()[..] {
        [name, rate] => is_name(name) && is_number(rate, 6),
        [name, rate, channels] => is_name(name) && is_number(rate, 6) && is_number(channels, 2),
        _ => false,
    }
}

fn is_profile(text: &str) -> bool {
    text.len() == 6 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// In the order of their first appearance.
fn candidates_of(parts: &Parts<'_>) -> Vec<String> {
    let mut counts: Vec<((&str, &str), u32)> = Vec::new();
    let every = std::iter::once(&parts.session).chain(&parts.sections);
    for kind in every.flat_map(|of| of.attributes("candidate")).filter_map(candidate_kind) {
        match counts.iter_mut().find(|(of, _)| *of == kind) {
            Some((_, count)) => *count += 1,
            None => counts.push((kind, 1)),
        }
    }
    let name = |((kind, transport), count)| format!("{count} {kind} {transport}");
    counts.into_iter().map(name).collect()
}

/// Foundation, component, transport, priority, address, port, `typ` and the type (RFC 8839 5.1).
fn candidate_kind(value: &str) -> Option<(&'static str, &'static str)> {
    let mut words = value.split_whitespace().skip(2);
    let transport = if words.next()?.eq_ignore_ascii_case("tcp") { "tcp" } else { "udp" };
    let kind = words.skip(3).skip_while(|word| *word != "typ").nth(1)?;
    Some((CANDIDATE_TYPES.into_iter().find(|of| *of == kind).unwrap_or("other"), transport))
}

fn agreed_of(offer: &Offer) -> Vec<MediaSummary> {
    let section = |kind: &Kind| match kind {
        Kind::Audio => offer.audio.as_ref().map(|_| ("audio", vec![OPUS.to_owned()])),
        Kind::Video => offer.video.as_ref().map(|video| {
            let profile = video.profile_level().map(|digits| format!(" {digits}"));
            let mut codecs = vec![format!("{H264}{}", profile.unwrap_or_default())];
            codecs.extend(video.answered_rtx().map(|_| RTX.to_owned()));
            ("video", codecs)
        }),
    };
    let sections = offer.order.iter().filter_map(section);
    let agreed =
        |(kind, codecs)| MediaSummary { kind, is_off: false, direction: "recvonly", codecs };
    sections.map(agreed).collect()
}
