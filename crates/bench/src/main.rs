//! The load generator and frame-exact sink behind `npm run bench`. Never shipped.
//!
//! `headgate-bench whip LISTEN TARGET STREAM_URL NAME,NAME,… SECONDS opus|stereo|mono gcm|cm`
//! `headgate-bench impaired LISTEN TARGET STREAM_URL NAME SECONDS CONDITIONS SEED APART_MS`
//! `headgate-bench proxy LISTEN TARGET CONDITIONS SEED`
//! and those of `commands`: `honest`, `relay`, `attack`, `starts`, `first-frames`, `codecs`; and of `endure`: `churn`,
//! `half-open`, `trials`.
//!
//! `impaired`, `attack`, `starts` and those of `endure` print one JSON line; `proxy` prints its address and runs until
//! it is ended.
//! CONDITIONS are those of `impairment`, for both directions of the network. The others print `measuring`, `measured`
//! and then one JSON line; before that `whip` prints `connected` and `honest` prints `ready`.
#![deny(unsafe_code)] // except for one socket option of the relay

mod aac_start;
mod attack;
mod chromium;
mod chunks;
mod clip;
mod codecs;
mod commands;
mod connection;
mod dice;
mod endure;
mod first_frames;
mod histogram;
mod honest;
mod impaired;
mod impairment;
mod in_step;
mod ledger;
mod load;
mod pace;
mod players;
mod relay;
mod rtmp_alone;
mod run_queue;
mod sink;
mod spread;
mod starts;
mod udp_proxy;
mod whip;
mod whip_aac;
mod whip_alone;
mod whip_http;
mod whip_load;
mod whip_publisher;

use std::io;
use std::process::ExitCode;
use std::time::Duration;

use headgate_peer::SrtpChoice;

use crate::histogram::Percentiles;
use crate::impairment::Conditions;
use crate::ledger::Balance;
use crate::pace::Lateness;
use crate::udp_proxy::UdpProxy;
use crate::whip_load::Sound;

const USAGE: &str =
    "headgate-bench whip LISTEN TARGET STREAM_URL NAME,NAME,… SECONDS opus|stereo|mono gcm|cm
headgate-bench impaired LISTEN TARGET STREAM_URL NAME SECONDS CONDITIONS SEED APART_MS
headgate-bench proxy LISTEN TARGET CONDITIONS SEED
CONDITIONS: loss=5,delay=50,jitter=10,reorder=2,duplicate=1,rate=3000,blackout=2000-2500
LISTEN, TARGET and HTTP are ADDRESS:PORT: where the server pushes to, the server, and its HTTP";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let outcome = match words.as_slice() {
        ["whip", listen, target, url, names, seconds, sound, srtp] => {
            run_whip([listen, target, url, names, seconds], sound, srtp)
        }
        ["impaired", listen, target, url, name, seconds, conditions, seed, apart] => {
            run_impaired([listen, target, url, name], seconds, conditions, [seed, apart])
        }
        ["proxy", listen, target, conditions, seed] => run_proxy(listen, target, conditions, seed),
        words => commands::run(words).or_else(|| endure::run(words)),
    };
    match outcome {
        None => {
            eprintln!("{USAGE}\n{}\n{}", commands::USAGE, endure::USAGE);
            ExitCode::from(2)
        }
        Some(Ok(json)) => {
            println!("{json}");
            ExitCode::SUCCESS
        }
        Some(Err(error)) => {
            eprintln!("headgate-bench: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run_whip(words: [&str; 5], sound: &str, srtp: &str) -> Option<io::Result<String>> {
    let [listen, target, stream_url, names, seconds] = words;
    let run = whip::Run {
        listen: listen.parse().ok()?,
        target: target.parse().ok()?,
        stream_url: stream_url.to_owned(),
        names: split(names),
        seconds: seconds.parse().ok()?,
        sound: match sound {
            "opus" => Sound::Opus,
            "stereo" => Sound::AacStereo,
            "mono" => Sound::AacMono,
            _ => return None,
        },
        srtp: match srtp {
            "gcm" => SrtpChoice::Gcm,
            "cm" => SrtpChoice::Cm,
            _ => return None,
        },
    };
    let connected = || println!("connected");
    Some(whip::run(&run, connected, report).map(|outcome| {
        let whip::Outcome { balance, late, counts, aac_delay } = outcome;
        let more = delay_json("aac", aac_delay) + &counts.to_json();
        json(&balance, late, &more)
    }))
}

fn run_impaired(
    words: [&str; 4],
    seconds: &str,
    conditions: &str,
    [seed, apart]: [&str; 2],
) -> Option<io::Result<String>> {
    let [listen, target, stream_url, name] = words;
    let run = impaired::Run {
        listen: listen.parse().ok()?,
        target: target.parse().ok()?,
        stream_url: stream_url.to_owned(),
        name: name.to_owned(),
        seconds: seconds.parse().ok()?,
        conditions: Conditions::parse(conditions)?,
        seed: seed.parse().ok()?,
        apart: Duration::from_millis(apart.parse().ok()?),
    };
    Some(impaired::run(&run))
}

fn run_proxy(
    listen: &str,
    target: &str,
    conditions: &str,
    seed: &str,
) -> Option<io::Result<String>> {
    let (listen, target) = (listen.parse().ok()?, target.parse().ok()?);
    let (conditions, seed) = (Conditions::parse(conditions)?, seed.parse().ok()?);
    Some(UdpProxy::start(listen, target, conditions, seed).map(|proxy| {
        println!("{{\"listening\":\"{}\"}}", proxy.address);
        format!("{{\"datagrams_lost\":{}}}", proxy.run())
    }))
}

fn split(names: &str) -> Vec<String> {
    names.split(',').map(str::to_owned).collect()
}

fn report(begins: bool) {
    println!("{}", if begins { "measuring" } else { "measured" });
}

/// One line; `more` is appended to the account.
fn json(balance: &Balance, late: Lateness, more: &str) -> String {
    let Balance { sent, received, misplaced, lost, video_delay, audio_delay } = balance;
    let unfound = sent.saturating_sub(*received);
    format!(
        "{{\"sent\":{sent},\"received\":{received},\"lost\":{unfound},\"misplaced\":{misplaced}{}{},\"generator_late_ms\":{:.2},\"generator_late_p99_ms\":{:.2},\"generator_starved\":{:.4}{more},\"lost_units\":{lost:?}}}",
        delay_json("video", *video_delay),
        delay_json("audio", *audio_delay),
        ms(late.units.most_us),
        ms(late.units.p99_us),
        late.starved,
    )
}

/// Members of a JSON object, each preceded by a comma.
fn delay_json(what: &str, delay: Percentiles) -> String {
    let Percentiles { p50_us, p99_us, most_us } = delay;
    let (p50, p99, most) = (ms(p50_us), ms(p99_us), ms(most_us));
    format!(
        ",\"{what}_delay_p50_ms\":{p50:.2},\"{what}_delay_p99_ms\":{p99:.2},\"{what}_delay_max_ms\":{most:.2}"
    )
}

fn ms(micros: u64) -> f64 {
    Duration::from_micros(micros).as_secs_f64() * 1e3
}
