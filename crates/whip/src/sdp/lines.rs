//! SDP text → session and media sections with their attributes (RFC 8866 5). It does not interpret them.

use super::error::OfferError;

/// Non-blank lines in one offer, candidates not counted; the longest seen has about 200.
const LINE_LIMIT: usize = 2000;
/// Candidates kept of one offer or fragment; further ones are ignored.
pub(super) const CANDIDATE_LIMIT: usize = 100;

/// A media section, or the part before the first one.
#[derive(Debug, Default)]
pub(super) struct Lines<'a> {
    /// Value of the `m=` line.
    pub(super) media: &'a str,
    /// `a=` lines as name and value.
    attributes: Vec<(&'a str, &'a str)>,
}

impl<'a> Lines<'a> {
    /// The first attribute with that name.
    pub(super) fn attribute(&self, name: &str) -> Option<&'a str> {
        self.attributes(name).next()
    }

    /// All attributes with that name, in order.
    pub(super) fn attributes<'b>(&'b self, name: &'b str) -> impl Iterator<Item = &'a str> + 'b {
        self.attributes.iter().filter(move |(of, _)| *of == name).map(|(_, value)| *value)
    }

    /// Whether an attribute with that name exists.
    pub(super) fn has(&self, name: &str) -> bool {
        self.attribute(name).is_some()
    }

    /// Values of the attribute for payload type `format`, such as `fmtp:96 …`; `*` applies to all payload types.
    pub(super) fn of_format<'b>(
        &'b self,
        name: &'b str,
        format: u8,
    ) -> impl Iterator<Item = &'a str> + 'b {
        self.attributes(name).filter_map(move |value| {
            let (of, rest) = value.split_once([' ', '\t'])?;
            (of == "*" || of.parse() == Ok(format)).then_some(rest.trim())
        })
    }

    /// The `fmtp` parameters of one payload type as names and values; some senders put blanks around them.
    pub(super) fn parameters(&self, format: u8) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.of_format("fmtp", format)
            .flat_map(|line| line.split(';'))
            .filter_map(|parameter| parameter.split_once('='))
            .map(|(name, value)| (name.trim(), value.trim()))
    }

    /// Whether payload type `format` is this codec at this clock rate; the codec's name is compared without case.
    pub(super) fn is_codec(&self, format: u8, name: &str, rate: &str) -> bool {
        self.of_format("rtpmap", format).next().is_some_and(|map| {
            let mut parts = map.split('/').map(str::trim);
            parts.next().is_some_and(|of| of.eq_ignore_ascii_case(name))
                && parts.next() == Some(rate)
        })
    }

    /// The channel count after the clock rate of payload type `format`, as written.
    pub(super) fn channels(&self, format: u8) -> Option<&'a str> {
        self.of_format("rtpmap", format).next()?.split('/').nth(2).map(str::trim)
    }
}

/// The session's lines, then each section's.
#[derive(Debug, Default)]
pub(super) struct Parts<'a> {
    pub(super) session: Lines<'a>,
    pub(super) sections: Vec<Lines<'a>>,
}

impl<'a> Parts<'a> {
    /// Adds the lines of an SDP. They may end in CRLF, LF or CR; some senders write trailing blanks. After an error the
    /// lines before the faulty one are there.
    pub(super) fn read(&mut self, text: &'a str) -> Result<(), OfferError> {
        if text.split(['\n', '\r']).map(str::trim).find(|line| !line.is_empty()) != Some("v=0") {
            return Err(OfferError::Malformed);
        }
        self.read_fragment(text)
    }

    fn read_fragment(&mut self, text: &'a str) -> Result<(), OfferError> {
        let lines = text.split(['\n', '\r']).map(str::trim).filter(|line| !line.is_empty());
        let (mut number, mut candidates) = (0, 0);
        for line in lines {
            if line.starts_with("a=candidate:") {
                candidates += 1;
                if candidates > CANDIDATE_LIMIT {
                    continue;
                }
            } else {
                number += 1;
            }
            if number > LINE_LIMIT {
                return Err(OfferError::TooLong);
            }
            let (kind, value) = line.split_once('=').ok_or(OfferError::Malformed)?;
            match kind {
                "m" => self.sections.push(Lines { media: value, attributes: Vec::new() }),
                "a" => {
                    let attribute = value.split_once(':').unwrap_or((value, ""));
                    self.sections
                        .last_mut()
                        .unwrap_or(&mut self.session)
                        .attributes
                        .push(attribute);
                }
                _ if kind.len() == 1 => {}
                _ => return Err(OfferError::Malformed),
            }
        }
        Ok(())
    }
}

/// A part of an SDP, which need not begin with `v=0`.
pub(super) fn split_fragment(text: &str) -> Result<Parts<'_>, OfferError> {
    let mut parts = Parts::default();
    parts.read_fragment(text)?;
    Ok(parts)
}
