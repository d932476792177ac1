//! What remains of a lost publish: its upstreams and players, held for a successor. How a worker holds them is in
//! `switchboard/broadcast/takeover.rs`.

use std::sync::Arc;
use std::time::Duration;

use super::end_reason::EndReason;
use super::mailbox::{Event, HoldEnded};
use super::record::PublishRecord;
use super::registry::{PublishGuard, Publishes};

/// How the gateway wants the upstreams and players of an allowed publish to be held.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hold {
    /// How long they are held after the publisher is lost; zero disables it.
    pub window: Duration,
    /// How long an RTMP publisher may send nothing before it counts as lost; `None`: the default (W19).
    pub silence: Option<Duration>,
    /// The lost publish whose upstreams and players it takes over, if they are still held.
    pub continues: Option<u64>,
    /// The other running publish of its name: while that one is on air, this one stands by.
    pub beside: Option<u64>,
}

/// Guarantees exactly one [`HoldEnded`] for a held stream: it is reported when this is dropped, for whatever reason.
#[derive(Debug)]
pub(crate) struct HoldGuard {
    publishes: Arc<Publishes>,
    record: Arc<PublishRecord>,
    /// Bytes out that the end of the lost publish reported.
    reported_out: u64,
    successor: Option<u64>,
}

impl HoldGuard {
    /// Reports the end of a lost publish, whose stream is from then on registered as held.
    pub(crate) fn new(mut lost: PublishGuard, reason: EndReason) -> Self {
        let (publishes, record) = (lost.publishes().clone(), lost.record().clone());
        publishes.enter_held(record.clone());
        lost.set_held(reason);
        let (_, reported_out) = record.bytes();
        Self { publishes, record, reported_out, successor: None }
    }

    /// `successor` continues the stream; bytes sent while it was held count for the successor.
    pub(crate) fn end_by(mut self, successor: &PublishRecord) {
        let (_, out) = self.record.bytes();
        successor.add_out(out.saturating_sub(self.reported_out));
        self.successor = Some(successor.client_id);
    }
}

impl Drop for HoldGuard {
    fn drop(&mut self) {
        let client_id = self.record.client_id;
        self.publishes.leave_held(client_id);
        let ended = HoldEnded { client_id, successor: self.successor };
        self.publishes.mailbox().put(Event::HoldEnded(ended));
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;
    use crate::publish::mailbox::{Mailbox, PublishEnded};
    use crate::publish::tracks::Tracks;

    #[test]
    fn a_lost_publish_is_reported_before_the_end_of_its_hold() {
        let (publishes, now) = (Publishes::new(Mailbox::new(Box::new(|| {}))), Instant::now());
        let lost = publishes.open(1, 0, None, now);
        lost.record().add_out(5);
        let hold = HoldGuard::new(lost, EndReason::BroadcasterLeft);
        let held = publishes.find_held(1).expect("held");
        assert!(publishes.find(1).is_none());
        held.add_out(2);
        let successor = publishes.open_successor(&held, 2, None, now);
        hold.end_by(successor.record());
        assert!(publishes.find_held(1).is_none());
        assert_eq!(successor.record().bytes(), (0, 2));
        let reason = EndReason::BroadcasterLeft;
        let ended = PublishEnded {
            client_id: 1,
            reason,
            bytes_in: 0,
            bytes_out: 5,
            video_frames: 0,
            dropped_frames: 0,
            tracks: Tracks::default(),
            packets_lost: None,
            is_held: true,
        };
        let hold_ended = HoldEnded { client_id: 1, successor: Some(2) };
        let want = [Event::PublishEnded(ended), Event::HoldEnded(hold_ended)];
        assert_eq!(publishes.mailbox().drain(), want);
    }
}
