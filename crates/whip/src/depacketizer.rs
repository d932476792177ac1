//! H.264 RTP payloads in order → complete access units (RFC 6184). Not the ordering (`jitter`), not the timing
//! (`clock`).
//!
//! No incomplete access unit is emitted: after a loss or a malformed payload everything is withheld until the next IDR,
//! or recovery point of a sender that refreshes its pictures gradually.

use bytes::{Bytes, BytesMut};
use headgate_media::h264::{
    NalKind, ParameterSets, SetChange, Sps, is_first_slice, is_recovery_point, is_reference,
    nal_kind,
};

/// Most bytes of one access unit; a 4K keyframe at a very high bitrate has 2 MB.
const ACCESS_UNIT_LIMIT: usize = 4 << 20;
/// Most bytes of picture parameter sets that changed since the last emitted access unit: more than any encoder sends
/// between two keyframes.
const CHANGED_PPS_LIMIT: usize = 8 << 10;
/// RTP time without an IDR after which recovery points count as keyframes, 4 s: readers join at them.
const IDR_LIMIT: u32 = 4 * 90_000;
const STAP_A: u8 = 24;
const FU_A: u8 = 28;
const FU_START: u8 = 0x80;
const FU_END: u8 = 0x40;

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
    /// Offset of the length field of the NAL unit that is being assembled from FU-A fragments.
    fragment_at: Option<usize>,
    is_broken: bool,
    has_idr: bool,
    has_recovery_point: bool,
    has_slice: bool,
    has_reference: bool,
    has_sps: bool,
    awaits_keyframe: bool,
    /// RTP timestamp of the newest IDR; `None` if there has been none, or for longer than the limit.
    idr_at: Option<u32>,
    /// Whether this publisher's keyframes carry their parameter sets.
    repeats_sets: bool,
    withheld: u64,
    recovery_points: u64,
}

/// The payload is not what RFC 6184 allows.
struct Malformed;

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
            fragment_at: None,
            is_broken: false,
            has_idr: false,
            has_recovery_point: false,
            has_slice: false,
            has_reference: false,
            has_sps: false,
            awaits_keyframe: true,
            idr_at: None,
            repeats_sets: false,
            withheld: 0,
            recovery_points: 0,
        }
    }

    /// Takes the next payload in order; `emit` is called with each access unit it completes.
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
        if self.timestamp.is_some_and(|open| open != timestamp) {
            self.finish(emit);
        }
        self.timestamp = Some(timestamp);
        if !self.is_broken && self.read(payload).is_err() {
            self.is_broken = true;
        }
        if marker {
            self.finish(emit);
        }
    }

    /// Packets are missing at this point and will not arrive.
    pub fn handle_gap(&mut self) {
        self.awaits_keyframe = true;
        self.changed_pps.clear();
        if self.timestamp.is_some() {
            self.is_broken = true;
        }
    }

    /// Nothing is emitted before the next IDR: the sender should be asked for one.
    #[must_use]
    pub const fn awaits_keyframe(&self) -> bool {
        self.awaits_keyframe
    }

    /// Recovery points that were emitted as keyframes since the previous call.
    pub const fn take_recovery_points(&mut self) -> u64 {
        std::mem::replace(&mut self.recovery_points, 0)
    }

    /// Access units withheld so far.
    #[must_use]
    pub const fn withheld(&self) -> u64 {
        self.withheld
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

    fn read(&mut self, payload: &[u8]) -> Result<(), Malformed> {
        let &[first, ..] = payload else { return Err(Malformed) };
        if first & 0x80 != 0 {
            return Err(Malformed);
        }
        match first & 0x1f {
            FU_A => self.read_fragment(payload),
            _ if self.fragment_at.is_some() => Err(Malformed),
            STAP_A => {
                let mut rest = &payload[1..];
                while let &[high, low, ..] = rest {
                    let length = usize::from(u16::from_be_bytes([high, low]));
                    let nal = rest.get(2..2 + length).ok_or(Malformed)?;
                    self.take_nal(nal)?;
                    rest = &rest[2 + length..];
                }
                if rest.is_empty() { Ok(()) } else { Err(Malformed) }
            }
            1..=23 => self.take_nal(payload),
            _ => Err(Malformed),
        }
    }

    fn read_fragment(&mut self, payload: &[u8]) -> Result<(), Malformed> {
        let &[indicator, header, ref fragment @ ..] = payload else { return Err(Malformed) };
        let first = indicator & 0xe0 | header & 0x1f;
        if header & FU_START != 0 {
            if self.fragment_at.is_some() || header & FU_END != 0 || fragment.is_empty() {
                return Err(Malformed);
            }
            self.fragment_at = Some(self.unit.len());
            self.append(&[0, 0, 0, 0, first])?;
        } else if self.fragment_at.is_none() {
            return Err(Malformed);
        }
        self.append(fragment)?;
        if header & FU_END != 0
            && let Some(at) = self.fragment_at.take()
        {
            self.close_fragment(at)?;
        }
        Ok(())
    }

    /// The NAL unit whose length field is at `at` is complete.
    fn close_fragment(&mut self, at: usize) -> Result<(), Malformed> {
        let start = at + 4;
        let nal = self.unit.get(start..).ok_or(Malformed)?;
        let length = (nal.len() as u32).to_be_bytes();
        if self.note_nal_at(start)? {
            if let Some(place) = self.unit.get_mut(at..start) {
                place.copy_from_slice(&length);
            }
        } else {
            self.unit.truncate(at);
        }
        Ok(())
    }

    fn note_nal_at(&mut self, start: usize) -> Result<bool, Malformed> {
        // Taken out while it is read, then put back unchanged.
        let unit = std::mem::take(&mut self.unit);
        let kept = self.note_nal(unit.get(start..).unwrap_or_default());
        self.unit = unit;
        kept
    }

    fn take_nal(&mut self, nal: &[u8]) -> Result<(), Malformed> {
        if nal.is_empty() {
            return Err(Malformed);
        }
        if self.note_nal(nal)? {
            self.append(&(nal.len() as u32).to_be_bytes())?;
            self.append(nal)?;
        }
        Ok(())
    }

    /// Examines a complete NAL unit; true when it belongs in the access unit.
    fn note_nal(&mut self, nal: &[u8]) -> Result<bool, Malformed> {
        let Some(&first) = nal.first() else { return Err(Malformed) };
        let kind = nal_kind(first);
        match kind {
            NalKind::Sps | NalKind::Pps => {
                self.has_sps |= kind == NalKind::Sps;
                let is_changed = self.sets.handle_nal(nal) == SetChange::Changed;
                // Only an IDR can activate another SPS (7.4.1.2.1), and an IDR gets a decoder configuration.
                if is_changed && kind == NalKind::Pps {
                    self.note_changed_pps(nal)?;
                }
                return Ok(false);
            }
            NalKind::Filler => return Ok(false),
            NalKind::Slice | NalKind::Idr => {
                if !self.has_slice && !is_first_slice(nal) {
                    return Err(Malformed);
                }
                if kind == NalKind::Idr && !self.has_idr {
                    self.sets.activate(nal);
                    self.has_idr = true;
                }
                self.has_slice = true;
                self.has_reference |= is_reference(first);
            }
            NalKind::Sei => self.has_recovery_point |= is_recovery_point(nal),
            NalKind::Other => {}
        }
        Ok(true)
    }

    /// A PPS that changed between two keyframes is sent in the access unit that needs it. A decoder configuration
    /// instead would be wrong for the earlier frames of the group, which a joining player receives first.
    fn note_changed_pps(&mut self, nal: &[u8]) -> Result<(), Malformed> {
        if self.awaits_keyframe {
            return Ok(());
        }
        if self.changed_pps.len() + 4 + nal.len() > CHANGED_PPS_LIMIT {
            return Err(Malformed);
        }
        self.changed_pps.extend_from_slice(&(nal.len() as u32).to_be_bytes());
        self.changed_pps.extend_from_slice(nal);
        Ok(())
    }

    fn append(&mut self, bytes: &[u8]) -> Result<(), Malformed> {
        if self.unit.len() + bytes.len() > ACCESS_UNIT_LIMIT {
            return Err(Malformed);
        }
        if self.unit.is_empty() {
            self.unit.reserve(self.usual_bytes);
        }
        self.unit.extend_from_slice(bytes);
        Ok(())
    }

    /// Whether a recovery point at this time is a place to start: after a loss, and where no IDR has come for a while.
    fn can_join(&mut self, timestamp: u32) -> bool {
        self.idr_at = self.idr_at.filter(|idr| timestamp.wrapping_sub(*idr) < IDR_LIMIT);
        self.awaits_keyframe || self.idr_at.is_none()
    }

    /// The access unit is complete: emits it or withholds it.
    fn finish(&mut self, emit: &mut impl FnMut(AccessUnit)) {
        let Some(timestamp) = self.timestamp.take() else { return };
        let mut data = self.unit.split();
        self.usual_bytes = (self.usual_bytes * 3 + data.len()) / 4;
        let is_broken = std::mem::take(&mut self.is_broken) | self.fragment_at.take().is_some();
        let is_idr = std::mem::take(&mut self.has_idr);
        let is_recovery_point = std::mem::take(&mut self.has_recovery_point);
        let has_slice = std::mem::take(&mut self.has_slice);
        let is_disposable = !std::mem::take(&mut self.has_reference);
        let has_sps = std::mem::take(&mut self.has_sps);
        if is_broken {
            self.changed_pps.clear();
            self.awaits_keyframe = true;
            self.withheld += 1;
            return;
        }
        if !has_slice {
            // Parameter sets alone are remembered; anything else without a slice belongs to no frame.
            return;
        }
        let is_keyframe = is_idr || is_recovery_point && self.can_join(timestamp);
        // After a loss, the missing packets may have held the parameter sets of a new resolution.
        let may_miss_sets = is_keyframe && self.repeats_sets && !has_sps;
        if self.awaits_keyframe && (!is_keyframe || may_miss_sets || !self.sets.is_complete()) {
            // Missing twice, they are not repeated any more: there are senders that send them once.
            self.repeats_sets &= !may_miss_sets;
            self.withheld += 1;
            return;
        }
        let mut configuration = None;
        if is_keyframe {
            self.awaits_keyframe = false;
            self.repeats_sets = has_sps;
            self.recovery_points += u64::from(!is_idr);
            if is_idr {
                self.idr_at = Some(timestamp);
            }
            configuration = self.sets.poll_configuration();
            // The configuration contains them.
            self.changed_pps.clear();
        } else if !self.changed_pps.is_empty() {
            let mut with_pps = self.changed_pps.split();
            with_pps.extend_from_slice(&data);
            data = with_pps;
        }
        let data = data.freeze();
        emit(AccessUnit { timestamp, data, is_keyframe, is_disposable, configuration });
    }
}

#[cfg(test)]
#[path = "depacketizer_tests.rs"]
mod tests;
