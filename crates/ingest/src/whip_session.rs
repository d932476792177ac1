//! A WHIP publish on its worker: the session of `headgate_whip` with its routes, its frames and its end.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use headgate_media::{Codec, Frame, FrameKind, Timestamp, Track};
use headgate_rtmp::encode_metadata;
use headgate_whip::{WhipEnd, WhipEvent, WhipSession};
use quinn_udp::BATCH_SIZE;

use crate::mailbox::EndSlot;
use crate::seat::{After, Entry};
use crate::session::{Counters, EndReason, PublishSession};
use crate::upstreams::Upstream;
use crate::worker::Worker;

/// What opens a WHIP publish on its worker.
pub(crate) struct WhipOpening {
    pub(crate) session: Box<WhipSession>,
    pub(crate) name: Vec<u8>,
    pub(crate) slot: EndSlot,
    pub(crate) upstreams: Vec<Upstream>,
    pub(crate) audio_bitrate: u32,
}

/// How the worker finds a WHIP session; kept with the seat, so that it outlives a panic.
pub(crate) struct Routes {
    pub(crate) ufrag: Vec<u8>,
    pub(crate) addresses: Vec<SocketAddr>,
}

/// One WHIP publish.
pub(crate) struct WhipConnection {
    session: Box<WhipSession>,
    publish: PublishSession,
}

impl WhipConnection {
    fn new(session: Box<WhipSession>, counters: Arc<Counters>, now: Instant) -> Self {
        Self { session, publish: PublishSession::new(counters, now) }
    }

    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.session.poll_timeout()
    }

    pub(crate) fn handle_datagram(
        &mut self,
        worker: &mut Worker,
        key: usize,
        source: SocketAddr,
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
            worker.publish_frame(key, &frame);
        }
        while let Some(event) = self.session.poll_event() {
            match event {
                WhipEvent::Proven(address) => worker.route(key, address),
                WhipEvent::Connected => {}
                WhipEvent::Ended(end) => {
                    self.close(worker);
                    return After::Gone(reason_of(end));
                }
            }
        }
        After::Stay
    }

    /// Players that read it know the picture's size before they decode.
    fn metadata(&self, timestamp: Timestamp) -> Frame {
        /// FLV's codec id of H.264.
        const AVC: f64 = 7.0;
        let (width, height) = self.session.resolution().unwrap_or((0, 0));
        let mut entries = vec![("videocodecid", AVC)];
        if width > 0 {
            entries.push(("width", f64::from(width)));
            entries.push(("height", f64::from(height)));
        }
        let (codec, kind, data) = (Codec::Amf0, FrameKind::Script, encode_metadata(&entries));
        Frame { codec, kind, timestamp, composition_ms: 0, data }
    }
}

impl Worker {
    /// The gateway answered an offer with our session: media may come.
    pub(crate) fn open_whip(&mut self, opening: WhipOpening) {
        let WhipOpening { session, name, mut slot, upstreams, audio_bitrate } = opening;
        if self.stopping.is_some() {
            slot.name_reason(EndReason::Shutdown);
            return;
        }
        let ufrag = session.ufrag().as_bytes().to_vec();
        let whip = WhipConnection::new(session, slot.counters().clone(), self.now);
        let key = self.seat(Entry::Whip(Box::new(whip)));
        self.ufrags.insert(ufrag.clone(), key);
        if let Some(seat) = self.seats.get_mut(key) {
            seat.routes = Some(Routes { ufrag, addresses: Vec::new() });
        }
        self.open_stream(key, name, slot, upstreams, audio_bitrate);
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
                self.handle_datagram(source, datagram);
            }
            // Less than a whole batch: the socket was empty, and what comes now wakes us anew.
            if batch < BATCH_SIZE {
                self.has_datagrams = false;
                break;
            }
        }
        self.udp = Some(port);
    }

    /// Sends what sessions have for their clients.
    pub(crate) fn send_datagrams(&mut self) {
        if let Some(port) = &self.udp {
            for (to, datagram) in self.outgoing.drain(..) {
                port.send(to, &datagram);
            }
        }
    }

    /// Datagrams from `address` belong to seat `key`.
    fn route(&mut self, key: usize, address: SocketAddr) {
        /// As many as ICE keeps; older ones prove themselves again.
        const ADDRESSES_LIMIT: usize = 8;
        let Some(routes) = self.seats.get_mut(key).and_then(|seat| seat.routes.as_mut()) else {
            return;
        };
        if routes.addresses.len() >= ADDRESSES_LIMIT {
            let oldest = routes.addresses.remove(0);
            self.addresses.remove(&oldest);
        }
        routes.addresses.push(address);
        self.addresses.insert(address, key);
    }

    /// Seat `key` is gone: so are its routes, as far as they are still its own.
    pub(crate) fn forget_routes(&mut self, key: usize, routes: &Routes) {
        self.ufrags.remove(&routes.ufrag);
        for address in &routes.addresses {
            if self.addresses.get(address) == Some(&key) {
                self.addresses.remove(address);
            }
        }
    }

    /// By its source or, from a stranger, by the user name of a STUN request; anything else is not for us.
    fn handle_datagram(&mut self, source: SocketAddr, datagram: &mut [u8]) {
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
