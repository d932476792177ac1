//! A player that reads one byte a second.

use std::io::{self, Read};
use std::thread;
use std::time::{Duration, Instant};

use headgate_rtmp::ClientRole;

use super::publisher::is_wait;
use super::{Attempt, Run};
use crate::rtmp_alone::open;

const INTERVAL: Duration = Duration::from_secs(1);

pub(super) fn attack(run: &Run, until: Instant) -> io::Result<Attempt> {
    let (mut socket, _session) = open(run.target, &run.name, ClientRole::Play)?;
    let mut attempt = Attempt::default();
    while Instant::now() < until {
        match socket.read(&mut [0]) {
            Ok(0) => {
                attempt.ended = Some("closed".to_owned());
                break;
            }
            Ok(read) => attempt.bytes += read as u64,
            Err(error) if is_wait(&error) => {}
            Err(error) => {
                attempt.ended = Some(error.kind().to_string());
                break;
            }
        }
        thread::sleep(INTERVAL.min(until.saturating_duration_since(Instant::now())));
    }
    Ok(attempt)
}
