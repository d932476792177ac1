//! A strict reader: every access unit is read as the standard writes it, bit by bit, and what the syntax allows but a
//! good encoder never writes is refused too.

use std::collections::HashMap;

use crate::bands::{LONG, LONG_BANDS, SHORT, SHORT_BANDS};
use crate::rate::BUFFER_BITS;
use crate::{Config, Encoder, FRAME_SAMPLES, huffman};

/// Windows: whether the sequence may follow the one before.
fn may_follow(before: u32, sequence: u32) -> bool {
    match before {
        // Long or stop, then long or start; start or short, then short; short, then stop.
        0 | 3 => matches!(sequence, 0 | 1),
        1 => sequence == 2,
        _ => matches!(sequence, 2 | 3),
    }
}

struct Codes {
    // By book, length and code: the index. Book 0 has the scale factors.
    indices: HashMap<(u8, u32, u32), usize>,
}

impl Codes {
    fn new() -> Self {
        let books: [&[u32]; 12] = [
            &huffman::SCALE_FACTORS,
            &huffman::BOOK_1,
            &huffman::BOOK_2,
            &huffman::BOOK_3,
            &huffman::BOOK_4,
            &huffman::BOOK_5,
            &huffman::BOOK_6,
            &huffman::BOOK_7,
            &huffman::BOOK_8,
            &huffman::BOOK_9,
            &huffman::BOOK_10,
            &huffman::BOOK_11,
        ];
        let entries = books.iter().enumerate().flat_map(|(book, codes)| {
            codes
                .iter()
                .enumerate()
                .map(move |(index, code)| ((book as u8, code >> 24, code & 0xff_ffff), index))
        });
        Self { indices: entries.collect() }
    }
}

struct Reader<'a> {
    bytes: &'a [u8],
    position: usize,
    codes: &'a Codes,
}

impl Reader<'_> {
    fn take(&mut self, count: usize) -> u32 {
        let mut value = 0;
        for _ in 0..count {
            let byte = self.bytes[self.position / 8];
            value = value << 1 | u32::from(byte >> (7 - self.position % 8) & 1);
            self.position += 1;
        }
        value
    }

    fn code(&mut self, book: u8) -> usize {
        let mut code = 0;
        for length in 1..=19 {
            code = code << 1 | self.take(1);
            if let Some(index) = self.codes.indices.get(&(book, length, code)) {
                return *index;
            }
        }
        panic!("no code of book {book}");
    }

    /// One raw data block; returns the sequence of windows.
    fn block(&mut self, channels: u8) -> u32 {
        assert_eq!((self.take(3), self.take(4)), (u32::from(channels) - 1, 0), "element and tag");
        let sequence = if channels == 1 {
            self.channel(None)
        } else {
            assert_eq!(self.take(1), 1, "common window");
            let window = self.window();
            match self.take(2) {
                0 | 2 => {}
                1 => {
                    self.take(window.groups.len() * window.bands);
                }
                _ => panic!("reserved use of sum and difference"),
            }
            self.channel(Some(&window));
            self.channel(Some(&window))
        };
        assert_eq!(self.take(3), 7, "end");
        let rest = self.bytes.len() * 8 - self.position;
        assert!(rest < 8 && self.take(rest) == 0, "{rest} bits after the end");
        sequence
    }

    fn window(&mut self) -> Window {
        assert_eq!(self.take(1), 0, "reserved");
        let sequence = self.take(2);
        self.take(1);
        if sequence != 2 {
            let bands = self.take(6) as usize;
            assert!(bands <= LONG_BANDS && self.take(1) == 0, "{bands} bands, and no prediction");
            return Window { sequence, groups: vec![1], bands };
        }
        let bands = self.take(4) as usize;
        assert!(bands <= SHORT_BANDS, "{bands} bands");
        let mut groups = vec![1];
        for _ in 0..7 {
            if self.take(1) == 1 {
                *groups.last_mut().expect("a group has begun") += 1;
            } else {
                groups.push(1);
            }
        }
        Window { sequence, groups, bands }
    }

    fn channel(&mut self, common: Option<&Window>) -> u32 {
        let gain = self.take(8) as i32;
        let own = common.is_none().then(|| self.window());
        let window = common.or(own.as_ref()).expect("one of them is there");
        let books = self.sections(window);
        let (mut factor, mut noise) = (gain, None);
        for book in &books {
            match (book, noise) {
                (0, _) => {}
                (13, None) => noise = Some(gain - 90 + self.take(9) as i32 - 256),
                (13, Some(before)) => noise = Some(before + self.code(0) as i32 - 60),
                _ => {
                    factor += self.code(0) as i32 - 60;
                    assert!((0..256).contains(&factor), "scale factor {factor}");
                }
            }
            assert!(noise.is_none_or(|noise| (-100..256).contains(&noise)), "noise {noise:?}");
        }
        assert_eq!(self.take(1), 0, "pulses");
        assert_eq!(self.take(1), 0, "temporal noise shaping is not used");
        assert_eq!(self.take(1), 0, "gain control");
        for (index, book) in books.iter().enumerate() {
            let (group, band) = (index / window.bands, index % window.bands);
            let offsets = if window.sequence == 2 { &SHORT[..] } else { &LONG[..] };
            let lines = usize::from(offsets[band + 1] - offsets[band]) * window.groups[group];
            self.lines(*book, lines);
        }
        window.sequence
    }

    fn sections(&mut self, window: &Window) -> Vec<u8> {
        let bits = if window.sequence == 2 { 3 } else { 5 };
        let mut books = Vec::new();
        for _ in &window.groups {
            let (mut bands, mut before) = (0, None);
            while bands < window.bands {
                let book = self.take(4) as u8;
                assert!(book <= 11 || book == 13, "reserved book {book}");
                assert!(before != Some(book), "two sections of book {book} that could be one");
                before = Some(book);
                let mut length = 0;
                loop {
                    let part = self.take(bits) as usize;
                    length += part;
                    if part < (1 << bits) - 1 {
                        break;
                    }
                }
                assert!(length > 0, "an empty section");
                bands += length;
                books.extend(std::iter::repeat_n(book, length));
            }
            assert_eq!(bands, window.bands, "sections end with the group");
        }
        books
    }

    fn lines(&mut self, book: u8, lines: usize) {
        let (size, base, signed) = match book {
            0 | 13 => return,
            1 | 2 => (4, 3, true),
            3 | 4 => (4, 3, false),
            5 | 6 => (2, 9, true),
            7 | 8 => (2, 8, false),
            9 | 10 => (2, 13, false),
            _ => (2, 17, false),
        };
        for _ in 0..lines / size {
            let mut index = self.code(book);
            if signed {
                continue;
            }
            let mut magnitudes = [0; 4];
            for magnitude in magnitudes[..size].iter_mut().rev() {
                *magnitude = index % base;
                index /= base;
            }
            self.take(magnitudes.iter().filter(|magnitude| **magnitude > 0).count());
            for _ in magnitudes.iter().filter(|magnitude| book == 11 && **magnitude == 16) {
                let mut exponent = 4;
                while self.take(1) == 1 {
                    exponent += 1;
                }
                assert!(exponent <= 12, "an escape of 2^{exponent}");
                self.take(exponent);
            }
        }
    }
}

struct Window {
    sequence: u32,
    groups: Vec<usize>,
    bands: usize,
}

/// Reads each unit, and drains a decoder's buffer that fills at the bitrate.
fn read(codes: &Codes, channels: u8, bitrate: u32, frames: impl Iterator<Item = Vec<f32>>) {
    let mut encoder = Encoder::new(Config { channels, bitrate, largest_access_unit: None })
        .expect("a valid configuration");
    let buffer = (BUFFER_BITS * usize::from(channels)) as f64;
    let (mut fullness, mut before) = (buffer, 0);
    for (number, samples) in frames.enumerate() {
        let unit = encoder.encode_f32(&samples).expect("valid samples");
        let mut reader = Reader { bytes: unit, position: 0, codes };
        let sequence = reader.block(channels);
        assert!(may_follow(before, sequence), "frame {number}: {sequence} after {before}");
        before = sequence;
        let bits = (unit.len() * 8) as f64;
        assert!(bits <= fullness, "frame {number}: {bits} bits of {fullness}");
        fullness = (fullness - bits + f64::from(bitrate) * 1_024.0 / 48_000.0).min(buffer);
    }
}

#[test]
fn every_access_unit_is_what_the_standard_writes() {
    let codes = Codes::new();
    for channels in [1, 2] {
        for bitrate in [16_000, 32_000, 64_000, 96_000, 128_000, 192_000, 320_000] {
            let mut state: u32 = bitrate;
            let mut noise = move || {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                (state >> 8) as f32 / 8_388_608.0 - 1.0
            };
            let frames = (0..90).map(|frame| {
                let kind = frame / 3 % 9;
                (0..FRAME_SAMPLES * usize::from(channels))
                    .map(|index| {
                        let time = (frame * FRAME_SAMPLES + index / usize::from(channels)) as f32;
                        match kind {
                            0 => noise(),
                            1 => 0.0,
                            2 => noise().signum(),
                            3 => f32::NAN,
                            4 if index % 500 == 0 => 1.0,
                            5 => noise() * 1e-4,
                            6 => (time * 0.1).sin() * 1e9,
                            7 => (time * 0.02).sin() * 0.5 + 0.01 * noise(),
                            8 if index % usize::from(channels) == 0 => (time * 0.3).sin() * 0.9,
                            _ => 0.0,
                        }
                    })
                    .collect()
            });
            read(&codes, channels, bitrate, frames);
        }
    }
}
