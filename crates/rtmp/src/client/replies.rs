//! Parses a server's replies leniently: numbers as strings or missing, statuses without a level or in another place.
//! Classifies refusals by code and description. Pure.

use crate::amf0::Value;
use crate::message::Command;

/// Longest URL accepted in a redirect.
const URL_LIMIT_BYTES: usize = 2048;

/// Why a server refused, as far as its code and description show.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RefusalKind {
    /// The server does not accept the stream name.
    BadName,
    /// The name is already being published: usually by ourselves, from a lost connection that has not timed out yet.
    Occupied,
    /// The server does not permit the publish or play.
    Denied,
    /// The server requires authentication and we have no credentials, or it rejected ours.
    Credentials,
    /// The server has no such app.
    InvalidApp,
    /// The server has no capacity at the moment.
    Full,
    /// Anything else.
    Unknown,
}

impl RefusalKind {
    /// Whether the same request will be refused again; otherwise a later attempt may succeed.
    #[must_use]
    pub const fn is_fatal(self) -> bool {
        match self {
            Self::BadName | Self::Denied | Self::Credentials | Self::InvalidApp => true,
            Self::Occupied | Self::Full | Self::Unknown => false,
        }
    }

    fn of(code: &str, description: &str) -> Self {
        let subject = code.rsplit('.').next().unwrap_or_default();
        if subject == "InvalidApp" {
            return Self::InvalidApp;
        }
        // Servers use one code both for invalid names and for names in use; only the description differs.
        let lower = description.to_ascii_lowercase();
        let words: Vec<&str> = lower.split(|c: char| !c.is_alphanumeric()).collect();
        let words = format!(" {} ", words.join(" "));
        let says = |texts: &[&str]| texts.iter().any(|text| words.contains(&format!(" {text} ")));
        if says(&["already", "duplicate", "in use", "occupied", "busy"]) {
            Self::Occupied
        } else if says(&["full", "too many", "capacity", "overloaded"]) {
            Self::Full
        } else if says(&["is not defined"]) {
            Self::InvalidApp
        } else {
            match subject {
                "BadName" => Self::BadName,
                "Denied" | "Rejected" | "Unauthorized" => Self::Denied,
                _ => Self::Unknown,
            }
        }
    }
}

/// An information object (RTMP 7.2.2); missing fields are empty.
#[derive(Debug)]
pub(super) struct Status {
    level: String,
    pub(super) code: String,
    pub(super) description: String,
    /// The URL the server redirects us to.
    pub(super) redirect: Option<String>,
}

impl Status {
    /// Reads an onStatus or `_error`; some servers put the information in place of the command object.
    pub(super) fn read(command: &Command) -> Self {
        let values = || command.arguments.iter().chain([&command.object]);
        let information = values()
            .find(|value| value.property("code").is_some())
            .or_else(|| values().find(|value| value.property("description").is_some()))
            .unwrap_or(&Value::Undefined);
        let text = |key| information.property(key).and_then(Value::as_text).unwrap_or_default();
        let (level, code, description) = (text("level"), text("code"), text("description"));
        let ex = information.property("ex").filter(|_| code == "NetConnection.Connect.Rejected");
        let redirect = ex.and_then(read_redirect);
        Self { level, code, description, redirect }
    }

    pub(super) fn starts(&self) -> bool {
        ["NetStream.Publish.Start", "NetStream.Play.Start"].contains(&self.code.as_str())
    }

    pub(super) fn ends(&self) -> bool {
        [
            "NetStream.Play.UnpublishNotify",
            "NetStream.Play.Stop",
            "NetStream.Play.Complete",
            "NetStream.Unpublish.Success",
        ]
        .contains(&self.code.as_str())
    }

    /// Whether it reports a failure: by its level or, without one, by its code.
    pub(super) fn fails(&self) -> bool {
        /// Last parts of codes that always mean failure.
        const FAILURES: [&str; 12] = [
            "AppShutdown",
            "BadName",
            "Closed",
            "Denied",
            "Failed",
            "FileStructureInvalid",
            "InvalidApp",
            "InvalidArg",
            "NoSupportedTrackFound",
            "Rejected",
            "StreamNotFound",
            "Unauthorized",
        ];
        match self.level.as_str() {
            "error" => true,
            "" => self.code.rsplit('.').next().is_some_and(|last| FAILURES.contains(&last)),
            _ => false,
        }
    }

    pub(super) fn kind(&self) -> RefusalKind {
        RefusalKind::of(&self.code, &self.description)
    }
}

/// `ex` of a rejected connect: code 302 and the tcUrl to connect to.
fn read_redirect(ex: &Value) -> Option<String> {
    const FOUND: f64 = 302.0;
    #[allow(clippy::float_cmp, reason = "a whole number")]
    let is_found = ex.property("code").and_then(number) == Some(FOUND);
    let url = ex.property("redirect").and_then(Value::as_text).filter(|_| is_found)?;
    let is_url = url.len() <= URL_LIMIT_BYTES
        && (url.starts_with("rtmp://") || url.starts_with("rtmps://"))
        && !url.contains(|c: char| c.is_control() || c == ' ');
    is_url.then_some(url)
}

/// The message stream in an answer to createStream, wherever the number is.
pub(super) fn stream_id(command: &Command) -> Option<u32> {
    let mut values = command.arguments.iter().chain([&command.object]);
    let stream = values.find_map(number)?;
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
    let stream = stream as u32;
    Some(stream)
}

/// A number, or a string that contains one.
fn number(value: &Value) -> Option<f64> {
    let number =
        value.as_number().or_else(|| value.as_text().and_then(|text| text.trim().parse().ok()));
    number.filter(|number| number.is_finite())
}
