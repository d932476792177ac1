//! Scale-factor bands of 48 kHz (ISO/IEC 14496-3, tables 4.129 and 4.130) and the order in which a frame's lines are
//! coded.

/// Spectral lines of a frame.
pub(crate) const LINES: usize = 1024;
/// Short windows of a frame.
pub(crate) const SHORT_WINDOWS: usize = 8;
/// Lines of a short window.
pub(crate) const SHORT_LINES: usize = LINES / SHORT_WINDOWS;
/// Bands of a long window.
pub(crate) const LONG_BANDS: usize = LONG.len() - 1;
/// Bands of a short window.
pub(crate) const SHORT_BANDS: usize = SHORT.len() - 1;
/// Most bands of a frame: each short window a group of its own.
pub(crate) const LIMIT_BANDS: usize = SHORT_WINDOWS * SHORT_BANDS;

/// First lines of the bands of a long window, and its end.
#[rustfmt::skip]
pub(crate) const LONG: [u16; 50] = [
    0, 4, 8, 12, 16, 20, 24, 28, 32, 36, 40, 48, 56, 64, 72, 80, 88, 96, 108, 120, 132, 144, 160, 176, 196, 216, 240,
    264, 292, 320, 352, 384, 416, 448, 480, 512, 544, 576, 608, 640, 672, 704, 736, 768, 800, 832, 864, 896, 928, 1024,
];
/// First lines of the bands of a short window, and its end.
pub(crate) const SHORT: [u16; 15] = [0, 4, 8, 12, 16, 20, 28, 36, 44, 56, 68, 80, 96, 112, 128];

/// The bands of one frame in coding order: group by group, each with `bands` bands; in a band of a group of short
/// windows, window by window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    /// How many short windows each group has; for a long window a single 1.
    lengths: [u8; SHORT_WINDOWS],
    groups: usize,
    short: bool,
    // First line of each band in coding order, over all bands of all groups, and the end.
    offsets: [u16; LIMIT_BANDS + 1],
}

impl Layout {
    /// One long window.
    pub(crate) fn long() -> Self {
        let mut offsets = [LINES as u16; LIMIT_BANDS + 1];
        offsets[..LONG.len()].copy_from_slice(&LONG);
        Self { lengths: [1, 0, 0, 0, 0, 0, 0, 0], groups: 1, short: false, offsets }
    }

    /// Eight short windows; `lengths` of the groups sum to eight.
    pub(crate) fn short(lengths: &[u8]) -> Self {
        debug_assert_eq!(lengths.iter().sum::<u8>(), 8);
        let mut layout = Self {
            lengths: [0; SHORT_WINDOWS],
            groups: lengths.len(),
            short: true,
            offsets: [LINES as u16; LIMIT_BANDS + 1],
        };
        let mut start = 0;
        for (group, length) in lengths.iter().enumerate() {
            layout.lengths[group] = *length;
            for (band, first) in SHORT[..SHORT_BANDS].iter().enumerate() {
                layout.offsets[group * SHORT_BANDS + band] = start + first * u16::from(*length);
            }
            start += SHORT_LINES as u16 * u16::from(*length);
        }
        layout
    }

    pub(crate) const fn is_short(&self) -> bool {
        self.short
    }

    /// Bands of each group.
    pub(crate) const fn bands_per_group(&self) -> usize {
        if self.short { SHORT_BANDS } else { LONG_BANDS }
    }

    /// Bands of all groups.
    pub(crate) const fn bands(&self) -> usize {
        self.bands_per_group() * self.groups
    }

    /// The lengths of the groups in windows.
    pub(crate) fn groups(&self) -> &[u8] {
        &self.lengths[..self.groups]
    }

    /// Range of lines of a band.
    #[inline]
    pub(crate) fn lines(&self, band: usize) -> std::ops::Range<usize> {
        usize::from(self.offsets[band])..usize::from(self.offsets[band + 1])
    }

    /// Bands of a group below that line of a long window, at least one.
    pub(crate) fn bands_below(&self, line: usize) -> usize {
        let (offsets, scale) = if self.short { (&SHORT[..], 8) } else { (&LONG[..], 1) };
        offsets[1..].iter().take_while(|end| usize::from(**end) * scale <= line).count().max(1)
    }
}
