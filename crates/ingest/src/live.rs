//! What a worker does with live streams: opens, joins, mirrors and ends them. Not the wire.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use headgate_media::{Codec, Frame, FrameKind, Timestamp};

use crate::directory::{Place, StreamId};
use crate::hub::{SoundForm, StreamKey};
use crate::mailbox::EndSlot;
use crate::relay::Relay;
use crate::rtmp_push::Push;
use crate::seat::{After, Entry, Ready};
use crate::session::EndReason;
use crate::shared::Command;
use crate::transcoding::{AUDIO_BITRATE, TranscoderRing};
use crate::upstreams::{Upstream, UpstreamRecord, UpstreamSource};
use crate::worker::{Timer, Worker};

/// Audio waits so long for a picture to ride along with: a write costs the same for 200 bytes as for 10 kB.
const AUDIO_HOLD: Duration = Duration::from_millis(40);
/// After the end, readers get so long to take what waits for them before the publish counts as over (W19: 1 s).
const DRAIN_LIMIT: Duration = Duration::from_millis(900);

/// A stream whose publisher sits on this worker.
pub(crate) struct LocalStream {
    pub(crate) key: StreamKey,
    pub(crate) name: Vec<u8>,
    slot: EndSlot,
    pub(crate) publisher: usize,
    pushes: Vec<usize>,
    /// Opus becomes AAC there, while someone needs it.
    ring: Option<Arc<TranscoderRing>>,
    audio_bitrate: u32,
    draining_until: Option<Instant>,
}

/// A stream of another worker that has players here.
pub(crate) struct Mirror {
    pub(crate) key: StreamKey,
    pub(crate) owner: usize,
    pub(crate) relay: Arc<Relay>,
    is_seeded: bool,
}

impl Worker {
    /// The gateway said yes.
    pub(crate) fn allow(&mut self, request: u64, slot: EndSlot, upstreams: Vec<Upstream>) {
        let mut slot = Some(slot);
        self.answer(request, |worker, key, server| {
            let Some(slot) = slot.take() else { return };
            server.allow(slot.counters().clone(), worker.now);
            let name = server.name().to_vec();
            worker.open_stream(key, name, slot, upstreams, Bytes::new(), AUDIO_BITRATE);
        });
        if let Some(mut slot) = slot {
            // The broadcaster did not wait: accepted and ended (W12a).
            slot.name_reason(EndReason::BroadcasterLeft);
        }
    }

    pub(crate) fn open_stream(
        &mut self,
        publisher: usize,
        name: Vec<u8>,
        slot: EndSlot,
        upstreams: Vec<Upstream>,
        connect_info: Bytes,
        audio_bitrate: u32,
    ) {
        let stream = self.shared.new_stream();
        let counters = slot.counters().clone();
        let key = self.hub.open(counters.clone(), self.shared.caches_gop);
        let records: Vec<_> =
            upstreams.into_iter().map(|upstream| counters.upstreams.open(upstream)).collect();
        self.shared.directory.enter(&name, Place { stream, worker: self.index(), counters });
        let local = LocalStream {
            key,
            name,
            slot,
            publisher,
            pushes: Vec::new(),
            ring: None,
            audio_bitrate,
            draining_until: None,
        };
        self.locals.insert(stream, local);
        if let Some(seat) = self.seats.get_mut(publisher) {
            seat.publishes = Some(stream);
        }
        for record in records {
            let is_own = record.upstream.source == UpstreamSource::Own;
            let connect_info = if is_own { connect_info.clone() } else { Bytes::new() };
            self.open_push(stream, record, connect_info);
        }
    }

    fn open_push(&mut self, stream: StreamId, record: Arc<UpstreamRecord>, connect_info: Bytes) {
        let Some(client_id) = self.locals.get(&stream).map(|local| local.slot.client_id()) else {
            return;
        };
        let push = Push::new(stream, client_id, record, connect_info, self.now);
        let key = self.seat(Entry::Push(Box::new(push)));
        if let Some(local) = self.locals.get_mut(&stream) {
            local.pushes.push(key);
        }
        self.turn(key, |worker, key, entry| entry.start(worker, key));
    }

    /// The gateway wants a running publish pushed to one more upstream.
    pub(crate) fn add_upstream(&mut self, client_id: u64, record: Arc<UpstreamRecord>) {
        if let Some(stream) = self.stream_of(client_id) {
            self.open_push(stream, record, Bytes::new());
        }
    }

    /// The gateway wants one upstream of a running publish left.
    pub(crate) fn remove_upstream(&mut self, client_id: u64, id: u64) {
        let Some(local) = self.stream_of(client_id).and_then(|stream| self.locals.get(&stream))
        else {
            return;
        };
        for key in local.pushes.clone() {
            self.turn(key, |worker, key, entry| match entry {
                Entry::Push(push) if push.is(client_id, id) => push.leave(worker, key),
                Entry::Push(_) | Entry::Server(_) | Entry::Whip(_) => After::Stay,
            });
        }
    }

    fn stream_of(&self, client_id: u64) -> Option<StreamId> {
        let is_meant = |local: &LocalStream| {
            local.slot.client_id() == client_id && local.draining_until.is_none()
        };
        self.locals.iter().find(|(_, local)| is_meant(local)).map(|(stream, _)| *stream)
    }

    /// Push `key` is over: its seat may be another's by the next turn.
    pub(crate) fn forget_push(&mut self, stream: StreamId, key: usize) {
        if let Some(local) = self.locals.get_mut(&stream) {
            local.pushes.retain(|push| *push != key);
        }
    }

    /// A frame of the stream published from seat `publisher`.
    pub(crate) fn publish_frame(&mut self, publisher: usize, frame: &Frame) {
        let stream = self.seats.get(publisher).and_then(|seat| seat.publishes);
        let Some(local) = stream.and_then(|stream| self.locals.get_mut(&stream)) else { return };
        self.hub.publish(local.key, frame, &mut self.woken);
        if frame.codec == Codec::Opus
            && frame.kind == FrameKind::Audio
            && let Some(stream) = stream
        {
            self.transcode(stream, frame);
        }
    }

    /// An Opus packet passed: it goes to the stream's transcoder if someone needs AAC, and only then is there one.
    fn transcode(&mut self, stream: StreamId, packet: &Frame) {
        let (index, shared) = (self.index(), self.shared.clone());
        let Some(local) = self.locals.get_mut(&stream) else { return };
        match (&local.ring, self.hub.needs_aac(local.key)) {
            (None, false) => {}
            (Some(ring), true) => shared.transcoders.push(ring, packet.clone()),
            (None, true) => {
                let ring = shared.transcoders.open(stream, index, local.audio_bitrate);
                // What a joiner's burst holds is transcoded first, so that its sound starts with its picture.
                let mut cached = self.hub.opus_packets(local.key);
                if cached.is_empty() {
                    cached.push(packet.clone());
                }
                for packet in cached {
                    shared.transcoders.push(&ring, packet);
                }
                local.ring = Some(ring);
            }
            (Some(ring), false) => {
                shared.transcoders.close(ring);
                local.ring = None;
                self.hub.forget_aac(local.key);
            }
        }
    }

    /// The stream's transcoder made AAC.
    pub(crate) fn publish_transcoded(&mut self, stream: StreamId) {
        let Some(local) = self.locals.get(&stream) else { return };
        if let Some(reason) = local.ring.as_ref().and_then(|ring| ring.failure()) {
            say!("publish {}: no AAC: {reason}", local.slot.client_id());
        }
        for frame in local.ring.iter().flat_map(|ring| ring.drain()) {
            self.hub.publish(local.key, &frame, &mut self.woken);
        }
    }

    /// The publish from seat `publisher` is over, whatever becomes of its connection.
    pub(crate) fn end_stream_of(&mut self, publisher: usize, reason: EndReason) {
        let Some(seat) = self.seats.get_mut(publisher) else { return };
        if let Some(stream) = seat.publishes.take() {
            self.end_stream(stream, reason);
        }
    }

    fn end_stream(&mut self, stream: StreamId, reason: EndReason) {
        let Some(local) = self.locals.get_mut(&stream) else { return };
        if local.draining_until.is_some() {
            return;
        }
        local.slot.name_reason(reason);
        let until = self.now + DRAIN_LIMIT;
        local.draining_until = Some(until);
        self.shared.directory.leave(&local.name, stream);
        if let Some(ring) = local.ring.take() {
            self.shared.transcoders.close(&ring);
        }
        self.hub.end(local.key, &mut self.woken);
        // Pushes that are between two tries read nothing: wake them all the same.
        self.woken.readers.extend(&local.pushes);
        self.set_timer(until, Timer::Stream(stream));
        self.settle(stream);
    }

    /// Closes an ended stream once nobody reads it any more, or its time to drain is over; that reports the end.
    pub(crate) fn settle(&mut self, stream: StreamId) {
        let Some(local) = self.locals.get(&stream) else { return };
        let Some(until) = local.draining_until else { return };
        if self.now < until && !self.hub.is_unread(local.key) {
            return;
        }
        if let Some(local) = self.locals.remove(&stream) {
            self.hub.close(local.key);
            self.woken.readers.extend(&local.pushes);
        }
    }

    /// Whether the stream's publisher is still there.
    pub(crate) fn is_live(&self, stream: StreamId) -> bool {
        self.locals.get(&stream).is_some_and(|local| local.draining_until.is_none())
    }

    /// A player at `address` joins a live name; false when there is none.
    pub(crate) fn join(
        &mut self,
        player: usize,
        name: &[u8],
        form: SoundForm,
        address: IpAddr,
    ) -> bool {
        let Some(place) = self.shared.directory.find(name) else { return false };
        if place.worker != self.index() && !self.mirrors.contains_key(&place.stream) {
            let relay = Arc::new(Relay::default());
            let key = self.hub.open(place.counters.clone(), self.shared.caches_gop);
            let (stream, reader) = (place.stream, self.index());
            let mirror =
                Mirror { key, owner: place.worker, relay: relay.clone(), is_seeded: false };
            self.mirrors.insert(stream, mirror);
            self.shared.send(place.worker, Command::Attach { stream, reader, relay });
        }
        if !self.read_stream(player, place.stream, form, None) {
            return false;
        }
        if let Some((_, subscriber)) = self.seats.get(player).and_then(|seat| seat.reads) {
            self.hub.count(subscriber, place.counters.players.enter(address));
        }
        true
    }

    /// Seat `reader` reads the stream from configuration + keyframe on, and nothing up to `after` again.
    pub(crate) fn read_stream(
        &mut self,
        reader: usize,
        stream: StreamId,
        form: SoundForm,
        after: Option<Timestamp>,
    ) -> bool {
        let local = self.locals.get(&stream).map(|local| local.key);
        let Some(key) = local.or_else(|| self.mirrors.get(&stream).map(|mirror| mirror.key)) else {
            return false;
        };
        let Some(seat) = self.seats.get_mut(reader) else { return false };
        let Some(subscriber) = self.hub.subscribe(key, reader, form, after) else { return false };
        seat.reads = Some((stream, subscriber));
        self.note_form(stream);
        self.want_keyframe(stream);
        true
    }

    /// Seat `reader` does not take frames of these codecs.
    pub(crate) fn leave_out(&mut self, reader: usize, codecs: Vec<Codec>) {
        if let Some((_, subscriber)) = self.seats.get(reader).and_then(|seat| seat.reads) {
            self.hub.leave_out(subscriber, codecs);
        }
    }

    /// The codec of a stream that has nothing for seat `reader`.
    pub(crate) fn only_foreign(&self, reader: usize) -> Option<Codec> {
        let (_, subscriber) = self.seats.get(reader)?.reads?;
        self.hub.only_foreign(subscriber)
    }

    /// Seat `reader` has learnt in which form its peer takes the sound.
    pub(crate) fn decide_form(&mut self, reader: usize, form: SoundForm) {
        let Some((stream, subscriber)) = self.seats.get(reader).and_then(|seat| seat.reads) else {
            return;
        };
        self.hub.decide(subscriber, form);
        self.note_form(stream);
    }

    /// Tells the worker of a mirrored stream whether anybody here needs AAC.
    fn note_form(&self, stream: StreamId) {
        if let Some(mirror) = self.mirrors.get(&stream) {
            mirror.relay.set_needs_aac(self.hub.needs_aac(mirror.key));
        }
    }

    /// Seat `reader` reads no more.
    pub(crate) fn stop_reading(&mut self, reader: usize) {
        let Some((stream, subscriber)) = self.seats.get_mut(reader).and_then(|s| s.reads.take())
        else {
            return;
        };
        self.hub.unsubscribe(subscriber);
        self.note_form(stream);
        if self.mirrors.get(&stream).is_some_and(|mirror| self.hub.is_unread(mirror.key)) {
            if let Some(mirror) = self.mirrors.remove(&stream) {
                self.hub.close(mirror.key);
                self.shared.send(mirror.owner, Command::Detach { stream, relay: mirror.relay });
            }
        } else {
            self.settle(stream);
        }
    }

    /// A session is gone: so is what it published and what it read.
    pub(crate) fn leave(&mut self, key: usize, reason: EndReason) {
        self.stop_reading(key);
        let Some(seat) = self.seats.try_remove(key) else { return };
        self.questions.retain(|_, asker| *asker != key);
        if let Some(routes) = &seat.routes {
            self.forget_routes(key, routes);
        }
        if let Some(stream) = seat.publishes {
            self.end_stream(stream, reason);
        }
    }

    pub(crate) fn attach(&mut self, stream: StreamId, reader: usize, relay: Arc<Relay>) {
        self.want_keyframe(stream);
        let key = self.locals.get(&stream).map(|local| local.key);
        let burst = key.and_then(|key| self.hub.attach(key, reader, relay));
        self.shared.send(reader, Command::Seed { stream, burst });
    }

    pub(crate) fn seed(&mut self, stream: StreamId, burst: Option<Vec<Frame>>) {
        let Some(mirror) = self.mirrors.get_mut(&stream) else { return };
        mirror.is_seeded = true;
        match burst {
            Some(burst) => {
                for frame in burst {
                    self.hub.publish(mirror.key, &frame, &mut self.woken);
                }
            }
            // It ended while we asked.
            None => self.hub.end(mirror.key, &mut self.woken),
        }
    }

    pub(crate) fn detach(&mut self, stream: StreamId, relay: &Arc<Relay>) {
        if let Some(local) = self.locals.get(&stream) {
            self.hub.detach(local.key, relay);
            self.settle(stream);
        }
    }

    /// Takes what other workers put into our rings.
    pub(crate) fn drain_mirrors(&mut self) {
        for mirror in self.mirrors.values().filter(|mirror| mirror.is_seeded) {
            let is_ended = mirror.relay.is_ended();
            while let Some(frame) = mirror.relay.pop() {
                self.hub.publish(mirror.key, &frame, &mut self.woken);
            }
            if is_ended {
                self.hub.end(mirror.key, &mut self.woken);
            }
        }
    }

    /// The gateway or a newer publish ends a running one.
    pub(crate) fn end_publish(&mut self, client_id: u64, reason: EndReason, description: &str) {
        let Some(publisher) = self.publisher_of(client_id) else { return };
        self.end_publisher(publisher, reason, Some(description));
    }

    /// The seat of a running publish.
    pub(crate) fn publisher_of(&self, client_id: u64) -> Option<usize> {
        let mut running = self.locals.values().filter(|local| local.draining_until.is_none());
        let found = running.find(|local| local.slot.client_id() == client_id);
        found.map(|local| local.publisher)
    }

    fn end_publisher(&mut self, publisher: usize, reason: EndReason, description: Option<&str>) {
        self.turn(publisher, |worker, key, entry| {
            match entry {
                Entry::Server(server) => server.end_publish(reason, description),
                Entry::Whip(whip) => {
                    whip.close(worker);
                    return After::Gone(reason);
                }
                Entry::Push(_) => {}
            }
            worker.end_stream_of(key, reason);
            entry.handle_ready(worker, key, Ready::NO)
        });
    }

    /// The publish's own upstream refused it: it ends when this turn is over.
    pub(crate) fn end_refused(&mut self, stream: StreamId) {
        if let Some(local) = self.locals.get(&stream) {
            let (publisher, reason) = (local.publisher, EndReason::UpstreamRefused);
            self.end_publisher(publisher, reason, None);
        }
    }

    /// The service stops: publishers are told and their streams end; whoever does neither publish nor read just goes.
    pub(crate) fn end_all(&mut self, reason: EndReason) {
        for key in self.seats.iter().map(|(key, _)| key).collect::<Vec<_>>() {
            let Some(seat) = self.seats.get(key) else { continue };
            if seat.publishes.is_some() {
                self.end_publisher(key, reason, None);
            } else if seat.reads.is_none() {
                self.leave(key, reason);
            }
        }
    }

    /// True while a reader has only audio waiting and a picture may still come to take it along.
    pub(crate) fn holds_audio(&mut self, key: usize) -> bool {
        let Some(seat) = self.seats.get_mut(key) else { return true };
        let Some((_, subscriber)) = seat.reads else { return false };
        if self.hub.is_finished(subscriber) || !self.hub.holds_only_audio(subscriber) {
            seat.audio_held_until = None;
            return false;
        }
        let until = *seat.audio_held_until.get_or_insert_with(|| {
            let until = self.now + AUDIO_HOLD;
            self.held_audio.push_back((until, key, seat.generation));
            until
        });
        self.now < until
    }

    /// Audio that waited long enough goes alone.
    pub(crate) fn release_audio(&mut self) {
        while let Some(&(until, key, generation)) = self.held_audio.front() {
            if until > self.now {
                break;
            }
            self.held_audio.pop_front();
            // A picture may have taken it along already.
            if let Some(seat) = self.seats.get_mut(key)
                && seat.generation == generation
                && seat.audio_held_until == Some(until)
            {
                seat.audio_held_until = None;
                self.turn(key, |worker, key, entry| entry.handle_ready(worker, key, Ready::NO));
            }
        }
    }
}

impl Entry {
    /// The seat is taken: the session begins.
    pub(crate) fn start(&mut self, worker: &mut Worker, key: usize) -> After {
        match self {
            Self::Server(server) => server.start(worker, key),
            Self::Whip(_) => After::Stay,
            Self::Push(push) => push.start(worker, key),
        }
    }

    /// The socket, or the queue it reads from, has news.
    pub(crate) fn handle_ready(&mut self, worker: &mut Worker, key: usize, ready: Ready) -> After {
        match self {
            Self::Server(server) => server.handle_ready(worker, key, ready),
            Self::Whip(_) => After::Stay,
            Self::Push(push) => push.handle_ready(worker, key, ready),
        }
    }

    /// A deadline has come, or a little less.
    pub(crate) fn handle_timeout(&mut self, worker: &mut Worker, key: usize) -> After {
        match self {
            Self::Server(server) => server.handle_timeout(worker, key),
            Self::Whip(whip) => whip.handle_timeout(worker, key),
            Self::Push(push) => push.handle_timeout(worker, key),
        }
    }
}
