//! A publish or play that is not allowed here.

use std::time::Instant;

use headgate_rtmp::Refusal;

use super::{Role, RtmpServer};
use crate::publish::mailbox::Denial;
use crate::session::effect::Effect;

impl RtmpServer {
    /// The publish or play is refused.
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

    /// The publish is refused here; who follows is told where to go.
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
