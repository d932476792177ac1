//! Whether pictures that others refer to are missing before a picture, by frame_num (H.264 7.4.3): it rises by one after
//! each of them and not after disposable ones. Pure.
//!
//! Followed only for senders that send disposable pictures, and believed only while every picture has had the number
//! that follows.

use headgate_media::h264::frame_num;

/// Pictures in a row with the number that follows, before one is believed after a loss.
const PROOFS: u32 = 2;

/// The frame numbers of one sender.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) enum FrameNumbers {
    /// No disposable picture has come.
    #[default]
    Ignored,
    /// The number of the newest picture that others refer to, and how many pictures in a row have followed the rule.
    Followed { reference: u32, proofs: u32 },
    /// Numbers that broke the rule; ignored until the next keyframe.
    Irregular,
}

impl FrameNumbers {
    /// Notes a complete picture by its first slice; no picture that others refer to is missing before it. The first one is
    /// disposable.
    pub(crate) fn note(
        &mut self,
        bits: Option<u8>,
        slice: &[u8],
        is_keyframe: bool,
        is_disposable: bool,
    ) {
        let Some((number, limit)) = number_of(bits, slice) else {
            *self = Self::Irregular;
            return;
        };
        *self = match *self {
            Self::Irregular if !is_keyframe => Self::Irregular,
            Self::Irregular => Self::Followed { reference: number, proofs: 0 },
            // A disposable picture has the number that the next reference will have.
            Self::Ignored => Self::Followed { reference: (number + limit - 1) % limit, proofs: 0 },
            Self::Followed { .. } if is_keyframe => {
                Self::Followed { reference: number, proofs: PROOFS }
            }
            Self::Followed { reference, proofs } if number == (reference + 1) % limit => {
                let reference = if is_disposable { reference } else { number };
                Self::Followed { reference, proofs: (proofs + 1).min(PROOFS) }
            }
            Self::Followed { .. } => Self::Irregular,
        };
    }

    /// Whether no disposable picture has come.
    pub(crate) const fn is_ignored(&self) -> bool {
        matches!(self, Self::Ignored)
    }

    /// Whether [`FrameNumbers::is_next`] can tell.
    pub(crate) const fn is_known(&self) -> bool {
        matches!(self, Self::Followed { proofs: PROOFS.., .. })
    }

    /// Whether no picture that others refer to is missing before this one, after the loss of `lost` packets.
    pub(crate) fn is_next(&self, bits: Option<u8>, slice: &[u8], lost: u64) -> bool {
        let Self::Followed { reference, proofs: PROOFS.. } = *self else { return false };
        // As many pictures lost as there are numbers would look like none.
        number_of(bits, slice).is_some_and(|(number, limit)| {
            number == (reference + 1) % limit && lost < u64::from(limit)
        })
    }
}

/// frame_num and the number of its values.
fn number_of(bits: Option<u8>, slice: &[u8]) -> Option<(u32, u32)> {
    let bits = bits?;
    Some((frame_num(slice, bits)?, 1 << bits))
}
