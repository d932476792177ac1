//! H.264 RTP payloads in order → complete access units (RFC 6184). Not the ordering (`jitter`), not the timing
//! (`clock`).
//!
//! No incomplete access unit is emitted. What is malformed costs itself: it is repaired or left out, and its picture is
//! withheld only if it lacks a part. After the loss of a picture that others refer to, everything is withheld until the
//! next IDR, or recovery point of a sender that refreshes its pictures gradually.

use bytes::{Bytes, BytesMut};
use headgate_media::h264::{ParameterSets, Sps};

use crate::frame_numbers::FrameNumbers;
use crate::markers::Markers;
use crate::payload::{self, FU_A, FU_START, Place};

mod reading;

/// RTP time without an IDR after which recovery points count as keyframes, 4 s: readers join at them.
const IDR_LIMIT: u32 = 4 * 90_000;

/// One complete access unit: NAL units with four-byte lengths. Delimiters, filler and parameter sets are removed,
/// except for a PPS that changed between two keyframes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessUnit {
    /// RTP timestamp.
    pub timestamp: u32,
    /// The NAL units.
    pub data: Bytes,
    /// Decoding can start here.
    pub is_keyframe: bool,
    /// No other frame refers to it.
    pub is_disposable: bool,
    /// The decoder configuration, when it changed with this keyframe.
    pub configuration: Option<Bytes>,
}

/// What was irregular about the payloads of one track, since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PayloadCounters {
    /// Payloads that violate RFC 6184, repaired or left out.
    pub malformed: u64,
    /// Markers inside a picture, and pictures without one.
    pub misplaced_markers: u64,
    /// Pictures that no other refers to and that were left out because a part was missing.
    pub disposable_lost: u64,
    /// Recovery points that were emitted as keyframes.
    pub recovery_points: u64,
}

/// Whether everything that the next picture may refer to has been emitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum References {
    Whole,
    /// So many packets are missing, perhaps of disposable pictures alone.
    Doubtful(u64),
    /// Nothing is emitted before the next IDR.
    Missing,
}

/// Assembles the access units of one track.
#[derive(Debug)]
pub struct Depacketizer {
    sets: ParameterSets,
    unit: BytesMut,
    /// Average size of an access unit in bytes: a new one's buffer is allocated with that capacity.
    usual_bytes: usize,
    /// Picture parameter sets, with lengths, that changed since the last keyframe and that no access unit has carried
    /// yet.
    changed_pps: BytesMut,
    timestamp: Option<u32>,
    /// Timestamp of the access unit that ended last.
    ended: Option<u32>,
    markers: Markers,
    /// Offset of the length field of the NAL unit that is being assembled from FU-A fragments.
    fragment_at: Option<usize>,
    is_broken: bool,
    has_idr: bool,
    has_recovery_point: bool,
    slices: u32,
    /// Offset of the first slice.
    slice_at: usize,
    has_reference: bool,
    has_sps: bool,
    references: References,
    /// RTP timestamp of the newest IDR; `None` if there has been none, or for longer than the limit.
    idr_at: Option<u32>,
    /// Packets missing before the next payload.
    gap: u64,
    numbers: FrameNumbers,
    /// The sender joins NAL units by start codes or lengths.
    joins_units: bool,
    /// Slices of keyframes that were searched and are single NAL units.
    whole_slices: u32,
    /// A PPS changed between two keyframes: a lost packet may have held another one.
    changes_pps: bool,
    /// Whether this publisher's keyframes carry their parameter sets.
    repeats_sets: bool,
    withheld: u64,
    broken_keyframes: u64,
    malformed: u64,
    disposable_lost: u64,
    recovery_points: u64,
}

impl Depacketizer {
    /// Starts with the parameter sets that the offer may contain.
    #[must_use]
    pub fn new(parameter_sets: &[Vec<u8>]) -> Self {
        let mut sets = ParameterSets::default();
        for set in parameter_sets {
            sets.handle_nal(set);
        }
        Self {
            sets,
            unit: BytesMut::new(),
            usual_bytes: 0,
            changed_pps: BytesMut::new(),
            timestamp: None,
            ended: None,
            markers: Markers::default(),
            fragment_at: None,
            is_broken: false,
            has_idr: false,
            has_recovery_point: false,
            slices: 0,
            slice_at: 0,
            has_reference: false,
            has_sps: false,
            references: References::Missing,
            idr_at: None,
            gap: 0,
            numbers: FrameNumbers::default(),
            joins_units: false,
            whole_slices: 0,
            changes_pps: false,
            repeats_sets: false,
            withheld: 0,
            broken_keyframes: 0,
            malformed: 0,
            disposable_lost: 0,
            recovery_points: 0,
        }
    }

    /// Takes the next payload in order; `emit` is called with an access unit that ended before it. The one that ends
    /// with it is emitted by [`Depacketizer::finish_marked`].
    pub fn handle_payload(
        &mut self,
        timestamp: u32,
        marker: bool,
        payload: &[u8],
        emit: &mut impl FnMut(AccessUnit),
    ) {
        if payload.is_empty() {
            // Padding that probes the bandwidth belongs to no access unit.
            return;
        }
        let timestamp = match self.timestamp.filter(|open| *open != timestamp) {
            Some(open) => self.continued(open, payload).unwrap_or(timestamp),
            None => timestamp,
        };
        if self.gap > 0 {
            self.place_gap(timestamp, payload);
        }
        match self.timestamp {
            Some(open) if open != timestamp => self.finish(emit),
            Some(_) if self.markers.is_marked() => self.handle_after_marker(payload, emit),
            None if self.ended == Some(timestamp)
                && payload::place(payload) == Place::Continues =>
            {
                // An access unit left without this part of it.
                self.markers.note_misplaced();
                self.is_broken = true;
            }
            Some(_) | None => {}
        }
        self.timestamp = Some(timestamp);
        self.markers.note_packet(marker);
        if self.is_broken {
            self.note_broken(payload);
        } else if !self.read(payload) {
            self.malformed += 1;
        }
    }

    /// Emits the access unit that ended with the payload before, unless this sender's markers cannot be trusted. Called
    /// when no further packet is available: one of the same access unit would show that the marker was misplaced.
    #[inline]
    pub fn finish_marked(&mut self, emit: &mut impl FnMut(AccessUnit)) {
        let has_picture = self.slices > 0 || self.is_broken;
        if self.markers.is_end() && self.fragment_at.is_none() && has_picture {
            self.finish(emit);
        }
    }

    /// So many packets are missing at this point and will not arrive.
    pub fn handle_gap(&mut self, lost: u64, emit: &mut impl FnMut(AccessUnit)) {
        self.finish_marked(emit);
        self.changed_pps.clear();
        self.is_broken |= self.timestamp.is_some();
        self.gap += lost.max(1);
    }

    /// Pictures that others refer to are missing, whatever comes next: the source begins anew, or they were dropped.
    pub fn lose_references(&mut self) {
        self.ended = None;
        self.references = References::Missing;
        self.changed_pps.clear();
        self.is_broken |= self.timestamp.is_some();
    }

    /// Nothing is emitted before the next IDR: the sender should be asked for one.
    #[must_use]
    pub const fn awaits_keyframe(&self) -> bool {
        matches!(self.references, References::Missing)
    }

    /// Access units withheld so far.
    #[must_use]
    pub const fn withheld(&self) -> u64 {
        self.withheld
    }

    /// Keyframes withheld so far because a part of them was missing.
    #[must_use]
    pub const fn broken_keyframes(&self) -> u64 {
        self.broken_keyframes
    }

    /// What was irregular so far.
    #[must_use]
    pub const fn counters(&self) -> PayloadCounters {
        PayloadCounters {
            malformed: self.malformed,
            misplaced_markers: self.markers.misplaced(),
            disposable_lost: self.disposable_lost,
            recovery_points: self.recovery_points,
        }
    }

    /// The active SPS, once there is one.
    #[must_use]
    pub fn sps(&self) -> Option<Sps> {
        self.sets.sps()
    }

    /// profile_idc, constraint flags and level_idc, once known.
    #[must_use]
    pub fn profile(&self) -> Option<[u8; 3]> {
        self.sets.profile()
    }

    /// A payload follows one of the same timestamp that had the marker.
    fn handle_after_marker(&mut self, payload: &[u8], emit: &mut impl FnMut(AccessUnit)) {
        let has_picture = self.slices > 0 || self.is_broken;
        match payload::place(payload) {
            // Another access unit with the same timestamp.
            Place::Begins if has_picture && self.fragment_at.is_none() => self.finish(emit),
            Place::Begins | Place::Continues => self.markers.note_misplaced(),
            Place::Unknown => {}
        }
    }

    /// Decides what the packets before this payload, which are missing, may have belonged to.
    fn place_gap(&mut self, timestamp: u32, payload: &[u8]) {
        let lost = std::mem::take(&mut self.gap);
        let is_middle = matches!(payload, &[first, header, ..] if first & 0x1f == FU_A && header & FU_START == 0);
        let is_same = self.timestamp == Some(timestamp);
        if self.timestamp.is_some() && (is_same || (lost == 1 && self.fragment_at.is_some())) {
            // What arrived of it tells whether it is disposable.
            if let Some(&first) = self.fragment_at.and_then(|at| self.unit.get(at + 4)) {
                self.note_slice(first);
            }
            return;
        }
        if self.timestamp.is_none() && lost == 1 && is_middle {
            self.is_broken = true;
            return;
        }
        self.references = match self.references {
            References::Missing => References::Missing,
            References::Doubtful(before) => References::Doubtful(before + lost),
            References::Whole if self.numbers.is_known() && !self.changes_pps => {
                References::Doubtful(lost)
            }
            References::Whole => References::Missing,
        };
    }

    /// Whether a recovery point at this time is a place to start: after a loss, and where no IDR has come for a while.
    fn can_join(&mut self, timestamp: u32) -> bool {
        self.idr_at = self.idr_at.filter(|idr| timestamp.wrapping_sub(*idr) < IDR_LIMIT);
        !matches!(self.references, References::Whole) || self.idr_at.is_none()
    }

    /// The access unit has ended: emits it or withholds it.
    fn finish(&mut self, emit: &mut impl FnMut(AccessUnit)) {
        let Some(timestamp) = self.timestamp.take() else { return };
        self.ended = Some(timestamp);
        if self.drop_fragment() {
            self.malformed += 1;
        }
        let mut data = self.unit.split();
        self.usual_bytes = (self.usual_bytes * 3 + data.len()) / 4;
        let is_broken = std::mem::take(&mut self.is_broken);
        let is_idr = std::mem::take(&mut self.has_idr);
        let is_recovery_point = std::mem::take(&mut self.has_recovery_point);
        let slices = std::mem::take(&mut self.slices);
        let is_disposable = !std::mem::take(&mut self.has_reference);
        let has_sps = std::mem::take(&mut self.has_sps);
        if slices > 0 && !is_broken {
            self.markers.note_picture(slices);
        }
        self.markers.close();
        if is_broken {
            self.withheld += 1;
            self.broken_keyframes += u64::from(is_idr);
            self.lose_picture(is_disposable && slices > 0);
            return;
        }
        if slices == 0 {
            // Parameter sets alone are remembered; anything else without a slice belongs to no frame.
            return;
        }
        let is_keyframe = is_idr || is_recovery_point && self.can_join(timestamp);
        let slice = data.get(self.slice_at..).unwrap_or_default();
        if let References::Doubtful(lost) = self.references {
            if !is_keyframe && self.is_next(slice, lost) {
                self.disposable_lost += 1;
                self.references = References::Whole;
            } else {
                self.references = References::Missing;
            }
        }
        // After a loss, the missing packets may have held the parameter sets of a new resolution.
        let may_miss_sets = is_idr && self.repeats_sets && !has_sps;
        if self.awaits_keyframe() && (!is_keyframe || may_miss_sets || !self.sets.is_complete()) {
            // Missing twice, they are not repeated any more: there are senders that send them once.
            self.repeats_sets &= !may_miss_sets;
            self.withheld += 1;
            return;
        }
        if is_disposable || !self.numbers.is_ignored() {
            let bits = self.frame_num_bits();
            self.numbers.note(bits, slice, is_keyframe, is_disposable);
        }
        let mut configuration = None;
        if is_keyframe {
            self.references = References::Whole;
            self.recovery_points += u64::from(!is_idr);
            if is_idr {
                self.repeats_sets = has_sps;
                self.idr_at = Some(timestamp);
            }
            configuration = self.sets.poll_configuration();
            // The configuration contains them.
            self.changed_pps.clear();
        } else if !self.changed_pps.is_empty() {
            self.changes_pps = true;
            let mut with_pps = self.changed_pps.split();
            with_pps.extend_from_slice(&data);
            data = with_pps;
        }
        let data = data.freeze();
        emit(AccessUnit { timestamp, data, is_keyframe, is_disposable, configuration });
    }

    /// A broken access unit is withheld.
    fn lose_picture(&mut self, is_disposable: bool) {
        self.changed_pps.clear();
        match self.references {
            References::Whole if is_disposable => self.disposable_lost += 1,
            References::Whole => self.references = References::Missing,
            // The next picture tells whether others refer to this one.
            References::Doubtful(_) | References::Missing => {}
        }
    }

    /// Whether the picture with this first slice follows the last one that others refer to; `lost` packets are missing
    /// before it.
    fn is_next(&self, slice: &[u8], lost: u64) -> bool {
        self.numbers.is_next(self.frame_num_bits(), slice, lost)
    }

    fn frame_num_bits(&self) -> Option<u8> {
        self.sets.sps().and_then(|sps| sps.frame_num_bits)
    }
}

#[cfg(test)]
#[path = "depacketizer_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "depacketizer_irregular_tests.rs"]
mod irregular_tests;

#[cfg(test)]
#[path = "depacketizer_disposable_tests.rs"]
mod disposable_tests;
