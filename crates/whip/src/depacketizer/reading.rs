//! Reads payloads into the open access unit: single NAL units, STAP-A and FU-A, as far as they are sound or can be
//! repaired.

use headgate_media::h264::{
    NalKind, SetChange, is_first_slice, is_recovery_point, is_reference, nal_kind,
};

use super::Depacketizer;
use crate::payload::{
    self, FORBIDDEN, FU_A, FU_END, FU_START, IMPORTANCE, Place, STAP_A, STAP_B, is_needed,
};

/// Most bytes of one access unit; a 4K keyframe at a very high bitrate has 2 MB.
pub(super) const ACCESS_UNIT_LIMIT: usize = 4 << 20;
/// Most bytes of picture parameter sets that changed since the last emitted access unit: more than any encoder sends
/// between two keyframes.
pub(super) const CHANGED_PPS_LIMIT: usize = 8 << 10;

/// So many slices of keyframes that are single NAL units show that the sender does not join them.
const SEARCHED_SLICES: u32 = 8;

/// What to do with a NAL unit.
enum Use {
    /// It belongs in the access unit.
    Keep,
    /// It is not needed there.
    Leave,
    /// It is malformed, and no picture needs it.
    Ignore,
    /// It is malformed or too much, and its picture is incomplete without it.
    Break,
}

impl Depacketizer {
    /// Notes what kind of picture a broken access unit is.
    pub(super) fn note_broken(&mut self, payload: &[u8]) {
        if let Some(first) = payload::slice_header(payload) {
            self.note_slice(first);
        }
    }

    /// Notes a slice by its first byte.
    pub(super) const fn note_slice(&mut self, first: u8) {
        self.slices += 1;
        self.has_reference |= is_reference(first);
        self.has_idr |= first & 0x1f == 5;
    }

    /// Reads a payload; false when it violates RFC 6184.
    #[inline]
    pub(super) fn read(&mut self, payload: &[u8]) -> bool {
        let Some(&first) = payload.first() else { return true };
        if first & 0x1f == FU_A {
            return self.read_fragment(payload);
        }
        if self.fragment_at.is_some() && payload::is_stray(payload) {
            self.note_aside(payload);
            return false;
        }
        let is_interrupted = self.drop_fragment();
        let is_sound = match first & 0x1f {
            STAP_A => self.read_aggregate(payload, true),
            STAP_B..=31 => {
                self.is_broken |= payload::is_interleaved_slice(payload);
                false
            }
            _ => self.take_nal(payload),
        };
        is_sound && !is_interrupted
    }

    /// Notes the parameter sets in a payload without a slice, between the fragments of a NAL unit.
    #[cold]
    fn note_aside(&mut self, payload: &[u8]) {
        let is_aggregate = payload.first().is_some_and(|first| first & 0x1f == STAP_A);
        let members = payload::members(payload).filter(|_| is_aggregate);
        for unit in members.unwrap_or_else(|| vec![payload]) {
            if matches!(unit.first().map(|first| first & 0x1f), Some(7 | 8)) {
                let cleared = without_forbidden_bit(unit);
                let kept = self.note_nal(cleared.as_deref().unwrap_or(unit), 0);
                self.is_sound(&kept);
            }
        }
    }

    /// Reads a STAP-A; one inside another is read too, but none inside that.
    fn read_aggregate(&mut self, payload: &[u8], may_nest: bool) -> bool {
        let Some((&first, mut rest)) = payload.split_first() else { return false };
        let mut is_sound = first & FORBIDDEN == 0;
        while let &[high, low, ref after @ ..] = rest {
            let length = usize::from(u16::from_be_bytes([high, low]));
            let Some((nal, next)) = after.split_at_checked(length) else {
                self.leave_out(after);
                return false;
            };
            is_sound &= match nal.first().map(|first| first & 0x1f) {
                None => false,
                Some(STAP_A) => {
                    if may_nest {
                        self.read_aggregate(nal, false);
                    }
                    false
                }
                Some(FU_A) => {
                    self.leave_out(nal.get(1).map(|header| header & 0x1f).as_slice());
                    false
                }
                Some(_) => self.take_nal(nal),
            };
            rest = next;
        }
        is_sound && rest.is_empty()
    }

    fn read_fragment(&mut self, payload: &[u8]) -> bool {
        let &[indicator, header, ref fragment @ ..] = payload else {
            self.drop_fragment();
            return false;
        };
        let first = indicator & IMPORTANCE | header & 0x1f;
        let mut is_sound = indicator & FORBIDDEN == 0 && !fragment.is_empty();
        if header & FU_START != 0 {
            // A NAL unit in one fragment is not allowed, but complete.
            is_sound &= !self.drop_fragment() && header & FU_END == 0;
            self.fragment_at = Some(self.unit.len());
            self.append(&[0, 0, 0, 0, first]);
        } else if !self.fragment_at.is_some_and(|at| self.is_fragment_of(at, header)) {
            if !is_needed(first) {
                return false;
            }
            self.drop_fragment();
            self.leave_out(&[first]);
            return false;
        }
        self.append(fragment);
        if header & FU_END != 0
            && let Some(at) = self.fragment_at.take()
        {
            is_sound &= self.close_fragment(at);
        }
        is_sound
    }

    /// The timestamp of the open picture, `open`, if a payload with another one continues it: a fragment of its NAL unit,
    /// or a slice that begins no picture, before which nothing is missing.
    #[cold]
    pub(super) fn continued(&mut self, open: u32, payload: &[u8]) -> Option<u32> {
        let &[first, header, ..] = payload else { return None };
        let is_later_fragment = first & 0x1f == FU_A && header & FU_START == 0;
        let is_next = match self.fragment_at {
            Some(at) => is_later_fragment && self.is_fragment_of(at, header),
            None => {
                let is_slice = payload::slice_header(payload).is_some() && !is_later_fragment;
                is_slice && self.slices > 0 && payload::place(payload) == Place::Continues
            }
        };
        let is_continued = is_next && self.gap == 0 && !self.markers.is_marked();
        self.malformed += u64::from(is_continued);
        is_continued.then_some(open)
    }

    /// Whether a fragment with this header continues the NAL unit that begins at `at`.
    fn is_fragment_of(&self, at: usize, header: u8) -> bool {
        self.unit.get(at + 4).is_some_and(|first| (first ^ header) & 0x1f == 0)
    }

    /// Drops the NAL unit of which no further fragment follows, if there is one.
    pub(super) fn drop_fragment(&mut self) -> bool {
        let Some(at) = self.fragment_at.take() else { return false };
        let first = self.unit.get(at + 4).copied();
        self.unit.truncate(at);
        self.leave_out(first.as_slice());
        true
    }

    /// A NAL unit that begins like this is not in the access unit.
    fn leave_out(&mut self, nal: &[u8]) {
        self.is_broken |= nal.first().is_some_and(|first| is_needed(*first));
    }

    /// The NAL unit whose length field is at `at` is complete.
    fn close_fragment(&mut self, at: usize) -> bool {
        let start = at + 4;
        // Taken out while it is read, then put back unchanged.
        let mut unit = std::mem::take(&mut self.unit);
        let nal = unit.get(start..).unwrap_or_default();
        if let Some(parts) = self.split(nal) {
            let parts: Vec<_> = parts.into_iter().map(<[u8]>::to_vec).collect();
            unit.truncate(at);
            self.unit = unit;
            for part in parts {
                self.take_unit(&part);
            }
            return false;
        }
        let (length, kept) = ((nal.len() as u32).to_be_bytes(), self.note_nal(nal, start));
        match kept {
            Use::Keep => {
                if let Some(place) = unit.get_mut(at..start) {
                    place.copy_from_slice(&length);
                }
            }
            Use::Leave | Use::Ignore | Use::Break => unit.truncate(at),
        }
        self.unit = unit;
        self.is_sound(&kept)
    }

    /// Takes a NAL unit from a payload.
    fn take_nal(&mut self, nal: &[u8]) -> bool {
        if let Some(cleared) = without_forbidden_bit(nal) {
            self.take_nal(&cleared);
            return false;
        }
        match self.split(nal) {
            Some(parts) => {
                for part in parts {
                    self.take_unit(part);
                }
                false
            }
            None => self.take_unit(nal),
        }
    }

    /// The NAL units of one that a sender joined. Slices are searched only if it does so, and those of its first
    /// keyframes to find out: their bytes are many.
    fn split<'a>(&mut self, nal: &'a [u8]) -> Option<Vec<&'a [u8]>> {
        let kind = nal.first().map(|first| first & 0x1f);
        let may_join = match kind {
            Some(0 | 6..=9) => true,
            Some(5) => self.joins_units || self.whole_slices < SEARCHED_SLICES,
            Some(1..=4) => self.joins_units,
            Some(_) | None => false,
        };
        if !may_join {
            return None;
        }
        let parts = payload::split_joined(nal);
        self.whole_slices += u32::from(parts.is_none() && kind == Some(5));
        self.joins_units |= parts.is_some();
        parts
    }

    fn take_unit(&mut self, nal: &[u8]) -> bool {
        if let Some(cleared) = without_forbidden_bit(nal) {
            self.take_unit(&cleared);
            return false;
        }
        let kept = self.note_nal(nal, self.unit.len() + 4);
        if matches!(kept, Use::Keep) {
            self.append(&(nal.len() as u32).to_be_bytes());
            self.append(nal);
        }
        self.is_sound(&kept)
    }

    const fn is_sound(&mut self, kept: &Use) -> bool {
        self.is_broken |= matches!(kept, Use::Break);
        matches!(kept, Use::Keep | Use::Leave)
    }

    /// Examines a complete NAL unit that is, or would be, at `at` in the access unit.
    fn note_nal(&mut self, nal: &[u8], at: usize) -> Use {
        let Some(&first) = nal.first() else { return Use::Ignore };
        let kind = nal_kind(first);
        match kind {
            NalKind::Sps | NalKind::Pps => {
                self.has_sps |= kind == NalKind::Sps;
                let is_changed = self.sets.handle_nal(nal) == SetChange::Changed;
                // Only an IDR can activate another SPS (7.4.1.2.1), and an IDR gets a decoder configuration.
                if is_changed && kind == NalKind::Pps {
                    return self.note_changed_pps(nal);
                }
                Use::Leave
            }
            NalKind::Filler => Use::Leave,
            NalKind::Slice | NalKind::Idr => {
                if nal.len() < 2 || (self.slices == 0 && !is_first_slice(nal)) {
                    return Use::Break;
                }
                if kind == NalKind::Idr && !self.has_idr {
                    self.sets.activate(nal);
                }
                if self.slices == 0 {
                    self.slice_at = at;
                }
                self.note_slice(first);
                Use::Keep
            }
            NalKind::Other if matches!(first & 0x1f, 0 | 24..) => Use::Ignore,
            NalKind::Sei => {
                self.has_recovery_point |= is_recovery_point(nal);
                Use::Keep
            }
            NalKind::Other => Use::Keep,
        }
    }

    /// A PPS that changed between two keyframes is sent in the access unit that needs it. A decoder configuration
    /// instead would be wrong for the earlier frames of the group, which a joining player receives first.
    fn note_changed_pps(&mut self, nal: &[u8]) -> Use {
        if self.awaits_keyframe() {
            return Use::Leave;
        }
        if self.changed_pps.len() + 4 + nal.len() > CHANGED_PPS_LIMIT {
            return Use::Break;
        }
        self.changed_pps.extend_from_slice(&(nal.len() as u32).to_be_bytes());
        self.changed_pps.extend_from_slice(nal);
        Use::Leave
    }

    fn append(&mut self, bytes: &[u8]) {
        if self.unit.len() + bytes.len() > ACCESS_UNIT_LIMIT {
            self.is_broken = true;
            return;
        }
        if self.unit.is_empty() {
            self.unit.reserve(self.usual_bytes);
        }
        self.unit.extend_from_slice(bytes);
    }
}

/// A NAL unit with the forbidden bit, which decoders reject, without it: senders that set it send sound NAL units.
fn without_forbidden_bit(nal: &[u8]) -> Option<Vec<u8>> {
    let first = *nal.first().filter(|first| **first & FORBIDDEN != 0)?;
    let mut cleared = nal.to_vec();
    *cleared.first_mut()? = first & !FORBIDDEN;
    Some(cleared)
}
