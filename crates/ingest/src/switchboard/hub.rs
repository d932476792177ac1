//! Live streams and their readers: one publisher and many subscribers each, and where to join.
//!
//! A worker's hub holds the streams whose publisher lives on that worker, and copies of streams that live elsewhere but
//! have players here; a copy is fed by its [`Relay`] and is otherwise like any stream.

mod audio;
mod succession;

use std::sync::Arc;

use headgate_media::{Codec, Frame, FrameKind, Timestamp};
use slotmap::SlotMap;

use super::join_point::JoinPoint;
use super::keys::{SessionKey, StreamKey, SubscriberKey};
use super::queue::SubscriberQueue;
use super::relay::Relay;
use super::source::Source;
use crate::publish::play_guard::PlayGuard;
use crate::publish::record::{PublishRecord, StreamId};
use crate::publish::upstreams::Delivery;
use crate::session::effect::AudioForm;
use crate::session::shared_frame::SharedFrame;

/// Whom a change in the hub concerns.
#[derive(Debug, Default)]
pub(super) struct Woken {
    /// Readers on this worker whose queue grew or ended.
    pub(super) readers: Vec<SessionKey>,
    /// Other workers whose relay grew or ended.
    pub(super) workers: Vec<usize>,
}

/// One live stream on this worker.
pub(super) struct Stream {
    /// The publish that it is the stream of.
    pub(super) record: Arc<PublishRecord>,
    /// Where its frames come from.
    pub(super) source: Source,
    has_opus: bool,
    has_opus_audio: bool,
    join: JoinPoint,
    subscribers: Vec<SubscriberKey>,
    relays: Vec<(usize, Arc<Relay>)>,
    /// What other workers may still call it: the id of the publish that this one continues.
    former: Option<StreamId>,
    ended: bool,
}

struct Subscriber {
    stream: StreamKey,
    reader: SessionKey,
    form: AudioForm,
    queue: SubscriberQueue,
    /// Bytes that the stream has had for it, dropped ones too.
    offered: u64,
    /// Where what it gets and loses is counted for it alone.
    delivery: Option<Arc<Delivery>>,
    /// Reports its end, if it is a player.
    player: Option<PlayGuard>,
    /// What it gets and loses counts for the publish, and that it is there: not of previews and other nodes.
    is_counted: bool,
}

/// The streams of one worker.
#[derive(Default)]
pub(super) struct Hub {
    streams: SlotMap<StreamKey, Stream>,
    subscribers: SlotMap<SubscriberKey, Subscriber>,
}

impl Hub {
    /// A stream is live here.
    pub(super) fn open(
        &mut self,
        record: Arc<PublishRecord>,
        source: Source,
        caches_gop: bool,
    ) -> StreamKey {
        let join = JoinPoint::new(caches_gop);
        let (subscribers, relays) = (Vec::new(), Vec::new());
        let (has_opus, has_opus_audio, ended) = (false, false, false);
        self.streams.insert(Stream {
            record,
            source,
            has_opus,
            has_opus_audio,
            join,
            subscribers,
            relays,
            former: None,
            ended,
        })
    }

    /// The stream, unless it was closed.
    pub(super) fn stream(&self, key: StreamKey) -> Option<&Stream> {
        self.streams.get(key)
    }

    /// The same, to be changed.
    pub(super) fn stream_mut(&mut self, key: StreamKey) -> Option<&mut Stream> {
        self.streams.get_mut(key)
    }

    /// All streams.
    pub(super) fn streams(&self) -> impl Iterator<Item = (StreamKey, &Stream)> {
        self.streams.iter()
    }

    /// Gives a frame to everyone; `woken` collects whom it concerns.
    pub(super) fn publish(&mut self, stream: StreamKey, frame: &Frame, woken: &mut Woken) {
        let Some(stream) = self.streams.get_mut(stream) else { return };
        if stream.ended || !stream.join.handle_frame(frame) {
            return;
        }
        if frame.codec == Codec::Opus {
            stream.has_opus = true;
            stream.has_opus_audio |= frame.kind == FrameKind::Audio;
        }
        for (worker, relay) in &stream.relays {
            relay.push(frame, stream.join.headers());
            woken.workers.push(*worker);
        }
        let is_transcoded =
            stream.has_opus && frame.codec == Codec::Aac && frame.kind == FrameKind::Audio;
        let shared = match stream.subscribers.len() {
            0 => return,
            1 => SharedFrame::from(frame.clone()),
            _ => SharedFrame::for_many(frame.clone()),
        };
        for key in &stream.subscribers {
            let Some(subscriber) = self.subscribers.get_mut(*key) else { continue };
            if !subscriber.form.takes(frame.codec, stream.has_opus) {
                continue;
            }
            // What a transcoder still makes of the time before the video would come behind it.
            if is_transcoded && subscriber.queue.is_before_first_video(frame.timestamp) {
                continue;
            }
            if !subscriber.queue.push(&shared) {
                continue;
            }
            subscriber.offered += frame.data.len() as u64;
            let dropped = subscriber.queue.poll_dropped();
            if dropped > 0 && subscriber.is_counted {
                stream.record.add_dropped(dropped);
                if let Some(delivery) = &subscriber.delivery {
                    delivery.add_dropped(dropped);
                }
            }
            woken.readers.push(subscriber.reader);
        }
    }

    /// A reader joins at configuration + keyframe; at the next one, when what is cached begins no later than the
    /// reader's `after`. `None` when the stream is gone.
    pub(super) fn subscribe(
        &mut self,
        stream: StreamKey,
        reader: SessionKey,
        form: AudioForm,
        after: Option<Timestamp>,
    ) -> Option<SubscriberKey> {
        let key = self.join(stream, reader, form, after, true)?;
        self.streams.get(stream)?.record.add_subscribers(1);
        Some(key)
    }

    /// A preview or another node joins, as any reader, but is not counted as one: nobody is charged for a preview, and
    /// the other node counts its own players.
    pub(super) fn subscribe_uncounted(
        &mut self,
        stream: StreamKey,
        reader: SessionKey,
        form: AudioForm,
    ) -> Option<SubscriberKey> {
        self.join(stream, reader, form, None, false)
    }

    fn join(
        &mut self,
        stream: StreamKey,
        reader: SessionKey,
        form: AudioForm,
        after: Option<Timestamp>,
        is_counted: bool,
    ) -> Option<SubscriberKey> {
        let live = self.streams.get_mut(stream)?;
        let is_new = |frame: &Frame| {
            let is_header = matches!(
                frame.kind,
                FrameKind::Configuration | FrameKind::ColorInfo | FrameKind::Script
            );
            is_header || after.is_none_or(|after| frame.timestamp > after)
        };
        let burst = live.join.burst();
        let burst = burst.filter(|frame| form.takes(frame.codec, live.has_opus) && is_new(frame));
        let mut queue = SubscriberQueue::new(burst);
        if live.ended {
            queue.end();
        }
        let key = self.subscribers.insert(Subscriber {
            stream,
            reader,
            form,
            queue,
            offered: 0,
            delivery: None,
            player: None,
            is_counted,
        });
        live.subscribers.push(key);
        Some(key)
    }

    /// Whether the stream has had video and audio.
    pub(super) fn tracks_of(&self, key: SubscriberKey) -> Option<(bool, bool)> {
        let stream = self.subscribers.get(key)?.stream;
        Some(self.streams.get(stream)?.join.tracks())
    }

    /// The stream that a subscriber reads.
    pub(super) fn stream_of(&self, key: SubscriberKey) -> Option<StreamKey> {
        self.subscribers.get(key).map(|subscriber| subscriber.stream)
    }

    /// What this reader gets and loses is counted there as well.
    pub(super) fn count(&mut self, key: SubscriberKey, delivery: Arc<Delivery>) {
        if let Some(subscriber) = self.subscribers.get_mut(key) {
            subscriber.delivery = Some(delivery);
        }
    }

    /// The reader is a player: when it reads no more, its guard is dropped.
    pub(super) fn hold(&mut self, key: SubscriberKey, player: PlayGuard) {
        if let Some(subscriber) = self.subscribers.get_mut(key) {
            subscriber.player = Some(player);
        }
    }

    /// A reader has learnt in which form it takes Opus audio.
    pub(super) fn decide(&mut self, key: SubscriberKey, form: AudioForm) {
        let Some(subscriber) = self.subscribers.get_mut(key) else { return };
        let has_opus = self.streams.get(subscriber.stream).is_some_and(|live| live.has_opus);
        subscriber.form = form;
        subscriber.queue.forget(|frame| !form.takes(frame.codec, has_opus));
    }

    /// A reader does not take frames of these codecs: they neither wait nor count for it.
    pub(super) fn leave_out(&mut self, key: SubscriberKey, codecs: Vec<Codec>) {
        if let Some(subscriber) = self.subscribers.get_mut(key) {
            subscriber.queue.leave_out(codecs);
        }
    }

    /// A reader takes now what its socket has room for.
    pub(super) fn note_turn(&mut self, key: SubscriberKey) {
        if let Some(subscriber) = self.subscribers.get_mut(key) {
            subscriber.queue.note_turn();
        }
    }

    /// What was published so far is what the stream's readers join with.
    pub(super) fn note_joined(&mut self, stream: StreamKey) {
        let Some(stream) = self.streams.get(stream) else { return };
        for key in &stream.subscribers {
            if let Some(subscriber) = self.subscribers.get_mut(*key) {
                subscriber.queue.note_joined();
            }
        }
    }

    /// The stream's video codec when it has nothing else, and a reader does not take it.
    pub(super) fn only_left_out(&self, key: SubscriberKey) -> Option<Codec> {
        let subscriber = self.subscribers.get(key)?;
        let codec = self.streams.get(subscriber.stream)?.join.only_video()?;
        subscriber.queue.leaves_out(codec).then_some(codec)
    }

    /// A reader leaves; what waits for it is gone.
    pub(super) fn unsubscribe(&mut self, key: SubscriberKey) {
        let Some(gone) = self.subscribers.remove(key) else { return };
        if let Some(stream) = self.streams.get_mut(gone.stream) {
            stream.subscribers.retain(|other| *other != key);
            stream.record.add_subscribers(-i64::from(gone.is_counted));
        }
    }

    /// The next frame for a reader, counted as handed out.
    pub(super) fn next_frame(&mut self, key: SubscriberKey) -> Option<SharedFrame> {
        let subscriber = self.subscribers.get_mut(key)?;
        let frame = subscriber.queue.pop()?;
        if let Some(delivery) = &subscriber.delivery {
            delivery.add_out(frame.payload_bytes());
        }
        if subscriber.is_counted
            && let Some(stream) = self.streams.get(subscriber.stream)
        {
            stream.record.add_out(frame.payload_bytes());
        }
        Some(frame)
    }

    /// Bytes that the stream has had for a reader so far.
    pub(super) fn offered(&self, key: SubscriberKey) -> u64 {
        self.subscribers.get(key).map_or(0, |subscriber| subscriber.offered)
    }

    /// The reader has everything there will ever be.
    #[must_use]
    pub(super) fn is_finished(&self, key: SubscriberKey) -> bool {
        self.subscribers.get(key).is_none_or(|subscriber| subscriber.queue.is_finished())
    }

    /// No frame will join those that wait for the reader.
    #[must_use]
    pub(super) fn is_ended(&self, key: SubscriberKey) -> bool {
        let stream = self.subscribers.get(key).and_then(|of| self.streams.get(of.stream));
        stream.is_none_or(|stream| stream.ended)
    }

    /// Frames wait for the reader.
    #[must_use]
    pub(super) fn has_frames(&self, key: SubscriberKey) -> bool {
        self.subscribers.get(key).is_some_and(|subscriber| !subscriber.queue.is_empty())
    }

    /// Only audio waits for the reader, and the stream has video that it can be written with. Who is not counted is
    /// another node, whose own players wait there.
    #[must_use]
    pub(super) fn may_wait_for_video(&self, key: SubscriberKey) -> bool {
        self.subscribers.get(key).is_some_and(|of| of.is_counted && of.queue.holds_only_audio())
    }

    /// Another worker reads this stream: `relay` carries on where the returned frames end. `None` when it is gone.
    pub(super) fn attach(
        &mut self,
        stream: StreamKey,
        worker: usize,
        relay: Arc<Relay>,
    ) -> Option<Vec<Frame>> {
        let stream = self.streams.get_mut(stream)?;
        if stream.ended {
            relay.end();
        }
        stream.relays.push((worker, relay));
        Some(stream.join.burst().collect())
    }

    /// The other worker has no player of the stream any more.
    pub(super) fn detach(&mut self, stream: StreamKey, relay: &Arc<Relay>) {
        if let Some(stream) = self.streams.get_mut(stream) {
            stream.relays.retain(|(_, other)| !Arc::ptr_eq(other, relay));
            stream.record.add_dropped(relay.poll_dropped());
        }
    }

    /// The publisher is gone: readers get what waits for them and then the end.
    pub(super) fn end(&mut self, stream: StreamKey, woken: &mut Woken) {
        let Some(stream) = self.streams.get_mut(stream) else { return };
        stream.ended = true;
        for (worker, relay) in &stream.relays {
            relay.end();
            woken.workers.push(*worker);
        }
        for key in &stream.subscribers {
            if let Some(subscriber) = self.subscribers.get_mut(*key) {
                subscriber.queue.end();
                woken.readers.push(subscriber.reader);
            }
        }
    }

    /// Nobody reads the stream: neither here nor through a relay.
    #[must_use]
    pub(super) fn is_unread(&self, stream: StreamKey) -> bool {
        self.streams.get(stream).is_none_or(|s| s.subscribers.is_empty() && s.relays.is_empty())
    }

    /// Forgets the stream and its subscribers. Their keys lead nowhere from now on, whoever still holds them.
    pub(super) fn close(&mut self, stream: StreamKey, woken: &mut Woken) -> Option<Stream> {
        let closed = self.streams.remove(stream)?;
        for key in &closed.subscribers {
            if let Some(subscriber) = self.subscribers.remove(*key) {
                closed.record.add_subscribers(-i64::from(subscriber.is_counted));
                woken.readers.push(subscriber.reader);
            }
        }
        Some(closed)
    }
}

#[cfg(test)]
#[path = "hub_tests.rs"]
mod tests;
