//! `headgate-quality FOLDER [--rates 128000,64000m] [--clips NAME,..] [--model FILE] [--ref COMMAND]`: what our AAC
//! encoder costs and, by ViSQOL's model, its MOS-LQO beside the recorded scores of libxaac, the former encoder, and beside
//! another encoder's. FOLDER has clips as raw samples; a rate that ends in `m` is mono. `bench/aac.mjs` makes the clips
//! and says what COMMAND is.

mod clips;
mod encoders;
mod scores;

use std::fmt;
use std::path::Path;

use clips::{Clip, RATE};

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// What is measured.
struct Case<'a> {
    channels: usize,
    bitrate: u32,
    /// A command line beside it.
    reference: Option<&'a str>,
}

impl fmt::Display for Case<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sound = if self.channels == 1 { "mono" } else { "stereo" };
        write!(formatter, "{} bit/s, {sound}", self.bitrate)
    }
}

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let option = |name: &str| {
        let at = arguments.iter().position(|argument| argument == name)?;
        arguments.get(at + 1).map(String::as_str)
    };
    let folder = arguments.first().ok_or("FOLDER is missing")?;
    let mut clips = clips::all(Path::new(folder))?;
    if let Some(names) = option("--clips") {
        clips.retain(|clip| names.split(',').any(|name| clip.name.starts_with(name)));
    }
    for rate in option("--rates").unwrap_or("128000,96000,64000,64000m").split(',') {
        let bitrate = rate.trim_end_matches('m').parse()?;
        let channels = if rate.ends_with('m') { 1 } else { 2 };
        let case = Case { channels, bitrate, reference: option("--ref") };
        print_cost(&clips, &case)?;
        if let Some(model) = option("--model") {
            scores::print(&clips, model, &case)?;
        }
    }
    Ok(())
}

/// Encodes all clips in one piece, five times, and prints the least cost.
fn print_cost(clips: &[Clip], case: &Case<'_>) -> Result<(), Failure> {
    let Case { channels, bitrate, reference } = *case;
    let samples: Vec<i16> = clips.iter().flat_map(|clip| clip.mixed(channels)).collect();
    let audio = samples.len() as f64 / (channels * RATE) as f64;
    let mut least = [f64::INFINITY; 2];
    for _ in 0..5 {
        let ours = encoders::ours(&samples, channels, bitrate)?.seconds;
        least[0] = least[0].min(ours * 1_000.0 / audio);
        if let Some(command) = reference {
            let theirs = encoders::reference(command, &samples, channels, bitrate)?.seconds;
            least[1] = least[1].min(theirs * 1_000.0 / audio);
        }
    }
    print!("{case}: {:.3} ms per stream-second", least[0]);
    if reference.is_some() {
        print!(", the reference {:.3} ({:.3} ×)", least[1], least[0] / least[1]);
    }
    println!();
    Ok(())
}

/// Whose time on the processor.
#[derive(Clone, Copy)]
enum Usage {
    Thread,
    /// Of the programs that have ended.
    Children,
}

/// Time on the processor, user and system.
fn processor_seconds(whose: Usage) -> f64 {
    let whose = match whose {
        Usage::Thread => libc::RUSAGE_THREAD,
        Usage::Children => libc::RUSAGE_CHILDREN,
    };
    // SAFETY: a structure of numbers, which the call fills.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(whose, &raw mut usage);
        usage
    };
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 * 1e-6;
    seconds(usage.ru_utime) + seconds(usage.ru_stime)
}
