//! What the peers of a world have received, and what is recorded about its publishes.

use std::time::SystemTime;

use headgate_media::Irregularity;
use headgate_rtmp::{MediaKind, MediaMessage};

use super::super::SessionKey;
use super::world::World;
use crate::PublishSnapshot;

impl World {
    /// Messages of a kind that a peer has received.
    pub(super) fn media(
        &self,
        peer: SessionKey,
        kind: MediaKind,
    ) -> impl Iterator<Item = &MediaMessage> {
        self.peers[&peer].media.iter().filter(move |message| message.kind == kind)
    }

    /// Timestamps of the frames of a kind, without headers, which a late player gets at 0.
    pub(super) fn times(&self, peer: SessionKey, kind: MediaKind) -> Vec<u32> {
        let frames = self.media(peer, kind).filter(|message| message.payload[1] != 0);
        frames.map(|message| message.timestamp).collect()
    }

    /// The largest step between two of these; fails if they go back.
    pub(super) fn widest_step(&self, peer: SessionKey, kind: MediaKind) -> u32 {
        let times = self.times(peer, kind);
        assert!(times.is_sorted(), "{kind:?} goes back: {times:?}");
        times.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or(0)
    }

    /// Whether a peer has been told something in these words.
    pub(super) fn was_sent(&self, peer: SessionKey, words: &str) -> bool {
        self.peers[&peer].events.iter().any(|event| event.contains(words))
    }

    /// Whether an upstream has been told that its publish has ended, or is no longer connected.
    pub(super) fn has_ended(&self, upstream: SessionKey) -> bool {
        !self.peers.contains_key(&upstream) || self.was_sent(upstream, "PublishEnded")
    }

    /// The state of a running publish.
    pub(super) fn snapshot(&self, client_id: u64) -> PublishSnapshot {
        let record = self.publishes.find(client_id).expect("it runs");
        record.snapshot(self.now, SystemTime::now())
    }

    /// What was irregular about the publish with client id 1, and how often.
    pub(super) fn irregularities(&self) -> Vec<(Irregularity, u64)> {
        self.snapshot(1).irregularities.iter().collect()
    }

    /// How often it was irregular in this way.
    pub(super) fn count(&self, kind: Irregularity) -> u64 {
        self.snapshot(1).irregularities.count(kind)
    }
}
