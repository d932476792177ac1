//! The client's transport: BUNDLE, ICE credentials, fingerprint, DTLS role, candidates.

use std::net::SocketAddr;

use super::error::OfferError;
use super::lines::Lines;
use super::offer::Setup;

/// Candidates in one offer, ignored ones included.
const CANDIDATE_LIMIT: usize = 100;
/// RFC 8839 5.4.
const UFRAG_LEAST: usize = 4;
const PASSWORD_LEAST: usize = 22;
const CREDENTIAL_LIMIT: usize = 256;

/// The single transport that all sections share.
pub(super) struct Connection {
    pub(super) ufrag: String,
    pub(super) pwd: String,
    pub(super) fingerprint: [u8; 32],
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
        let (media, session_level) =
            (tagged.attributes("fingerprint"), session.attributes("fingerprint"));
        let fingerprint = media.chain(session_level).find_map(read_fingerprint);
        let fingerprint = fingerprint.ok_or(OfferError::Fingerprint)?;
        let setup = read_setup(either("setup"))?;
        if !tagged.has("rtcp-mux") && !session.has("rtcp-mux") {
            return Err(OfferError::Transport);
        }
        Ok(Self { ufrag: ufrag.to_owned(), pwd: pwd.to_owned(), fingerprint, setup })
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
pub(super) fn read_candidates<'a>(
    lines: impl Iterator<Item = &'a str>,
) -> Result<Vec<SocketAddr>, OfferError> {
    let mut candidates = Vec::new();
    for (number, line) in lines.enumerate() {
        if number >= CANDIDATE_LIMIT {
            return Err(OfferError::TooLong);
        }
        let found = read_candidate(line).filter(|found| !candidates.contains(found));
        candidates.extend(found);
    }
    Ok(candidates)
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

/// RFC 8122 5; fingerprints with other hashes may be present too.
fn read_fingerprint(value: &str) -> Option<[u8; 32]> {
    let (algorithm, digits) = value.split_once([' ', '\t'])?;
    if !algorithm.eq_ignore_ascii_case("sha-256") {
        return None;
    }
    let mut fingerprint = [0; 32];
    let mut pairs = digits.trim().split(':');
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
