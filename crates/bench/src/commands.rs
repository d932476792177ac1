//! The command lines of the loads that are measured beside attackers, for hours, or at their starts.
//! Each returns `None` for arguments that it does not recognise.

use std::io;
use std::path::Path;

use crate::attack;
use crate::clip::Clip;
use crate::codecs;
use crate::first_frames;
use crate::honest::{self, Audience};
use crate::relay;
use crate::starts;
use crate::whip_load::Sound;

/// For the usage text.
pub(crate) const USAGE: &str = "headgate-bench honest LISTEN TARGET NAME,NAME,… SECONDS CLIP.flv|recorded nobody|every-second|PLAYERS|PLAYERS-on-each [CHUNK_SIZE]
headgate-bench relay LISTEN TARGET at-once|each-40-ms|each-40-ms-in-turns|promptly-in-turns
headgate-bench attack KIND TARGET HTTP STREAM_URL NAME SECONDS LISTEN
headgate-bench starts LISTEN HTTP STREAM_URL NAME,NAME,… PER_SECOND SECONDS stereo|mono
headgate-bench first-frames LISTEN HTTP STREAM_URL NAME,NAME,… PER_SECOND WARM SECONDS
headgate-bench codecs stereo|mono STREAMS SECONDS";

/// One line of JSON or an error; `None` for an unknown command.
pub(crate) type Outcome = Option<io::Result<String>>;

/// What OBS announces.
const CHUNK_SIZE: u32 = 4_096;

/// Runs `honest`, `relay`, `attack`, `starts`, `first-frames` or `codecs`.
pub(crate) fn run(words: &[&str]) -> Outcome {
    match *words {
        ["honest", listen, target, names, seconds, clip, audience] => {
            run_honest([listen, target, names, seconds], clip, audience, CHUNK_SIZE)
        }
        ["honest", listen, target, names, seconds, clip, audience, chunk_size] => {
            let chunk_size = chunk_size.parse().ok().filter(|size| *size > 0)?;
            run_honest([listen, target, names, seconds], clip, audience, chunk_size)
        }
        ["relay", listen, target, kind] => {
            relay::run(listen.parse().ok()?, target.parse().ok()?, kind)
        }
        ["attack", kind, target, http, url, name, seconds, listen] => attack::run(&attack::Run {
            kind: kind.to_owned(),
            target: target.parse().ok()?,
            http: http.parse().ok()?,
            stream_url: url.to_owned(),
            name: name.to_owned(),
            seconds: seconds.parse().ok()?,
            listen: listen.parse().ok()?,
        }),
        ["starts", listen, http, url, names, rate, seconds, audio] => {
            Some(starts::run(&starts::Run {
                listen: listen.parse().ok()?,
                target: http.parse().ok()?,
                stream_url: url.to_owned(),
                names: crate::split(names),
                rate: rate.parse().ok().filter(|rate| *rate > 0)?,
                seconds: seconds.parse().ok()?,
                audio: aac(audio)?,
            }))
        }
        ["first-frames", listen, http, url, names, rate, warm, seconds] => {
            Some(first_frames::run(&first_frames::Run {
                listen: listen.parse().ok()?,
                http: http.parse().ok()?,
                stream_url: url.to_owned(),
                names: crate::split(names),
                rate: rate.parse().ok().filter(|rate| *rate > 0)?,
                warm: warm.parse().ok()?,
                seconds: seconds.parse().ok()?,
            }))
        }
        ["codecs", audio, streams, seconds] => Some(codecs::run(&codecs::Run {
            sound: aac(audio)?,
            streams: streams.parse().ok().filter(|streams| *streams > 0)?,
            seconds: seconds.parse().ok().filter(|seconds| *seconds > 0)?,
        })),
        _ => None,
    }
}

fn aac(word: &str) -> Option<Sound> {
    match word {
        "stereo" => Some(Sound::AacStereo),
        "mono" => Some(Sound::AacMono),
        _ => None,
    }
}

fn run_honest(words: [&str; 4], clip: &str, audience: &str, chunk_size: u32) -> Outcome {
    let [listen, target, names, seconds] = words;
    let clip = match clip {
        "recorded" => Ok(Clip::recorded()),
        path => Clip::read(Path::new(path)),
    };
    let clip = match clip {
        Ok(clip) => clip,
        Err(error) => return Some(Err(error)),
    };
    let run = honest::Run {
        listen: listen.parse().ok()?,
        target: target.parse().ok()?,
        names: crate::split(names),
        seconds: seconds.parse().ok()?,
        clip,
        chunk_size,
        audience: match audience {
            "nobody" => Audience::Nobody,
            "every-second" => Audience::EverySecond,
            words => match words.strip_suffix("-on-each") {
                Some(count) => Audience::OnEach(count.parse().ok()?),
                None => Audience::Coming(words.parse().ok()?),
            },
        },
    };
    let ready = || println!("ready");
    let outcome = honest::run(&run, ready, crate::report);
    Some(outcome.map(|honest::Outcome { balance, late, more }| crate::json(&balance, late, &more)))
}
