//! What servers say to a client, read liberally: numbers as strings or missing, statuses without level or in another
//! place, and what kind of refusal a code and its words mean. Pure.

use crate::amf0::Value;
use crate::message::Command;

/// An address longer than this is not one.
const URL_LIMIT_BYTES: usize = 2048;

/// Why a server will not have us, as far as its code and its words tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RefusalKind {
    /// The name is not one it takes.
    BadName,
    /// Somebody publishes by that name: usually ourselves, not yet timed out after a loss.
    Occupied,
    /// It does not want us.
    Denied,
    /// It asks who we are and we have nothing to say, or it has not accepted what we said.
    Credentials,
    /// It has no such app.
    InvalidApp,
    /// It has no room now.
    Full,
    /// Anything else.
    Unknown,
}

impl RefusalKind {
    /// The same request will hear the same again; otherwise trying later makes sense.
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
        // Servers have one code for names they dislike and for names in use; only the words tell.
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

/// An information object (RTMP 7.2.2); what is missing is empty.
#[derive(Debug)]
pub(super) struct Status {
    level: String,
    pub(super) code: String,
    pub(super) description: String,
    /// Where the server sends us instead.
    pub(super) redirect: Option<String>,
}

impl Status {
    /// From an onStatus or `_error`; some put the information where the command object belongs.
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

    /// By its level; without one, by its code.
    pub(super) fn fails(&self) -> bool {
        /// Last parts of the codes that are failures wherever they occur.
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

/// `ex` of a rejected connect: code 302 and the tcUrl to go to.
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

/// The message stream a createStream answer names, wherever the number stands.
pub(super) fn stream_id(command: &Command) -> Option<u32> {
    let mut values = command.arguments.iter().chain([&command.object]);
    let stream = values.find_map(number)?;
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
    let stream = stream as u32;
    Some(stream)
}

/// A number, be it written as a string.
fn number(value: &Value) -> Option<f64> {
    let number =
        value.as_number().or_else(|| value.as_text().and_then(|text| text.trim().parse().ok()));
    number.filter(|number| number.is_finite())
}
