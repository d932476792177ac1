//! Every way in which a publish ends is reported once, with its reason and its bytes.

use headgate_rtmp::ClientEvent;

use super::Core;
use super::peer::Peer;
use crate::{Denial, EndReason, Hold};

#[test]
fn unpublish_and_reset_and_a_closed_connection_end_once_with_their_bytes() {
    let mut core = Core::start(2);
    let close: [(fn(Peer), EndReason); 3] = [
        (|mut peer| peer.say_goodbye(), EndReason::Unpublished),
        (Peer::reset, EndReason::BroadcasterLeft),
        (drop, EndReason::BroadcasterLeft),
    ];
    for (id, (close, reason)) in (1..).zip(close) {
        let mut publisher = core.publisher("cam", id, &[]);
        for n in 0..10 {
            publisher.send_frame(n, 5);
        }
        // A reset may overtake data that is in flight: wait until the core has counted it.
        let bytes = 10 * Peer::FRAME_BYTES;
        while core.ingest.snapshot(id).is_some_and(|snapshot| snapshot.bytes_in < bytes) {
            publisher.step();
        }
        close(publisher);
        let ended = core.ended(id);
        assert_eq!((ended.reason, ended.bytes_in), (reason, bytes));
    }
    assert_eq!(core.ended_count(), 0);
}

#[test]
fn a_denied_broadcaster_gets_the_reason_and_no_end_is_reported() {
    let mut core = Core::start(1);
    let mut publisher = Peer::publish(core.port(), "cam?pass=x");
    let request = core.request_of(&mut publisher);
    assert_eq!(
        (request.name.as_slice(), request.arguments.as_deref()),
        (&b"cam"[..], Some(&b"pass=x"[..]))
    );
    core.ingest.deny(request.request, Denial::Denied, "Not today".into());
    let refused = publisher.wait_event(|event| matches!(event, ClientEvent::Refused { .. }));
    let want = ("NetStream.Publish.Denied".into(), "Not today".into());
    let ClientEvent::Refused { code, description, .. } = refused else {
        unreachable!("just matched")
    };
    assert_eq!((code, description), want);
    while publisher.step() {}
    assert_eq!(core.ended_count(), 0);
}

#[test]
fn a_broadcaster_that_left_before_the_answer_is_accepted_and_ended() {
    let mut core = Core::start(2);
    let mut publisher = Peer::publish(core.port(), "cam");
    let request = core.request_of(&mut publisher);
    publisher.reset();
    core.ingest.allow(request.request, 9, Vec::new(), Hold::default());
    assert_eq!(core.ended(9).reason, EndReason::BroadcasterLeft);
}

#[test]
fn the_gateway_ends_a_publish_with_a_description() {
    let mut core = Core::start(2);
    let mut publisher = core.publisher("cam", 3, &[]);
    publisher.send_frame(0, 5);
    core.ingest.end(3, EndReason::RejectedByCustomer, "Time is up".into());
    let ended = publisher.wait_event(|event| matches!(event, ClientEvent::Ended { .. }));
    let (code, description) = ("NetStream.Publish.Denied".into(), "Time is up".into());
    assert_eq!(ended, ClientEvent::Ended { code, description });
    assert_eq!(core.ended(3).reason, EndReason::RejectedByCustomer);
}

#[test]
fn stopping_ends_and_reports_everything() {
    let mut core = Core::start(2);
    let publishers: Vec<Peer> =
        (1..=4).map(|id| core.publisher(&format!("cam{id}"), id, &[])).collect();
    core.ingest.stop();
    for id in 1..=4 {
        assert_eq!(core.ended(id).reason, EndReason::Shutdown);
    }
    drop(publishers);
}
