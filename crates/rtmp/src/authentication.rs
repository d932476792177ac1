//! Authentication towards an upstream: `authmod=adobe` and `authmod=llnw`. Both use MD5, and both add arguments to app
//! and tcUrl on a new connection. The session decides whether to reconnect. Pure.
//!
//! Neither has a public specification; this matches OBS's librtmp and FFmpeg's rtmpproto.

use std::fmt;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use md5::{Digest, Md5};

/// A longer description is not treated as a challenge: its contents would be repeated in our next connect.
const DESCRIPTION_LIMIT_BYTES: usize = 2048;

/// Credentials for an upstream that requires authentication; the password is sent only as a digest.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    /// User name as in the URL, percent-decoded.
    pub user: String,
    /// Password as in the URL, percent-decoded.
    pub password: String,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Credentials")
    }
}

/// Arguments that the next connection adds to app and tcUrl. They are opaque to the driver, which copies them from
/// [`crate::ClientEvent::Reconnect`] to [`crate::ClientConfig::arguments`].
#[derive(Clone, Default, PartialEq, Eq)]
pub struct ConnectArguments {
    step: Step,
    text: String,
}

impl ConnectArguments {
    /// `text` with these arguments appended.
    pub(crate) fn append_to(&self, text: &str) -> String {
        if self.text.is_empty() {
            return text.to_owned();
        }
        let mark = if text.contains('?') { '&' } else { '?' };
        format!("{text}{mark}{}", self.text)
    }
}

/// The arguments are not printed: they contain the response to a challenge.
impl fmt::Debug for ConnectArguments {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ConnectArguments({:?})", self.step)
    }
}

/// How many steps are complete; each reconnect adds one, so there are at most two.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    #[default]
    Unasked,
    Named,
    Answered,
}

/// What a refused connect requires for authentication.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Demand {
    /// It has nothing to do with authentication.
    Nothing,
    /// Connect again with these arguments.
    Arguments(ConnectArguments),
    /// Credentials are required and we have none, or ours were rejected.
    Failed,
}

/// What is known when a connect is refused.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Known<'a> {
    pub(crate) credentials: Option<&'a Credentials>,
    /// The arguments this connection already used.
    pub(crate) arguments: &'a ConnectArguments,
    /// App name without arguments.
    pub(crate) app: &'a str,
    /// Any bits that differ between connections.
    pub(crate) seed: [u8; 8],
}

/// Parses the description of a refused connect:
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
                /// Count of requests with this nonce: this is the first and only one.
                const COUNT: &str = "00000001";
                let nonce = asked("nonce").unwrap_or_default();
                let app = known.app;
                // An app without an instance means the default instance.
                let instance = if app.contains('/') { "" } else { "/_definst_" };
                let secret = hex_md5(&format!("{user}:live:{password}"));
                let target = hex_md5(&format!("publish:/{app}{instance}"));
                let response = hex_md5(&format!("{secret}:{nonce}:{COUNT}:{own}:auth:{target}"));
                format!("{name}&nonce={nonce}&cnonce={own}&nc={COUNT}&response={response}")
            }
        }
    }
}

/// A value from the query at the end of a description; values may contain `=`.
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
