//! The share of packets lost lately, out of counters since the start. Pure.

use std::collections::VecDeque;

/// Reports that the share is taken over: with one a second, the last five seconds.
const WINDOW_REPORTS: usize = 5;

/// The newest counters of packets.
#[derive(Debug, Default)]
pub(crate) struct LossWindow {
    /// Packets that came and packets given up, the oldest first; one more than the window has, to subtract.
    counts: VecDeque<(u64, u64)>,
}

impl LossWindow {
    /// Notes the counters of a report: packets that came and packets given up, each since the start.
    pub(crate) fn note(&mut self, received: u64, lost: u64) {
        let is_behind = self.counts.back().is_some_and(|last| received < last.0 || lost < last.1);
        if is_behind {
            // Another simulcast layer counts for itself: what the former one lost says nothing of it.
            self.counts.clear();
        }
        if self.counts.len() > WINDOW_REPORTS {
            self.counts.pop_front();
        }
        self.counts.push_back((received, lost));
    }

    /// Percent of the packets of the window that were lost for good; `None` while there are none to speak of.
    #[allow(clippy::cast_precision_loss, reason = "packets of a few seconds")]
    pub(crate) fn percent(&self) -> Option<f64> {
        let (first, last) = (self.counts.front()?, self.counts.back()?);
        let (received, lost) = (last.0 - first.0, last.1 - first.1);
        let expected = received + lost;
        (expected > 0).then(|| lost as f64 * 100.0 / expected as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loss_counts_for_five_reports_and_then_no_more() {
        let mut window = LossWindow::default();
        assert_eq!(window.percent(), None);
        window.note(100, 0);
        assert_eq!(window.percent(), None, "nothing to subtract from");
        window.note(190, 10);
        assert_eq!(window.percent(), Some(10.0));
        for n in 1..5 {
            window.note(190 + n * 100, 10);
        }
        assert_eq!(window.percent(), Some(2.0));
        window.note(690, 10);
        assert_eq!(window.percent(), Some(0.0));
    }

    #[test]
    fn a_sender_that_sends_nothing_has_no_share_and_another_layer_begins_anew() {
        let mut window = LossWindow::default();
        for _ in 0..7 {
            window.note(500, 50);
        }
        assert_eq!(window.percent(), None);
        window.note(10, 0);
        window.note(20, 0);
        assert_eq!(window.percent(), Some(0.0));
    }
}
