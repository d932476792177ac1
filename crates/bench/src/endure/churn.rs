//! Publishes of one second, each ended in one of three ways: DELETE of a WHIP session, close of an RTMP connection, or
//! a publisher that falls silent.

use std::collections::VecDeque;
use std::io;
use std::net::{SocketAddr, TcpStream};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use headgate_peer::Settings;
use headgate_rtmp::ClientRole;

use crate::rtmp_alone;
use crate::whip_alone::WhipAlone;
use crate::whip_http::post_path;

/// Length of each publish.
const LIVE: Duration = Duration::from_secs(1);
/// How long the socket of a silent RTMP publisher stays open. The service ends it after 15 s; closing it earlier would
/// be an ordinary close.
const KEPT: Duration = Duration::from_secs(25);
/// Failures that are reported verbatim.
const REPORTED: usize = 5;

/// What to run.
pub(crate) struct Run {
    pub(crate) rtmp: SocketAddr,
    pub(crate) http: SocketAddr,
    pub(crate) stream_url: String,
    /// Used in turn; enough of them that a silent publish has ended before its name is used again.
    pub(crate) names: Vec<String>,
    pub(crate) count: u32,
    pub(crate) at_once: usize,
    /// Every publish is by WHIP and ended by DELETE.
    pub(crate) is_delete_alone: bool,
}

#[derive(Default)]
struct Account {
    begun: AtomicU32,
    published: AtomicU32,
    deleted: AtomicU32,
    failures: Mutex<Vec<String>>,
    failed: AtomicU32,
}

pub(crate) fn run(run: &Run) -> io::Result<String> {
    let account = Account::default();
    thread::scope(|scope| {
        for _ in 0..run.at_once {
            scope.spawn(|| publish_in_turn(run, &account));
        }
    });
    let Account { published, deleted, failures, failed, .. } = account;
    let (published, deleted, failed) =
        (published.into_inner(), deleted.into_inner(), failed.into_inner());
    let failures = failures.into_inner().unwrap_or_default();
    Ok(format!(
        "{{\"published\":{published},\"deleted\":{deleted},\"failed\":{failed},\"failures\":{failures:?}}}"
    ))
}

fn publish_in_turn(run: &Run, account: &Account) {
    let mut silent: VecDeque<(Instant, TcpStream)> = VecDeque::new();
    loop {
        let number = account.begun.fetch_add(1, Ordering::Relaxed);
        if number >= run.count {
            break;
        }
        while silent.front().is_some_and(|(since, _)| since.elapsed() > KEPT) {
            silent.pop_front();
        }
        let Some(name) = run.names.get(number as usize % run.names.len().max(1)) else { break };
        let way = if run.is_delete_alone { 0 } else { number % 6 };
        let outcome = match way {
            0 | 3 => delete(run, name, account),
            1 | 4 => close(run, name).map(drop),
            2 => close(run, name).map(|socket| silent.push_back((Instant::now(), socket))),
            _ => whip(run, name).map(drop),
        };
        match outcome {
            Ok(()) => account.published.fetch_add(1, Ordering::Relaxed),
            Err(error) => {
                if let Ok(mut failures) = account.failures.lock()
                    && failures.len() < REPORTED
                {
                    failures.push(format!("{name}, way {way}: {error}"));
                }
                account.failed.fetch_add(1, Ordering::Relaxed)
            }
        };
    }
    if let Some((since, _)) = silent.back() {
        thread::sleep(KEPT.saturating_sub(since.elapsed()));
    }
}

fn whip(run: &Run, name: &str) -> io::Result<WhipAlone> {
    let path = post_path(&run.stream_url, name);
    let mut whip = WhipAlone::ask(run.http, &path, Settings::default())?;
    whip.connect()?;
    whip.publish_for(LIVE)?;
    Ok(whip)
}

fn delete(run: &Run, name: &str, account: &Account) -> io::Result<()> {
    let status = whip(run, name)?.delete()?;
    if status != 200 {
        return Err(io::Error::other(format!("DELETE: {status}")));
    }
    account.deleted.fetch_add(1, Ordering::Relaxed);
    Ok(())
}

fn close(run: &Run, name: &str) -> io::Result<TcpStream> {
    let (mut socket, _session) = rtmp_alone::open(run.rtmp, name, ClientRole::Publish)?;
    rtmp_alone::publish_for(&mut socket, LIVE)?;
    Ok(socket)
}
