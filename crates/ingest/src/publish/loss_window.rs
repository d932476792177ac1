//! Share of recently lost packets, computed from counters since the start. Pure.

use std::collections::VecDeque;

/// Number of reports that the share covers: at one a second, the last five seconds.
const WINDOW_REPORTS: usize = 5;

/// The newest packet counters.
#[derive(Debug, Default)]
pub(crate) struct LossWindow {
    /// Received and lost packets, oldest first; one entry more than the window, to subtract from.
    counts: VecDeque<(u64, u64)>,
    /// The simulcast layer that they are of.
    layer: String,
}

impl LossWindow {
    /// Adds a report's counters, each since the start: packets received and packets given up as lost. `layer`: the
    /// simulcast layer that is forwarded, or empty.
    pub(crate) fn note(&mut self, layer: &str, received: u64, lost: u64) {
        let is_behind = self.counts.back().is_some_and(|last| received < last.0 || lost < last.1);
        if is_behind || self.layer != layer {
            // Each layer, and each source, has its own counters, which cannot be compared.
            self.counts.clear();
            layer.clone_into(&mut self.layer);
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
        window.note("", 100, 0);
        assert_eq!(window.percent(), None, "nothing to subtract from");
        window.note("", 190, 10);
        assert_eq!(window.percent(), Some(10.0));
        for n in 1..5 {
            window.note("", 190 + n * 100, 10);
        }
        assert_eq!(window.percent(), Some(2.0));
        window.note("", 690, 10);
        assert_eq!(window.percent(), Some(0.0));
    }

    #[test]
    fn a_silent_sender_has_no_loss_share_and_a_layer_change_resets_it() {
        let mut window = LossWindow::default();
        for _ in 0..7 {
            window.note("", 500, 50);
        }
        assert_eq!(window.percent(), None);
        window.note("", 10, 0);
        window.note("", 20, 0);
        assert_eq!(window.percent(), Some(0.0));
    }

    #[test]
    fn the_losses_of_a_layer_before_its_pause_are_not_counted_again_when_it_returns() {
        let mut window = LossWindow::default();
        let reports = [("f", 100_000, 3_000), ("q", 30_000, 10), ("q", 30_100, 10)];
        for (layer, received, lost) in reports {
            window.note(layer, received, lost);
        }
        window.note("f", 100_050, 3_000);
        assert_eq!(window.percent(), None);
        window.note("f", 100_150, 3_000);
        assert_eq!(window.percent(), Some(0.0));
    }
}
