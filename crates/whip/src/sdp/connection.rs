//! The client's transport: BUNDLE, ICE credentials, fingerprint, DTLS role, candidates.

use std::net::SocketAddr;

use super::error::OfferError;
use super::lines::{Lines, split_fragment};

/// Fingerprints read from one offer; further ones are ignored.
const FINGERPRINT_LIMIT: usize = 16;
/// RFC 8839 5.4.
const UFRAG_LEAST: usize = 4;
const PASSWORD_LEAST: usize = 22;
const CREDENTIAL_LIMIT: usize = 256;

/// Which side sends the ClientHello in DTLS (RFC 8842).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Setup {
    /// The client does.
    Active,
    /// We do.
    Passive,
    /// We choose, and let the client do it.
    ActPass,
}

/// Whether this SDP is an offer that leaves the DTLS role to the other side, as ours do (RFC 8842 5.2).
#[must_use]
pub fn offers_role(sdp: &str) -> bool {
    let is_open = |of: &Lines<'_>| matches!(read_setup(of.attribute("setup")), Ok(Setup::ActPass));
    split_fragment(sdp).is_ok_and(|parts| parts.sections.iter().any(is_open))
}

/// The single transport that all sections share.
pub(super) struct Connection {
    pub(super) ufrag: String,
    pub(super) pwd: String,
    pub(super) fingerprints: Vec<[u8; 32]>,
    pub(super) setup: Setup,
}

impl Connection {
    /// Reads from the tagged section, and from the session level what that section lacks. Other sections may omit the
    /// attributes (RFC 8829 5.2.1) or, as with aiortc, carry credentials of their own.
    pub(super) fn read(session: &Lines<'_>, tagged: &Lines<'_>) -> Result<Self, OfferError> {
        let either = |name| tagged.attribute(name).or_else(|| session.attribute(name));
        let (ufrag, pwd) = (either("ice-ufrag").unwrap_or(""), either("ice-pwd").unwrap_or(""));
        if !is_ufrag(ufrag) || !is_password(pwd) {
            return Err(OfferError::Credentials);
        }
        let fingerprints = read_fingerprints(session, tagged)?;
        let setup = read_setup(either("setup"))?;
        if !tagged.has("rtcp-mux") && !session.has("rtcp-mux") {
            return Err(OfferError::Transport);
        }
        Ok(Self { ufrag: ufrag.to_owned(), pwd: pwd.to_owned(), fingerprints, setup })
    }
}

/// The mids of the BUNDLE group that contains every section, in the group's order: the first is the tagged section (RFC
/// 9143 7.2). Mids in the group that no section has are ignored (FFmpeg 8.0). Empty when the only section is in no
/// group.
pub(super) fn read_bundle(session: &Lines<'_>, mids: &[&str]) -> Result<Vec<String>, OfferError> {
    for group in session.attributes("group") {
        let mut words = group.split_whitespace();
        if words.next() != Some("BUNDLE") {
            continue;
        }
        let mut members: Vec<String> = Vec::new();
        for word in words {
            if mids.contains(&word) && members.iter().all(|member| member != word) {
                members.push(word.to_owned());
            }
        }
        if members.len() == mids.len() {
            return Ok(members);
        }
    }
    if mids.len() > 1 { Err(OfferError::Transport) } else { Ok(Vec::new()) }
}

/// Literal UDP addresses for RTP; host names (mostly mDNS), TCP and unusable addresses are ignored.
pub(super) fn read_candidates<'a>(lines: impl Iterator<Item = &'a str>) -> Vec<SocketAddr> {
    let mut candidates = Vec::new();
    for candidate in lines.filter_map(read_candidate) {
        if !candidates.contains(&candidate) {
            candidates.push(candidate);
        }
    }
    candidates
}

/// Foundation, component, transport, priority, address, port (RFC 8839 5.1). Eyevinn's client counts components from 0.
fn read_candidate(value: &str) -> Option<SocketAddr> {
    let mut words = value.split_whitespace().skip(1);
    let is_rtp = matches!(words.next()?, "0" | "1");
    let is_udp = words.next()?.eq_ignore_ascii_case("udp");
    let (address, port) = (words.nth(1)?, words.next()?);
    let candidate = SocketAddr::new(address.parse().ok()?, port.parse().ok()?);
    let ip = candidate.ip();
    let is_usable = candidate.port() != 0 && !ip.is_unspecified() && !ip.is_multicast();
    (is_rtp && is_udp && is_usable).then_some(candidate)
}

/// An absent attribute means active (RFC 4145 4).
fn read_setup(value: Option<&str>) -> Result<Setup, OfferError> {
    match value {
        Some("actpass") => Ok(Setup::ActPass),
        Some("active") | None => Ok(Setup::Active),
        Some("passive") => Ok(Setup::Passive),
        Some(_) => Err(OfferError::Setup),
    }
}

/// The SHA-256 fingerprints of the session and of the section, of which the certificate has one (RFC 8122 5). Lines with
/// other hashes, and those that cannot be read, are ignored.
fn read_fingerprints(session: &Lines<'_>, tagged: &Lines<'_>) -> Result<Vec<[u8; 32]>, OfferError> {
    let lines = tagged.attributes("fingerprint").chain(session.attributes("fingerprint"));
    let mut fingerprints = Vec::new();
    for fingerprint in lines.filter_map(read_fingerprint).take(FINGERPRINT_LIMIT) {
        if !fingerprints.contains(&fingerprint) {
            fingerprints.push(fingerprint);
        }
    }
    if fingerprints.is_empty() { Err(OfferError::Fingerprint) } else { Ok(fingerprints) }
}

/// `sha-256` and 32 pairs of digits with colons between them, in any case and with any spaces around them.
fn read_fingerprint(value: &str) -> Option<[u8; 32]> {
    let mut words = value.split_whitespace();
    if !words.next()?.eq_ignore_ascii_case("sha-256") {
        return None;
    }
    let digits = words.collect::<String>();
    let mut fingerprint = [0; 32];
    let mut pairs = digits.split(':');
    for byte in &mut fingerprint {
        let pair = pairs.next()?;
        if pair.len() != 2 || !pair.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return None;
        }
        *byte = u8::from_str_radix(pair, 16).ok()?;
    }
    pairs.next().is_none().then_some(fingerprint)
}

/// RFC 8839 5.4.
pub(super) fn is_ufrag(text: &str) -> bool {
    is_credential(text, UFRAG_LEAST)
}

/// RFC 8839 5.4.
pub(super) fn is_password(text: &str) -> bool {
    is_credential(text, PASSWORD_LEAST)
}

/// Graphic ASCII of bounded length: it is never written into SDP, but it is kept in memory.
fn is_credential(text: &str, least: usize) -> bool {
    (least..=CREDENTIAL_LIMIT).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_graphic())
}
