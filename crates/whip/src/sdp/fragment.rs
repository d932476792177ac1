//! Trickle ICE: reads `application/trickle-ice-sdpfrag` and writes the answer to an ICE restart (RFC 8840 4.4, 9; RFC
//! 9725 4.3). Pure.

use std::fmt;
use std::net::SocketAddr;

use super::answer::{Sdp, write_candidates};
use super::connection::{is_password, is_ufrag, read_candidates};
use super::error::OfferError;
use super::lines::{Lines, Parts, split_fragment};
use super::offer::Offer;
use super::offered::Kind;

/// Most bytes of a fragment; a hundred candidates take 12 kB.
const FRAGMENT_LIMIT_BYTES: usize = 64 * 1024;

/// A client's fragment.
#[derive(Clone, PartialEq, Eq)]
pub struct Fragment {
    /// ICE user name fragment that the candidates belong to.
    pub ufrag: String,
    /// ICE password that belongs to `ufrag`.
    pub pwd: String,
    /// Literal UDP addresses; host names and other transports are ignored (RFC 9725 4.3.2).
    pub candidates: Vec<SocketAddr>,
}

impl fmt::Debug for Fragment {
    /// Omits the ICE credentials.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Fragment")
            .field("candidates", &self.candidates)
            .finish_non_exhaustive()
    }
}

/// Reads a fragment. Clients write `m=` lines in any form, with the candidates after or before them.
///
/// # Errors
/// When it is malformed, too long, or lacks the credentials it belongs to.
pub fn read_fragment(text: &str) -> Result<Fragment, OfferError> {
    if text.len() > FRAGMENT_LIMIT_BYTES {
        return Err(OfferError::TooLong);
    }
    let Parts { session, sections } = split_fragment(text)?;
    let every: Vec<&Lines<'_>> = std::iter::once(&session).chain(&sections).collect();
    let one = |name| {
        let mut values = every.iter().flat_map(|lines| lines.attributes(name));
        let first = values.next()?;
        // One transport has one pair of credentials, even if it is repeated.
        values.all(|value| value == first).then_some(first)
    };
    let (ufrag, pwd) = (one("ice-ufrag").unwrap_or(""), one("ice-pwd").unwrap_or(""));
    if !is_ufrag(ufrag) || !is_password(pwd) {
        return Err(OfferError::Credentials);
    }
    let candidates = read_candidates(every.iter().flat_map(|lines| lines.attributes("candidate")));
    Ok(Fragment { ufrag: ufrag.to_owned(), pwd: pwd.to_owned(), candidates })
}

/// Our half of an ICE restart: new credentials, the same candidates, ICE-lite as in the answer (RFC 9725 4.3.3).
#[must_use]
pub fn write_fragment(offer: &Offer, ufrag: &str, pwd: &str, candidates: &[SocketAddr]) -> String {
    let mut sdp = Sdp::new();
    sdp.line("a=ice-lite");
    if !offer.bundle.is_empty() {
        sdp.line(&format!("a=group:BUNDLE {}", offer.bundle.join(" ")));
    }
    let section = |kind: &Kind| match kind {
        Kind::Audio => offer
            .audio
            .as_ref()
            .map(|audio| ("audio", audio.protocol, audio.payload_type, &audio.mid)),
        Kind::Video => offer
            .video
            .as_ref()
            .map(|video| ("video", video.protocol, video.payload_type, &video.mid)),
    };
    // The section that represents the bundle's transport (RFC 9143 7.2).
    let tag = offer.bundle.first();
    let mut sections = offer.order.iter().filter_map(section);
    if let Some((media, protocol, format, mid)) =
        sections.find(|(.., mid)| tag.is_none_or(|tag| tag == *mid))
    {
        sdp.line(&format!("m={media} 9 {protocol} {format}"));
        if !mid.is_empty() {
            sdp.line(&format!("a=mid:{mid}"));
        }
    }
    sdp.line(&format!("a=ice-ufrag:{ufrag}"));
    sdp.line(&format!("a=ice-pwd:{pwd}"));
    write_candidates(&mut sdp, candidates);
    sdp.into_text()
}

#[cfg(test)]
mod tests {
    use super::super::golden_tests::GOLDENS;
    use super::super::read_offer;
    use super::*;

    const CREDENTIALS: &str = "a=ice-ufrag:EsAw\r\na=ice-pwd:P2uYro0UCOQ4zxjKXaWCBui1\r\n";

    #[test]
    fn fragments_of_real_clients_are_parsed() {
        let address: SocketAddr = "192.0.2.8:40000".parse().expect("an address");
        let candidate = "a=candidate:1 1 udp 2130706431 192.0.2.8 40000 typ host\r\n";
        let table = [
            // As in RFC 9725 4.3.2, from browsers (whip-whep), from Eyevinn's and Meetecho's clients, from whip-js
            // (without a port) and from GStreamer (with its mids).
            format!(
                "a=group:BUNDLE 0 1\r\nm=audio 9 UDP/TLS/RTP/SAVPF 111\r\na=mid:0\r\n{CREDENTIALS}{candidate}a=end-of-candidates\r\n"
            ),
            format!("{CREDENTIALS}m=video 9 UDP/TLS/RTP/SAVPF 0\r\na=mid:1\r\n{candidate}"),
            format!(
                "{CREDENTIALS}m=audio 9 RTP/AVP 0\r\na=mid:0\r\n{}",
                candidate.replace(" 1 udp", " 0 udp")
            ),
            format!("m=audio RTP/AVP 0\r\na=mid:0\r\n{CREDENTIALS}{candidate}"),
            format!(
                "v=0\r\no=- 1 1 IN IP4 0.0.0.0\r\ns=-\r\n{CREDENTIALS}m=audio 9 RTP/AVP 0\na=mid:audio0\n{candidate}m=video 9 RTP/AVP 0\na=mid:video1\n{CREDENTIALS}{candidate}"
            ),
            format!(
                "{CREDENTIALS}a=candidate:2 1 UDP 1 4f2c.local 5 typ host\n{candidate}a=candidate:3 1 tcp 1 192.0.2.8 9 typ host tcptype active"
            ),
        ];
        for text in table {
            let fragment = read_fragment(&text).expect(&text);
            assert_eq!(fragment.ufrag, "EsAw");
            assert_eq!(fragment.pwd, "P2uYro0UCOQ4zxjKXaWCBui1");
            assert_eq!(fragment.candidates, [address], "{text}");
        }
        let end = read_fragment(&format!("{CREDENTIALS}a=end-of-candidates\r\n")).expect("no more");
        assert!(end.candidates.is_empty());
    }

    #[test]
    fn candidates_beyond_the_limit_are_ignored() {
        for count in [100, 101, 1_000] {
            let lines =
                (1..=count).map(|n| format!("a=candidate:1 1 udp 1 192.0.2.8 {n} typ host\n"));
            let text = format!("{CREDENTIALS}{}a=end-of-candidates\n", lines.collect::<String>());
            let fragment = read_fragment(&text).expect("accepted");
            assert_eq!((fragment.candidates.len(), fragment.candidates[99].port()), (100, 100));
        }
    }

    #[test]
    fn invalid_fragments_are_rejected() {
        let other = CREDENTIALS.replace("EsAw", "EsAx");
        let table = [
            ("", OfferError::Credentials),
            ("{}", OfferError::Malformed),
            ("hello", OfferError::Malformed),
            ("a=ice-ufrag:EsAw\n", OfferError::Credentials),
            ("a=ice-ufrag:E\na=ice-pwd:P2uYro0UCOQ4zxjKXaWCBui1\n", OfferError::Credentials),
            (&format!("{CREDENTIALS}m=audio 9 RTP/AVP 0\n{other}"), OfferError::Credentials),
            (&format!("{CREDENTIALS}{}", "b=x\n".repeat(20_000)), OfferError::TooLong),
        ];
        for (text, error) in table {
            assert_eq!(read_fragment(text), Err(error), "{}", &text[..text.len().min(80)]);
        }
    }

    #[test]
    fn the_answer_to_a_restart_parses_to_what_was_written() {
        for (name, text) in GOLDENS {
            let Ok(offer) = read_offer(text) else { continue };
            let candidates = ["203.0.113.4:8189".parse().expect("an address")];
            let pwd = "ours-ours-ours-ours-ours";
            let written = write_fragment(&offer, "ourufrag", pwd, &candidates);
            assert!(
                written.starts_with("a=ice-lite\r\n")
                    && written.ends_with("a=end-of-candidates\r\n")
            );
            assert_eq!(written.matches("m=").count(), 1, "{name}");
            let group = format!("a=group:BUNDLE {}", offer.bundle.join(" "));
            let groups: Vec<_> = written.lines().filter(|line| line.contains("BUNDLE")).collect();
            let is_bundled = !offer.bundle.is_empty();
            assert_eq!(groups, if is_bundled { vec![&group[..]] } else { vec![] }, "{name}");
            let fragment = read_fragment(&written).expect(name);
            assert_eq!((fragment.ufrag.as_str(), fragment.pwd.as_str()), ("ourufrag", pwd));
            assert_eq!(fragment.candidates, candidates);
        }
    }
}
