//! One half of an RTMP address, the app of connect or the name of publish and play, as a person may have typed or pasted
//! it. Pure; how the halves are joined is in `target`.

use std::borrow::Cow;

/// Typographic and ASCII quotes that surround pasted text.
const QUOTES: [char; 13] = [
    '"', '\'', '`', '<', '>', '\u{ab}', '\u{bb}', '\u{2018}', '\u{2019}', '\u{201a}', '\u{201c}',
    '\u{201d}', '\u{201e}',
];
/// Characters without width that text editors and chats insert.
const INVISIBLE: [char; 8] =
    ['\u{ad}', '\u{200b}', '\u{200c}', '\u{200d}', '\u{200e}', '\u{200f}', '\u{2060}', '\u{feff}'];
/// Prefixes by which Flash Media Server chose a file format.
const FORMATS: [&[u8]; 7] = [b"mp4:", b"flv:", b"mp3:", b"f4v:", b"mov:", b"raw:", b"id3:"];
/// The default instance of an application on Flash Media Server and Wowza.
const DEFAULT_INSTANCE: &[u8] = b"_definst_";
const SCHEMES: [&[u8]; 6] = [b"rtmp", b"rtmps", b"rtmpt", b"rtmpts", b"rtmpe", b"rtmpte"];
/// The longest of them, and the colon.
const SCHEME_LIMIT_BYTES: usize = 7;

/// The path and the arguments of one half.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Part<'a> {
    /// Segments of the path, without empty ones and without what a person or program put around them.
    pub(crate) segments: Vec<&'a [u8]>,
    /// What follows the path: as sent, or percent-decoded once if its `?` was encoded like everything after it.
    pub(crate) arguments: Option<Cow<'a, [u8]>>,
    /// It was a whole URL, whose scheme and host are not in `segments`.
    pub(crate) is_url: bool,
}

impl<'a> Part<'a> {
    /// The name of publish or play.
    pub(crate) fn read(text: &'a [u8]) -> Self {
        let start = text.len() - trim_start(text).len();
        let is_quoted =
            std::str::from_utf8(&text[..start]).is_ok_and(|start| start.contains(QUOTES));
        let text = if is_quoted { trim_quote(text) } else { text };
        let text = text.get(start..).unwrap_or_default();
        let path = after_host(text);
        let (path, is_url) = path.map_or((text, false), |path| (path, true));
        let (path, arguments) = split_arguments(path);
        let segments = path.split(|byte| *byte == b'/').map(trim_format);
        let segments = segments.filter(|one| !one.is_empty() && *one != DEFAULT_INSTANCE).collect();
        Self { segments, arguments, is_url }
    }

    /// The app of connect, in which the port may be at either end of the first segment.
    pub(crate) fn read_app(text: &'a [u8]) -> Self {
        let mut part = Self::read(text);
        if let Some(first) = part.segments.first_mut()
            && let Some(colon) = first.iter().position(|byte| *byte == b':')
            && first[colon + 1..].iter().all(u8::is_ascii_digit)
        {
            *first = &first[..colon];
            part.segments.retain(|segment| !segment.is_empty());
        }
        part
    }
}

/// Splits at the first `?`, or at what was written for it: `&`, or `%3F`.
fn split_arguments(text: &[u8]) -> (&[u8], Option<Cow<'_, [u8]>>) {
    let is_encoded =
        |at: usize| text[at..].get(..3).is_some_and(|of| of.eq_ignore_ascii_case(b"%3F"));
    let found = (0..text.len()).find(|at| matches!(text[*at], b'?' | b'&') || is_encoded(*at));
    let Some(at) = found else { return (text, None) };
    let (path, rest) = text.split_at(at);
    if !is_encoded(at) {
        return (path, Some(rest[1..].into()));
    }
    let arguments = &rest[3..];
    // Arguments with a plain `=` or `&` were written as they are meant.
    let is_plain = arguments.iter().any(|byte| matches!(byte, b'=' | b'&'));
    (path, Some(if is_plain { arguments.into() } else { decode_percent(arguments) }))
}

/// Percent-decodes once; what is not an escape stays.
pub(crate) fn decode_percent(text: &[u8]) -> Cow<'_, [u8]> {
    if !text.contains(&b'%') {
        return text.into();
    }
    let (mut decoded, mut rest) = (Vec::with_capacity(text.len()), text);
    while let Some((first, after)) = rest.split_first() {
        let digits = after.first_chunk::<2>().filter(|_| *first == b'%');
        let digits = digits.filter(|two| two.iter().all(u8::is_ascii_hexdigit));
        let value =
            digits.and_then(|two| u8::from_str_radix(std::str::from_utf8(two).ok()?, 16).ok());
        decoded.push(value.unwrap_or(*first));
        rest = if value.is_some() { &after[2..] } else { after };
    }
    decoded.into()
}

/// The path of a URL; `None` if the text is not one.
fn after_host(text: &[u8]) -> Option<&[u8]> {
    let colon = text.iter().take(SCHEME_LIMIT_BYTES).position(|byte| *byte == b':')?;
    let is_scheme = SCHEMES.iter().any(|scheme| text[..colon].eq_ignore_ascii_case(scheme));
    let rest = text[colon + 1..].strip_prefix(b"//").filter(|_| is_scheme)?;
    let end = rest.iter().position(|byte| matches!(byte, b'/' | b'?'));
    Some(&rest[end.unwrap_or(rest.len())..])
}

/// Removes what surrounds a segment, and a file format.
fn trim_format(segment: &[u8]) -> &[u8] {
    let segment = trim_end(trim_start(segment));
    match segment.split_at_checked(4) {
        Some((format, rest)) if FORMATS.iter().any(|one| format.eq_ignore_ascii_case(one)) => rest,
        Some(_) | None => segment,
    }
}

/// Removes the quote that closes the text, and what follows it.
fn trim_quote(text: &[u8]) -> &[u8] {
    let inner = trim_end_of(text, is_blank);
    let without = trim_end_of(inner, |one| QUOTES.contains(&one));
    if without.len() < inner.len() { without } else { text }
}

fn is_blank(one: char) -> bool {
    one.is_whitespace() || one.is_control()
}

fn is_around(one: char) -> bool {
    one.is_whitespace() || one.is_control() || QUOTES.contains(&one) || INVISIBLE.contains(&one)
}

fn trim_start(text: &[u8]) -> &[u8] {
    let valid = text.utf8_chunks().next().map_or("", |chunk| chunk.valid());
    &text[valid.len() - valid.trim_start_matches(is_around).len()..]
}

fn trim_end(text: &[u8]) -> &[u8] {
    trim_end_of(text, is_around)
}

fn trim_end_of(text: &[u8], is: impl Fn(char) -> bool) -> &[u8] {
    let last = text.utf8_chunks().last().filter(|chunk| chunk.invalid().is_empty());
    let valid = last.map_or("", |chunk| chunk.valid());
    &text[..text.len() - (valid.len() - valid.trim_end_matches(is).len())]
}
