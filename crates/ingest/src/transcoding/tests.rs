//! The audio threads, stepped by hand: no thread runs and no time passes.

mod failures;

use std::sync::Mutex;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use bytes::Bytes;
use headgate_media::{Channels, Codec, FrameKind, Timestamp, aac, opus};
use headgate_transcode::{AacEncoder, EncoderKind};

use super::ring::{INPUT_LIMIT, OUTPUT_LIMIT, lock};
use super::serve::TURN_PACKETS_LIMIT;
use super::*;

const WORKER: usize = 3;
/// 20 ms of silence, mono and stereo (RFC 6716 3.1).
const MONO: [u8; 3] = [0xf8, 0xff, 0xfe];
const STEREO: [u8; 3] = [0xfc, 0xff, 0xfe];

/// Controls the encoders of a test and records which were created.
#[derive(Default)]
struct Factory {
    made: Mutex<Vec<EncoderKind>>,
    panics: AtomicBool,
    encoders_panic: AtomicBool,
}

impl Factory {
    fn create(self: &Arc<Self>, kind: EncoderKind) -> Box<dyn AacEncoder> {
        lock(&self.made).push(kind);
        assert!(!self.panics.load(Ordering::Relaxed), "factory on fire");
        Box::new(FakeEncoder(self.clone()))
    }
}

struct FakeEncoder(Arc<Factory>);

impl AacEncoder for FakeEncoder {
    fn encode(&mut self, _: &[f32]) -> &[u8] {
        assert!(!self.0.encoders_panic.load(Ordering::Relaxed), "encoder on fire");
        b"aac"
    }

    fn delay_frames(&self) -> usize {
        1
    }
}

impl TranscodingThreads {
    /// Does at `now` what waits for the threads; returns the streams with something new.
    pub(crate) fn run(&self, now: Instant) -> Vec<StreamId> {
        let notified = Arc::<Mutex<Vec<StreamId>>>::default();
        let heard = notified.clone();
        let notify: Notify = Arc::new(move |_, stream| lock(&heard).push(stream));
        loop {
            let jobs = self.inboxes.iter().filter_map(|inbox| inbox.try_recv().ok());
            let jobs: Vec<_> = jobs.collect();
            for job in &jobs {
                if let Job::Serve(ring) = job {
                    self.shared.serve(ring, &notify, now);
                }
            }
            if jobs.is_empty() {
                return std::mem::take(&mut *lock(&notified));
            }
        }
    }
}

/// One audio thread, step by step.
struct Steps {
    transcoders: Transcoders,
    threads: TranscodingThreads,
    factory: Arc<Factory>,
    notify: Notify,
    notified: Arc<Mutex<Vec<u64>>>,
}

impl Steps {
    fn new() -> Self {
        let (factory, notified) = (Arc::<Factory>::default(), Arc::<Mutex<Vec<u64>>>::default());
        let (creator, heard) = (factory.clone(), notified.clone());
        let encoders = Encoders::new(move |kind| creator.create(kind));
        let (transcoders, threads) = Transcoders::new(1, encoders);
        let notify: Notify = Arc::new(move |worker, stream: StreamId| {
            assert_eq!(worker, WORKER);
            lock(&heard).push(stream.0);
        });
        Self { transcoders, threads, factory, notify, notified }
    }

    fn open(&self, stream: u64) -> Arc<TranscoderRing> {
        self.transcoders.open(StreamId(stream), WORKER, AUDIO_BITRATE)
    }

    /// Opens a stream whose output so far is drained.
    fn open_running(&self, stream: u64) -> Arc<TranscoderRing> {
        let ring = self.open(stream);
        self.push(&ring, 0..5);
        self.serve_all();
        assert!(!ring.drain().is_empty());
        lock(&self.notified).clear();
        ring
    }

    fn push(&self, ring: &Arc<TranscoderRing>, packets: std::ops::Range<i64>) {
        packets.for_each(|index| self.transcoders.push(ring, packet(index, &MONO)));
    }

    /// Runs one turn of the audio thread; false if it has nothing to do.
    fn serve_one(&self) -> bool {
        let Ok(Job::Serve(ring)) = self.threads.inboxes[0].try_recv() else { return false };
        self.threads.shared.serve(&ring, &self.notify, Instant::now());
        true
    }

    fn serve_all(&self) {
        while self.serve_one() {}
    }

    fn made(&self) -> Vec<EncoderKind> {
        lock(&self.factory.made).clone()
    }

    fn notified(&self) -> Vec<u64> {
        std::mem::take(&mut *lock(&self.notified))
    }
}

fn packet(index: i64, data: &'static [u8]) -> Frame {
    let (codec, timestamp) = (Codec::Opus, Timestamp::from_millis(index * 20));
    let data = Bytes::from_static(data);
    Frame { codec, kind: FrameKind::Audio, timestamp, composition_ms: 0, data }
}

fn kind(channels: Channels) -> EncoderKind {
    EncoderKind::new(channels, AUDIO_BITRATE)
}

#[test]
fn a_join_gets_aac_in_its_first_turn() {
    let steps = Steps::new();
    let running = steps.open_running(1);
    let joining = steps.open(2);
    steps.push(&joining, 0..5);
    steps.push(&running, 5..10);
    assert!(steps.serve_one() && steps.serve_one() && !steps.serve_one());
    assert_eq!(steps.notified(), [2, 1]);
    assert!(!running.drain().is_empty());
    let frames = joining.drain();
    assert_eq!(frames[0].kind, FrameKind::Configuration);
    assert_eq!(frames[1].timestamp, Timestamp::ZERO, "nothing is lost");
    assert_eq!(frames.len(), 1 + 3, "5 packets are 3 whole frames behind one of priming");
    assert_eq!((steps.transcoders.running(), steps.transcoders.failed()), (2, 0));
    assert_eq!(steps.made(), [kind(Channels::Mono); 2]);
}

#[test]
fn a_stream_that_closes_before_its_turn_uses_no_encoder() {
    let steps = Steps::new();
    let ring = steps.open(1);
    steps.push(&ring, 0..5);
    steps.transcoders.close(&ring);
    steps.transcoders.close(&ring);
    steps.serve_all();
    assert_eq!((steps.made(), steps.transcoders.running()), (vec![], 0));
}

#[test]
fn a_burst_shares_its_thread() {
    let steps = Steps::new();
    let [joining, running] = [1, 2].map(|stream| steps.open_running(stream));
    steps.push(&joining, 5..405);
    steps.push(&running, 5..10);
    assert!(steps.serve_one() && steps.serve_one());
    assert_eq!(steps.notified(), [1, 2]);
    // 16 packets of 960 samples, plus the 704 samples left over from the first 5.
    assert_eq!(joining.drain().len(), (TURN_PACKETS_LIMIT * 960 + 704) / 1024);
    steps.serve_all();
    assert_eq!(joining.drain().len(), (405 * 960 - 1024) / 1024 - 3 - 15);
}

#[test]
fn a_stream_that_waits_too_long_loses_its_oldest_packets() {
    let steps = Steps::new();
    let ring = steps.open(1);
    steps.push(&ring, 0..2_000);
    steps.serve_all();
    let frames = ring.drain();
    assert!(frames.len() <= INPUT_LIMIT, "{}", frames.len());
    let oldest_left = Timestamp::from_millis((2_000 - INPUT_LIMIT as i64) * 20);
    assert!(frames.iter().any(|frame| frame.timestamp == oldest_left));
    assert!(frames.last().expect("some").timestamp > Timestamp::from_millis(2_000 * 20 - 80));
}

#[test]
fn a_worker_that_does_not_drain_loses_the_oldest_frames_and_no_configuration() {
    let steps = Steps::new();
    let ring = steps.open(1);
    steps.push(&ring, 0..1);
    steps.serve_all();
    for start in (1..2_000).step_by(100) {
        steps.push(&ring, start..start + 100);
        steps.serve_all();
    }
    assert_eq!(steps.notified(), [1], "once until it drains");
    let frames = ring.drain();
    assert_eq!(frames.len(), 1 + OUTPUT_LIMIT);
    assert_eq!(frames[0].kind, FrameKind::Configuration);
    assert_eq!(frames[0].data[..], aac::lc_48k(Channels::Mono));
    assert_eq!(frames[0].timestamp, frames[1].timestamp);
    steps.push(&ring, 2_001..2_010);
    steps.serve_all();
    assert_eq!(steps.notified(), [1]);
    assert!(ring.drain().iter().all(|frame| frame.kind == FrameKind::Audio));
}

#[test]
fn stereo_audio_continues_mono_audio_and_loses_nothing() {
    let steps = Steps::new();
    let ring = steps.open_running(1);
    steps.push(&ring, 5..10);
    steps.serve_all();
    let before = ring.drain();
    assert!(before.iter().all(|frame| frame.kind == FrameKind::Audio));
    (10..20).for_each(|index| steps.transcoders.push(&ring, packet(index, &STEREO)));
    steps.serve_all();
    let after = ring.drain();
    assert_eq!(after[0].data[..], aac::lc_48k(Channels::Stereo));
    let last = before.last().expect("some").timestamp.as_micros();
    assert!((21_333..=21_334).contains(&(after[1].timestamp.as_micros() - last)));
    assert_eq!(steps.made(), [Channels::Mono, Channels::Stereo].map(kind));
}

#[test]
fn on_real_threads_streams_of_all_threads_get_aac() {
    let limit = Duration::from_secs(60);
    let (transcoders, threads) = Transcoders::new(2, Encoders::default());
    let (heard, notified) = channel();
    let notify = Arc::new(move |_, stream: StreamId| heard.send(stream.0).expect("the test waits"));
    let mut started = Vec::new();
    threads.spawn(notify, |thread| started.push(thread)).expect("threads");
    assert_eq!(started.len(), 2);
    for (stream, data) in [(1, &MONO), (2, &STEREO)] {
        let ring = transcoders.open(StreamId(stream), WORKER, AUDIO_BITRATE);
        (0..5).for_each(|index| transcoders.push(&ring, packet(index, data)));
        assert_eq!(notified.recv_timeout(limit), Ok(stream));
        assert!(!ring.drain().is_empty());
    }
    transcoders.stop();
    for thread in started {
        thread.join().expect("ends");
    }
}
