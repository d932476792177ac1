//! Redirects a publisher to another server, in the one form that its connect declares, and only once.

use super::{Refusal, ServerSession, State};
use crate::amf_value::Value;
use crate::message::status;

/// Argument added to the tcUrl of a redirect: a publisher that arrives with it is not redirected again.
const REDIRECTED: &str = "headgate-redirected";
/// CapsExMask: the publisher follows a ReconnectRequest.
const CAN_RECONNECT: u32 = 1;
/// The product name that a pushing Headgate announces.
const HEADGATE: &str = "Headgate";

/// Which form of redirect a publisher follows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Follows {
    /// None that is known: the publish is only refused.
    #[default]
    Nothing,
    /// `NetConnection.Connect.Rejected` with `ex.code` 302, as Flash Media Server and SRS send it.
    Found,
    /// `NetConnection.Connect.ReconnectRequest` (E-RTMP, "Reconnect Request").
    ReconnectRequest,
}

/// How a publisher can be redirected.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Redirection {
    follows: Follows,
    /// The publisher connected with `rtmps`, to us or to a TLS proxy in front of us.
    is_tls: bool,
}

impl Redirection {
    /// Reads the command object of a connect (RTMP 7.2.1.1).
    pub(super) fn read(object: &Value) -> Self {
        let text = |key| object.property(key).and_then(Value::as_text).unwrap_or_default();
        let is_marked = |url: String| {
            let (_, query) = url.split_once('?').unwrap_or_default();
            query.split('&').any(|argument| argument == REDIRECTED)
        };
        let follows = if is_marked(text("app")) || is_marked(text("tcUrl")) {
            Follows::Nothing
        } else if can_reconnect(object) {
            Follows::ReconnectRequest
        } else if text("flashVer").contains(HEADGATE) {
            Follows::Found
        } else {
            Follows::Nothing
        };
        Self { follows, is_tls: text("tcUrl").starts_with("rtmps://") }
    }

    /// The first of the tcUrls with the same scheme as the publisher's own, with the redirect marker added.
    fn choose(self, tc_urls: &[String]) -> Option<String> {
        let scheme = if self.is_tls { "rtmps://" } else { "rtmp://" };
        let url = tc_urls.iter().find(|url| url.starts_with(scheme))?;
        Some(format!("{url}?{REDIRECTED}"))
    }
}

fn can_reconnect(object: &Value) -> bool {
    // A cast from float saturates; the mask has four bits.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it saturates")]
    object
        .property("capsEx")
        .and_then(Value::as_number)
        .is_some_and(|mask| mask as u32 & CAN_RECONNECT != 0)
}

impl ServerSession {
    /// Refuses the publish and redirects a publisher that is known to follow to one of these tcUrls
    /// (`rtmp://host:port/app`, without arguments), unless it was redirected here itself.
    /// [`ServerEvent::Close`](super::ServerEvent::Close) follows.
    pub fn redirect(&mut self, tc_urls: &[String], description: &str) {
        if self.state != State::PublishAsked {
            return;
        }
        match (self.redirection.follows, self.redirection.choose(tc_urls)) {
            (Follows::Found, Some(url)) => {
                let ex = Value::object([
                    ("code", Value::Number(302.0)),
                    ("redirect", Value::string(&url)),
                ]);
                let mut rejected = status("error", "NetConnection.Connect.Rejected", description);
                rejected.push("ex", ex);
                self.send_status(rejected);
                self.close();
                return;
            }
            (Follows::ReconnectRequest, Some(url)) => {
                let code = "NetConnection.Connect.ReconnectRequest";
                let mut request = status("status", code, description);
                request.push("tcUrl", Value::string(&url));
                self.send_connection_status(request);
            }
            (Follows::Nothing, _) | (_, None) => {}
        }
        self.deny(Refusal::Denied, description);
    }
}
