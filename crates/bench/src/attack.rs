//! One allowed publisher, player or upstream that does one hostile thing as fast as it can, and reconnects when it is
//! ended. The honest load beside it measures what this costs others.

mod flood;
mod messages;
mod mutations;
mod publisher;
mod slow_player;
mod strangers;
mod upstream;
mod whip;

use std::io;
use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};

use flood::Flood;

/// Pause between the end of one connection and the start of the next.
const PAUSE: Duration = Duration::from_millis(100);
/// Endings that are recorded verbatim.
const ENDINGS_LIMIT: usize = 3;

/// What to run.
pub(crate) struct Run {
    pub(crate) kind: String,
    /// The server's RTMP.
    pub(crate) target: SocketAddr,
    /// The server's HTTP.
    pub(crate) http: SocketAddr,
    pub(crate) stream_url: String,
    /// The stream that is published or played.
    pub(crate) name: String,
    pub(crate) seconds: u64,
    /// Address of the attacker's own upstream.
    pub(crate) listen: SocketAddr,
}

/// The result of one connection.
#[derive(Debug, Default)]
struct Attempt {
    messages: u64,
    bytes: u64,
    /// How the server ended it; `None` when it stayed open to the end.
    ended: Option<String>,
}

/// Attacks until the time is up. Returns one line of JSON, or `None` for an unknown kind.
pub(crate) fn run(run: &Run) -> Option<io::Result<String>> {
    let until = Instant::now() + Duration::from_secs(run.seconds);
    let flooded = match upstream::start(run.listen, run.kind == "flooding-upstream") {
        Ok(flooded) => flooded,
        Err(error) => return Some(Err(error)),
    };
    let attempt: Box<dyn Fn() -> io::Result<Attempt>> =
        if let Some(packets) = whip::Packets::of(&run.kind) {
            Box::new(move || whip::attack(run, packets, until))
        } else if let Some(flood) = Flood::of(&run.kind) {
            Box::new(move || publisher::attack(run, flood, until))
        } else {
            match run.kind.as_str() {
                "slow-player" => Box::new(move || slow_player::attack(run, until)),
                "mutations" => Box::new(move || mutations::attack(run, until)),
                "strangers" => Box::new(move || strangers::attack(run, until)),
                _ => return None,
            }
        };
    let (mut attempts, mut messages, mut bytes) = (0_u64, 0, 0);
    let (mut endings, mut first_lasted) = (Vec::new(), None);
    while Instant::now() < until {
        let begun = Instant::now();
        let attempt = attempt().unwrap_or_else(|error| Attempt {
            ended: Some(error.to_string()),
            ..Attempt::default()
        });
        attempts += 1;
        messages += attempt.messages;
        bytes += attempt.bytes;
        first_lasted.get_or_insert(begun.elapsed());
        if let Some(ended) = attempt.ended
            && endings.len() < ENDINGS_LIMIT
            && !endings.contains(&ended)
        {
            endings.push(ended);
        }
        thread::sleep(PAUSE.min(until.saturating_duration_since(Instant::now())));
    }
    let first = first_lasted.unwrap_or_default().as_secs_f64();
    let upstream = flooded.load(std::sync::atomic::Ordering::Relaxed);
    Some(Ok(format!(
        "{{\"attempts\":{attempts},\"messages\":{messages},\"bytes\":{bytes},\"upstream_bytes\":{upstream},\"first_lasted_s\":{first:.1},\"endings\":{endings:?}}}"
    )))
}
