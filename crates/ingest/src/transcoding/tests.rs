//! The audio threads and the thread that creates encoders, stepped by hand: no thread runs and no time passes.

mod failures;

use std::sync::Mutex;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use bytes::Bytes;
use headgate_media::{Channels, Codec, FrameKind, Timestamp, aac, opus};
use headgate_transcode::{AacBitrate, AacEncoder, EncoderError, EncoderKind};

use super::ring::{INPUT_LIMIT, OUTPUT_LIMIT, lock};
use super::serve::{RETRY_PACKETS, TURN_PACKETS_LIMIT};
use super::*;

const WORKER: usize = 3;
/// 20 ms of silence, mono and stereo (RFC 6716 3.1).
const MONO: [u8; 3] = [0xf8, 0xff, 0xfe];
const STEREO: [u8; 3] = [0xfc, 0xff, 0xfe];

/// Controls the encoders of a test and records which were created.
#[derive(Default)]
struct Factory {
    made: Mutex<Vec<EncoderKind>>,
    is_broken: AtomicBool,
    panics: AtomicBool,
    encoders_panic: AtomicBool,
    encoders_fail: AtomicBool,
}

impl Factory {
    fn create(self: &Arc<Self>, kind: EncoderKind) -> Result<Box<dyn AacEncoder>, EncoderError> {
        lock(&self.made).push(kind);
        assert!(!self.panics.load(Ordering::Relaxed), "factory on fire");
        if self.is_broken.load(Ordering::Relaxed) {
            return Err(EncoderError::Create(7));
        }
        Ok(Box::new(FakeEncoder(self.clone())))
    }
}

struct FakeEncoder(Arc<Factory>);

impl AacEncoder for FakeEncoder {
    fn encode(&mut self, _: &[i16]) -> Result<&[u8], EncoderError> {
        assert!(!self.0.encoders_panic.load(Ordering::Relaxed), "encoder on fire");
        let fails = self.0.encoders_fail.load(Ordering::Relaxed);
        if fails { Err(EncoderError::Encode(9)) } else { Ok(b"aac") }
    }

    fn reset(&mut self) -> Result<(), EncoderError> {
        Ok(())
    }

    fn delay_samples(&self) -> u32 {
        aac::SAMPLES_PER_FRAME
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
            let work = self.shared.encoders.poll();
            if jobs.is_empty() && work.is_none() {
                return std::mem::take(&mut *lock(&notified));
            }
            work.into_iter().for_each(|work| self.shared.make(work));
        }
    }
}

/// One audio thread and the thread that creates encoders, step by step.
struct Steps {
    transcoders: Transcoders,
    threads: TranscodingThreads,
    factory: Arc<Factory>,
    notify: Notify,
    notified: Arc<Mutex<Vec<u64>>>,
}

impl Steps {
    fn new(ahead: usize) -> Self {
        let (factory, notified) = (Arc::<Factory>::default(), Arc::<Mutex<Vec<u64>>>::default());
        let (creator, heard) = (factory.clone(), notified.clone());
        let pool = EncoderPool::with_factory(8, move |kind| creator.create(kind));
        let (transcoders, threads) = Transcoders::with_pool(1, ahead, pool);
        let notify: Notify = Arc::new(move |worker, stream: StreamId| {
            assert_eq!(worker, WORKER);
            lock(&heard).push(stream.0);
        });
        Self { transcoders, threads, factory, notify, notified }
    }

    fn open(&self, stream: u64) -> Arc<TranscoderRing> {
        self.transcoders.open(StreamId(stream), WORKER, AUDIO_BITRATE)
    }

    /// Opens a stream that has its encoder and whose output is drained.
    fn open_running(&self, stream: u64) -> Arc<TranscoderRing> {
        let ring = self.open(stream);
        self.push(&ring, 0..5);
        self.serve_all();
        self.make_one();
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

    /// Performs one task of the thread that creates encoders; false if it has nothing to do.
    fn make_one(&self) -> bool {
        let work = self.threads.shared.encoders.poll();
        work.map(|work| self.threads.shared.make(work)).is_some()
    }

    fn made(&self) -> usize {
        lock(&self.factory.made).len()
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
fn a_join_waits_for_its_encoder_and_other_streams_of_the_thread_do_not() {
    let steps = Steps::new(0);
    let running = steps.open_running(1);
    let joining = steps.open(2);
    steps.push(&joining, 0..5);
    steps.push(&running, 5..10);
    steps.serve_all();
    assert_eq!(steps.made(), 1, "none was made on the audio thread");
    assert_eq!(steps.notified(), [1]);
    assert!(!running.drain().is_empty() && joining.drain().is_empty());
    assert!(steps.make_one());
    steps.serve_all();
    assert_eq!(steps.notified(), [2]);
    let frames = joining.drain();
    assert_eq!(frames[0].kind, FrameKind::Configuration);
    assert_eq!(frames[1].timestamp, Timestamp::ZERO, "what waited is not lost");
    assert_eq!(frames.len(), 1 + 3, "5 packets are 3 whole frames behind one of priming");
    assert_eq!((steps.transcoders.running(), steps.transcoders.failed()), (2, 0));
}

#[test]
fn a_waiting_stream_does_not_request_an_encoder_for_each_packet() {
    let steps = Steps::new(0);
    let ring = steps.open(1);
    for index in 0..20 {
        steps.push(&ring, index..index + 1);
        steps.serve_all();
    }
    assert!(steps.make_one() && !steps.make_one());
    assert_eq!(steps.made(), 1);
}

#[test]
fn streams_get_encoders_in_the_order_of_their_requests() {
    let steps = Steps::new(0);
    let rings: Vec<_> = (1..=3).map(|stream| steps.open(stream)).collect();
    for ring in &rings {
        steps.push(ring, 0..5);
    }
    steps.serve_all();
    for stream in 1..=3 {
        assert!(steps.make_one());
        steps.serve_all();
        assert_eq!(steps.notified(), [stream]);
    }
}

#[test]
fn a_returned_encoder_goes_to_the_stream_that_waits_longest() {
    let steps = Steps::new(0);
    let ending = steps.open_running(1);
    let waiting = steps.open(2);
    steps.push(&waiting, 0..5);
    steps.serve_all();
    steps.transcoders.close(&ending);
    steps.serve_all();
    let newcomer = steps.open(3);
    steps.push(&newcomer, 0..5);
    steps.serve_all();
    assert!(steps.notified().is_empty(), "the newcomer does not overtake");
    assert!(steps.make_one());
    steps.serve_all();
    assert_eq!((steps.notified(), steps.made()), (vec![2], 1), "the used one was enough");
    assert!(steps.make_one());
    steps.serve_all();
    assert_eq!((steps.notified(), steps.made()), (vec![3], 2));
}

#[test]
fn a_stream_that_closes_while_it_waits_uses_no_encoder() {
    let steps = Steps::new(0);
    let ring = steps.open(1);
    steps.push(&ring, 0..5);
    steps.serve_all();
    steps.transcoders.close(&ring);
    steps.transcoders.close(&ring);
    steps.serve_all();
    assert!(!steps.make_one());
    assert_eq!((steps.made(), steps.transcoders.running()), (0, 0));
}

#[test]
fn an_encoder_delivered_after_the_close_goes_back_to_the_pool() {
    let steps = Steps::new(0);
    let ring = steps.open(1);
    steps.push(&ring, 0..5);
    steps.serve_all();
    assert!(steps.make_one());
    steps.transcoders.close(&ring);
    steps.serve_all();
    let next = steps.open(2);
    steps.push(&next, 0..5);
    steps.serve_all();
    assert_eq!((steps.notified(), steps.made()), (vec![2], 1));
}

#[test]
fn encoders_are_made_in_advance_only_for_kinds_that_were_requested() {
    let steps = Steps::new(2);
    assert!(!steps.make_one(), "no publish with Opus is starting");
    steps.transcoders.warm();
    while steps.make_one() {}
    let mut made = lock(&steps.factory.made).clone();
    made.sort_by_key(|kind| kind.channels.count());
    let [mono, stereo] = [Channels::Mono, Channels::Stereo].map(kind);
    assert_eq!(made, [mono, mono, stereo, stereo]);
    // The encoder that was taken is replaced.
    let ring = steps.open(1);
    steps.push(&ring, 0..5);
    steps.serve_all();
    assert_eq!(steps.notified(), [1], "an idle encoder is available immediately");
    while steps.make_one() {}
    assert_eq!(lock(&steps.factory.made)[4..], [mono]);
}

#[test]
fn a_request_precedes_encoders_made_in_advance() {
    let steps = Steps::new(2);
    steps.transcoders.warm();
    assert!(steps.make_one());
    let ring = steps.transcoders.open(StreamId(1), WORKER, AacBitrate::PerChannel(48_000));
    steps.push(&ring, 0..5);
    steps.serve_all();
    assert!(steps.make_one());
    let made = lock(&steps.factory.made).clone();
    assert_eq!(made[1], EncoderKind::new(Channels::Mono, AacBitrate::PerChannel(48_000)));
}

#[test]
fn a_burst_shares_its_thread() {
    let steps = Steps::new(0);
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
    let steps = Steps::new(0);
    let ring = steps.open(1);
    steps.push(&ring, 0..10);
    steps.serve_all();
    steps.push(&ring, 10..2_000);
    steps.serve_all();
    assert!(steps.make_one());
    steps.serve_all();
    let frames = ring.drain();
    assert!(frames.len() <= INPUT_LIMIT, "{}", frames.len());
    let oldest_left = Timestamp::from_millis((2_000 - INPUT_LIMIT as i64) * 20);
    assert!(frames.iter().any(|frame| frame.timestamp == oldest_left));
    assert!(frames.last().expect("some").timestamp > Timestamp::from_millis(2_000 * 20 - 80));
}

#[test]
fn a_worker_that_does_not_drain_loses_the_oldest_frames_and_no_configuration() {
    let steps = Steps::new(0);
    let ring = steps.open(1);
    steps.push(&ring, 0..1);
    steps.serve_all();
    assert!(steps.make_one());
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
fn stereo_audio_waits_for_a_stereo_encoder_and_loses_nothing() {
    let steps = Steps::new(0);
    let ring = steps.open_running(1);
    steps.push(&ring, 5..10);
    (10..20).for_each(|index| steps.transcoders.push(&ring, packet(index, &STEREO)));
    steps.serve_all();
    let before = ring.drain();
    assert!(before.iter().all(|frame| frame.kind == FrameKind::Audio));
    assert!(steps.make_one());
    steps.serve_all();
    let after = ring.drain();
    assert_eq!(after[0].data[..], aac::lc_48k(Channels::Stereo));
    let last = before.last().expect("some").timestamp.as_micros();
    assert!((21_333..=21_334).contains(&(after[1].timestamp.as_micros() - last)));
    assert_eq!(lock(&steps.factory.made)[..], [Channels::Mono, Channels::Stereo].map(kind));
}

#[test]
fn on_real_threads_audio_continues_while_an_encoder_is_being_made() {
    let limit = Duration::from_secs(60);
    let (begun, has_begun) = channel();
    let (release, released) = channel::<()>();
    let released = Mutex::new(released);
    let pool = EncoderPool::with_factory(8, move |kind| {
        if kind.channels == Channels::Stereo {
            begun.send(()).expect("the test waits");
            lock(&released).recv_timeout(limit).expect("released");
        }
        Arc::<Factory>::default().create(kind)
    });
    let (transcoders, threads) = Transcoders::with_pool(1, 0, pool);
    let (heard, notified) = channel();
    let notify = Arc::new(move |_, stream: StreamId| heard.send(stream.0).expect("the test waits"));
    let mut started = Vec::new();
    threads.spawn(notify, |thread| started.push(thread)).expect("threads");
    let [mono, stereo] =
        [1, 2].map(|stream| transcoders.open(StreamId(stream), WORKER, AUDIO_BITRATE));
    (0..5).for_each(|index| transcoders.push(&mono, packet(index, &MONO)));
    assert_eq!(notified.recv_timeout(limit), Ok(1));
    assert!(!mono.drain().is_empty());
    (0..5).for_each(|index| transcoders.push(&stereo, packet(index, &STEREO)));
    assert_eq!(has_begun.recv_timeout(limit), Ok(()));
    (5..10).for_each(|index| transcoders.push(&mono, packet(index, &MONO)));
    assert_eq!(notified.recv_timeout(limit), Ok(1), "while the other's encoder is being made");
    release.send(()).expect("the factory waits");
    assert_eq!(notified.recv_timeout(limit), Ok(2));
    transcoders.stop();
    for thread in started {
        thread.join().expect("ends");
    }
}
