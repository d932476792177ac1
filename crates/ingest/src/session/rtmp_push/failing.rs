//! Why a connection to an upstream is given up, and what follows.

use std::collections::VecDeque;
use std::time::Instant;

use headgate_rtmp::ConnectArguments;

use super::failure::{Failure, Next};
use super::{Effect, RtmpPush, State};
use crate::publish::end_reason::EndReason;
use crate::publish::mailbox::UpstreamChanged;
use crate::publish::upstream_cause::UpstreamCause;
use crate::publish::upstreams::{UpstreamSource, UpstreamState};

/// Consecutive redirects that are followed.
const REDIRECTS_LIMIT: u8 = 3;

impl RtmpPush {
    /// The upstream has read too slowly for too long.
    pub(crate) fn handle_too_slow(&mut self, now: Instant, effects: &mut Vec<Effect>) {
        let words = "the upstream reads too slowly";
        self.fail(&Failure::lost(UpstreamCause::TooSlow, words), now, effects);
    }

    /// Gives the connection up: what follows is [`Failure::next`].
    pub(super) fn fail(&mut self, failure: &Failure, now: Instant, effects: &mut Vec<Effect>) {
        // Until the upstream accepts, nothing has been sent: waiting frames stay queued across redirects.
        let was_talking = self.takes_frames();
        if was_talking || matches!(failure.next, Next::Pause) {
            self.stop_reading(effects);
        }
        effects.push(Effect::Disconnect);
        if self.is_done() {
            effects.push(Effect::Close(EndReason::Unpublished));
            return;
        }
        match (&failure.next, self.address) {
            (Next::Reconnect(arguments), Some(address)) => {
                self.arguments = arguments.clone();
                self.addresses = VecDeque::from([address]);
                self.connect_next(now, effects);
                return;
            }
            (Next::Follow(url), _) if self.redirects < REDIRECTS_LIMIT => {
                self.redirects += 1;
                self.arguments = ConnectArguments::default();
                // The gateway's address guard must check the new host, which does not get our credentials.
                self.redirect = Some((**url).clone());
                self.resolve(now, effects);
                return;
            }
            (Next::Pause | Next::Reconnect(_) | Next::Follow(_), _) => {}
        }
        self.stop_reading(effects);
        self.arguments = ConnectArguments::default();
        self.redirect = None;
        self.redirects = 0;
        if self.end_test(Some(failure), now, effects) {
            effects.push(Effect::Close(EndReason::Unpublished));
            return;
        }
        self.report_failure(failure, now, effects);
        let is_own = self.record.upstream.source == UpstreamSource::Own;
        if failure.is_refusal && is_own && !self.was_accepted {
            effects.push(Effect::RefusePublish);
            effects.push(Effect::Close(EndReason::UpstreamRefused));
            return;
        }
        let random = self.random();
        self.state = State::Pausing { until: now + self.retry.pause(failure.is_refusal, random) };
    }

    fn report_failure(&self, failure: &Failure, now: Instant, effects: &mut Vec<Effect>) {
        let url = &self.record.upstream.url;
        let detail = url.conceal(&failure.detail);
        let state =
            if failure.is_refusal { UpstreamState::Refused } else { UpstreamState::Waiting };
        self.record.set_failed(state, failure.cause, &detail, now);
        effects.push(Effect::Report(UpstreamChanged {
            client_id: self.client_id,
            upstream_id: self.record.upstream.id.clone(),
            upstream: url.to_string(),
            sending: false,
            detail,
            cause: Some(failure.cause),
        }));
    }
}
