//! Streams that live on one worker and are read on another: one bounded ring each, preceded by the joining burst.

use std::sync::Arc;

use headgate_media::Frame;

use super::message::Message;
use super::relay::Relay;
use super::source::Source;
use super::{Action, StreamKey, Switchboard};
use crate::publish::record::{PublishRecord, StreamId};

impl Switchboard {
    /// Opens a copy of another worker's stream for its first player here. `None` if the stream lived here and is gone.
    pub(super) fn open_remote(&mut self, record: &Arc<PublishRecord>) -> Option<StreamKey> {
        if record.worker == self.context.worker {
            return None;
        }
        let relay = Arc::new(Relay::default());
        let home = record.worker;
        let source = Source::Remote { relay: relay.clone(), home, is_seeded: false };
        let key = self.hub.open(record.clone(), source, self.context.caches_gop);
        self.by_id.insert(record.stream, key);
        let (stream, reader) = (record.stream, self.context.worker);
        let attach = Message::Attach { stream, reader, relay };
        self.actions.push(Action::Tell(home, attach));
        Some(key)
    }

    /// Another worker has its first players of a stream that lives here.
    pub(super) fn attach(&mut self, stream: StreamId, reader: usize, relay: Arc<Relay>) {
        let burst = self.read_stream(stream).and_then(|key| {
            if let Some(live) = self.hub.stream(key).filter(|live| live.record.stream != stream) {
                let (stream, record) = (stream, live.record.clone());
                self.actions.push(Action::Tell(reader, Message::Succeeded { stream, record }));
            }
            self.want_keyframe(key);
            let burst = self.hub.attach(key, reader, relay.clone());
            self.note_readers(key);
            burst
        });
        self.actions.push(Action::Tell(reader, Message::Seed { stream, relay, burst }));
    }

    /// Handles the burst that precedes the frames in the relay. `None`: the stream ended while the message was in
    /// flight.
    pub(super) fn seed(&mut self, stream: StreamId, of: &Arc<Relay>, burst: Option<Vec<Frame>>) {
        let Some(key) = self.stream(stream) else { return };
        let Some(live) = self.hub.stream_mut(key) else { return };
        let Source::Remote { relay, is_seeded, .. } = &mut live.source else { return };
        if !Arc::ptr_eq(relay, of) {
            // The players left in the meantime and others came, whose own burst follows.
            return;
        }
        *is_seeded = true;
        match burst {
            Some(burst) => {
                for frame in burst {
                    self.hub.publish(key, &frame, &mut self.woken);
                }
                self.hub.note_joined(key);
            }
            None => self.hub.end(key, &mut self.woken),
        }
    }

    /// Another worker has no player of the stream any more.
    pub(super) fn detach(&mut self, stream: StreamId, relay: &Arc<Relay>) {
        // Another publish may have taken over the stream since it was joined.
        let key = self.hub.stream_of_relay(relay).or_else(|| self.stream(stream));
        if let Some(key) = key {
            self.hub.detach(key, relay);
            self.close_if_done(key);
        }
    }

    /// Takes the frames that other workers put into our relays.
    pub(crate) fn drain_relays(&mut self) {
        let fed = self.hub.streams().filter(|(_, live)| live.source.relay().is_some());
        for key in fed.map(|(key, _)| key).collect::<Vec<_>>() {
            self.drain_relay(key);
        }
    }

    /// Takes the frames of one stream's relay.
    fn drain_relay(&mut self, key: StreamKey) {
        let Some(live) = self.hub.stream(key) else { return };
        let Some(relay) = live.source.relay().cloned() else { return };
        // Checked before draining: if it has ended, the frames drained now are the last ones.
        let is_ended = relay.is_ended();
        while let Some(frame) = relay.pop() {
            if Relay::ends_opus(&frame) {
                self.hub.forget_opus(key);
            } else {
                self.hub.publish(key, &frame, &mut self.woken);
            }
        }
        if is_ended {
            self.hub.end(key, &mut self.woken);
        }
    }

    /// Notifies the worker of a remote stream whether a subscriber here needs AAC.
    pub(super) fn note_form(&self, stream: StreamKey) {
        if let Some(live) = self.hub.stream(stream)
            && let Source::Remote { relay, .. } = &live.source
        {
            relay.set_needs_aac(self.hub.needs_aac(stream));
        }
    }
}
