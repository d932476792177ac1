//! WHIP publishes that start at a steady rate, whether or not earlier ones are slow: the time from POST to answer, to
//! a connected transport and to the first picture upstream. Each is deleted soon after.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use headgate_peer::{Settings, SrtpChoice};
use headgate_rtmp::MediaKind;
use mio::{Events, Poll, Token};

use crate::histogram::{Histogram, Percentiles};
use crate::load::Stamp;
use crate::ms;
use crate::sink::{Sink, Takes};
use crate::whip_http::{Answer, delete, post_offer, post_path};
use crate::whip_load::{Arrived, due, recognise};
use crate::whip_publisher::{Asked, WhipPublisher};

const TURN: Duration = Duration::from_millis(1);
/// How long a publish runs after its first picture has arrived.
const LIVE: Duration = Duration::from_millis(500);
/// A publish without a picture at the upstream after this long has failed.
const LIMIT: Duration = Duration::from_secs(10);

/// What to run.
pub(crate) struct Run {
    /// The address that the server pushes to: ours.
    pub(crate) listen: SocketAddr,
    /// The server's HTTP.
    pub(crate) http: SocketAddr,
    pub(crate) stream_url: String,
    /// Used in turn; enough of them that a publish has ended before its name is used again.
    pub(crate) names: Vec<String>,
    /// Publishes that start in a second.
    pub(crate) rate: u32,
    /// Publishes before the measurement starts.
    pub(crate) warm: u32,
    /// Length of the measurement.
    pub(crate) seconds: u32,
}

/// One publish in progress.
struct Starting {
    publisher: WhipPublisher,
    posted: Instant,
    /// When its transport was connected; media times count from here.
    since: Option<Instant>,
    sent: u32,
    first_frame: Option<Instant>,
}

/// The outcome of a POST.
struct Posted {
    number: u32,
    /// When the request was about to be sent, and when the answer had been read.
    times: [Instant; 2],
    answer: io::Result<Answer>,
}

#[derive(Default)]
struct Account {
    /// Each measured from the POST.
    answered: Histogram,
    connected: Histogram,
    first_frame: Histogram,
    refused: u32,
    lost: u32,
    done: u32,
}

/// Runs all of it; one line of JSON.
pub(crate) fn run(run: &Run) -> io::Result<String> {
    let mut poll = Poll::new()?;
    let mut events = Events::with_capacity(1_024);
    let mut buffer = vec![0; 64 << 10];
    let mut asked = Asked::default();
    let mut sink = Sink::open(run.listen, Takes::Everything, poll.registry())?;
    let (sender, answers) = channel();
    let mut starting: BTreeMap<u32, Starting> = BTreeMap::new();
    let mut account = Account::default();
    let all = run.warm + run.rate * run.seconds;
    let begun = Instant::now();
    let mut opened = 0;
    let mut is_measured = false;
    while opened < all || !starting.is_empty() {
        poll.poll(&mut events, Some(TURN))?;
        for event in &events {
            let token = event.token();
            if Sink::owns(token) {
                sink.serve(token, poll.registry(), &mut buffer, |_, message| {
                    let Arrived::Stamped(stamp) = recognise(message.kind, &message.payload) else {
                        return;
                    };
                    if let Some(one) = starting.get_mut(&stamp.publisher) {
                        one.first_frame.get_or_insert_with(Instant::now);
                    }
                })?;
            } else if let Some(one) = number_of(token).and_then(|number| starting.get_mut(&number))
            {
                one.publisher.receive(&mut buffer, &mut asked);
            }
        }
        let now = Instant::now();
        while opened < all && now >= begun + Duration::from_secs(1) * opened / run.rate {
            if opened == run.warm {
                crate::report(true);
            }
            let publisher = open(run, opened, &poll, &sender)?;
            starting.insert(opened, publisher);
            opened += 1;
        }
        if opened == all && !is_measured {
            is_measured = true;
            crate::report(false);
        }
        take_answers(run, &answers, &mut starting, &mut account, &mut asked)?;
        for (number, one) in &mut starting {
            one.advance(*number, now, &mut asked);
        }
        starting.retain(|number, one| {
            let is_done = one.first_frame.is_some_and(|at| now >= at + LIVE);
            let is_lost = !is_done && now >= one.posted + LIMIT;
            if is_done || is_lost {
                one.end(run, *number >= run.warm, &mut account);
            }
            !(is_done || is_lost)
        });
    }
    Ok(account.to_json(all - run.warm))
}

fn number_of(token: Token) -> Option<u32> {
    u32::try_from(token.0).ok()
}

/// Opens a publisher and posts its offer in a separate thread, so that a slow answer delays no other.
fn open(run: &Run, number: u32, poll: &Poll, sender: &Sender<Posted>) -> io::Result<Starting> {
    let settings = Settings { srtp: SrtpChoice::Gcm, ..Settings::default() };
    let publisher = WhipPublisher::open(settings, Token(number as usize), poll.registry())?;
    let offer = publisher.offer();
    let name = run.names.get(number as usize % run.names.len().max(1));
    let path = post_path(&run.stream_url, name.map_or("", String::as_str));
    let (sender, http) = (sender.clone(), run.http);
    thread::spawn(move || {
        let posted = Instant::now();
        let answer = post_offer(http, &path, &offer);
        // The receiver is gone once the run has failed.
        let _ = sender.send(Posted { number, times: [posted, Instant::now()], answer });
    });
    let posted = Instant::now();
    Ok(Starting { publisher, posted, since: None, sent: 0, first_frame: None })
}

fn take_answers(
    run: &Run,
    answers: &Receiver<Posted>,
    starting: &mut BTreeMap<u32, Starting>,
    account: &mut Account,
    asked: &mut Asked,
) -> io::Result<()> {
    while let Ok(Posted { number, times: [posted, answered], answer }) = answers.try_recv() {
        let answer = answer?;
        let Some(one) = starting.get_mut(&number) else { continue };
        one.posted = posted;
        let is_counted = number >= run.warm;
        if answer.status == 201 {
            one.publisher.handle_answer(&answer.body, asked)?;
            one.publisher.session_path = answer.session_path;
            if is_counted {
                account.answered.note(answered - posted);
            }
        } else {
            account.refused += u32::from(is_counted);
            starting.remove(&number);
        }
    }
    Ok(())
}

impl Starting {
    /// Sends what is due by now.
    fn advance(&mut self, number: u32, now: Instant, asked: &mut Asked) {
        self.publisher.handle_timeout(now, asked);
        if !self.publisher.is_connected || self.publisher.is_closed {
            return;
        }
        let since = *self.since.get_or_insert(now);
        while since + due(MediaKind::Video, self.sent) <= now {
            let captured = since + due(MediaKind::Video, self.sent);
            let stamp = Stamp { publisher: number, number: self.sent, sent: Duration::ZERO };
            self.publisher.send(captured, MediaKind::Video, stamp, None, asked);
            self.sent += 1;
        }
    }

    /// Adds the publish to the account and deletes its session.
    fn end(&mut self, run: &Run, is_counted: bool, account: &mut Account) {
        if is_counted {
            match self.first_frame {
                Some(at) => {
                    account.done += 1;
                    account.first_frame.note(at - self.posted);
                }
                None => account.lost += 1,
            }
            if let Some(since) = self.since {
                account.connected.note(since - self.posted);
            }
        }
        if let Some(path) = self.publisher.session_path.take() {
            let http = run.http;
            // DELETE is not measured.
            thread::spawn(move || delete(http, &path));
        }
    }
}

impl Account {
    fn to_json(&self, started: u32) -> String {
        let Self { refused, lost, done, .. } = self;
        let times = [
            ("answered", &self.answered),
            ("connected", &self.connected),
            ("first_frame", &self.first_frame),
        ]
        .map(|(name, histogram)| {
            let Percentiles { p50_us, p99_us, most_us } = histogram.percentiles();
            let (p50, p99, most) = (ms(p50_us), ms(p99_us), ms(most_us));
            format!("\"{name}_ms\":{{\"p50\":{p50:.2},\"p99\":{p99:.2},\"max\":{most:.2}}}")
        });
        format!(
            "{{\"started\":{started},\"done\":{done},\"refused\":{refused},\"lost\":{lost},{}}}",
            times.join(",")
        )
    }
}
