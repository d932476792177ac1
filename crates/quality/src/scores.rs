//! MOS-LQO by ViSQOL, full band, of every clip.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use visqol_rs::AudioSignal;
use visqol_rs::constants::{DEFAULT_WINDOW_SIZE, NUM_BANDS_AUDIO};
use visqol_rs::variant::Variant;
use visqol_rs::visqol_manager::VisqolManager;

use crate::clips::{Clip, RATE};
use crate::encoders::{self, Encoded};
use crate::{Case, Failure};

/// Scores of libxaac 0.1.0, by clip, channels and bitrate; measured by the last commit that had it.
const FORMER: &str = include_str!("../libxaac.scores");

/// Of a clip: our score and bitrate in kbit/s, the former encoder's score, and the reference's.
struct Row {
    ours: f64,
    rate: f64,
    former: Option<f64>,
    reference: Option<f64>,
}

/// Prints the scores of all clips, two at a time.
pub(crate) fn print(clips: &[Clip], model: &str, case: &Case<'_>) -> Result<(), Failure> {
    let next = AtomicUsize::new(0);
    let rows = Mutex::new(BTreeMap::new());
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let Some(clip) = clips.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let row = row(clip, model, case);
                    rows.lock().unwrap_or_else(|error| error.into_inner()).insert(&clip.name, row);
                }
            });
        }
    });
    println!("{case}      ours  libxaac     diff      ref  kbit/s");
    let (mut sums, mut differences) = (Vec::new(), Vec::new());
    for (name, row) in rows.into_inner().unwrap_or_else(|error| error.into_inner()) {
        let Row { ours, rate, former, reference } =
            row.map_err(|error| format!("{name}: {error}"))?;
        let shown = |value: Option<f64>| value.map_or("-".into(), |value| format!("{value:.3}"));
        let difference = former.map(|former| ours - former);
        let [former, signed, reference] = [former, difference, reference].map(shown);
        println!("  {name:24} {ours:7.3} {former:>8} {signed:>8} {reference:>8} {rate:7.1}");
        sums.push(ours);
        differences.extend(difference);
    }
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    println!("  mean {:.4}", mean(&sums));
    if !differences.is_empty() {
        let least = differences.iter().copied().fold(f64::INFINITY, f64::min);
        println!("  mean difference {:+.4}, least {least:+.4}", mean(&differences));
    }
    Ok(())
}

fn row(clip: &Clip, model: &str, case: &Case<'_>) -> Result<Row, Failure> {
    let Case { channels, bitrate, reference } = *case;
    let samples = clip.mixed(channels);
    let encoded = encoders::ours(&samples, channels, bitrate)?;
    let seconds = samples.len() as f64 / (channels * RATE) as f64;
    let rate = encoded.bytes as f64 * 8.0 / seconds / 1_000.0;
    let score = |encoded: &Encoded| score_of(encoded, &samples, channels, model);
    let reference = reference
        .map(|command| score(&encoders::reference(command, &samples, channels, bitrate)?))
        .transpose()?;
    let key = format!("{}:{channels}:{bitrate} ", clip.name);
    let former = FORMER.lines().find_map(|line| line.strip_prefix(&key)?.parse().ok());
    Ok(Row { ours: score(&encoded)?, rate, former, reference })
}

fn score_of(
    encoded: &Encoded,
    samples: &[i16],
    channels: usize,
    model: &str,
) -> Result<f64, Failure> {
    let decoded = encoders::decode(encoded, channels)?;
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
    let variant = Variant::Fullband { model_path: model.into() };
    let mut manager = VisqolManager::<NUM_BANDS_AUDIO>::new(variant, DEFAULT_WINDOW_SIZE);
    let mut reference = AudioSignal::new(&reference, RATE as u32);
    let mut degraded = AudioSignal::new(degraded, RATE as u32);
    let result = manager
        .compute_results(&mut reference, &mut degraded)
        .map_err(|error| error.to_string())?;
    Ok(result.moslqo)
}
