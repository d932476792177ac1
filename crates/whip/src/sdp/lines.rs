//! SDP text → session and media sections with their attributes. What they mean is `offer`'s.

use super::offer::OfferError;

/// Lines of one offer; the longest seen has about 200.
const LINE_LIMIT: usize = 2000;
/// Sections that are read at all; two are accepted.
const SECTION_LIMIT: usize = 8;

/// A media section, or the part before the first one.
#[derive(Debug, Default)]
pub(super) struct Lines<'a> {
    /// Value of the `m=` line.
    pub(super) media: &'a str,
    /// `a=` lines as name and value.
    attributes: Vec<(&'a str, &'a str)>,
}

impl<'a> Lines<'a> {
    /// The first attribute of that name.
    pub(super) fn attribute(&self, name: &str) -> Option<&'a str> {
        self.attributes(name).next()
    }

    /// All attributes of that name, in order.
    pub(super) fn attributes<'b>(&'b self, name: &'b str) -> impl Iterator<Item = &'a str> + 'b {
        self.attributes.iter().filter(move |(of, _)| *of == name).map(|(_, value)| *value)
    }

    /// Whether there is such an attribute.
    pub(super) fn has(&self, name: &str) -> bool {
        self.attribute(name).is_some()
    }

    /// Values of the attribute that stand behind payload type `format`, such as `fmtp:96 …`; `*` counts for all.
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
}

/// The session's lines, then each section's.
pub(super) fn split(text: &str) -> Result<(Lines<'_>, Vec<Lines<'_>>), OfferError> {
    let mut session = Lines::default();
    let mut sections: Vec<Lines<'_>> = Vec::new();
    for (number, line) in text.split(['\n', '\r']).enumerate() {
        if number >= 2 * LINE_LIMIT {
            return Err(OfferError::TooLong);
        }
        // Senders with trailing blanks exist.
        let line = line.trim();
        let Some((kind, value)) = line.split_once('=') else {
            if line.is_empty() {
                continue;
            }
            return Err(OfferError::Malformed);
        };
        match kind {
            "m" if sections.len() >= SECTION_LIMIT => return Err(OfferError::TooLong),
            "m" => sections.push(Lines { media: value, attributes: Vec::new() }),
            "a" => {
                let attribute = value.split_once(':').unwrap_or((value, ""));
                sections.last_mut().unwrap_or(&mut session).attributes.push(attribute);
            }
            _ if kind.len() == 1 => {}
            _ => return Err(OfferError::Malformed),
        }
    }
    Ok((session, sections))
}
