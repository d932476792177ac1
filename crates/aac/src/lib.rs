//! An AAC-LC encoder (ISO/IEC 14496-3) for live audio: 48 kHz, one or two channels, frames of 1024 samples. It opens
//! nothing, knows no clock and no thread, and allocates nothing after [`Encoder::new`].
#![forbid(unsafe_code)]

mod bands;
mod bits;
mod blocks;
mod channel;
mod encoder;
mod filterbank;
pub mod fuzz;
mod huffman;
#[cfg(test)]
mod instruction_tests;
mod log;
mod psychoacoustics;
mod quantiser;
mod rate;
#[cfg(test)]
mod reader_tests;
mod sections;
mod stereo;
mod syntax;
mod tns;

pub use encoder::{Config, Encoder, EncoderError};

/// Samples of each channel in a frame.
pub const FRAME_SAMPLES: usize = bands::LINES;
/// The only sample rate, in hertz.
pub const SAMPLE_RATE: u32 = 48_000;
/// Samples by which a decoder's output lags behind the input: the overlap of the transform and the look-ahead.
pub const DELAY_SAMPLES: usize = FRAME_SAMPLES + blocks::LOOK_AHEAD;
