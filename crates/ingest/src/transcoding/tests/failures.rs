//! Streams that cannot be transcoded: the reason they report, and that other streams are not affected.

use super::*;

#[test]
fn a_stream_without_an_encoder_reports_why_and_requests_one_again_later() {
    let steps = Steps::new(0);
    steps.factory.is_broken.store(true, Ordering::Relaxed);
    let ring = steps.open(1);
    steps.push(&ring, 0..5);
    steps.serve_all();
    assert!(steps.make_one());
    assert_eq!(ring.failure(), None);
    steps.serve_all();
    assert_eq!(ring.failure().as_deref(), Some("no AAC encoder could be made (status 0x7)"));
    assert_eq!((steps.notified(), steps.transcoders.failed()), (vec![1], 1));
    // The packets that waited when it failed are skipped as well.
    let passed_over = 5 - 1;
    steps.push(&ring, 5..5 + i64::from(RETRY_PACKETS) - passed_over);
    steps.serve_all();
    assert!(!steps.make_one());
    steps.factory.is_broken.store(false, Ordering::Relaxed);
    steps.push(&ring, 300..310);
    steps.serve_all();
    assert!(steps.make_one());
    steps.serve_all();
    assert_eq!((ring.failure(), steps.notified()), (None, vec![1]));
    assert!(ring.drain().len() > 5);
    assert_eq!(steps.transcoders.failed(), 1);
}

#[test]
fn a_stream_that_fails_again_is_counted_once() {
    let steps = Steps::new(0);
    steps.factory.is_broken.store(true, Ordering::Relaxed);
    let ring = steps.open(1);
    for index in 0..2_000 {
        steps.push(&ring, index..index + 1);
        steps.serve_all();
        steps.make_one();
    }
    assert_eq!(steps.made(), 8, "one for about every {RETRY_PACKETS} packets");
    assert_eq!((steps.transcoders.failed(), steps.notified()), (1, vec![1]));
}

#[test]
fn an_encoder_that_cannot_be_made_in_advance_is_not_retried() {
    let steps = Steps::new(1);
    steps.factory.is_broken.store(true, Ordering::Relaxed);
    steps.transcoders.warm();
    while steps.make_one() {}
    assert_eq!((steps.made(), steps.transcoders.failed()), (2, 0));
}

#[test]
fn a_panic_where_encoders_are_made_is_a_failure_of_that_stream() {
    let steps = Steps::new(0);
    steps.factory.panics.store(true, Ordering::Relaxed);
    let ring = steps.open(1);
    steps.push(&ring, 0..1);
    steps.serve_all();
    assert!(steps.make_one());
    steps.serve_all();
    let failure = ring.failure().expect("failed");
    assert_eq!(failure, "no AAC encoder could be made: factory on fire");
}

#[test]
fn consecutive_encoder_failures_are_a_failure() {
    let steps = Steps::new(0);
    steps.factory.encoders_fail.store(true, Ordering::Relaxed);
    let ring = steps.open(1);
    for index in 0..200 {
        steps.push(&ring, index..index + 1);
        steps.serve_all();
        steps.make_one();
    }
    assert_eq!(ring.failure().as_deref(), Some("AAC encoder refused a frame (status 0x9)"));
    assert_eq!((steps.made(), steps.transcoders.failed()), (3, 1));
}

#[test]
fn a_panic_ends_only_one_transcoder_with_its_reason() {
    let steps = Steps::new(0);
    let [broken, other] = [1, 2].map(|stream| steps.open_running(stream));
    steps.factory.encoders_panic.store(true, Ordering::Relaxed);
    steps.push(&broken, 5..10);
    steps.serve_all();
    steps.factory.encoders_panic.store(false, Ordering::Relaxed);
    assert_eq!(broken.failure().as_deref(), Some("the transcoder panicked: encoder on fire"));
    assert_eq!((steps.notified(), steps.transcoders.failed()), (vec![1], 1));
    steps.push(&broken, 10..500);
    steps.push(&other, 5..10);
    steps.serve_all();
    assert!(broken.drain().is_empty() && !other.drain().is_empty());
    assert_eq!((other.failure(), steps.notified()), (None, vec![2]));
    steps.transcoders.close(&broken);
    assert_eq!(steps.transcoders.running(), 1);
    let reopened = steps.open_running(1);
    assert_eq!(reopened.failure(), None);
    assert_eq!(steps.made(), 3, "the encoder that panicked is not used again");
}

#[test]
fn multichannel_opus_is_refused_by_name() {
    let steps = Steps::new(0);
    let ring = steps.open(1);
    let mut head = opus::head(Channels::Stereo);
    (head[9], head[18]) = (6, 1);
    let (kind, data) = (FrameKind::Configuration, Bytes::copy_from_slice(&head));
    steps.transcoders.push(&ring, Frame { kind, data, ..packet(0, &MONO) });
    steps.push(&ring, 0..20);
    steps.serve_all();
    assert!(!steps.make_one(), "no encoder is made for it");
    let reason = "Opus cannot be transcoded: multichannel Opus (mapping family 1, 6 channels)";
    assert_eq!(ring.failure().as_deref(), Some(reason));
    assert_eq!((steps.notified(), steps.transcoders.failed()), (vec![1], 1));
}
