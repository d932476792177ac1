//! Runs a fuzz body on inputs that are the same in every run: the corpus, mutations of it, and noise. It is a bounded
//! share of what `npm run fuzz` does endlessly. The tests of the crates with fuzz bodies include this file.

use std::fs;
use std::panic::catch_unwind;
use std::path::Path;

/// Inputs of each kind; all together take a second or two in an unoptimised build.
const ROUNDS: usize = 20_000;
/// Noise is rejected early, so longer noise finds nothing.
const NOISE_BYTES: usize = 400;
/// A mutation may double an input, repeatedly.
const INPUT_LIMIT_BYTES: usize = 1 << 16;
/// Boundary values: of a length, of a chunk's format, of AMF0's markers.
const EDGES: [u8; 12] = [0, 1, 2, 3, 8, 9, 10, 16, 0x7f, 0x80, 0xc3, 0xff];

/// Random numbers with the same sequence in every run (xorshift).
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).expect("31 bits") % end.max(1)
    }

    fn byte(&mut self) -> u8 {
        self.below(256) as u8
    }

    /// A random part of `bytes`.
    fn part<'a>(&mut self, bytes: &'a [u8]) -> &'a [u8] {
        let start = self.below(bytes.len());
        let end = start + self.below((bytes.len() - start).min(300) + 1);
        &bytes[start..end]
    }

    fn noise(&mut self) -> Vec<u8> {
        let length = self.below(NOISE_BYTES);
        (0..length).map(|_| self.byte()).collect()
    }

    /// Changes `input` in one of the ways a hostile or broken peer would.
    fn spoil(&mut self, input: &mut Vec<u8>, other: &[u8]) {
        let at = self.below(input.len());
        let bit = 1 << self.below(8);
        match (self.below(7), input.get_mut(at)) {
            (0, Some(byte)) => *byte ^= bit,
            (1, Some(byte)) => *byte = EDGES[self.below(EDGES.len())],
            (2, Some(byte)) => *byte = byte.wrapping_add(self.byte()),
            (3, _) => input.truncate(at),
            (4, _) => drop(input.splice(at..at, self.part(other).to_vec())),
            (5, _) => {
                let end = (at + self.below(30)).min(input.len());
                input.drain(at..end);
            }
            (_, _) => {
                let again = self.part(input).to_vec();
                input.splice(at..at, again);
            }
        }
        input.truncate(INPUT_LIMIT_BYTES);
    }
}

/// The corpus of a body: complete sessions, some inputs found by fuzzing, and every finding.
fn corpus(name: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus").join(name);
    let entries = fs::read_dir(folder).expect("the corpus is in git");
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("readable").path()).collect();
    paths.sort();
    assert!(!paths.is_empty(), "a body without a corpus is not tested");
    paths.into_iter().map(|path| fs::read(path).expect("readable")).collect()
}

fn run(body: fn(&[u8]), input: &[u8]) {
    assert!(catch_unwind(|| body(input)).is_ok(), "panicked on {input:02x?}");
}

/// Runs `body` on the corpus `name` and on mutations of it.
pub(crate) fn run_all(body: fn(&[u8]), name: &str) {
    let (corpus, mut random) = (corpus(name), Random(0x9e37_79b9_7f4a_7c15));
    for input in &corpus {
        run(body, input);
        // A connection may end anywhere.
        (0..input.len().min(600)).for_each(|end| run(body, &input[..end]));
    }
    for _ in 0..ROUNDS {
        let mut input = corpus[random.below(corpus.len())].clone();
        for _ in 0..=random.below(6) {
            let other = random.below(corpus.len());
            random.spoil(&mut input, &corpus[other]);
        }
        run(body, &input);
        run(body, &random.noise());
    }
}
