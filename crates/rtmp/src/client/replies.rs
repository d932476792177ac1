//! Parses a server's replies leniently: numbers as strings or missing, statuses without a level or in another place.
//! Classifies refusals by code and description. Pure.

use super::ClientRole;
use crate::amf_value::Value;
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
        let subject = code.rsplit('.').next().unwrap_or_default().to_ascii_lowercase();
        if subject == "invalidapp" {
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
            match subject.as_str() {
                "badname" => Self::BadName,
                "denied" | "rejected" | "unauthorized" => Self::Denied,
                _ => Self::Unknown,
            }
        }
    }
}

/// An information object (RTMP 7.2.2); missing fields are empty. Servers spell codes and levels in upper and lower case.
#[derive(Clone, Debug, Default)]
pub(super) struct Status {
    level: String,
    pub(super) code: String,
    pub(super) description: String,
    /// The URL the server redirects us to.
    pub(super) redirect: Option<String>,
}

impl Status {
    /// Reads an onStatus, `_error` or `_result`; some servers put the information in place of the command object, and
    /// some send the code or a description instead of an object.
    pub(super) fn read(command: &Command) -> Self {
        let values = || command.arguments.iter().chain([&command.object]);
        let information = values()
            .find(|value| value.property("code").is_some())
            .or_else(|| values().find(|value| value.property("description").is_some()))
            .or_else(|| values().find(|value| value.property("level").is_some()));
        let Some(information) = information else {
            let text = values().find_map(Value::as_text).unwrap_or_default();
            let is_code = text.contains('.') && !text.contains(' ');
            let (code, description) =
                if is_code { (text, String::new()) } else { (String::new(), text) };
            return Self { code, description, ..Self::default() };
        };
        let text = |key| information.property(key).and_then(Value::as_text).unwrap_or_default();
        let [level, code] = ["level", "code"].map(|key| text(key).trim().to_owned());
        let description = text("description");
        let is_rejected = code.eq_ignore_ascii_case("NetConnection.Connect.Rejected");
        let ex = information.property("ex").filter(|_| is_rejected);
        let redirect = ex.and_then(read_redirect);
        Self { level, code, description, redirect }
    }

    /// Whether its code is that of the start of what we requested.
    pub(super) fn is_start(&self, role: ClientRole) -> bool {
        self.is(&match role {
            ClientRole::Publish => ["NetStream.Publish.Start"],
            ClientRole::Play => ["NetStream.Play.Start"],
        })
    }

    /// Whether an onStatus can only mean that what we requested has started.
    pub(super) fn starts(&self, role: ClientRole) -> bool {
        let is_accepted = || !self.fails() && self.is_status() && self.accepts_publish();
        self.is_start(role) || role == ClientRole::Publish && is_accepted()
    }

    /// Whether a reply to connect can only mean that it succeeded.
    pub(super) fn connects(&self) -> bool {
        self.is(&["NetConnection.Connect.Success"])
    }

    pub(super) fn ends(&self) -> bool {
        self.is(&[
            "NetStream.Play.UnpublishNotify",
            "NetStream.Play.Stop",
            "NetStream.Play.Complete",
            "NetStream.Unpublish.Success",
        ])
    }

    /// Whether it reports a failure, by its level or by its code.
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
        let last = self.code.rsplit('.').next().unwrap_or_default();
        self.level.eq_ignore_ascii_case("error")
            || FAILURES.iter().any(|failure| last.eq_ignore_ascii_case(failure))
    }

    /// Whether it is about something other than the publish or play itself: one of our calls that the server does not
    /// know, its recording, or its buffer.
    pub(super) fn is_aside(&self) -> bool {
        const SUBJECTS: [&str; 6] = ["Buffer", "Call", "Data", "Pause", "Record", "Seek"];
        let subject = self.code.split('.').nth(1).unwrap_or_default();
        SUBJECTS.iter().any(|aside| subject.eq_ignore_ascii_case(aside))
    }

    pub(super) fn kind(&self) -> RefusalKind {
        RefusalKind::of(&self.code, &self.description)
    }

    fn is(&self, codes: &[&str]) -> bool {
        codes.iter().any(|code| self.code.eq_ignore_ascii_case(code))
    }

    fn is_status(&self) -> bool {
        self.level.is_empty() || self.level.eq_ignore_ascii_case("status")
    }

    /// Whether a reply to publish that is no failure accepts it: by a code about publishing, or without any words but a
    /// level.
    fn accepts_publish(&self) -> bool {
        /// They are also about publishing, and accept nothing.
        const OTHERS: [&str; 3] = ["unpublish", "notify", "idle"];
        if self.code.is_empty() {
            return !self.level.is_empty() || self.description.is_empty();
        }
        let code = self.code.to_ascii_lowercase();
        code.contains("publish") && !OTHERS.iter().any(|other| code.contains(other))
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

/// The message stream in an answer to createStream, wherever the number is; 0 is one. `None` for what cannot be one.
pub(super) fn stream_id(command: &Command) -> Option<u32> {
    let mut values = command.arguments.iter().chain([&command.object]);
    let stream = values.find_map(number)?;
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked")]
    (0.0..=f64::from(u32::MAX)).contains(&stream).then_some(stream as u32)
}

/// A number, or a string that contains one.
fn number(value: &Value) -> Option<f64> {
    let number =
        value.as_number().or_else(|| value.as_text().and_then(|text| text.trim().parse().ok()));
    number.filter(|number| number.is_finite())
}
