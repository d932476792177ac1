//! Share of recently lost packets, computed from counters since the start. Pure.

use std::collections::VecDeque;

/// Number of reports that the share covers: at one a second, the last five seconds.
const WINDOW_REPORTS: usize = 5;

/// The newest packet counters.
#[derive(Debug, Default)]
pub(crate) struct LossWindow {
    /// Received and lost packets, oldest first; one entry more than the window, to subtract from.
    counts: VecDeque<(u64, u64)>,
}

impl LossWindow {
    /// Adds a report's counters, each since the start: packets received and packets given up as lost.
    pub(crate) fn note(&mut self, received: u64, lost: u64) {
        let is_behind = self.counts.back().is_some_and(|last| received < last.0 || lost < last.1);
        if is_behind {
            // Each simulcast layer has its own counters: those of the previous layer cannot be compared.
            self.counts.clear();
        }
        if self.counts.len() > WINDOW_REPORTS {
            self.counts.pop_front();
        }
        self.counts.push_back((received, lost));
    }

    /// Percentage of the window's packets that were lost for good; `None` if there were no packets.
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
    fn a_loss_counts_for_five_reports() {
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
    fn a_silent_sender_has_no_loss_share_and_a_layer_change_resets_it() {
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
