//! Whether a sender answers requests for missing packets. Pure.

use std::time::{Duration, Instant};

/// Requested packets given up in a row, without an answer in between, after which no answer is expected.
const UNANSWERED_LIMIT: u32 = 2;
/// Losses further apart than this are not in a row.
const ROW: Duration = Duration::from_secs(10);
/// A packet that arrives in its own stream and sooner than this after it was missed was overtaken, not repeated.
const OVERTAKEN_LIMIT: Duration = Duration::from_millis(18);
/// Requests for a packet, unless no answer is expected anyway, before it counts as unanswered.
const TRIES_LEAST: u8 = 2;

/// A packet that no answer will bring was hardly overtaken when it has been missing for this long.
const UNREPAIRABLE_WAIT: Duration = Duration::from_millis(12);
/// A sender that has never answered may still do so after this long; until then nothing but a keyframe would help.
const UNPROVEN_WAIT: Duration = Duration::from_millis(300);

/// What is known of a sender's answers.
#[derive(Debug)]
pub(crate) struct Answers {
    can_ask: bool,
    /// Packets given up since the last answer.
    unanswered: u32,
    /// Whether any has come.
    has_answered: bool,
    last_given_up: Option<Instant>,
}

impl Answers {
    /// `can_ask`: whether the sender says that it answers.
    pub(crate) const fn new(can_ask: bool) -> Self {
        Self { can_ask, unanswered: 0, has_answered: false, last_given_up: None }
    }

    /// A requested packet arrived that had been missing since `since`.
    pub(crate) fn note_answer(&mut self, now: Instant, since: Option<Instant>, is_repeated: bool) {
        if is_repeated || since.is_some_and(|since| now >= since + OVERTAKEN_LIMIT) {
            (self.unanswered, self.has_answered) = (0, true);
        }
    }

    /// A packet was given up after so many requests; true if no answer is expected from now on.
    pub(crate) fn note_given_up(&mut self, now: Instant, tries: u8) -> bool {
        let least = if self.are_expected() { TRIES_LEAST } else { 1 };
        if tries >= least {
            let is_in_row = self.last_given_up.is_some_and(|last| now < last + ROW);
            let is_settled = self.unanswered >= UNANSWERED_LIMIT;
            self.unanswered =
                if is_in_row || is_settled { self.unanswered.saturating_add(1) } else { 1 };
            self.last_given_up = Some(now);
        }
        !self.are_expected() && tries > 0
    }

    /// How long after a packet was missed a keyframe is requested although the packet may still come; `None`: not before
    /// it is given up.
    pub(crate) const fn keyframe_wait(&self) -> Option<Duration> {
        match (self.are_expected(), self.has_answered) {
            (false, _) => Some(UNREPAIRABLE_WAIT),
            (true, false) => Some(UNPROVEN_WAIT),
            (true, true) => None,
        }
    }

    /// Whether an answer to a request is to be waited for.
    pub(crate) const fn are_expected(&self) -> bool {
        self.can_ask && self.unanswered < UNANSWERED_LIMIT
    }
}
