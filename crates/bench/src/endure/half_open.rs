//! Peers that stop half-way: a WHIP session before ICE, before DTLS or during DTLS; an RTMP connection after C0 and C1,
//! after connect or after createStream. Measures how long the service keeps each.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use headgate_peer::Settings;
use headgate_rtmp::{ClientConfig, ClientRole, ClientSession, Limits};
use mio::{Events, Poll, Token};

use crate::histogram::Histogram;
use crate::whip_http::{delete, post_offer, post_path};
use crate::whip_publisher::{Asked, WhipPublisher};

/// Interval between new peers of each kind; it keeps their number below the service's limit for half-open ones.
const INTERVAL: Duration = Duration::from_millis(12);
/// A peer that the service keeps longer was not freed. RTMP allows 250 ms for the service's timer and our polling.
const WHIP_LIMIT: Duration = Duration::from_secs(15);
const RTMP_LIMIT: Duration = Duration::from_millis(10_250);
/// How long a connection is watched beyond its limit.
const WATCHED: Duration = Duration::from_secs(5);
const TURN: Duration = Duration::from_millis(5);
/// Longest wait for a reply of the service on loopback, which may share our core.
const REPLY_LIMIT: Duration = Duration::from_secs(8);
const STAGES: u32 = 3;

/// What to run.
pub(crate) struct Run {
    pub(crate) rtmp: SocketAddr,
    pub(crate) http: SocketAddr,
    pub(crate) stream_url: String,
    /// Taken in turn.
    pub(crate) names: Vec<String>,
    /// Half of them by WHIP.
    pub(crate) count: u32,
}

/// The results of one protocol.
#[derive(Default)]
struct Account {
    begun: u32,
    refused: u32,
    /// Still there after their limit.
    kept: u32,
    lasted: Histogram,
}

pub(crate) fn run(run: &Run) -> io::Result<String> {
    let (whip, rtmp) = thread::scope(|scope| {
        let rtmp = scope.spawn(|| over_rtmp(run));
        (over_whip(run), rtmp.join())
    });
    let rtmp = rtmp.map_err(|_| io::Error::other("the RTMP half panicked"))??;
    Ok(format!("{{\"whip\":{},\"rtmp\":{}}}", whip?.to_json(), rtmp.to_json()))
}

/// Drives sessions as a browser would, but withholds DTLS or everything. When a session must be gone it is deleted:
/// 404 shows that it was.
fn over_whip(run: &Run) -> io::Result<Account> {
    let (mut poll, mut events) = (Poll::new()?, Events::with_capacity(1_024));
    let (mut buffer, mut asked) = (vec![0; 64 << 10], Asked::default());
    let mut sessions: Vec<Option<(Instant, WhipPublisher)>> = Vec::new();
    let mut account = Account::default();
    let (begun, count) = (Instant::now(), run.count / 2);
    let mut oldest = 0;
    while oldest < count as usize {
        let now = Instant::now();
        let due = begun + INTERVAL * account.begun;
        if account.begun < count && now >= due {
            let stage = account.begun % STAGES;
            account.begun += 1;
            let name = run.names.get(account.begun as usize % run.names.len().max(1));
            let path = post_path(&run.stream_url, name.map_or("", String::as_str));
            let token = Token(sessions.len());
            let mut publisher = WhipPublisher::open(Settings::default(), token, poll.registry())?;
            let answer = post_offer(run.http, &path, &publisher.offer())?;
            publisher.session_path = answer.session_path;
            if answer.status == 201 {
                if stage > 0 {
                    publisher.hold_dtls_after(stage as usize - 1);
                    publisher.handle_answer(&answer.body, &mut asked)?;
                }
                sessions.push(Some((now, publisher)));
            } else {
                account.refused += 1;
                sessions.push(None);
            }
        }
        poll.poll(&mut events, Some(TURN))?;
        for event in &events {
            if let Some(Some((_, publisher))) = sessions.get_mut(event.token().0) {
                publisher.receive(&mut buffer, &mut asked);
            }
        }
        for (_, publisher) in sessions.iter_mut().skip(oldest).flatten() {
            publisher.handle_timeout(now, &mut asked);
        }
        while let Some(slot) = sessions.get_mut(oldest) {
            if slot.as_ref().is_some_and(|(since, _)| since.elapsed() < WHIP_LIMIT) {
                break;
            }
            if let Some((_, publisher)) = slot.take()
                && let Some(path) = &publisher.session_path
            {
                // An ended session is gone, or unknown.
                account.kept += u32::from(!matches!(delete(run.http, path)?.status, 404 | 410));
            }
            oldest += 1;
        }
    }
    Ok(account)
}

fn over_rtmp(run: &Run) -> io::Result<Account> {
    let mut account = Account::default();
    let mut open: Vec<(Instant, TcpStream)> = Vec::new();
    let (begun, count) = (Instant::now(), run.count / 2);
    let mut buffer = [0; 4_096];
    while account.begun < count || !open.is_empty() {
        if account.begun < count && begun.elapsed() >= INTERVAL * account.begun {
            let name = run.names.get(account.begun as usize % run.names.len().max(1));
            let name = name.map_or("", String::as_str);
            match stop_at(run.rtmp, name, account.begun % STAGES) {
                Ok(socket) => open.push((Instant::now(), socket)),
                Err(_) => account.refused += 1,
            }
            account.begun += 1;
        }
        open.retain_mut(|(since, socket)| {
            let is_open = is_open(socket, &mut buffer);
            let lasted = since.elapsed();
            if !is_open {
                account.lasted.note(lasted);
            }
            let is_late = lasted > RTMP_LIMIT + WATCHED;
            account.kept += u32::from(if is_open { is_late } else { lasted > RTMP_LIMIT });
            is_open && !is_late
        });
        thread::sleep(TURN);
    }
    Ok(account)
}

/// A publisher that falls silent after C0 and C1 (stage 0), connect (1) or createStream (2).
fn stop_at(target: SocketAddr, name: &str, stage: u32) -> io::Result<TcpStream> {
    let mut socket = TcpStream::connect(target)?;
    socket.set_read_timeout(Some(REPLY_LIMIT))?;
    let config = ClientConfig {
        app: "live".into(),
        tc_url: format!("rtmp://{target}/live"),
        name: name.as_bytes().to_vec(),
        seed: [4; 8],
        limits: Limits::default(),
        ..ClientConfig::new(ClientRole::Publish)
    };
    let mut session = ClientSession::new(config, Instant::now());
    let mut buffer = [0; 8_192];
    for said in 0..=stage {
        let output = session.output_mut();
        while !output.is_empty() {
            let mut slices = [io::IoSlice::new(&[]); 16];
            let count = output.io_slices(&mut slices);
            let written = socket.write_vectored(slices.get(..count).unwrap_or_default())?;
            output.consume(written);
        }
        if said < stage {
            let length = socket.read(&mut buffer)?;
            let input = buffer.get(..length).unwrap_or_default();
            session.handle_input(input, Instant::now()).map_err(io::Error::other)?;
        }
    }
    socket.set_nonblocking(true)?;
    Ok(socket)
}

fn is_open(socket: &mut TcpStream, buffer: &mut [u8]) -> bool {
    loop {
        match socket.read(buffer) {
            Ok(0) => return false,
            Ok(_) => {}
            Err(error) => return error.kind() == ErrorKind::WouldBlock,
        }
    }
}

impl Account {
    fn to_json(&self) -> String {
        let Self { begun, refused, kept, lasted } = self;
        let most = Duration::from_micros(lasted.percentiles().most_us).as_secs_f64();
        format!(
            "{{\"begun\":{begun},\"refused\":{refused},\"kept\":{kept},\"longest_s\":{most:.1}}}"
        )
    }
}
