//! A WHIP publish on its worker: the session of `headgate_whip` with its routes, its frames and its end.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use headgate_media::{Codec, Frame, FrameKind, Timestamp, Track};
use headgate_rtmp::{encode_metadata_with, read_metadata};
use headgate_whip::{Path, WhipEnd, WhipEvent, WhipSession};
use quinn_udp::BATCH_SIZE;

use crate::directory::StreamId;
use crate::mailbox::EndSlot;
use crate::seat::{After, Entry};
use crate::session::{Counters, EndReason, PublishSession};
use crate::shared::Command;
use crate::upstreams::Upstream;
use crate::whip_desk::{DeskSeat, WhipOrder};
use crate::worker::Worker;

/// How often what there is to say about a session is told.
const DIAGNOSTICS_PAUSE: Duration = Duration::from_secs(1);

/// What opens a WHIP publish on its worker.
pub(crate) struct WhipOpening {
    pub(crate) session: Box<WhipSession>,
    pub(crate) desk: DeskSeat,
    pub(crate) name: Vec<u8>,
    pub(crate) slot: EndSlot,
    pub(crate) upstreams: Vec<Upstream>,
    pub(crate) audio_bitrate: u32,
    /// An AMF0 object for its own upstream's connect command; empty for none.
    pub(crate) connect_info: Bytes,
}

/// How the worker finds a WHIP session; kept with the seat, so that it outlives a panic.
pub(crate) struct Routes {
    pub(crate) ufrags: Vec<Vec<u8>>,
    pub(crate) paths: Vec<Path>,
}

/// One WHIP publish.
pub(crate) struct WhipConnection {
    session: Box<WhipSession>,
    desk: DeskSeat,
    publish: PublishSession,
    /// When the diagnostics are told again.
    told_at: Instant,
    /// The metadata the broadcaster sent last: players get it with the picture's size.
    custom_metadata: Option<Bytes>,
    /// The newest frame's.
    newest: Timestamp,
}

impl WhipConnection {
    fn new(
        session: Box<WhipSession>,
        desk: DeskSeat,
        counters: Arc<Counters>,
        now: Instant,
    ) -> Self {
        let publish = PublishSession::new(counters, now);
        Self {
            session,
            desk,
            publish,
            told_at: now,
            custom_metadata: None,
            newest: Timestamp::ZERO,
        }
    }

    pub(crate) fn deadline(&self) -> Option<Instant> {
        let told_at = self.told_at + DIAGNOSTICS_PAUSE;
        self.session.poll_timeout().map(|at| at.min(told_at))
    }

    pub(crate) fn handle_datagram(
        &mut self,
        worker: &mut Worker,
        key: usize,
        source: Path,
        datagram: &mut [u8],
    ) -> After {
        self.publish.handle_input(worker.now);
        self.session.handle_datagram(worker.now, source, datagram);
        self.settle(worker, key)
    }

    pub(crate) fn handle_timeout(&mut self, worker: &mut Worker, key: usize) -> After {
        self.session.handle_timeout(worker.now);
        self.settle(worker, key)
    }

    /// Tells the client that it is over.
    pub(crate) fn close(&mut self, worker: &mut Worker) {
        self.session.close(worker.now);
        while let Some(datagram) = self.session.poll_transmit() {
            worker.outgoing.push(datagram);
        }
    }

    /// Passes on what the last input brought.
    fn settle(&mut self, worker: &mut Worker, key: usize) -> After {
        while let Some(datagram) = self.session.poll_transmit() {
            worker.outgoing.push(datagram);
        }
        while let Some(frame) = self.session.poll_frame() {
            #[cfg(test)]
            assert!(!frame.data.ends_with(crate::tests::FORCED_PANIC), "forced by a test");
            if frame.kind == FrameKind::Configuration && frame.track() == Track::Video {
                worker.publish_frame(key, &self.metadata(frame.timestamp));
            }
            self.publish.handle_frame(&frame);
            self.newest = self.newest.max(frame.timestamp);
            worker.publish_frame(key, &frame);
        }
        while let Some(event) = self.session.poll_event() {
            match event {
                WhipEvent::Proven(path) => worker.route(key, path),
                WhipEvent::Forgotten(path) => worker.forget_route(key, path),
                WhipEvent::Connected => self.desk.board.set_connected(),
                WhipEvent::Ended(end) => {
                    self.close(worker);
                    return After::Gone(reason_of(end));
                }
            }
        }
        if worker.now >= self.told_at + DIAGNOSTICS_PAUSE {
            self.told_at = worker.now;
            self.desk.board.put(self.session.diagnostics(worker.now));
        }
        After::Stay
    }

    /// Players that read it know the picture's size before they decode, and what the broadcaster added.
    fn metadata(&self, timestamp: Timestamp) -> Frame {
        /// FLV's codec id of H.264.
        const AVC: f64 = 7.0;
        let (width, height) = self.session.resolution().unwrap_or((0, 0));
        let mut entries = vec![("videocodecid", AVC)];
        if width > 0 {
            entries.push(("width", f64::from(width)));
            entries.push(("height", f64::from(height)));
        }
        let custom = self.custom_metadata.as_deref().unwrap_or_default();
        script(encode_metadata_with(&entries, custom), timestamp)
    }

    /// The broadcaster's own data message. What it calls `onMetaData` goes out with ours, so that players keep both.
    fn send_data(&mut self, worker: &mut Worker, key: usize, data: Bytes) {
        let timestamp = self.newest;
        let frame = match read_metadata(&data) {
            Some(custom) => {
                self.custom_metadata = Some(custom);
                self.metadata(timestamp)
            }
            None => script(data, timestamp),
        };
        worker.publish_frame(key, &frame);
    }
}

fn script(data: Bytes, timestamp: Timestamp) -> Frame {
    let (codec, kind) = (Codec::Amf0, FrameKind::Script);
    Frame { codec, kind, timestamp, composition_ms: 0, data }
}

impl Worker {
    /// The gateway answered an offer with our session: media may come.
    pub(crate) fn open_whip(&mut self, opening: WhipOpening) {
        let WhipOpening { session, desk, name, mut slot, upstreams, audio_bitrate, connect_info } =
            opening;
        if self.stopping.is_some() {
            slot.name_reason(EndReason::Shutdown);
            return;
        }
        let ufrags = ufrags_of(&session);
        let whip = WhipConnection::new(session, desk, slot.counters().clone(), self.now);
        let key = self.seat(Entry::Whip(Box::new(whip)));
        if let Some(seat) = self.seats.get_mut(key) {
            seat.routes = Some(Routes { ufrags: Vec::new(), paths: Vec::new() });
        }
        self.name_routes(key, ufrags);
        self.open_stream(key, name, slot, upstreams, connect_info, audio_bitrate);
    }

    /// The gateway has something for a running publish.
    pub(crate) fn obey_whip(&mut self, client_id: u64, order: WhipOrder) {
        let Some(key) = self.publisher_of(client_id) else { return };
        self.turn(key, |worker, key, entry| {
            let Entry::Whip(whip) = entry else { return After::Stay };
            match order {
                WhipOrder::RestartIce { ufrag, password } => {
                    whip.session.restart_ice(ufrag, password);
                    worker.name_routes(key, ufrags_of(&whip.session));
                }
                WhipOrder::SendData(data) => whip.send_data(worker, key, data),
                WhipOrder::LimitBitrate(kbps) => whip.session.limit_bitrate(kbps),
            }
            After::Stay
        });
    }

    /// Someone begins to read a stream that is published here, or does so again: a keyframe would serve them.
    pub(crate) fn want_keyframe(&mut self, stream: StreamId) {
        let Some(publisher) = self.locals.get(&stream).map(|local| local.publisher) else {
            if let Some(mirror) = self.mirrors.get(&stream) {
                self.shared.send(mirror.owner, Command::WantKeyframe(stream));
            }
            return;
        };
        self.turn(publisher, |_, _, entry| {
            if let Entry::Whip(whip) = entry {
                whip.session.want_keyframe();
            }
            After::Stay
        });
    }

    /// Reads what came on the media port and hands it to its sessions.
    pub(crate) fn handle_datagrams(&mut self) {
        /// Batches in one turn, so that TCP gets its share.
        const BATCHES_PER_TURN: usize = 8;
        let Some(mut port) = self.udp.take() else { return };
        self.has_datagrams = true;
        for _ in 0..BATCHES_PER_TURN {
            // An error is about a datagram we sent (ICMP): the next ones can still be read.
            let batch = port.receive().unwrap_or(0);
            for (source, datagram) in port.datagrams(batch) {
                self.handle_datagram(source.into(), datagram);
            }
            // Less than a whole batch: the socket was empty, and what comes now wakes us anew.
            if batch < BATCH_SIZE {
                self.has_datagrams = false;
                break;
            }
        }
        self.udp = Some(port);
        self.read_media_again();
    }

    /// Sends what sessions have for their clients.
    pub(crate) fn send_datagrams(&mut self) {
        for (to, datagram) in self.outgoing.drain(..) {
            match (to.is_tcp, &self.udp, &mut self.media_tcp) {
                (false, Some(port), _) => port.send(to.address, &datagram),
                (true, _, Some(tcp)) => tcp.send(to.address, &datagram),
                (false, None, _) | (true, _, None) => {}
            }
        }
        if let Some(tcp) = &mut self.media_tcp {
            self.has_datagrams |= tcp.settle_closing(self.now);
        }
    }

    /// Datagrams on `path` belong to seat `key`.
    fn route(&mut self, key: usize, path: Path) {
        if let Some(routes) = self.seats.get_mut(key).and_then(|seat| seat.routes.as_mut()) {
            routes.paths.push(path);
            self.addresses.insert(path, key);
        }
    }

    /// They do no longer.
    fn forget_route(&mut self, key: usize, path: Path) {
        if let Some(routes) = self.seats.get_mut(key).and_then(|seat| seat.routes.as_mut()) {
            routes.paths.retain(|known| *known != path);
        }
        self.drop_path(key, path);
    }

    fn drop_path(&mut self, key: usize, path: Path) {
        if self.addresses.get(&path) == Some(&key) {
            self.addresses.remove(&path);
            if path.is_tcp
                && let Some(tcp) = &mut self.media_tcp
            {
                tcp.close(path.address);
            }
        }
    }

    /// Seat `key` is found by these user names, and by no others.
    fn name_routes(&mut self, key: usize, ufrags: Vec<Vec<u8>>) {
        let Some(routes) = self.seats.get_mut(key).and_then(|seat| seat.routes.as_mut()) else {
            return;
        };
        for ufrag in std::mem::replace(&mut routes.ufrags, ufrags.clone()) {
            self.ufrags.remove(&ufrag);
        }
        self.ufrags.extend(ufrags.into_iter().map(|ufrag| (ufrag, key)));
    }

    /// Seat `key` is gone: so are its routes, as far as they are still its own.
    pub(crate) fn forget_routes(&mut self, key: usize, routes: &Routes) {
        for ufrag in &routes.ufrags {
            self.ufrags.remove(ufrag);
        }
        for path in &routes.paths {
            self.drop_path(key, *path);
        }
    }

    /// By its source or, from a stranger, by the user name of a STUN request; anything else is not for us.
    pub(crate) fn handle_datagram(&mut self, source: Path, datagram: &mut [u8]) {
        let key = match self.addresses.get(&source) {
            Some(&key) if !names_another(&self.ufrags, datagram, key) => key,
            _ => match headgate_whip::ufrag_of(datagram).and_then(|name| self.ufrags.get(name)) {
                Some(&key) => key,
                None => return,
            },
        };
        self.turn(key, |worker, key, entry| match entry {
            Entry::Whip(whip) => whip.handle_datagram(worker, key, source, datagram),
            Entry::Server(_) | Entry::Push(_) => After::Stay,
        });
    }
}

fn ufrags_of(session: &WhipSession) -> Vec<Vec<u8>> {
    session.ufrags().map(|ufrag| ufrag.as_bytes().to_vec()).collect()
}

/// A STUN request from a known address that names another session: the client began anew from the same port.
fn names_another(
    ufrags: &rustc_hash::FxHashMap<Vec<u8>, usize>,
    datagram: &[u8],
    key: usize,
) -> bool {
    if datagram.first().is_none_or(|first| *first > 3) {
        return false;
    }
    let named = headgate_whip::ufrag_of(datagram).and_then(|name| ufrags.get(name));
    named.is_some_and(|other| *other != key)
}

const fn reason_of(end: WhipEnd) -> EndReason {
    match end {
        WhipEnd::HandshakeFailed => EndReason::HandshakeFailed,
        WhipEnd::Closed => EndReason::Unpublished,
        WhipEnd::Lost => EndReason::Silent,
        WhipEnd::NoMedia => EndReason::NoMedia,
    }
}
