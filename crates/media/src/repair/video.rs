//! H.264: the configuration, the framing of NAL units, and which frames are keyframes.

use bytes::{Bytes, BytesMut};

use super::Repaired;
use crate::h264::{
    Framing, NalKind, ParameterSets, SetChange, UnitKinds, is_intra, is_recovery_point, is_usable,
    nal_kind, read_record, without_trailing_zeros,
};
use crate::{Frame, FrameKind, Irregularity, Timestamp};

/// Frames from a keyframe on are held for a configuration that arrives after them: media time, frames and bytes.
const HELD_TIME_LIMIT_US: u64 = 1_500_000;
const HELD_FRAMES_LIMIT: usize = 256;
const HELD_BYTES_LIMIT: usize = 4 << 20;
/// Media time without an IDR picture after which readers start at recovery points, and after which the publisher's own
/// marks are believed.
const IDR_LIMIT_US: u64 = 4_000_000;
/// The same for intra pictures that nothing marks: pictures after them may still refer to earlier ones.
const INTRA_LIMIT_US: u64 = 10_000_000;
/// NAL units before the first slice that are searched for a recovery point.
const UNITS_LIMIT: usize = 64;
/// Place of the length size in a decoder configuration.
const LENGTH_SIZE_AT: usize = 4;

#[derive(Debug)]
pub(super) struct VideoRepair {
    sets: ParameterSets,
    /// The newest configuration as it arrived.
    received: Bytes,
    /// The one that was passed on.
    configuration: Option<Bytes>,
    /// It was built here: the received one does not describe the frames.
    is_rebuilt: bool,
    /// Bytes of a NAL unit's length in the frames that are passed on.
    length_size: u8,
    /// Framing of the newest frame as it arrived.
    framing: Framing,
    held: Vec<Frame>,
    held_bytes: usize,
    /// The newest IDR picture, and the newest picture of any kind at which decoding can start; until then the first
    /// picture.
    idr_at: Option<Timestamp>,
    start_at: Option<Timestamp>,
    has_withheld: bool,
    /// Until its first configuration nothing is repaired.
    is_resumed: bool,
}

impl Default for VideoRepair {
    fn default() -> Self {
        Self {
            sets: ParameterSets::default(),
            received: Bytes::new(),
            configuration: None,
            is_rebuilt: false,
            length_size: 4,
            framing: Framing::Lengths(4),
            held: Vec::new(),
            held_bytes: 0,
            idr_at: None,
            start_at: None,
            has_withheld: false,
            is_resumed: false,
        }
    }
}

/// A picture whose framing was read.
struct Picture {
    kinds: UnitKinds,
    /// Its NAL units after four-byte lengths, if they came otherwise.
    converted: Option<Bytes>,
}

/// Why decoding can start at a picture, if it can.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Start {
    Idr,
    /// A recovery point of a stream that refreshes its pictures gradually.
    RecoveryPoint,
    /// An intra picture, or one that only the publisher calls a keyframe.
    Other,
    No,
}

impl VideoRepair {
    pub(super) fn resumed() -> Self {
        Self { is_resumed: true, ..Self::default() }
    }

    pub(super) const fn has_withheld(&self) -> bool {
        self.has_withheld
    }

    /// Returns a frame that passes unchanged, or puts others into `repaired`.
    pub(super) fn handle_frame(&mut self, frame: Frame, repaired: &mut Repaired) -> Option<Frame> {
        match frame.kind {
            FrameKind::Configuration => self.handle_configuration(frame, repaired),
            FrameKind::Keyframe | FrameKind::Inter | FrameKind::Disposable if !self.is_resumed => {
                self.handle_picture(frame, repaired)
            }
            _ => Some(frame),
        }
    }

    fn handle_configuration(&mut self, frame: Frame, repaired: &mut Repaired) -> Option<Frame> {
        if self.is_rebuilt && frame.data == self.received {
            return None;
        }
        self.is_resumed = false;
        let record = read_record(&frame.data);
        let mut sets = ParameterSets::default();
        for set in &record.sets {
            sets.handle_nal(set);
        }
        let built = sets.poll_configuration();
        let (configuration, length_size) = match (record.length_size, built) {
            (Some(length_size), _) => (frame.data.clone(), length_size),
            (None, Some(built)) => {
                repaired.note(Irregularity::ConfigurationRebuilt);
                (built, 4)
            }
            (None, None) => {
                repaired.note(Irregularity::ConfigurationInvalid);
                // What is left of it may be completed by the frames.
                if self.configuration.is_none() {
                    self.sets = sets;
                }
                return None;
            }
        };
        self.sets = sets;
        self.is_rebuilt = configuration != frame.data;
        self.received = frame.data.clone();
        self.length_size = length_size;
        if record.length_size.is_some() {
            self.framing = Framing::Lengths(length_size);
        }
        self.configuration = Some(configuration.clone());
        let frame = Frame { data: configuration, ..frame };
        if self.held.is_empty() {
            return Some(frame);
        }
        repaired.frames.push_back(frame);
        self.release(repaired);
        None
    }

    fn handle_picture(&mut self, mut frame: Frame, repaired: &mut Repaired) -> Option<Frame> {
        let Some(picture) = self.read(&frame.data) else {
            repaired.note(Irregularity::FramingInvalid);
            return None;
        };
        let kinds = picture.kinds;
        let start = self.start(&frame, kinds);
        if kinds.has_sets() {
            self.read_sets(&frame.data);
        }
        let are_late = self.configuration.is_none() && !kinds.has_slice();
        if (start != Start::No || are_late)
            && let Some(configuration) = self.sets.poll_configuration()
            && self.configuration.as_ref() != Some(&configuration)
        {
            self.rebuild(configuration, &frame, repaired);
            if are_late {
                self.release(repaired);
            } else {
                // Frames before the first that has its parameter sets cannot be decoded.
                self.drop_held(repaired);
            }
        }
        if self.configuration.is_none() {
            if kinds.has_slice() {
                self.hold(frame, start, repaired);
            }
            return None;
        }
        let kind = match start {
            Start::No if frame.kind != FrameKind::Keyframe => frame.kind,
            Start::No => FrameKind::Inter,
            Start::Idr | Start::RecoveryPoint | Start::Other => FrameKind::Keyframe,
        };
        if start == Start::RecoveryPoint {
            repaired.note(Irregularity::RecoveryPoint);
        } else if kind != frame.kind && kinds.has_slice() {
            repaired.note(Irregularity::KeyframeMismarked);
        }
        frame.kind = kind;
        if let Some(data) = picture.converted {
            repaired.note(Irregularity::FramingConverted);
            if self.length_size != 4 {
                self.lengthen(&frame, repaired);
            }
            frame.data = data;
        }
        if repaired.frames.is_empty() {
            return Some(frame);
        }
        repaired.frames.push_back(frame);
        None
    }

    /// Reads a frame's framing; `None` if it has none.
    fn read(&mut self, data: &Bytes) -> Option<Picture> {
        let as_declared = Framing::Lengths(self.length_size);
        if let Some(kinds) = self.framing.kinds(data)
            && self.framing == as_declared
            && !kinds.has_faults()
        {
            return Some(Picture { kinds, converted: None });
        }
        let read = |framing: Framing, data| Some((framing, framing.kinds(data)?));
        let trimmed = without_trailing_zeros(data);
        // A length may look like a start code.
        let known = Some(self.framing).filter(|framing| *framing != Framing::StartCodes);
        let (framing, kinds) = match known.and_then(|framing| read(framing, data)) {
            Some(read) => read,
            // The padding after the last NAL unit goes.
            None => Framing::of(data).or_else(|| Framing::of(trimmed))?,
        };
        self.framing = framing;
        let is_same = framing == as_declared && !kinds.has_faults();
        let has_padding = is_same && framing.kinds(data).is_none();
        if is_same && !has_padding {
            return Some(Picture { kinds, converted: None });
        }
        let converted = framing.to_four_byte_lengths(data)?;
        Some(Picture { kinds, converted: Some(converted) })
    }

    /// Whether decoding can start at this picture, and why.
    fn start(&mut self, frame: &Frame, kinds: UnitKinds) -> Start {
        let now = frame.timestamp;
        if kinds.has_idr() {
            (self.idr_at, self.start_at) = (Some(now), Some(now));
            return Start::Idr;
        }
        if !kinds.has_slice() {
            return Start::No;
        }
        let since_idr = distance_us(now, *self.idr_at.get_or_insert(now));
        let is_marked = frame.kind == FrameKind::Keyframe;
        if !is_marked && since_idr < IDR_LIMIT_US {
            return Start::No;
        }
        let since_start = distance_us(now, *self.start_at.get_or_insert(now));
        let units = || self.framing.units(&frame.data);
        let is_recovery_point = kinds.has_sei()
            && units().take(UNITS_LIMIT).any(|unit| {
                unit.first().is_some_and(|first| nal_kind(*first) == NalKind::Sei)
                    && is_recovery_point(unit)
            });
        let needs_type = is_marked || is_recovery_point || since_start > INTRA_LIMIT_US;
        let is_intra = needs_type && is_intra(units());
        let start = if is_intra {
            Start::Other
        } else if is_recovery_point {
            Start::RecoveryPoint
        } else if is_marked && since_start >= IDR_LIMIT_US {
            return Start::Other;
        } else {
            return Start::No;
        };
        self.start_at = Some(now);
        start
    }

    fn read_sets(&mut self, data: &[u8]) {
        let mut has_changed = self.configuration.is_none();
        let mut idr = None;
        for unit in self.framing.units(data) {
            if is_usable(unit, NalKind::Sps) || is_usable(unit, NalKind::Pps) {
                let change = self.sets.handle_nal(without_trailing_zeros(unit));
                has_changed |= change == SetChange::Changed;
            } else if idr.is_none() && unit.first().is_some_and(|of| nal_kind(*of) == NalKind::Idr)
            {
                idr = Some(unit);
            }
        }
        if let Some(slice) = idr.filter(|_| has_changed) {
            self.sets.activate(slice);
        }
    }

    /// Passes on a configuration built from the publisher's parameter sets before `frame`.
    fn rebuild(&mut self, configuration: Bytes, frame: &Frame, repaired: &mut Repaired) {
        repaired.note(Irregularity::ConfigurationRebuilt);
        self.length_size = 4;
        self.is_rebuilt = true;
        self.configuration = Some(configuration.clone());
        repaired.frames.push_back(Frame {
            kind: FrameKind::Configuration,
            composition_ms: 0,
            data: configuration,
            ..frame.clone()
        });
    }

    /// Frames are converted to four-byte lengths from here on: so is the configuration.
    fn lengthen(&mut self, frame: &Frame, repaired: &mut Repaired) {
        let Some(configuration) = &self.configuration else { return };
        let mut changed = BytesMut::from(&configuration[..]);
        if let Some(size) = changed.get_mut(LENGTH_SIZE_AT) {
            *size |= 3;
        }
        self.rebuild(changed.freeze(), frame, repaired);
    }

    /// Keeps a frame for a configuration that may still arrive.
    fn hold(&mut self, frame: Frame, start: Start, repaired: &mut Repaired) {
        let first = self.held.first().map_or(frame.timestamp, |first| first.timestamp);
        let is_full = self.held.len() >= HELD_FRAMES_LIMIT
            || self.held_bytes + frame.data.len() > HELD_BYTES_LIMIT
            || distance_us(frame.timestamp, first) > HELD_TIME_LIMIT_US;
        if is_full || start != Start::No {
            self.drop_held(repaired);
        }
        if start == Start::No && self.held.is_empty() {
            return self.withhold(1, repaired);
        }
        self.held_bytes += frame.data.len();
        self.held.push(frame);
    }

    fn withhold(&mut self, frames: usize, repaired: &mut Repaired) {
        repaired.note_several(Irregularity::VideoConfigurationMissing, frames);
        self.has_withheld |= frames > 0;
    }

    /// The configuration for the held frames has arrived.
    fn release(&mut self, repaired: &mut Repaired) {
        self.held_bytes = 0;
        for frame in std::mem::take(&mut self.held) {
            if let Some(frame) = self.handle_picture(frame, repaired) {
                repaired.frames.push_back(frame);
            }
        }
    }

    fn drop_held(&mut self, repaired: &mut Repaired) {
        self.withhold(self.held.len(), repaired);
        self.held.clear();
        self.held_bytes = 0;
    }
}

const fn distance_us(one: Timestamp, other: Timestamp) -> u64 {
    one.as_micros().abs_diff(other.as_micros())
}
