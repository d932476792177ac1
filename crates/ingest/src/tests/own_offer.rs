//! Publishers that answer an offer of ours, as with the deprecated v5 signalling.

use std::time::Instant;

use headgate_peer::{Publisher, Settings};

use super::Core;
use super::whip::{Broadcaster, publish_of, wait_until};
use crate::{AnswerError, EndReason, OfferError, own_offer};

/// Opens `cam` as client 1; returns the publisher and our offer.
fn open(core: &Core) -> (Publisher, String) {
    let publish = publish_of(1, "cam", own_offer(true, true).expect("two sections"));
    let offer = core.ingest.open_whip(publish).expect("an offer");
    (Publisher::new(Settings::default()).expect("a publisher"), offer)
}

#[test]
fn a_client_that_answers_our_offer_publishes() {
    let mut core = Core::start(2);
    let (mut publisher, offer) = open(&core);
    // The peer's offer has the shape and the payload types of an answer to ours.
    let answer = publisher.offer().replace("a=setup:actpass", "a=setup:active");
    let understood = offer.replace("a=setup:actpass", "a=setup:passive");
    publisher.handle_answer(Instant::now(), &understood).expect("an acceptable offer");
    let refused = core.ingest.answer_whip(1, &answer.replace("a=mid:1", "a=mid:x"));
    assert_eq!(refused, Err(AnswerError::Refused(OfferError::Transport)), "it is in no bundle");
    assert_eq!(core.ingest.answer_whip(1, &answer), Ok(()), "a refused one may be followed");
    assert_eq!(core.ingest.answer_whip(1, &answer), Err(AnswerError::NotAwaited));
    assert_eq!(core.ingest.answer_whip(2, &answer), Err(AnswerError::NotAwaited));
    let broadcaster = Broadcaster::run(publisher, false);
    wait_until("media arrives", || core.ingest.snapshot(1).is_some_and(|s| s.bytes_in > 20_000));
    assert!(core.ingest.is_whip_connected(1));
    broadcaster.stop();
    assert_eq!(core.ended(1).reason, EndReason::Unpublished);
}

#[test]
fn ending_a_publish_before_the_answer_to_our_offer_reports_its_end() {
    let mut core = Core::start(1);
    let (publisher, _) = open(&core);
    core.ingest.end(1, EndReason::Unpublished, String::new());
    assert_eq!(core.ended(1).reason, EndReason::Unpublished);
    let late = core.ingest.answer_whip(1, &publisher.offer());
    assert_eq!(late, Err(AnswerError::NotAwaited));
}
