//! `headgate-quality FOLDER MODEL [--rates 128000,64000m] [--clips NAME,..] [--cost]`: cost and MOS-LQO of our AAC
//! encoder, beside the recorded scores of libxaac, the former encoder. FOLDER has the clips as raw samples; a rate that
//! ends in `m` is mono.

mod clips;

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use clips::{Clip, RATE};
use headgate_aac::{Config, DELAY_SAMPLES, Encoder};
use visqol_rs::AudioSignal;
use visqol_rs::constants::{DEFAULT_WINDOW_SIZE, NUM_BANDS_AUDIO};
use visqol_rs::variant::Variant;
use visqol_rs::visqol_manager::VisqolManager;

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Scores of libxaac 0.1.0, by clip, channels and bitrate; measured while it was the service's encoder.
const FORMER: &str = include_str!("../libxaac.scores");

/// Access units, the delay in samples, and the seconds on the processor.
struct Encoded {
    units: Vec<Vec<u8>>,
    delay: usize,
    seconds: f64,
}

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let option = |name: &str| {
        let at = arguments.iter().position(|argument| argument == name)?;
        arguments.get(at + 1).cloned()
    };
    let [folder, model] =
        [0, 1].map(|index| PathBuf::from(arguments.get(index).cloned().unwrap_or_default()));
    let mut clips = clips::all(&folder)?;
    if let Some(names) = option("--clips") {
        clips.retain(|clip| names.split(',').any(|name| clip.name.starts_with(name)));
    }
    let rates = option("--rates").unwrap_or_else(|| "128000,96000,64000,64000m".into());
    for rate in rates.split(',') {
        let channels = if rate.ends_with('m') { 1 } else { 2 };
        let bitrate: u32 = rate.trim_end_matches('m').parse()?;
        if arguments.iter().any(|argument| argument == "--cost") {
            cost(&clips, channels, bitrate)?;
        } else {
            compare(&clips, &model, channels, bitrate)?;
        }
    }
    Ok(())
}

/// Encodes all clips in turn, five times, and prints the least cost.
fn cost(clips: &[Clip], channels: usize, bitrate: u32) -> Result<(), Failure> {
    let mut least = f64::INFINITY;
    for _ in 0..5 {
        let (mut seconds, mut audio) = (0.0, 0.0);
        for clip in clips {
            let samples = mixed(clip, channels);
            seconds += encode(&samples, channels, bitrate)?.seconds;
            audio += samples.len() as f64 / (channels * RATE) as f64;
        }
        least = least.min(seconds * 1_000.0 / audio);
    }
    println!("{bitrate} bit/s, {channels} channels: {least:.3} ms per stream-second");
    Ok(())
}

fn compare(clips: &[Clip], model: &Path, channels: usize, bitrate: u32) -> Result<(), Failure> {
    let known = former_scores();
    let next = AtomicUsize::new(0);
    let rows = Mutex::new(BTreeMap::new());
    let failures = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let Some(clip) = clips.get(next.fetch_add(1, Ordering::Relaxed)) {
                    match row(clip, model, &known, channels, bitrate) {
                        Ok(row) => {
                            if let Ok(mut rows) = rows.lock() {
                                rows.insert(clip.name.clone(), row);
                            }
                        }
                        Err(failure) => {
                            if let Ok(mut failures) = failures.lock() {
                                failures.push(format!("{}: {failure}", clip.name));
                            }
                        }
                    }
                }
            });
        }
    });
    println!("{bitrate} bit/s, {channels} channels     ours libxaac   diff   kbit/s");
    let (mut ours_sum, mut rows_count) = (0.0, 0.0);
    let (mut sum, mut count, mut least) = (0.0, 0.0, f64::INFINITY);
    for (name, (ours, theirs, rate)) in rows.into_inner().map_err(|_| "a thread panicked")? {
        (ours_sum, rows_count) = (ours_sum + ours, rows_count + 1.0);
        let Some(theirs) = theirs else {
            println!("  {name:24} {ours:7.3}       -       - {rate:7.1}");
            continue;
        };
        println!("  {name:24} {ours:7.3} {theirs:7.3} {:+7.3} {rate:7.1}", ours - theirs);
        (sum, count, least) = (sum + ours - theirs, count + 1.0, least.min(ours - theirs));
    }
    println!("  mean {:.4}", ours_sum / rows_count);
    if count > 0.0 {
        println!("  mean difference {:+.4}, least {least:+.4}", sum / count);
    }
    for failure in failures.into_inner().map_err(|_| "a thread panicked")? {
        println!("  {failure}");
    }
    Ok(())
}

/// Our score, the former encoder's if it is on record, and our bitrate in kbit/s.
type Row = (f64, Option<f64>, f64);

fn row(
    clip: &Clip,
    model: &Path,
    known: &BTreeMap<String, f64>,
    channels: usize,
    bitrate: u32,
) -> Result<Row, Failure> {
    let samples = mixed(clip, channels);
    let ours = encode(&samples, channels, bitrate)?;
    let seconds = samples.len() as f64 / (channels * RATE) as f64;
    let rate = ours.units.iter().map(Vec::len).sum::<usize>() as f64 * 8.0 / seconds / 1_000.0;
    let score = score_of(&ours, &samples, channels, model)?;
    let former = known.get(&format!("{}:{channels}:{bitrate}", clip.name)).copied();
    Ok((score, former, rate))
}

fn former_scores() -> BTreeMap<String, f64> {
    let score = |line: &str| {
        let (name, score) = line.split_once(' ')?;
        Some((name.to_owned(), score.parse().ok()?))
    };
    FORMER.lines().filter_map(score).collect()
}

fn mixed(clip: &Clip, channels: usize) -> Vec<i16> {
    if channels == 2 {
        return clip.samples.clone();
    }
    clip.samples
        .chunks_exact(2)
        .map(|pair| ((i32::from(pair[0]) + i32::from(pair[1])) / 2) as i16)
        .collect()
}

fn encode(samples: &[i16], channels: usize, bitrate: u32) -> Result<Encoded, Failure> {
    let mut units = Vec::with_capacity(samples.len() / 1024 + 4);
    let silence = vec![0; 1024 * channels];
    let frames = samples.chunks_exact(1024 * channels).chain(std::iter::repeat_n(&silence[..], 3));
    let config = Config { channels: channels as u8, bitrate, largest_access_unit: None };
    let mut encoder = Encoder::new(config)?;
    let before = processor_seconds();
    for frame in frames {
        units.push(encoder.encode(frame)?.to_vec());
    }
    Ok(Encoded { units, delay: DELAY_SAMPLES, seconds: processor_seconds() - before })
}

/// Time of this thread on the processor.
fn processor_seconds() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: writes the given structure.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

fn score_of(
    encoded: &Encoded,
    samples: &[i16],
    channels: usize,
    model: &Path,
) -> Result<f64, Failure> {
    let decoded = decode(&encoded.units, channels)?;
    let skip = (encoded.delay * channels).min(decoded.len());
    let mono = |samples: &[i16]| -> Vec<f64> {
        samples
            .chunks_exact(channels)
            .map(|frame| {
                frame.iter().map(|sample| f64::from(*sample) / 32_768.0).sum::<f64>()
                    / channels as f64
            })
            .collect()
    };
    let (reference, degraded) = (mono(samples), mono(&decoded[skip..]));
    let degraded = &degraded[..degraded.len().min(reference.len())];
    let model = model.to_string_lossy().into_owned();
    let variant = Variant::Fullband { model_path: model };
    let mut manager = VisqolManager::<NUM_BANDS_AUDIO>::new(variant, DEFAULT_WINDOW_SIZE);
    let mut reference = AudioSignal::new(&reference, RATE as u32);
    let mut degraded = AudioSignal::new(degraded, RATE as u32);
    let result = manager
        .compute_results(&mut reference, &mut degraded)
        .map_err(|error| error.to_string())?;
    Ok(result.moslqo)
}

/// Decodes by ffmpeg, which must have nothing to complain about.
fn decode(units: &[Vec<u8>], channels: usize) -> Result<Vec<i16>, Failure> {
    let mut stream = Vec::new();
    for unit in units {
        let length = unit.len() + 7;
        stream.extend([
            0xff,
            0xf1,
            0x4c,
            (channels as u8) << 6 | (length >> 11) as u8,
            (length >> 3) as u8,
            (length << 5) as u8 | 0x1f,
            0xfc,
        ]);
        stream.extend(unit);
    }
    let mut child = Command::new("ffmpeg")
        .args(["-v", "warning", "-f", "aac", "-i", "pipe:0", "-f", "s16le", "pipe:1"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let mut input = child.stdin.take().ok_or("no pipe")?;
    let writer = std::thread::spawn(move || -> io::Result<()> { input.write_all(&stream) });
    let output = child.wait_with_output()?;
    writer.join().map_err(|_| "a thread panicked")??;
    let complaints = String::from_utf8_lossy(&output.stderr);
    if !complaints.trim().is_empty() {
        eprintln!("ffmpeg: {}", complaints.lines().take(3).collect::<Vec<_>>().join(" | "));
    }
    Ok(output.stdout.chunks_exact(2).map(|pair| i16::from_le_bytes([pair[0], pair[1]])).collect())
}
