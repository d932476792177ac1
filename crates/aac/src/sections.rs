//! Noiseless coding: exact bit counts of every Huffman book, and the cheapest division of the bands into sections
//! (ISO/IEC 14496-3, 4.6.3). One pass over the quantised lines, one over the bands.

use std::ops::Range;
use std::sync::OnceLock;

use crate::bands::{LIMIT_BANDS, LINES, Layout};
use crate::bits::BitWriter;
use crate::huffman;

/// The book of a band without lines.
pub(crate) const ZERO: u8 = 0;
/// The book with escapes.
const ESCAPE: u8 = 11;
/// The "book" of a band replaced by noise.
pub(crate) const NOISE: u8 = 13;
/// Spectral books and the empty one.
const BOOKS: usize = 12;
/// Largest magnitude in each spectral book; of the last with escapes.
const LARGEST: [u16; BOOKS] = [0, 1, 1, 2, 2, 4, 4, 7, 7, 12, 12, 8191];
/// A cost that no choice is worth.
const NEVER: u32 = 1 << 20;
/// Magnitudes from here on have an escape.
const FIRST_ESCAPE: i16 = 16;
/// Values of one side of the pair table, from -16 to 16.
const SIDE: usize = 33;

/// Lengths of codes with their sign bits, arranged so that one look-up counts several books.
struct Lengths {
    // Of a signed pair: books 5 to 11.
    pairs: Vec<[u16; 8]>,
    // Of a quadruple of values from -2 to 2, by base 5: books 1 to 4.
    quadruples: Vec<[u16; 4]>,
}

impl Lengths {
    fn shared() -> &'static Self {
        static SHARED: OnceLock<Lengths> = OnceLock::new();
        SHARED.get_or_init(|| Self {
            pairs: (0..SIDE * SIDE)
                .map(|index| {
                    let pair = [index / SIDE, index % SIDE].map(|value| value as i16 - 16);
                    std::array::from_fn(|lane| length(lane as u8 + 5, &pair))
                })
                .collect(),
            quadruples: (0..625)
                .map(|index| {
                    let digits = [index / 125, index / 25 % 5, index / 5 % 5, index % 5];
                    let values = digits.map(|value| value as i16 - 2);
                    std::array::from_fn(|lane| length(lane as u8 + 1, &values))
                })
                .collect(),
        })
    }
}

/// Bits of a tuple, without escapes; 0 in a book that cannot code it.
fn length(book: u8, values: &[i16]) -> u16 {
    let Some(limit) = LARGEST.get(usize::from(book)) else { return 0 };
    if values.iter().any(|value| value.unsigned_abs() > *limit) {
        return 0;
    }
    let (code, _, sign_count) = code(book, values);
    (code >> 24) as u16 + sign_count as u16
}

/// The code of a tuple, its sign bits and their number.
#[inline]
fn code(book: u8, values: &[i16]) -> (u32, u32, u32) {
    let (table, base): (&[u32], i16) = match book {
        1 => (&huffman::BOOK_1, 3),
        2 => (&huffman::BOOK_2, 3),
        3 => (&huffman::BOOK_3, 3),
        4 => (&huffman::BOOK_4, 3),
        5 => (&huffman::BOOK_5, 9),
        6 => (&huffman::BOOK_6, 9),
        7 => (&huffman::BOOK_7, 8),
        8 => (&huffman::BOOK_8, 8),
        9 => (&huffman::BOOK_9, 13),
        10 => (&huffman::BOOK_10, 13),
        _ => (&huffman::BOOK_11, 17),
    };
    if matches!(book, 1 | 2 | 5 | 6) {
        let index = values.iter().fold(0, |index, value| index * base + value + base / 2);
        return (table[index as usize], 0, 0);
    }
    let (mut index, mut signs, mut count) = (0, 0, 0);
    for value in values {
        index = index * base + value.abs().min(FIRST_ESCAPE);
        if *value != 0 {
            signs = signs << 1 | u32::from(*value < 0);
            count += 1;
        }
    }
    (table[index as usize], signs, count)
}

/// Bits of the escape of a magnitude of at least 16: as many ones as its exponent exceeds 4, a zero, the mantissa.
const fn escape_bits(magnitude: u16) -> u32 {
    2 * magnitude.ilog2() - 3
}

/// The quantised lines of one channel and how they are coded.
pub(crate) struct Spectrum {
    /// Lines in coding order.
    pub(crate) lines: Box<[i16; LINES]>,
    /// Largest magnitude of each band.
    pub(crate) largest: [u16; LIMIT_BANDS],
    /// Scale factor of each band that has lines; completed for those that get a book without having lines.
    pub(crate) scale_factors: [i16; LIMIT_BANDS],
    /// Book of each band; `NOISE` is set by the caller, everything else by `choose_books`.
    pub(crate) books: [u8; LIMIT_BANDS],
}

impl Spectrum {
    /// Nothing but zeros.
    pub(crate) fn new() -> Self {
        Self {
            lines: Box::new([0; LINES]),
            largest: [0; LIMIT_BANDS],
            scale_factors: [0; LIMIT_BANDS],
            books: [ZERO; LIMIT_BANDS],
        }
    }

    /// Chooses the books and returns the bits of sections, scale factors and lines of the first `bands` bands of each
    /// group.
    pub(crate) fn choose_books(&mut self, layout: &Layout, bands: usize) -> usize {
        let mut bits = 0;
        for group in 0..layout.groups().len() {
            let first = group * layout.bands_per_group();
            bits += self.divide(layout, first..first + bands);
        }
        bits + self.complete_scale_factors(layout, bands)
    }

    /// The cheapest books of a group: at each band, each book either continues its own section or begins one after the
    /// cheapest book before. Returns the bits of sections and lines.
    fn divide(&mut self, layout: &Layout, bands: Range<usize>) -> usize {
        let header = 4 + length_bits(layout);
        let mut costs = [NEVER; BOOKS];
        let (mut cheapest, mut cheapest_cost, mut after_noise) = (0, 0, false);
        // For each band, the books that continue (bit set) and the one to continue from otherwise.
        let mut choices = [(0_u16, 0_u8); LIMIT_BANDS];
        for band in bands.clone() {
            if self.books[band] == NOISE {
                choices[band] = (0, cheapest);
                costs = [NEVER; BOOKS];
                cheapest_cost += if after_noise { 0 } else { header };
                after_noise = true;
                continue;
            }
            after_noise = false;
            let counts = self.count(layout, band);
            let begin = cheapest_cost + header;
            let mut continued = 0;
            for (book, (cost, count)) in costs.iter_mut().zip(&counts).enumerate() {
                continued |= u16::from(*cost <= begin) << book;
                *cost = (*cost).min(begin) + count;
            }
            choices[band] = (continued, cheapest);
            (cheapest, cheapest_cost) = (0, costs[0]);
            for (book, cost) in costs.iter().enumerate().skip(1) {
                if *cost < cheapest_cost {
                    (cheapest, cheapest_cost) = (book as u8, *cost);
                }
            }
        }
        let (mut book, mut repeated) = (cheapest, 0);
        for band in bands.clone().rev() {
            let (continued, before) = choices[band];
            if self.books[band] != NOISE {
                self.books[band] = book;
                repeated += usize::from(book != ZERO && self.largest[band] == 0);
            }
            if continued >> book & 1 == 0 {
                book = before;
            }
        }
        let prolonged: usize =
            runs(&self.books[bands]).map(|(_, run)| run / escape_length(layout)).sum();
        // Repeated scale factors are counted with the others.
        cheapest_cost as usize + length_bits(layout) as usize * prolonged - repeated
    }

    /// Bits of the lines of a band in each book.
    fn count(&self, layout: &Layout, band: usize) -> [u32; BOOKS] {
        let mut counts = [NEVER; BOOKS];
        let lengths = Lengths::shared();
        let (lines, largest) = (&self.lines[layout.lines(band)], self.largest[band]);
        if largest == 0 {
            // Only zeros; the scale factor repeats the one before.
            let (fours, pairs) = (lines.len() as u32 / 4, lines.len() as u32 / 2);
            counts[usize::from(ZERO)] = 0;
            for (count, zeros) in counts[1..5].iter_mut().zip(lengths.quadruples[312]) {
                *count = 1 + u32::from(zeros) * fours;
            }
            for (count, zeros) in counts[5..].iter_mut().zip(lengths.pairs[SIDE * SIDE / 2]) {
                *count = 1 + u32::from(zeros) * pairs;
            }
            return counts;
        }
        let mut sums = [0_u16; 8];
        let mut escapes = 0;
        if largest < FIRST_ESCAPE as u16 {
            for pair in lines.chunks_exact(2) {
                let index = (pair[0] + 16) as usize * SIDE + (pair[1] + 16) as usize;
                for (sum, length) in sums.iter_mut().zip(&lengths.pairs[index]) {
                    *sum += length;
                }
            }
        } else {
            for pair in lines.chunks_exact(2) {
                let [first, second] = [pair[0], pair[1]].map(|value| {
                    if value.unsigned_abs() >= FIRST_ESCAPE as u16 {
                        escapes += escape_bits(value.unsigned_abs());
                    }
                    (value.clamp(-FIRST_ESCAPE, FIRST_ESCAPE) + FIRST_ESCAPE) as usize
                });
                sums[6] += lengths.pairs[first * SIDE + second][6];
            }
        }
        for (book, sum) in sums.iter().enumerate().take(7) {
            if largest <= LARGEST[book + 5] {
                counts[book + 5] = u32::from(*sum);
            }
        }
        counts[usize::from(ESCAPE)] += escapes;
        if largest <= 2 {
            let mut sums = [0_u16; 4];
            for four in lines.chunks_exact(4) {
                let index = four.iter().fold(0, |index, value| index * 5 + value + 2);
                for (sum, length) in sums.iter_mut().zip(&lengths.quadruples[index as usize]) {
                    *sum += length;
                }
            }
            for (book, sum) in sums.iter().enumerate() {
                if largest <= LARGEST[book + 1] {
                    counts[book + 1] = u32::from(*sum);
                }
            }
        }
        counts
    }

    /// Gives each band with a book but without lines the scale factor before it, and returns the bits of all.
    fn complete_scale_factors(&mut self, layout: &Layout, bands: usize) -> usize {
        let mut bits = 0;
        let mut last = i32::from(self.global_gain(layout, bands));
        let mut last_noise = None;
        for band in coded(layout, bands) {
            match self.books[band] {
                ZERO => {}
                NOISE => {
                    let energy = i32::from(self.scale_factors[band]);
                    bits += match last_noise {
                        None => 9,
                        Some(last) => scale_factor_code(energy - last) >> 24,
                    };
                    last_noise = Some(energy);
                }
                _ => {
                    if self.largest[band] == 0 {
                        self.scale_factors[band] = last as i16;
                    }
                    let factor = i32::from(self.scale_factors[band]);
                    bits += scale_factor_code(factor - last) >> 24;
                    last = factor;
                }
            }
        }
        bits as usize
    }

    /// The scale factor of the first band with lines.
    pub(crate) fn global_gain(&self, layout: &Layout, bands: usize) -> i16 {
        coded(layout, bands)
            .find(|band| self.largest[*band] > 0 && !matches!(self.books[*band], ZERO | NOISE))
            .map_or(100, |band| self.scale_factors[band])
    }

    /// Writes the section data (table 4.52).
    pub(crate) fn write_sections(&self, layout: &Layout, bands: usize, out: &mut BitWriter) {
        for group in 0..layout.groups().len() {
            let first = group * layout.bands_per_group();
            for (book, mut run) in runs(&self.books[first..first + bands]) {
                out.put(u32::from(book), 4);
                let escape = escape_length(layout);
                while run >= escape {
                    out.put(escape as u32, length_bits(layout));
                    run -= escape;
                }
                out.put(run as u32, length_bits(layout));
            }
        }
    }

    /// Writes the scale factors and noise energies (table 4.53).
    pub(crate) fn write_scale_factors(&self, layout: &Layout, bands: usize, out: &mut BitWriter) {
        let gain = i32::from(self.global_gain(layout, bands));
        let (mut last, mut last_noise) = (gain, None);
        for band in coded(layout, bands) {
            let factor = i32::from(self.scale_factors[band]);
            match (self.books[band], last_noise) {
                (ZERO, _) => {}
                (NOISE, None) => {
                    // Relative to the global gain less 90, with an offset of 256.
                    out.put((factor - (gain - 90) + 256) as u32, 9);
                    last_noise = Some(factor);
                }
                (NOISE, Some(noise)) => {
                    let code = scale_factor_code(factor - noise);
                    out.put(code & 0xff_ffff, code >> 24);
                    last_noise = Some(factor);
                }
                (_, _) => {
                    let code = scale_factor_code(factor - last);
                    out.put(code & 0xff_ffff, code >> 24);
                    last = factor;
                }
            }
        }
    }

    /// Writes the lines (table 4.56).
    pub(crate) fn write_lines(&self, layout: &Layout, bands: usize, out: &mut BitWriter) {
        for band in coded(layout, bands) {
            let (book, lines) = (self.books[band], &self.lines[layout.lines(band)]);
            match book {
                ZERO | NOISE => {}
                1..5 => write_tuples::<4>(book, lines, out),
                5.. => write_tuples::<2>(book, lines, out),
            }
        }
    }
}

fn write_tuples<const SIZE: usize>(book: u8, lines: &[i16], out: &mut BitWriter) {
    for tuple in lines.chunks_exact(SIZE) {
        let (code, signs, count) = code(book, tuple);
        out.put((code & 0xff_ffff) << count | signs, (code >> 24) + count);
        if book == ESCAPE {
            for magnitude in tuple.iter().map(|value| value.unsigned_abs()) {
                if magnitude >= FIRST_ESCAPE as u16 {
                    let exponent = magnitude.ilog2();
                    let prefix = (1 << (exponent - 3)) - 2;
                    let mantissa = u32::from(magnitude) - (1 << exponent);
                    out.put(prefix << exponent | mantissa, escape_bits(magnitude));
                }
            }
        }
    }
}

/// The coded bands of all groups, in order.
pub(crate) fn coded(layout: &Layout, bands: usize) -> impl Iterator<Item = usize> + use<> {
    let (groups, step) = (layout.groups().len(), layout.bands_per_group());
    (0..groups).flat_map(move |group| group * step..group * step + bands)
}

/// Runs of equal books, with their lengths.
fn runs(books: &[u8]) -> impl Iterator<Item = (u8, usize)> {
    books.chunk_by(|one, other| one == other).filter_map(|run| Some((*run.first()?, run.len())))
}

const fn length_bits(layout: &Layout) -> u32 {
    if layout.is_short() { 3 } else { 5 }
}

/// The length that means: and more.
const fn escape_length(layout: &Layout) -> usize {
    (1 << length_bits(layout)) - 1
}

/// The code of a difference, which is from -60 to 60.
fn scale_factor_code(difference: i32) -> u32 {
    huffman::SCALE_FACTORS[(difference + 60).clamp(0, 120) as usize]
}
