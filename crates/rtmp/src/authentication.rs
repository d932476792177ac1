//! What we answer an upstream that asks who we are: `authmod=adobe` and `authmod=llnw`, both MD5 and both in further
//! arguments of app and tcUrl on a new connection. Not the decision to reconnect, which is the session's. Pure.
//!
//! Neither has a public specification; this is what OBS's librtmp and FFmpeg's rtmpproto send.

use std::fmt;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use md5::{Digest, Md5};

/// A description longer than this asks for nothing: what it says would come back in our next connect.
const DESCRIPTION_LIMIT_BYTES: usize = 2048;

/// Who we are to an upstream that asks; the password leaves us only as a digest.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    /// As in the URL, percent-decoded.
    pub user: String,
    /// Likewise.
    pub password: String,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Credentials")
    }
}

/// What the next connection adds to app and tcUrl; opaque to the driver, which carries it from
/// [`crate::ClientEvent::Reconnect`] to [`crate::ClientConfig::arguments`].
#[derive(Clone, Default, PartialEq, Eq)]
pub struct ConnectArguments {
    step: Step,
    text: String,
}

impl ConnectArguments {
    /// `text` with these arguments behind it.
    pub(crate) fn append_to(&self, text: &str) -> String {
        if self.text.is_empty() {
            return text.to_owned();
        }
        let mark = if text.contains('?') { '&' } else { '?' };
        format!("{text}{mark}{}", self.text)
    }
}

/// They hold the answer to a challenge.
impl fmt::Debug for ConnectArguments {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ConnectArguments({:?})", self.step)
    }
}

/// How many steps are done; every reconnect is one step more, so that there are two at most.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    #[default]
    Unasked,
    Named,
    Answered,
}

/// What a refused connect has to do with who we are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Demand {
    /// Nothing.
    Nothing,
    /// Connect again with these.
    Arguments(ConnectArguments),
    /// It wants what we do not have, or has rejected what we gave.
    Failed,
}

/// What we know when a connect is refused.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Known<'a> {
    pub(crate) credentials: Option<&'a Credentials>,
    /// What this connection had already.
    pub(crate) arguments: &'a ConnectArguments,
    /// App without arguments.
    pub(crate) app: &'a str,
    /// Any bits that differ from connection to connection.
    pub(crate) seed: [u8; 8],
}

/// Reads the description of a refused connect:
/// `… code=403 need auth; authmod=adobe …`, then `… authmod=adobe … ?reason=needauth&user=…&salt=…&challenge=…`.
pub(crate) fn read_demand(description: &str, known: Known<'_>) -> Demand {
    if description.len() > DESCRIPTION_LIMIT_BYTES {
        return Demand::Nothing;
    }
    let reason = argument(description, "reason");
    if matches!(reason, Some("authfailed" | "nosuchuser")) {
        return Demand::Failed;
    }
    let Some(scheme) = Scheme::read(description) else {
        let asks = description.contains("authmod=") || reason == Some("needauth");
        return if asks { Demand::Failed } else { Demand::Nothing };
    };
    let Some(credentials) = known.credentials else { return Demand::Failed };
    let (step, text) = if reason == Some("needauth") {
        (Step::Answered, scheme.answer(description, credentials, known))
    } else if description.contains("code=403 need auth") {
        (Step::Named, scheme.name(credentials))
    } else {
        return Demand::Failed;
    };
    if step <= known.arguments.step {
        return Demand::Failed;
    }
    Demand::Arguments(ConnectArguments { step, text })
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scheme {
    Adobe,
    Llnw,
}

impl Scheme {
    fn read(description: &str) -> Option<Self> {
        let (_, rest) = description.split_once("authmod=")?;
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(rest.len());
        match rest.get(..end) {
            Some("adobe") => Some(Self::Adobe),
            Some("llnw") => Some(Self::Llnw),
            _ => None,
        }
    }

    fn name(self, credentials: &Credentials) -> String {
        let scheme = match self {
            Self::Adobe => "adobe",
            Self::Llnw => "llnw",
        };
        format!("authmod={scheme}&user={}", credentials.user)
    }

    fn answer(self, description: &str, credentials: &Credentials, known: Known<'_>) -> String {
        let [a, b, c, d, ..] = known.seed;
        let own = format!("{:08x}", u32::from_be_bytes([a, b, c, d]));
        let Credentials { user, password } = credentials;
        let asked = |key| argument(description, key);
        let name = self.name(credentials);
        match self {
            Self::Adobe => {
                let salt = asked("salt").unwrap_or_default();
                let opaque = asked("opaque");
                let challenge = opaque.or_else(|| asked("challenge")).unwrap_or_default();
                let secret = base64_md5(&format!("{user}{salt}{password}"));
                let response = base64_md5(&format!("{secret}{challenge}{own}"));
                let opaque = opaque.map(|opaque| format!("&opaque={opaque}")).unwrap_or_default();
                format!("{name}&challenge={own}&response={response}{opaque}")
            }
            Self::Llnw => {
                /// The first, and only, request with this nonce.
                const COUNT: &str = "00000001";
                let nonce = asked("nonce").unwrap_or_default();
                let app = known.app;
                // An app without an instance means its default one.
                let instance = if app.contains('/') { "" } else { "/_definst_" };
                let secret = hex_md5(&format!("{user}:live:{password}"));
                let target = hex_md5(&format!("publish:/{app}{instance}"));
                let response = hex_md5(&format!("{secret}:{nonce}:{COUNT}:{own}:auth:{target}"));
                format!("{name}&nonce={nonce}&cnonce={own}&nc={COUNT}&response={response}")
            }
        }
    }
}

/// A value of the query that a description ends with; values may hold `=`.
fn argument<'a>(description: &'a str, key: &str) -> Option<&'a str> {
    let (_, query) = description.split_once('?')?;
    let query = query.split([' ', ']', '\r', '\n']).next()?;
    let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    pairs.find(|(name, _)| *name == key).map(|(_, value)| value)
}

fn base64_md5(text: &str) -> String {
    BASE64_STANDARD.encode(Md5::digest(text))
}

fn hex_md5(text: &str) -> String {
    format!("{:x}", Md5::digest(text))
}
