//! The video of one session: takes packets of its layers, returns frames of the best one, and decides when to request a
//! keyframe. Pure.

use std::collections::VecDeque;
use std::time::Instant;

use bytes::Bytes;
use headgate_media::{Codec, Frame, FrameKind, Irregularity, IrregularityCounts};

use crate::clock::Clock;
use crate::depacketizer::AccessUnit;
use crate::layer::{Layer, Origin};
use crate::rate::RateLimit;
use crate::reorder::Reorder;
use crate::rtp::{RtpHeader, extension};
use crate::sdp::VideoSection;

mod requests;

/// Requests that are sent before the keyframe arrives even from a distant sender.
const REACTION_PLIS: u32 = 2;
/// Access units accepted per second: four times the fastest camera's rate, to allow for a stall of a second. Each costs
/// every subscriber a write.
const UNITS_PER_SECOND_LIMIT: u32 = 1_000;
/// Decoder configurations accepted per second: every subscriber keeps each one, and a sender changes it when it changes
/// its camera.
const CONFIGURATIONS_PER_SECOND_LIMIT: u32 = 10;

/// The video track.
pub(crate) struct VideoTrack {
    layers: Vec<Layer>,
    /// The layer that is forwarded, once a layer had a keyframe.
    active: Option<usize>,
    payload_type: u8,
    /// Payload type of retransmissions, and the SSRC that the offer names for the track.
    rtx: Option<u8>,
    offered_ssrc: Option<u32>,
    rid_id: Option<u8>,
    repaired_rid_id: Option<u8>,
    can_ask_keyframe: bool,
    reorder: Reorder,
    /// The decoder configuration that was sent last.
    configuration: Option<Bytes>,
    configurations: RateLimit,
    rate: RateLimit,
    /// Access units of one call, before they are forwarded or withheld.
    units: Vec<(Origin, AccessUnit)>,
    late_units: u64,
    /// A frame of this call that others refer to was withheld.
    has_lost_reference: bool,
    last_pli: Option<Instant>,
    /// A keyframe has come since then, whole or not.
    is_pli_answered: bool,
    unanswered_plis: u32,
    /// Groups in a row whose keyframe did not come in response to a request.
    unprompted_groups: u8,
    is_keyframe_wanted: bool,
    plis: u64,
}

impl VideoTrack {
    /// A track as described by the offer's section.
    #[must_use]
    pub(crate) fn new(section: &VideoSection, now: Instant) -> Self {
        let mut layers: Vec<_> =
            section.rids.iter().map(|rid| Layer::new(rid, section, now)).collect();
        for (n, source) in section.sources.iter().enumerate() {
            let mut layer = Layer::new(&(n + 1).to_string(), section, now);
            (layer.ssrc, layer.rtx_ssrc) = (Some(source.ssrc), source.rtx_ssrc);
            layers.push(layer);
        }
        if layers.is_empty() {
            layers.push(Layer::new("", section, now));
        }
        Self {
            layers,
            active: None,
            payload_type: section.payload_type,
            rtx: section.rtx.filter(|_| section.has_nack).map(|rtx| rtx.payload_type),
            offered_ssrc: section.ssrc,
            rid_id: section.rid_id,
            repaired_rid_id: section.repaired_rid_id,
            can_ask_keyframe: section.has_pli,
            reorder: Reorder::default(),
            configuration: None,
            configurations: RateLimit::new(CONFIGURATIONS_PER_SECOND_LIMIT, now),
            rate: RateLimit::new(UNITS_PER_SECOND_LIMIT, now),
            units: Vec::new(),
            late_units: 0,
            has_lost_reference: false,
            last_pli: None,
            is_pli_answered: false,
            unanswered_plis: 0,
            unprompted_groups: 0,
            is_keyframe_wanted: false,
            plis: 0,
        }
    }

    /// Whether the packet belongs to this track or retransmits one of it (RFC 4588).
    #[must_use]
    pub(crate) fn is_of(&self, header: &RtpHeader) -> bool {
        header.payload_type == self.payload_type || self.rtx == Some(header.payload_type)
    }

    /// Takes a complete, decrypted packet; what it completes goes to `frames`.
    pub(crate) fn handle_packet(
        &mut self,
        now: Instant,
        header: &RtpHeader,
        packet: &[u8],
        clock: &mut Clock,
        frames: &mut VecDeque<Frame>,
    ) {
        let payload = packet.get(header.payload_at..header.payload_end).unwrap_or_default();
        let is_repeated = header.payload_type != self.payload_type;
        let Some(index) = self.layer_of(header, packet, is_repeated) else { return };
        let mut units = std::mem::take(&mut self.units);
        if is_repeated {
            self.handle_retransmission(now, index, header, payload, &mut units);
        } else if let Some(layer) = self.layers.get_mut(index) {
            if layer.has_returned(now) {
                self.unanswered_plis = 0; // requests during an outage never reached the sender
            }
            layer.handle_packet(now, header, payload, false, &mut units);
        }
        self.forward_all(now, index, &mut units, clock, frames);
        self.units = units;
    }

    /// The payload of a retransmission starts with the original sequence number; the original payload follows.
    fn handle_retransmission(
        &mut self,
        now: Instant,
        index: usize,
        header: &RtpHeader,
        payload: &[u8],
        units: &mut Vec<(Origin, AccessUnit)>,
    ) {
        // A packet with nothing after the number, or empty altogether, probes the bandwidth.
        let Some((&[high, low], original)) = payload.split_first_chunk() else { return };
        let offered_ssrc = self.offered_ssrc.filter(|_| self.layers.len() == 1);
        let Some(layer) = self.layers.get_mut(index) else { return };
        let Some(ssrc) = layer.receiver.ssrc().or(layer.ssrc).or(offered_ssrc) else { return };
        if original.is_empty() {
            return;
        }
        let sequence = u16::from_be_bytes([high, low]);
        let header = RtpHeader { sequence, ssrc, payload_type: self.payload_type, ..*header };
        layer.handle_packet(now, &header, original, true, units);
    }

    /// Gives up packets that have been missing for too long.
    pub(crate) fn handle_timeout(
        &mut self,
        now: Instant,
        clock: &mut Clock,
        frames: &mut VecDeque<Frame>,
    ) {
        let mut units = std::mem::take(&mut self.units);
        for index in 0..self.layers.len() {
            if let Some(layer) = self.layers.get_mut(index) {
                layer.handle_timeout(now, &mut units);
            }
            self.forward_all(now, index, &mut units, clock, frames);
        }
        self.units = units;
    }

    /// When holes, requests or a keyframe are due.
    #[must_use]
    pub(crate) fn poll_timeout(&self, now: Instant) -> Option<Instant> {
        let layers = self.layers.iter().filter_map(|layer| layer.receiver.poll_timeout());
        layers.chain(self.pli_at(now)).min()
    }

    /// All layers.
    pub(crate) fn layers_mut(&mut self) -> impl Iterator<Item = &mut Layer> {
        self.layers.iter_mut()
    }

    /// All layers.
    pub(crate) fn layers(&self) -> impl Iterator<Item = &Layer> {
        self.layers.iter()
    }

    /// The layer that is forwarded, or the first.
    #[must_use]
    pub(crate) fn shown(&self) -> Option<&Layer> {
        self.layers.get(self.active.unwrap_or(0))
    }

    /// The same, mutable.
    pub(crate) fn shown_mut(&mut self) -> Option<&mut Layer> {
        self.layers.get_mut(self.active.unwrap_or(0))
    }

    /// Width and height in pixels, once known.
    #[must_use]
    pub(crate) fn resolution(&self) -> Option<(u32, u32)> {
        self.shown()?.sps().map(|sps| (sps.width, sps.height))
    }

    /// Keyframe requests so far, and how many in a row were not followed by a keyframe.
    #[must_use]
    pub(crate) const fn plis(&self) -> (u64, u32) {
        (self.plis, self.unanswered_plis)
    }

    /// Access units withheld so far.
    #[must_use]
    pub(crate) fn withheld(&self) -> u64 {
        self.late_units + self.shown().map_or(0, Layer::withheld)
    }

    /// The reordering of frames.
    #[must_use]
    pub(crate) const fn reorder(&self) -> &Reorder {
        &self.reorder
    }

    /// Whether the sender accepts keyframe requests for this track.
    #[must_use]
    pub(crate) const fn can_ask_keyframe(&self) -> bool {
        self.can_ask_keyframe
    }

    /// The layer a packet belongs to, by its SSRC or else by the layer id it carries.
    fn layer_of(&mut self, header: &RtpHeader, packet: &[u8], is_repeated: bool) -> Option<usize> {
        if self.layers.len() == 1 {
            return Some(0);
        }
        let sender = |layer: &Layer| if is_repeated { layer.rtx_ssrc } else { layer.ssrc };
        let known = self.layers.iter().position(|layer| sender(layer) == Some(header.ssrc));
        let id = if is_repeated { self.repaired_rid_id } else { self.rid_id };
        let rid = known.or_else(|| {
            let rid = extension(packet, id?)?;
            let index = self.layers.iter().position(|layer| layer.rid.as_bytes() == rid)?;
            let layer = self.layers.get_mut(index)?;
            let place = if is_repeated { &mut layer.rtx_ssrc } else { &mut layer.ssrc };
            *place = Some(header.ssrc);
            Some(index)
        });
        rid.or_else(|| {
            // A declared layer that begins with another source than declared.
            let is_unused = |layer: &Layer| layer.ssrc.is_some() && layer.first_packet.is_none();
            let index = self.layers.iter().position(is_unused).filter(|_| !is_repeated)?;
            self.layers.get_mut(index)?.ssrc = Some(header.ssrc);
            Some(index)
        })
    }

    /// What was irregular so far.
    #[must_use]
    pub(crate) fn irregularities(&self) -> IrregularityCounts {
        let mut counts = IrregularityCounts::default();
        for layer in &self.layers {
            let of = layer.payload_counters();
            counts.add(Irregularity::MalformedPayload, of.malformed);
            counts.add(Irregularity::MarkerMisplaced, of.misplaced_markers);
            counts.add(Irregularity::DisposableLost, of.disposable_lost);
            counts.add(Irregularity::RecoveryPoint, of.recovery_points);
            let unanswered = layer.receiver.counters().unanswered;
            counts.add(Irregularity::RetransmissionsMissing, unanswered);
        }
        counts
    }

    #[inline]
    fn forward_all(
        &mut self,
        now: Instant,
        index: usize,
        units: &mut Vec<(Origin, AccessUnit)>,
        clock: &mut Clock,
        frames: &mut VecDeque<Frame>,
    ) {
        self.has_lost_reference = false;
        let is_watched = self.active.is_none_or(|active| active == index);
        if self.layers.get_mut(index).is_some_and(Layer::take_broken_keyframe) && is_watched {
            (self.is_pli_answered, self.unanswered_plis) = (true, 0);
        }
        for (origin, unit) in units.drain(..) {
            self.forward(now, index, origin, unit, clock, frames);
        }
    }

    /// Forwards an access unit if its layer is the one being forwarded, or becomes it with this keyframe.
    fn forward(
        &mut self,
        now: Instant,
        index: usize,
        origin: Origin,
        unit: AccessUnit,
        clock: &mut Clock,
        frames: &mut VecDeque<Frame>,
    ) {
        let is_chosen = unit.is_keyframe && self.is_better(index, now);
        let Some(layer) = self.layers.get_mut(index) else { return };
        layer.receiver.meter.note_unit(now, unit.is_keyframe);
        if let Some(configuration) = &unit.configuration {
            layer.configuration = Some(configuration.clone());
        }
        let is_shown = self.active == Some(index);
        if !is_shown && !is_chosen {
            return;
        }
        if unit.is_keyframe {
            self.unprompted_groups = match self.unanswered_plis {
                0 => self.unprompted_groups,
                1..=REACTION_PLIS => 0,
                _ => self.unprompted_groups.saturating_add(1),
            };
            (self.is_pli_answered, self.unanswered_plis) = (true, 0);
            self.has_lost_reference = false;
        } else if self.has_lost_reference {
            // Within one call: access units that follow a withheld one.
            self.late_units += 1;
            return;
        }
        self.active = Some(index);
        let is_changed = unit.is_keyframe && self.configuration != layer.configuration;
        let is_too_much = !self.rate.admit(now) || (is_changed && !self.configurations.admit(now));
        if is_too_much {
            self.late_units += 1;
            layer.lose_reference();
            self.has_lost_reference = true;
            return;
        }
        if is_changed {
            self.reorder.configure(layer.sps().and_then(|sps| sps.reorder_depth));
        }
        let shown = clock.stamp_video(origin.arrived, origin.ssrc, unit.timestamp);
        let Some(time) = self.reorder.stamp(shown, unit.is_keyframe, unit.is_disposable) else {
            self.late_units += 1;
            return;
        };
        let time = clock.place_video(time);
        let (timestamp, composition_ms, codec) = (time.decode, time.composition_ms(), Codec::H264);
        if is_changed && let Some(data) = layer.configuration.clone() {
            self.configuration = Some(data.clone());
            let kind = FrameKind::Configuration;
            frames.push_back(Frame { codec, kind, timestamp, composition_ms: 0, data });
        }
        let kind = match (unit.is_keyframe, unit.is_disposable) {
            (true, _) => FrameKind::Keyframe,
            (false, true) => FrameKind::Disposable,
            (false, false) => FrameKind::Inter,
        };
        frames.push_back(Frame { codec, kind, timestamp, composition_ms, data: unit.data });
    }

    /// Whether to switch to layer `index` at its keyframe: it is the first keyframe of all, or the layer is larger than
    /// the one being forwarded, or that one has stopped.
    fn is_better(&self, index: usize, now: Instant) -> bool {
        let Some(shown) = self.active else { return true };
        let (Some(layer), Some(shown)) = (self.layers.get(index), self.layers.get(shown)) else {
            return false;
        };
        layer.is_better_than(shown, now)
    }
}

#[cfg(test)]
#[path = "video_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "video_loss_tests.rs"]
mod loss_tests;

#[cfg(test)]
#[path = "video_simulcast_tests.rs"]
mod simulcast_tests;
