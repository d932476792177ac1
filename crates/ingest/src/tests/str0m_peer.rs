//! str0m, a WebRTC stack that shares no code with ours, as publisher: a player gets exactly what it sends.

use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use headgate_rtmp::MediaKind;
use str0m::change::SdpAnswer;
use str0m::media::{Direction, Frequency, MediaKind as Kind, MediaTime, Mid};
use str0m::net::{Protocol, Receive};
use str0m::{Candidate, Event, Input, Output, Rtc};

use super::Core;
use super::peer::Peer;
use super::whip::{OPUS_HEADER, PPS, SILENCE, SPS, audio, publish_of, wait_until, watch};
use crate::{AddedUpstream, EndReason, Hold, Upstream, UpstreamSource, UpstreamUrl, parse_offer};

const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
/// Bytes of a video frame, which takes several packets.
const PICTURE_BYTES: usize = 4_000;
const GOP: u64 = 25;
const START_CODE: &[u8] = &[0, 0, 0, 1];

/// Publishes 25 video frames and 50 audio packets a second until it is stopped.
struct Str0m {
    rtc: Rtc,
    socket: UdpSocket,
    audio: Mid,
    video: Mid,
    is_connected: bool,
    keyframe_wanted: bool,
    /// Number of keyframe requests so far.
    asked: Arc<AtomicUsize>,
}

impl Str0m {
    fn publish(core: &Core, client_id: u64, name: &str) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a free port");
        let mut rtc = Rtc::new(Instant::now());
        let here = socket.local_addr().expect("bound");
        rtc.add_local_candidate(Candidate::host(here, "udp").expect("a host candidate"));
        let mut change = rtc.sdp_api();
        let media = |kind| (kind, Direction::SendOnly);
        let [audio, video] = [media(Kind::Audio), media(Kind::Video)]
            .map(|(kind, direction)| change.add_media(kind, direction, None, None, None));
        let (offer, pending) = change.apply().expect("an offer");
        let publish = publish_of(
            client_id,
            name,
            parse_offer(&offer.to_sdp_string()).1.expect("an acceptable offer"),
        );
        let answer = core.ingest.open_whip(publish).expect("an acceptable offer");
        let answer = SdpAnswer::from_sdp_string(&answer).expect("an SDP answer");
        rtc.sdp_api().accept_answer(pending, answer).expect("an acceptable answer");
        let (is_connected, keyframe_wanted, asked) = (false, false, Arc::default());
        Self { rtc, socket, audio, video, is_connected, keyframe_wanted, asked }
    }

    /// Publishes until it is stopped; returns the number of audio packets and video frames sent.
    fn run(mut self, stop: &AtomicBool) -> (u64, u64) {
        let (mut sounds, mut pictures) = (0, 0);
        let mut media_from = None;
        while !stop.load(Ordering::Relaxed) && self.rtc.is_alive() {
            self.turn();
            if !self.is_connected {
                continue;
            }
            let from = *media_from.get_or_insert_with(Instant::now);
            let elapsed = u64::try_from(from.elapsed().as_millis()).expect("a short test");
            while sounds < elapsed / 20 {
                let time = MediaTime::new(sounds * 960, Frequency::FORTY_EIGHT_KHZ);
                self.write(self.audio, time, SILENCE.to_vec());
                sounds += 1;
            }
            while pictures < elapsed / 40 {
                let is_key = pictures % GOP == 0 || std::mem::take(&mut self.keyframe_wanted);
                let time = MediaTime::new(pictures * 3_600, Frequency::NINETY_KHZ);
                self.write(self.video, time, picture(pictures, is_key));
                pictures += 1;
            }
        }
        (sounds, pictures)
    }

    fn write(&mut self, mid: Mid, time: MediaTime, bytes: Vec<u8>) {
        if !self.rtc.is_alive() {
            // The core ended the publish between two frames.
            return;
        }
        let writer = self.rtc.writer(mid).expect("a media that sends");
        let payload_type = writer.payload_params().next().expect("an agreed codec").pt();
        writer.write(payload_type, Instant::now(), time, bytes).expect("it can be sent");
        self.drain();
    }

    /// Handles one datagram, or lets time pass.
    fn turn(&mut self) {
        let due = self.drain();
        let wait = due.saturating_duration_since(Instant::now());
        let wait = wait.clamp(Duration::from_millis(1), Duration::from_millis(5));
        self.socket.set_read_timeout(Some(wait)).expect("a socket option");
        let mut buffer = [0; 2_048];
        let input = match self.socket.recv_from(&mut buffer) {
            Ok((length, source)) => {
                let destination = self.socket.local_addr().expect("bound");
                let contents = buffer[..length].try_into().expect("a datagram of WebRTC");
                let proto = Protocol::Udp;
                let received = Receive { proto, source, destination, contents };
                Input::Receive(Instant::now(), received)
            }
            Err(error) => {
                assert!(matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut));
                Input::Timeout(Instant::now())
            }
        };
        self.rtc.handle_input(input).expect("str0m continues");
    }

    /// Sends and receives everything that is waiting; returns when it wants to be called again.
    fn drain(&mut self) -> Instant {
        loop {
            match self.rtc.poll_output().expect("str0m continues") {
                Output::Timeout(at) => return at,
                Output::Transmit(datagram) => {
                    let _ = self.socket.send_to(&datagram.contents, datagram.destination);
                }
                Output::Event(Event::Connected) => self.is_connected = true,
                Output::Event(Event::KeyframeRequest(_)) => {
                    self.keyframe_wanted = true;
                    self.asked.fetch_add(1, Ordering::Relaxed);
                }
                Output::Event(_) => {}
            }
        }
    }
}

/// An access unit with start codes, as encoders produce it.
fn picture(number: u64, is_key: bool) -> Vec<u8> {
    let mut slice = if is_key { vec![0x65, 0x88] } else { vec![0x41, 0x9a] };
    slice.resize(PICTURE_BYTES, filler(number));
    let units = if is_key { vec![SPS, PPS, &slice] } else { vec![&slice[..]] };
    units.into_iter().flat_map(|unit| [START_CODE, unit].concat()).collect()
}

/// Never zero, so that the payload contains no start code.
fn filler(number: u64) -> u8 {
    u8::try_from(number % 250).expect("small") + 1
}

#[test]
fn what_str0m_publishes_is_played_whole_and_ends_with_it() {
    let mut core = Core::start(1);
    let publisher = Str0m::publish(&core, 1, "cam");
    let stop = Arc::new(AtomicBool::new(false));
    let stops = stop.clone();
    let sending = thread::spawn(move || publisher.run(&stops));
    wait_until("media arrives", || core.ingest.snapshot(1).is_some_and(|s| s.bytes_in > 20_000));
    let player = watch(Peer::play_opus(core.port(), "cam"));
    let from = core.ingest.snapshot(1).expect("live").bytes_in;
    wait_until("three seconds more", || {
        core.ingest.snapshot(1).is_some_and(|s| s.bytes_in > from + 75 * PICTURE_BYTES as u64)
    });
    core.ingest.end(1, EndReason::Kicked, String::new());
    core.ended(1);
    stop.store(true, Ordering::Relaxed);
    let (sounds, pictures) = sending.join().expect("the publisher");
    assert!(sounds > 100 && pictures > 50, "{sounds} {pictures}");

    let media = player.join().expect("a player");
    let slices: Vec<_> = media
        .iter()
        .filter(|m| m.kind == MediaKind::Video && m.payload.get(1) == Some(&1))
        .map(|m| m.payload.slice(m.payload.len() - PICTURE_BYTES..))
        .collect();
    assert!(slices.len() > 60, "{}", slices.len());
    assert_eq!(slices[0][0], 0x65, "it begins with a keyframe");
    for slice in &slices {
        assert!(slice[2..].iter().all(|byte| *byte == slice[2]), "a picture is whole");
    }
    let numbers: Vec<_> = slices.iter().map(|slice| slice[2]).collect();
    let follows = |pair: &[u8]| pair[1] == pair[0] % 250 + 1;
    assert!(numbers.windows(2).all(follows), "none is missing: {numbers:?}");
    let packets: Vec<_> = audio(&media).filter(|body| body.starts_with(OPUS_HEADER)).collect();
    assert!(packets.len() > 100, "{}", packets.len());
    assert!(packets.iter().all(|body| &body[OPUS_HEADER.len()..] == SILENCE));
}

#[test]
fn a_keyframe_is_requested_when_a_player_joins_and_when_an_upstream_reconnects() {
    let (mut core, mut upstream) = (Core::start(2), Core::start(1));
    let publisher = Str0m::publish(&core, 1, "cam");
    let asked = publisher.asked.clone();
    let stop = Arc::new(AtomicBool::new(false));
    let stops = stop.clone();
    let sending = thread::spawn(move || publisher.run(&stops));
    wait_until("media arrives", || core.ingest.snapshot(1).is_some_and(|s| s.bytes_in > 20_000));
    // It sends a keyframe every second anyway: requests must not come without a reason.
    let mut count = asked.load(Ordering::Relaxed);
    let mut is_asked = |why: &str| {
        wait_until(why, || asked.load(Ordering::Relaxed) > count);
        count = asked.load(Ordering::Relaxed);
    };
    // The players are distributed to both workers in turn; the last ones start with what is already there.
    let mut players = Vec::new();
    for why in ["the first player", "the second", "the third", "the fourth"] {
        players.push(watch(Peer::play_opus(core.port(), "cam")));
        is_asked(why);
    }
    let url = format!("rtmp://127.0.0.1:{}/live/out", upstream.port());
    let url = UpstreamUrl::parse(&url).expect("an RTMP URL");
    let pushed =
        Upstream { id: "pushed".into(), url, source: UpstreamSource::Session, is_paused: false };
    assert_eq!(core.ingest.add_upstream(1, pushed), AddedUpstream::Added);
    for (client_id, why) in [(7, "the upstream"), (8, "the upstream that came back")] {
        let wanted = core.address_wanted();
        core.ingest.dial(wanted.push, vec![LOOPBACK]);
        let request = upstream.request();
        upstream.ingest.allow(request.request, client_id, Vec::new(), Hold::default());
        is_asked(why);
        wait_until("it gets media", || {
            upstream.ingest.snapshot(client_id).is_some_and(|of| of.bytes_in > 20_000)
        });
        upstream.ingest.end(client_id, EndReason::Kicked, String::new());
        upstream.ended(client_id);
    }
    stop.store(true, Ordering::Relaxed);
    sending.join().expect("the publisher");
    core.ingest.end(1, EndReason::Kicked, String::new());
    core.ended(1);
}
