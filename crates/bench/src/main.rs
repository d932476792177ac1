//! The load generator and frame-exact sink behind `npm run bench`. Never shipped.
//!
//! `headgate-bench rtmp LISTEN TARGET NAME,NAME,… SECONDS`
//! `headgate-bench whip LISTEN TARGET STREAM_URL NAME,NAME,… SECONDS opus|stereo|mono gcm|cm`
//! `headgate-bench impaired LISTEN TARGET STREAM_URL NAME SECONDS CONDITIONS SEED APART_MS`
//! `headgate-bench proxy LISTEN TARGET CONDITIONS SEED`
//!
//! `impaired` prints one JSON line; `proxy` prints where it listens and runs until it is ended. CONDITIONS are as
//! `impairment` has them, of a network in both directions. Of the others each prints `measuring`, `measured` and then one JSON line; `whip` prints `connected` before them.
#![forbid(unsafe_code)]

mod connection;
mod impaired;
mod impairment;
mod in_step;
mod ledger;
mod load;
mod pace;
mod rtmp;
mod sink;
mod udp_proxy;
mod whip;
mod whip_aac;
mod whip_http;
mod whip_load;
mod whip_publisher;

use std::io;
use std::process::ExitCode;
use std::time::Duration;

use headgate_peer::SrtpChoice;

use crate::impairment::Conditions;
use crate::ledger::{Balance, Percentiles};
use crate::pace::Lateness;
use crate::udp_proxy::UdpProxy;
use crate::whip_load::Sound;

const USAGE: &str = "headgate-bench rtmp LISTEN TARGET NAME,NAME,… SECONDS
headgate-bench whip LISTEN TARGET STREAM_URL NAME,NAME,… SECONDS opus|stereo|mono gcm|cm
headgate-bench impaired LISTEN TARGET STREAM_URL NAME SECONDS CONDITIONS SEED APART_MS
headgate-bench proxy LISTEN TARGET CONDITIONS SEED
CONDITIONS: loss=5,delay=50,jitter=10,reorder=2,duplicate=1,rate=3000,blackout=2000-2500
LISTEN and TARGET are ADDRESS:PORT: where the server pushes to, and the server";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let outcome = match words.as_slice() {
        ["rtmp", listen, target, names, seconds] => run_rtmp(listen, target, names, seconds),
        ["whip", listen, target, url, names, seconds, sound, srtp] => {
            run_whip([listen, target, url, names, seconds], sound, srtp)
        }
        ["impaired", listen, target, url, name, seconds, conditions, seed, apart] => {
            run_impaired([listen, target, url, name], seconds, conditions, [seed, apart])
        }
        ["proxy", listen, target, conditions, seed] => run_proxy(listen, target, conditions, seed),
        _ => None,
    };
    match outcome {
        None => {
            eprintln!("{USAGE}");
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

fn run_rtmp(listen: &str, target: &str, names: &str, seconds: &str) -> Option<io::Result<String>> {
    let run = rtmp::Run {
        listen: listen.parse().ok()?,
        target: target.parse().ok()?,
        names: split(names),
        seconds: seconds.parse().ok()?,
    };
    Some(rtmp::run(&run, report).map(|(balance, late)| json(&balance, late, "")))
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

/// One line; `more` is put behind the account.
fn json(balance: &Balance, late: Lateness, more: &str) -> String {
    let Balance { sent, received, misplaced, lost, video_delay, audio_delay } = balance;
    let unfound = sent.saturating_sub(*received);
    format!(
        "{{\"sent\":{sent},\"received\":{received},\"lost\":{unfound},\"misplaced\":{misplaced}{}{},\"generator_late_ms\":{:.2},\"generator_late_p99_ms\":{:.2}{more},\"lost_units\":{lost:?}}}",
        delay_json("video", *video_delay),
        delay_json("audio", *audio_delay),
        late.most.as_secs_f64() * 1e3,
        late.p99.as_secs_f64() * 1e3,
    )
}

/// Two members of a JSON object, each with its comma before it.
fn delay_json(what: &str, delay: Percentiles) -> String {
    let ms = |micros| f64::from(micros) / 1e3;
    let (p50, p99) = (ms(delay.p50_us), ms(delay.p99_us));
    format!(",\"{what}_delay_p50_ms\":{p50:.2},\"{what}_delay_p99_ms\":{p99:.2}")
}
