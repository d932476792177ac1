//! Streams that cannot be transcoded: the reason they report, and that other streams are not affected.

use super::*;

#[test]
fn a_panic_where_encoders_are_made_is_a_failure_of_that_stream() {
    let steps = Steps::new();
    steps.factory.panics.store(true, Ordering::Relaxed);
    let ring = steps.open(1);
    steps.push(&ring, 0..1);
    steps.serve_all();
    assert_eq!(ring.failure().as_deref(), Some("the transcoder panicked: factory on fire"));
    assert_eq!((steps.notified(), steps.transcoders.failed()), (vec![1], 1));
}

#[test]
fn a_panic_ends_only_one_transcoder_with_its_reason() {
    let steps = Steps::new();
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
    assert_eq!(steps.made().len(), 3, "the encoder that panicked is not used again");
}

#[test]
fn multichannel_opus_is_refused_by_name() {
    let steps = Steps::new();
    let ring = steps.open(1);
    let mut head = opus::head(Channels::Stereo);
    (head[9], head[18]) = (6, 1);
    let (kind, data) = (FrameKind::Configuration, Bytes::copy_from_slice(&head));
    steps.transcoders.push(&ring, Frame { kind, data, ..packet(0, &MONO) });
    steps.push(&ring, 0..20);
    steps.serve_all();
    assert_eq!(steps.made(), [], "no encoder is made for it");
    let reason = "Opus cannot be transcoded: multichannel Opus (mapping family 1, 6 channels)";
    assert_eq!(ring.failure().as_deref(), Some(reason));
    assert_eq!((steps.notified(), steps.transcoders.failed()), (vec![1], 1));
}
