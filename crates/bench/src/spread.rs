//! Spreads the packets of a picture over time.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use crate::chromium::Picture;

/// Pictures of a publisher whose sending time is remembered.
const REMEMBERED: usize = 64;

/// A datagram that waits.
pub(crate) struct Waiting {
    pub(crate) to: SocketAddr,
    pub(crate) datagram: Vec<u8>,
    /// The picture that is complete with it.
    completes: Option<u32>,
}

/// Waiting datagrams of one publisher.
#[derive(Default)]
struct Queue {
    waiting: VecDeque<Waiting>,
    /// When the last packet of each picture was sent.
    left: VecDeque<(u32, Duration)>,
}

/// Waiting datagrams of all publishers.
pub(crate) struct Spread {
    queues: Vec<Queue>,
    due: BinaryHeap<Reverse<(Instant, usize)>>,
}

impl Spread {
    pub(crate) fn new(publishers: usize) -> Self {
        let queues = (0..publishers).map(|_| Queue::default()).collect();
        Self { queues, due: BinaryHeap::new() }
    }

    /// Takes the datagrams of picture `number`, to be sent from `now` on with the recorded delays.
    pub(crate) fn add(
        &mut self,
        publisher: usize,
        number: u32,
        picture: &Picture,
        datagrams: Vec<(SocketAddr, Vec<u8>)>,
        now: Instant,
    ) {
        let Some(queue) = self.queues.get_mut(publisher) else { return };
        let count = datagrams.len();
        for (at, (to, datagram)) in datagrams.into_iter().enumerate() {
            let completes = (at + 1 == count).then_some(number);
            queue.waiting.push_back(Waiting { to, datagram, completes });
            self.due.push(Reverse((now + picture.delay(at, count), publisher)));
        }
    }

    /// When the next datagram is due.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.due.peek().map(|Reverse((at, _))| *at)
    }

    /// A datagram that is due now, and its publisher; `started` is when the run began.
    pub(crate) fn poll(&mut self, now: Instant, started: Instant) -> Option<(usize, Waiting)> {
        let publisher = match self.due.peek() {
            Some(&Reverse((at, publisher))) if at <= now => publisher,
            _ => return None,
        };
        self.due.pop();
        let queue = self.queues.get_mut(publisher)?;
        let waiting = queue.waiting.pop_front()?;
        if let Some(number) = waiting.completes {
            if queue.left.len() == REMEMBERED {
                queue.left.pop_front();
            }
            queue.left.push_back((number, started.elapsed()));
        }
        Some((publisher, waiting))
    }

    /// When the last packet of a picture was sent, since the start of the run.
    pub(crate) fn left_at(&self, publisher: usize, number: u32) -> Option<Duration> {
        let left = &self.queues.get(publisher)?.left;
        left.iter().rev().find(|(of, _)| *of == number).map(|(_, at)| *at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chromium::Recording;

    #[test]
    fn every_datagram_is_sent_once_in_order_and_the_last_time_is_remembered() {
        let recording = Recording::read().expect("whole");
        let picture = recording.picture(0).expect("a keyframe");
        let now = Instant::now();
        let mut spread = Spread::new(2);
        let to = SocketAddr::from(([127, 0, 0, 1], 9));
        spread.add(1, 7, picture, (0..9).map(|at| (to, vec![at])).collect(), now);
        let later = now + Duration::from_secs(10);
        let mut seen = Vec::new();
        while let Some((publisher, waiting)) = spread.poll(later, now) {
            assert_eq!(publisher, 1);
            seen.push(waiting.datagram);
        }
        assert_eq!(seen, (0..9).map(|at| vec![at]).collect::<Vec<_>>());
        assert!(spread.left_at(1, 7).is_some() && spread.left_at(1, 8).is_none());
        assert!(spread.next().is_none());
    }
}
