//! When a keyframe is requested, and of which layer.

use std::time::{Duration, Instant};

use super::VideoTrack;
use crate::layer::Layer;

/// Browsers send no periodic keyframes: requested at this age of the last one, the next arrives within two seconds.
const KEYFRAME_AGE: Duration = Duration::from_millis(1850);
/// Pause between two requests for a keyframe.
const KEYFRAME_PAUSE: Duration = Duration::from_millis(500);
/// Pause after a keyframe that came but was lost again, or that others followed until a further loss.
const ANSWERED_PAUSE: Duration = Duration::from_millis(100);
/// How long after the first packet a first keyframe may arrive without a request.
const FIRST_KEYFRAME_WAIT: Duration = Duration::from_millis(400);
/// Requests without a keyframe after which the sender is considered unresponsive.
const UNRESPONSIVE_AFTER: u32 = 8;
/// Pause between requests to an unresponsive sender, which are sent only when a keyframe is needed.
const UNRESPONSIVE_PAUSE: Duration = Duration::from_secs(10);
/// After this many groups in a row that no request ended early, the sender is assumed to keep its own interval.
const OWN_RHYTHM_AFTER: u8 = 3;
/// Age of the last keyframe at which such a sender is asked anyway, and pause between these requests: a browser that is
/// late looks the same.
const OWN_RHYTHM_AGE: Duration = Duration::from_secs(5);

impl VideoTrack {
    /// The SSRC to request a keyframe from now, if any.
    pub(crate) fn poll_pli(&mut self, now: Instant) -> Option<u32> {
        let at = self.pli_at(now)?;
        let ssrc = self.target(now)?.receiver.ssrc()?;
        if now < at {
            return None;
        }
        self.last_pli = Some(now);
        self.is_keyframe_wanted = false;
        self.is_pli_answered = false;
        self.unanswered_plis = self.unanswered_plis.saturating_add(1);
        self.plis += 1;
        Some(ssrc)
    }

    /// A subscriber needs a keyframe. Before the first keyframe, requests follow their own schedule.
    pub(crate) const fn want_keyframe(&mut self) {
        self.is_keyframe_wanted = self.active.is_some();
    }

    /// The layer to request a keyframe from: the largest one being sent, of those that are repaired.
    fn target(&self, now: Instant) -> Option<&Layer> {
        let shown = self.shown()?;
        if self.layers.len() == 1 {
            return Some(shown);
        }
        let live = self.layers.iter().filter(|layer| layer.is_live(now));
        // Among equals the first in the offer's order.
        let best = live.rev().max_by_key(|layer| (!layer.is_impaired(now), layer.pixels()));
        Some(best.filter(|best| best.is_better_than(shown, now)).unwrap_or(shown))
    }

    /// When the next request for a keyframe is due.
    pub(super) fn pli_at(&self, now: Instant) -> Option<Instant> {
        let target = self.target(now).filter(|_| self.can_ask_keyframe)?;
        let first = target.first_packet?;
        let is_shown = self.shown().is_some_and(|shown| shown.rid == target.rid);
        let is_unresponsive = self.unanswered_plis >= UNRESPONSIVE_AFTER;
        let mut pause = if is_unresponsive { UNRESPONSIVE_PAUSE } else { KEYFRAME_PAUSE };
        let loss_pause = if self.is_pli_answered { ANSWERED_PAUSE } else { pause };
        let after = |due: Instant, pause| self.last_pli.map_or(due, |last| due.max(last + pause));
        let due = match target.receiver.meter.last_keyframe() {
            _ if self.is_keyframe_wanted => first,
            None if !self.is_pli_answered => first + FIRST_KEYFRAME_WAIT,
            None => return Some(after(first, loss_pause)),
            Some(_) if is_shown && target.awaits_keyframe() => {
                return Some(after(first, loss_pause));
            }
            Some(_) if !is_shown => first,
            Some(_) if is_unresponsive => return None,
            // Requests change nothing: OBS and FFmpeg keep the interval they are configured with.
            Some(last) if self.unprompted_groups >= OWN_RHYTHM_AFTER => {
                pause = OWN_RHYTHM_AGE;
                last + OWN_RHYTHM_AGE
            }
            Some(last) => last + KEYFRAME_AGE,
        };
        let due = after(due, pause);
        let lost = target.receiver.keyframe_at().filter(|_| is_shown);
        Some(lost.map_or(due, |at| due.min(after(at, loss_pause))))
    }
}
