//! The target of a publish or play command (R2 of the decisions), from the app and the name as people and programs
//! write them. docs/rtmp.md explains each form.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;

use crate::address::{Part, decode_percent};

/// App, stream name and custom arguments.
#[derive(Clone, PartialEq, Eq)]
pub struct Target {
    /// The app that is served.
    pub app: String,
    /// The stream name; empty if neither app nor name contained one.
    pub name: Vec<u8>,
    /// Custom arguments, bytes as sent; `None` if there are none.
    pub arguments: Option<Vec<u8>>,
}

impl Target {
    /// Whether the first segment of a connect's app means the app `served`.
    pub(crate) fn is_app(served: &str, app: &[u8]) -> bool {
        Part::read_app(app).segments.first().is_some_and(|first| is_same(first, served.as_bytes()))
    }

    /// Joins the app of connect and the name of publish or play. [`Target::is_app`] holds for the app.
    ///
    /// An encoder may cut the address elsewhere: the app may contain the whole path and its arguments, and the name
    /// nothing, the arguments again, or the rest of an argument that contains a slash.
    #[must_use]
    pub(crate) fn parse(served: &str, app: &[u8], name: &[u8]) -> Self {
        let (server, key) = (Part::read_app(app), Part::read(name));
        let in_server = server.segments.get(1..).unwrap_or_default();
        let in_key = match key.segments.split_first() {
            Some((first, rest))
                if is_same(first, served.as_bytes()) && (key.is_url || !rest.is_empty()) =>
            {
                rest
            }
            Some(_) | None => &key.segments[..],
        };
        let (segments, arguments) = if in_server.is_empty() {
            // Arguments of the app alone (`rtmp://host/live?k=v`) belong to the connection.
            (in_key.to_vec(), key.arguments)
        } else if in_key.is_empty() || in_key == in_server {
            (in_server.to_vec(), merge(server.arguments, key.arguments))
        } else if let Some(cut) = server.arguments {
            (in_server.to_vec(), Some([&cut[..], b"/", name].concat().into()))
        } else {
            ([in_server, in_key].concat(), key.arguments)
        };
        // No argument contains a control character, so one at the end was pasted along.
        let end = |arguments: &[u8]| arguments.iter().rposition(|byte| !byte.is_ascii_control());
        let arguments = arguments.map(|arguments| {
            let length = end(&arguments).map_or(0, |last| last + 1);
            arguments[..length].to_vec()
        });
        Self { app: served.to_owned(), name: segments.join(&b'/'), arguments }
    }
}

fn is_same(segment: &[u8], served: &[u8]) -> bool {
    segment.eq_ignore_ascii_case(served)
}

/// The arguments of the app and of the name, each once: OBS sends those of the app in both, percent-decoded and with
/// its own after them.
fn merge<'a>(app: Option<Cow<'a, [u8]>>, name: Option<Cow<'a, [u8]>>) -> Option<Cow<'a, [u8]>> {
    let (app, name) = match (app, name) {
        (Some(app), Some(name)) if !app.is_empty() => (app, name),
        (app, name) => return name.or(app),
    };
    let pairs = |of| <[u8]>::split(of, |byte| *byte == b'&').filter(|pair| !pair.is_empty());
    let known: HashSet<_> = pairs(&app).map(decode_percent).collect();
    let mut merged = app.to_vec();
    for pair in pairs(&name).filter(|pair| !known.contains(&decode_percent(pair))) {
        merged.push(b'&');
        merged.extend_from_slice(pair);
    }
    Some(merged.into())
}

/// Arguments are secrets: only their length is printed.
impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Target")
            .field("app", &self.app)
            .field("name", &String::from_utf8_lossy(&self.name))
            .field("arguments_bytes", &self.arguments.as_ref().map(Vec::len))
            .finish()
    }
}

#[cfg(test)]
#[path = "target_tests.rs"]
mod tests;
