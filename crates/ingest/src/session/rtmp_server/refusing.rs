//! Refusals of a publish or play.

use std::time::Instant;

use headgate_rtmp::Refusal;

use super::{Role, RtmpServer};
use crate::publish::mailbox::Denial;
use crate::session::effect::Effect;

impl RtmpServer {
    /// Denies the publish or play.
    pub(crate) fn deny(
        &mut self,
        denial: Denial,
        description: &str,
        now: Instant,
        effects: &mut Vec<Effect>,
    ) {
        let refusal = match denial {
            Denial::Denied => Refusal::Denied,
            Denial::BadName => Refusal::BadName,
        };
        if matches!(self.role, Role::AskingToPlay { .. } | Role::AwaitingStream { .. }) {
            self.session.refuse_play(refusal, description);
        } else {
            self.session.deny(refusal, description);
        }
        self.role = Role::Over;
        self.handle_events(now, effects);
        effects.push(Effect::ReadSocket);
    }

    /// Redirects the publish; a client that does not follow gets the description.
    pub(crate) fn redirect(
        &mut self,
        tc_urls: &[String],
        description: &str,
        now: Instant,
        effects: &mut Vec<Effect>,
    ) {
        self.session.redirect(tc_urls, description);
        self.role = Role::Over;
        self.handle_events(now, effects);
        effects.push(Effect::ReadSocket);
    }
}
