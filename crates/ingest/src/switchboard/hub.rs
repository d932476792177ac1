//! Live streams and their subscribers: one publisher and many subscribers each, and the point at which to join.
//!
//! A worker's hub holds the streams whose publisher lives on that worker, and copies of streams that live on another
//! worker but have players here; a copy is fed by its [`Relay`] and is otherwise like any stream.

mod audio;
mod filler;
mod pushes;
mod succession;

use std::sync::Arc;

use headgate_media::{Codec, Frame, FrameKind, Timestamp};
use slotmap::SlotMap;

use super::join_point::JoinPoint;
use super::keys::{SessionKey, StreamKey, SubscriberKey};
use super::queue::{SubscriberQueue, is_video};
use super::relay::Relay;
use super::source::Source;
use crate::publish::play_guard::PlayGuard;
use crate::publish::record::{PublishRecord, StreamId};
use crate::publish::upstreams::Delivery;
use crate::session::effect::AudioForm;
use crate::session::shared_frame::SharedFrame;

/// Sessions and workers that a change in the hub concerns.
#[derive(Debug, Default)]
pub(super) struct Woken {
    /// Subscribers on this worker whose queue grew or ended.
    pub(super) readers: Vec<SessionKey>,
    /// Other workers whose relay grew or ended.
    pub(super) workers: Vec<usize>,
}

/// One live stream on this worker.
pub(super) struct Stream {
    /// The publish whose stream this is.
    pub(super) record: Arc<PublishRecord>,
    /// Where its frames come from.
    pub(super) source: Source,
    has_opus: bool,
    has_opus_audio: bool,
    join: JoinPoint,
    subscribers: Vec<SubscriberKey>,
    relays: Vec<(usize, Arc<Relay>)>,
    /// The id that other workers may still use for it: that of the publish that this one continues.
    former: Option<StreamId>,
    ended: bool,
}

struct Subscriber {
    stream: StreamKey,
    reader: SessionKey,
    form: AudioForm,
    queue: SubscriberQueue,
    /// Bytes that the stream has offered it, including dropped ones.
    offered: u64,
    /// Counters for this subscriber alone.
    delivery: Option<Arc<Delivery>>,
    /// Reports its end, if it is a player.
    player: Option<PlayGuard>,
    role: Role,
}

/// What a subscriber is.
#[derive(Clone, Copy)]
enum Role {
    Player,
    /// It does not count as a subscriber, nor do its bytes and dropped frames: a preview or another node.
    Uncounted,
    /// `after`: decode timestamp of the newest frame that its upstream has from earlier connections.
    Push {
        after: Option<Timestamp>,
    },
}

impl Subscriber {
    const fn is_counted(&self) -> bool {
        !matches!(self.role, Role::Uncounted)
    }
}

/// The streams of one worker.
#[derive(Default)]
pub(super) struct Hub {
    streams: SlotMap<StreamKey, Stream>,
    subscribers: SlotMap<SubscriberKey, Subscriber>,
}

impl Hub {
    /// Opens a live stream.
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

    /// See [`Hub::stream`].
    pub(super) fn stream_mut(&mut self, key: StreamKey) -> Option<&mut Stream> {
        self.streams.get_mut(key)
    }

    /// All streams.
    pub(super) fn streams(&self) -> impl Iterator<Item = (StreamKey, &Stream)> {
        self.streams.iter()
    }

    /// Passes a frame to all subscribers and relays; `woken` collects them.
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
            // AAC that was transcoded from before the subscriber's first video frame would arrive after that.
            if is_transcoded && subscriber.queue.is_before_first_video(frame.timestamp) {
                continue;
            }
            if !subscriber.queue.push(&shared) {
                continue;
            }
            if subscriber.queue.awaits_keyframe() && subscriber.is_counted() && is_video(frame.kind)
            {
                stream.record.note_keyframe_awaited();
            }
            subscriber.offered += frame.data.len() as u64;
            let dropped = subscriber.queue.poll_dropped();
            if dropped > 0 && subscriber.is_counted() {
                stream.record.add_dropped(dropped);
                if let Some(delivery) = &subscriber.delivery {
                    delivery.add_dropped(dropped);
                }
            }
            woken.readers.push(subscriber.reader);
        }
    }

    /// Adds a player, which starts at configuration + keyframe. `None` if the stream is gone.
    pub(super) fn subscribe(
        &mut self,
        stream: StreamKey,
        reader: SessionKey,
        form: AudioForm,
    ) -> Option<SubscriberKey> {
        let key = self.join(stream, reader, form, Role::Player)?;
        self.streams.get(stream)?.record.add_subscribers(1);
        Some(key)
    }

    /// Adds a preview or another node, which is not counted as a subscriber: previews are not charged, and the other
    /// node counts its own players.
    pub(super) fn subscribe_uncounted(
        &mut self,
        stream: StreamKey,
        reader: SessionKey,
        form: AudioForm,
    ) -> Option<SubscriberKey> {
        self.join(stream, reader, form, Role::Uncounted)
    }

    fn join(
        &mut self,
        stream: StreamKey,
        reader: SessionKey,
        form: AudioForm,
        role: Role,
    ) -> Option<SubscriberKey> {
        let live = self.streams.get_mut(stream)?;
        let mut queue = live.queue_for(form, role);
        if matches!(role, Role::Push { .. }) && form == AudioForm::Undecided {
            queue.set_pending();
        }
        let key = self.subscribers.insert(Subscriber {
            stream,
            reader,
            form,
            queue,
            offered: 0,
            delivery: None,
            player: None,
            role,
        });
        live.subscribers.push(key);
        Some(key)
    }

    /// Whether the stream has had video, and audio.
    pub(super) fn tracks_of(&self, key: SubscriberKey) -> Option<(bool, bool)> {
        let stream = self.subscribers.get(key)?.stream;
        Some(self.streams.get(stream)?.join.tracks())
    }

    /// The stream that a subscriber reads.
    pub(super) fn stream_of(&self, key: SubscriberKey) -> Option<StreamKey> {
        self.subscribers.get(key).map(|subscriber| subscriber.stream)
    }

    /// Counts bytes and dropped frames of this subscriber in `delivery` as well.
    pub(super) fn count(&mut self, key: SubscriberKey, delivery: Arc<Delivery>) {
        if let Some(subscriber) = self.subscribers.get_mut(key) {
            subscriber.delivery = Some(delivery);
        }
    }

    /// The subscriber is a player: `player` is dropped when it stops reading.
    pub(super) fn hold(&mut self, key: SubscriberKey, player: PlayGuard) {
        if let Some(subscriber) = self.subscribers.get_mut(key) {
            subscriber.player = Some(player);
        }
    }

    /// Leaves out frames of these codecs for a subscriber: they are neither queued nor counted.
    pub(super) fn leave_out(&mut self, key: SubscriberKey, codecs: Vec<Codec>) {
        if let Some(subscriber) = self.subscribers.get_mut(key) {
            subscriber.queue.leave_out(codecs);
        }
    }

    /// The subscriber takes at this point what its socket has room for.
    pub(super) fn note_turn(&mut self, key: SubscriberKey) {
        if let Some(subscriber) = self.subscribers.get_mut(key) {
            subscriber.queue.note_turn();
        }
    }

    /// Treats everything queued so far as the burst that subscribers join with.
    pub(super) fn note_joined(&mut self, stream: StreamKey) {
        let Some(stream) = self.streams.get(stream) else { return };
        for key in &stream.subscribers {
            if let Some(subscriber) = self.subscribers.get_mut(*key) {
                subscriber.queue.note_joined();
            }
        }
    }

    /// The stream's video codec if the stream has no audio and the subscriber does not take that codec.
    pub(super) fn only_left_out(&self, key: SubscriberKey) -> Option<Codec> {
        let subscriber = self.subscribers.get(key)?;
        let codec = self.streams.get(subscriber.stream)?.join.only_video()?;
        subscriber.queue.leaves_out(codec).then_some(codec)
    }

    /// Removes a subscriber with its queue.
    pub(super) fn unsubscribe(&mut self, key: SubscriberKey) {
        let Some(gone) = self.subscribers.remove(key) else { return };
        if let Some(stream) = self.streams.get_mut(gone.stream) {
            stream.subscribers.retain(|other| *other != key);
            stream.record.add_subscribers(-i64::from(gone.is_counted()));
        }
    }

    /// The next frame for a subscriber, counted as sent.
    pub(super) fn next_frame(&mut self, key: SubscriberKey) -> Option<SharedFrame> {
        let subscriber = self.subscribers.get_mut(key)?;
        let frame = subscriber.queue.pop()?;
        if let Some(delivery) = &subscriber.delivery {
            delivery.add_out(frame.payload_bytes());
        }
        if subscriber.is_counted()
            && let Some(stream) = self.streams.get(subscriber.stream)
        {
            stream.record.add_out(frame.payload_bytes());
        }
        Some(frame)
    }

    /// Bytes that the stream has offered a subscriber so far.
    pub(super) fn offered(&self, key: SubscriberKey) -> u64 {
        self.subscribers.get(key).map_or(0, |subscriber| subscriber.offered)
    }

    /// Whether the stream has ended and the subscriber has taken all frames.
    #[must_use]
    pub(super) fn is_finished(&self, key: SubscriberKey) -> bool {
        self.subscribers.get(key).is_none_or(|subscriber| subscriber.queue.is_finished())
    }

    /// Whether no more frames will be queued for the subscriber.
    #[must_use]
    pub(super) fn is_ended(&self, key: SubscriberKey) -> bool {
        let stream = self.subscribers.get(key).and_then(|of| self.streams.get(of.stream));
        stream.is_none_or(|stream| stream.ended)
    }

    /// Whether frames wait for the subscriber.
    #[must_use]
    pub(super) fn has_frames(&self, key: SubscriberKey) -> bool {
        self.subscribers.get(key).is_some_and(|subscriber| !subscriber.queue.is_empty())
    }

    /// Whether only audio waits for the subscriber and may wait for a video frame to be written with. Not for other
    /// nodes, which are uncounted: their own players wait there.
    #[must_use]
    pub(super) fn may_wait_for_video(&self, key: SubscriberKey) -> bool {
        self.subscribers.get(key).is_some_and(|of| of.is_counted() && of.queue.holds_only_audio())
    }

    /// Adds a worker that reads this stream: `relay` continues where the returned frames end. `None` if the stream is
    /// gone.
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

    /// Removes a worker that has no player of the stream any more.
    pub(super) fn detach(&mut self, stream: StreamKey, relay: &Arc<Relay>) {
        if let Some(stream) = self.streams.get_mut(stream) {
            stream.relays.retain(|(_, other)| !Arc::ptr_eq(other, relay));
            stream.record.add_dropped(relay.poll_dropped());
        }
    }

    /// The publisher has ended: subscribers get the waiting frames and then the end.
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

    /// Whether the stream has no subscribers, neither here nor through a relay.
    #[must_use]
    pub(super) fn is_unread(&self, stream: StreamKey) -> bool {
        self.streams.get(stream).is_none_or(|s| s.subscribers.is_empty() && s.relays.is_empty())
    }

    /// Removes the stream and its subscribers. Their keys become invalid, even if something still holds them.
    pub(super) fn close(&mut self, stream: StreamKey, woken: &mut Woken) -> Option<Stream> {
        let closed = self.streams.remove(stream)?;
        for key in &closed.subscribers {
            if let Some(subscriber) = self.subscribers.remove(*key) {
                closed.record.add_subscribers(-i64::from(subscriber.is_counted()));
                woken.readers.push(subscriber.reader);
            }
        }
        Some(closed)
    }
}

#[cfg(test)]
#[path = "hub_tests.rs"]
mod tests;
