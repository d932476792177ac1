//! The encoders under measurement, and the decoder of what they make.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use headgate_aac::{Config, DELAY_SAMPLES, Encoder};

use crate::{Failure, Usage, processor_seconds};

/// A sequence of access units as ADTS, the delay in samples, and the seconds on the processor.
pub(crate) struct Encoded {
    pub(crate) file: Vec<u8>,
    pub(crate) delay: usize,
    pub(crate) bytes: usize,
    pub(crate) seconds: f64,
}

/// Encodes by our encoder.
pub(crate) fn ours(samples: &[i16], channels: usize, bitrate: u32) -> Result<Encoded, Failure> {
    let mut units = Vec::with_capacity(samples.len() / 1024 + 4);
    let silence = vec![0; 1024 * channels];
    let frames = samples.chunks_exact(1024 * channels).chain(std::iter::repeat_n(&silence[..], 3));
    let config = Config { channels: channels as u8, bitrate, largest_access_unit: None };
    let mut encoder = Encoder::new(config)?;
    let before = processor_seconds(Usage::Thread);
    for frame in frames {
        units.push(encoder.encode(frame)?.to_vec());
    }
    let seconds = processor_seconds(Usage::Thread) - before;
    let bytes = units.iter().map(Vec::len).sum();
    let file = units.iter().flat_map(|unit| adts(unit, channels)).collect();
    Ok(Encoded { file, delay: DELAY_SAMPLES, bytes, seconds })
}

/// Encodes by a command line, whose file says which delay it has.
pub(crate) fn reference(
    command: &str,
    samples: &[i16],
    channels: usize,
    bitrate: u32,
) -> Result<Encoded, Failure> {
    let folder = Folder::new()?;
    let [input, output] = ["in.wav", "out"].map(|name| folder.0.join(name));
    fs::write(&input, wav(samples, channels))?;
    let command = command
        .replace("{in}", &input.to_string_lossy())
        .replace("{out}", &output.to_string_lossy())
        .replace("{bitrate}", &bitrate.to_string());
    let before = processor_seconds(Usage::Children);
    let status = Command::new("sh").args(["-c", &command]).stdin(Stdio::null()).status()?;
    let seconds = processor_seconds(Usage::Children) - before;
    let made = fs::read_dir(&folder.0)?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .find(|path| path.file_stem().is_some_and(|name| name == "out"));
    let (true, Some(made)) = (status.success(), made) else {
        return Err(format!("{command}: {status}, or no file").into());
    };
    let file = fs::read(made)?;
    Ok(Encoded { bytes: file.len(), file, delay: 0, seconds })
}

/// Decodes by ffmpeg, which must have nothing to complain about.
pub(crate) fn decode(encoded: &Encoded, channels: usize) -> Result<Vec<i16>, Failure> {
    let folder = Folder::new()?;
    let path = folder.0.join("encoded");
    fs::write(&path, &encoded.file)?;
    let output = Command::new("ffmpeg")
        .args(["-v", "warning", "-i"])
        .arg(&path)
        .args(["-f", "s16le", "-ar", "48000", "-ac", &channels.to_string(), "pipe:1"])
        .stdin(Stdio::null())
        .output()?;
    for complaint in String::from_utf8_lossy(&output.stderr).lines() {
        // A raw stream has no duration.
        if !complaint.contains("Estimating duration") {
            eprintln!("{complaint}");
        }
    }
    Ok(output.stdout.chunks_exact(2).map(|pair| i16::from_le_bytes([pair[0], pair[1]])).collect())
}

/// An access unit with its header: AAC-LC, 48 kHz, no checksum.
fn adts(unit: &[u8], channels: usize) -> Vec<u8> {
    let length = unit.len() + 7;
    let sizes = [(channels as u8) << 6 | (length >> 11) as u8, (length >> 3) as u8];
    let last = [(length << 5) as u8 | 0x1f, 0xfc];
    [&[0xff, 0xf1, 0x4c], &sizes[..], &last, unit].concat()
}

/// 16 bits, 48 kHz.
fn wav(samples: &[i16], channels: usize) -> Vec<u8> {
    let (size, channels) = (2 * samples.len() as u32, channels as u16);
    let mut wav = Vec::with_capacity(44 + size as usize);
    for part in [&b"RIFF"[..], &(size + 36).to_le_bytes(), b"WAVEfmt ", &16_u32.to_le_bytes()] {
        wav.extend(part);
    }
    wav.extend([1, channels].iter().flat_map(|value| value.to_le_bytes()));
    wav.extend([48_000, 96_000 * u32::from(channels)].iter().flat_map(|value| value.to_le_bytes()));
    wav.extend([2 * channels, 16].iter().flat_map(|value| value.to_le_bytes()));
    wav.extend(b"data");
    wav.extend(size.to_le_bytes());
    wav.extend(samples.iter().flat_map(|sample| sample.to_le_bytes()));
    wav
}

/// A folder of this process and thread alone, until it is dropped.
struct Folder(PathBuf);

impl Folder {
    fn new() -> io::Result<Self> {
        let thread = format!("{:?}", std::thread::current().id()).replace(['(', ')'], "-");
        let name = format!("headgate-quality-{}-{thread}", std::process::id());
        let folder = Path::new(&std::env::temp_dir()).join(name);
        fs::create_dir_all(&folder)?;
        Ok(Self(folder))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What is left is in the system's folder for temporary files.
        let _ = fs::remove_dir_all(&self.0);
    }
}
