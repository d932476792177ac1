//! Live streams by their key: one publisher and many subscribers each, and where to join. Pure.
//!
//! A worker's hub holds the streams whose publisher lives on that worker, and mirrors of streams that live elsewhere
//! but have players here; a mirror is fed by its [`Relay`] and is otherwise like any stream.

use std::sync::Arc;

use headgate_media::{Codec, Frame, FrameKind, Timestamp};
use slab::Slab;

use crate::gop::JoinPoint;
use crate::queue::SubscriberQueue;
use crate::relay::Relay;
use crate::session::Counters;
use crate::upstreams::Delivery;

/// A stream in this worker's hub.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct StreamKey(usize);

/// A subscriber in this worker's hub.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct SubscriberKey(usize);

/// What a subscriber's queue is drained by: the worker's own handle of the connection, opaque here.
pub(crate) type Reader = usize;

/// Whom a change in the hub concerns; the worker drains it after each turn.
#[derive(Debug, Default)]
pub(crate) struct Woken {
    /// Readers on this worker whose queue grew or ended.
    pub(crate) readers: Vec<Reader>,
    /// Other workers whose relay grew or ended.
    pub(crate) workers: Vec<usize>,
}

/// In which form a subscriber takes the sound of a stream that comes as Opus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SoundForm {
    /// It has not said: both are kept for it, and nothing is transcoded on its account.
    Undecided,
    /// As it comes.
    Opus,
    /// Transcoded.
    Aac,
}

impl SoundForm {
    /// Whether a frame is for such a subscriber; `has_opus`: the stream's AAC, if any, is transcoded.
    const fn takes(self, codec: Codec, has_opus: bool) -> bool {
        match (self, codec) {
            (Self::Aac, Codec::Opus) => false,
            (Self::Opus, Codec::Aac) => !has_opus,
            (Self::Undecided | Self::Opus | Self::Aac, _) => true,
        }
    }
}

#[derive(Debug)]
struct Stream {
    has_opus: bool,
    join: JoinPoint,
    counters: Arc<Counters>,
    subscribers: Vec<SubscriberKey>,
    relays: Vec<(usize, Arc<Relay>)>,
    ended: bool,
}

#[derive(Debug)]
struct Subscriber {
    stream: StreamKey,
    reader: Reader,
    form: SoundForm,
    queue: SubscriberQueue,
    /// Where what it gets and loses is counted for it alone.
    delivery: Option<Arc<Delivery>>,
}

/// The streams of one worker.
#[derive(Debug, Default)]
pub(crate) struct Hub {
    streams: Slab<Stream>,
    subscribers: Slab<Subscriber>,
}

impl Hub {
    /// A stream goes live here.
    pub(crate) fn open(&mut self, counters: Arc<Counters>, caches_gop: bool) -> StreamKey {
        let join = JoinPoint::new(caches_gop);
        let (subscribers, relays) = (Vec::new(), Vec::new());
        StreamKey(self.streams.insert(Stream {
            has_opus: false,
            join,
            counters,
            subscribers,
            relays,
            ended: false,
        }))
    }

    /// Gives a frame to everyone; `woken` collects whom it concerns.
    pub(crate) fn publish(&mut self, stream: StreamKey, frame: &Frame, woken: &mut Woken) {
        let Some(stream) = self.streams.get_mut(stream.0) else { return };
        if stream.ended || !stream.join.handle_frame(frame) {
            return;
        }
        stream.has_opus |= frame.codec == Codec::Opus;
        for (worker, relay) in &stream.relays {
            relay.push(frame);
            woken.workers.push(*worker);
        }
        let is_transcoded =
            stream.has_opus && frame.codec == Codec::Aac && frame.kind == FrameKind::Audio;
        for key in &stream.subscribers {
            let Some(subscriber) = self.subscribers.get_mut(key.0) else { continue };
            if !subscriber.form.takes(frame.codec, stream.has_opus) {
                continue;
            }
            // What a transcoder still makes of the time before the picture would come behind it.
            if is_transcoded && subscriber.queue.is_before_first_picture(frame.timestamp) {
                continue;
            }
            subscriber.queue.push(frame);
            let dropped = subscriber.queue.poll_dropped();
            if dropped > 0 {
                stream.counters.add_dropped(dropped);
                if let Some(delivery) = &subscriber.delivery {
                    delivery.add_dropped(dropped);
                }
            }
            woken.readers.push(subscriber.reader);
        }
    }

    /// A reader joins at configuration + keyframe; at the next one, when what is cached begins no later than the
    /// reader's `after`. `None` when the stream is gone.
    pub(crate) fn subscribe(
        &mut self,
        stream: StreamKey,
        reader: Reader,
        form: SoundForm,
        after: Option<Timestamp>,
    ) -> Option<SubscriberKey> {
        let live = self.streams.get_mut(stream.0)?;
        let is_new = |frame: &Frame| {
            let is_header = matches!(frame.kind, FrameKind::Configuration | FrameKind::Script);
            is_header || after.is_none_or(|after| frame.timestamp > after)
        };
        let burst = live.join.burst();
        let burst = burst.filter(|frame| form.takes(frame.codec, live.has_opus) && is_new(frame));
        let mut queue = SubscriberQueue::new(burst);
        if live.ended {
            queue.end();
        }
        let subscriber = Subscriber { stream, reader, form, queue, delivery: None };
        let key = SubscriberKey(self.subscribers.insert(subscriber));
        live.subscribers.push(key);
        live.counters.add_subscribers(1);
        Some(key)
    }

    /// What this reader gets and loses is counted there as well.
    pub(crate) fn count(&mut self, key: SubscriberKey, delivery: Arc<Delivery>) {
        if let Some(subscriber) = self.subscribers.get_mut(key.0) {
            subscriber.delivery = Some(delivery);
        }
    }

    /// A reader has said in which form it takes the sound.
    pub(crate) fn decide(&mut self, key: SubscriberKey, form: SoundForm) {
        let Some(subscriber) = self.subscribers.get_mut(key.0) else { return };
        let has_opus = self.streams.get(subscriber.stream.0).is_some_and(|live| live.has_opus);
        subscriber.form = form;
        subscriber.queue.forget(|frame| !form.takes(frame.codec, has_opus));
    }

    /// A reader does not take frames of these codecs: they neither wait nor count for it.
    pub(crate) fn leave_out(&mut self, key: SubscriberKey, codecs: Vec<Codec>) {
        if let Some(subscriber) = self.subscribers.get_mut(key.0) {
            subscriber.queue.leave_out(codecs);
        }
    }

    /// The codec of the stream's pictures when it has nothing else, and a reader does not take them.
    pub(crate) fn only_foreign(&self, key: SubscriberKey) -> Option<Codec> {
        let subscriber = self.subscribers.get(key.0)?;
        let codec = self.streams.get(subscriber.stream.0)?.join.only_pictures()?;
        subscriber.queue.leaves_out(codec).then_some(codec)
    }

    /// Whether someone, here or behind a relay, takes the stream's sound as AAC only.
    #[must_use]
    pub(crate) fn needs_aac(&self, stream: StreamKey) -> bool {
        let Some(stream) = self.streams.get(stream.0) else { return false };
        let needs = |key: &SubscriberKey| {
            self.subscribers.get(key.0).is_some_and(|of| of.form == SoundForm::Aac)
        };
        stream.subscribers.iter().any(needs)
            || stream.relays.iter().any(|(_, relay)| relay.needs_aac())
    }

    /// Whether the reader's stream has audio that it gets transcoded.
    pub(crate) fn has_opus(&self, key: SubscriberKey) -> bool {
        let stream = self.subscribers.get(key.0).and_then(|of| self.streams.get(of.stream.0));
        stream.is_some_and(|stream| stream.has_opus)
    }

    /// The Opus packets a joiner would get.
    pub(crate) fn opus_packets(&self, stream: StreamKey) -> Vec<Frame> {
        self.streams.get(stream.0).map_or_else(Vec::new, |live| live.join.opus_packets().collect())
    }

    /// Nobody takes AAC any more: what is cached of it is forgotten.
    pub(crate) fn forget_aac(&mut self, stream: StreamKey) {
        if let Some(live) = self.streams.get_mut(stream.0) {
            live.join.forget_aac();
        }
    }

    /// A reader leaves; what waits for it is gone.
    pub(crate) fn unsubscribe(&mut self, key: SubscriberKey) {
        let Some(gone) = self.subscribers.try_remove(key.0) else { return };
        if let Some(stream) = self.streams.get_mut(gone.stream.0) {
            stream.subscribers.retain(|other| *other != key);
            stream.counters.add_subscribers(-1);
        }
    }

    /// The next frame for a reader, counted as handed out.
    pub(crate) fn next_frame(&mut self, key: SubscriberKey) -> Option<Frame> {
        let subscriber = self.subscribers.get_mut(key.0)?;
        let frame = subscriber.queue.pop()?;
        if let Some(delivery) = &subscriber.delivery {
            delivery.add_out(frame.payload_bytes());
        }
        if let Some(stream) = self.streams.get(subscriber.stream.0) {
            stream.counters.add_out(frame.payload_bytes());
        }
        Some(frame)
    }

    /// The reader has everything there will ever be.
    #[must_use]
    pub(crate) fn is_finished(&self, key: SubscriberKey) -> bool {
        self.subscribers.get(key.0).is_none_or(|subscriber| subscriber.queue.is_finished())
    }

    /// Only audio waits for the reader, and the stream has pictures it can ride with.
    #[must_use]
    pub(crate) fn holds_only_audio(&self, key: SubscriberKey) -> bool {
        self.subscribers.get(key.0).is_some_and(|subscriber| subscriber.queue.holds_only_audio())
    }

    /// Another worker wants this stream: `relay` carries on where the returned frames end. `None` when it is gone.
    pub(crate) fn attach(
        &mut self,
        stream: StreamKey,
        worker: usize,
        relay: Arc<Relay>,
    ) -> Option<Vec<Frame>> {
        let stream = self.streams.get_mut(stream.0)?;
        if stream.ended {
            relay.end();
        }
        stream.relays.push((worker, relay));
        Some(stream.join.burst().collect())
    }

    /// The other worker has no player of the stream any more.
    pub(crate) fn detach(&mut self, stream: StreamKey, relay: &Arc<Relay>) {
        if let Some(stream) = self.streams.get_mut(stream.0) {
            stream.relays.retain(|(_, other)| !Arc::ptr_eq(other, relay));
            stream.counters.add_dropped(relay.poll_dropped());
        }
    }

    /// The publisher is gone: readers get what waits for them and then the end.
    pub(crate) fn end(&mut self, stream: StreamKey, woken: &mut Woken) {
        let Some(stream) = self.streams.get_mut(stream.0) else { return };
        stream.ended = true;
        for (worker, relay) in &stream.relays {
            relay.end();
            woken.workers.push(*worker);
        }
        for key in &stream.subscribers {
            if let Some(subscriber) = self.subscribers.get_mut(key.0) {
                subscriber.queue.end();
                woken.readers.push(subscriber.reader);
            }
        }
    }

    /// Nobody reads the stream: neither here nor through a relay.
    #[must_use]
    pub(crate) fn is_unread(&self, stream: StreamKey) -> bool {
        self.streams.get(stream.0).is_none_or(|s| s.subscribers.is_empty() && s.relays.is_empty())
    }

    /// Forgets the stream. Readers that are still here find [`Hub::is_finished`].
    pub(crate) fn close(&mut self, stream: StreamKey) {
        let Some(closed) = self.streams.try_remove(stream.0) else { return };
        for key in closed.subscribers {
            if self.subscribers.try_remove(key.0).is_some() {
                closed.counters.add_subscribers(-1);
            }
        }
    }
}

#[cfg(test)]
#[path = "hub_tests.rs"]
mod tests;
