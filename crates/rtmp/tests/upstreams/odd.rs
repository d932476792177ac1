//! Upstreams that answer in other forms than the specification's: what can only mean yes is accepted, what can only
//! mean no is a refusal in the upstream's words.

use std::time::Duration;

use headgate_rtmp::{ClientEvent, RefusalKind};

use crate::fake::{Amf, CONNECT, CREATE_STREAM, Upstream, publisher, status};
use crate::{START, publishes_on, start};

/// Our transaction id of publish.
const PUBLISH: f64 = 5.0;

/// Sends an onStatus with these values after the transaction id, and returns what it caused.
fn notify(upstream: &mut Upstream, stream: u32, values: Vec<Amf<'_>>) -> Vec<ClientEvent> {
    let values: Vec<_> = [Amf::Number(0.0)].into_iter().chain(values).collect();
    upstream.command(stream, "onStatus", &values);
    upstream.events()
}

/// What an answer to publish causes.
fn answered(values: Vec<Amf<'_>>) -> Vec<ClientEvent> {
    notify(&mut Upstream::starting(), 1, values)
}

fn refused(code: &str, description: &str, kind: RefusalKind) -> [ClientEvent; 2] {
    let (code, description) = (code.to_owned(), description.to_owned());
    [ClientEvent::Refused { code, description, kind }, ClientEvent::Close]
}

#[test]
fn publish_may_be_answered_as_a_call() {
    for values in [
        vec![Amf::Null],
        vec![],
        vec![Amf::Null, Amf::Number(1.0)],
        vec![Amf::Null, status("status", START, "")],
        vec![Amf::Null, Amf::Text("ok")],
    ] {
        let mut upstream = Upstream::starting();
        upstream.answers("_result", PUBLISH, &values);
        assert_eq!(upstream.events(), [ClientEvent::Ready]);
        start(&mut upstream);
        assert_eq!(upstream.events(), [], "the onStatus that follows");
    }
    let mut upstream = Upstream::starting();
    upstream.answers("_result", 0.0, &[Amf::Null, status("status", START, "")]);
    assert_eq!(upstream.events(), [ClientEvent::Ready]);
}

#[test]
fn late_answers_to_earlier_commands_do_not_start_a_publish() {
    let mut upstream = Upstream::starting();
    for transaction in [1.0, 2.0, 3.0, CREATE_STREAM] {
        upstream.answers("_result", transaction, &[Amf::Null, Amf::Number(1.0)]);
    }
    upstream.answers(
        "_result",
        CONNECT,
        &[Amf::Null, status("status", "NetConnection.Connect.Success", "")],
    );
    upstream.answers(
        "_error",
        CREATE_STREAM,
        &[Amf::Null, status("error", "NetConnection.Call.Failed", "")],
    );
    assert_eq!(upstream.events(), []);
    start(&mut upstream);
    assert_eq!(upstream.events(), [ClientEvent::Ready]);
}

#[test]
fn a_result_that_reports_a_failure_is_a_refusal() {
    let mut upstream = Upstream::starting();
    let denied = || status("error", "NetStream.Publish.Denied", "wrong key");
    upstream.answers("_result", PUBLISH, &[Amf::Null, denied()]);
    assert_eq!(
        upstream.events(),
        refused("NetStream.Publish.Denied", "wrong key", RefusalKind::Denied)
    );
    let mut upstream = Upstream::creating();
    upstream.answers("_result", CREATE_STREAM, &[Amf::Null, denied()]);
    assert_eq!(
        upstream.events(),
        refused("NetStream.Publish.Denied", "wrong key", RefusalKind::Denied)
    );
    let mut upstream = Upstream::shaken(publisher());
    let rejected = status("error", "NetConnection.Connect.Rejected", "no");
    upstream.answers("_result", CONNECT, &[Amf::Null, rejected]);
    assert_eq!(
        upstream.events(),
        refused("NetConnection.Connect.Rejected", "no", RefusalKind::Denied)
    );
}

#[test]
fn connect_may_be_answered_by_a_status() {
    for result_follows in [false, true] {
        let mut upstream = Upstream::shaken(publisher());
        let success = status("status", "NetConnection.Connect.Success", "");
        upstream.command(0, "onStatus", &[Amf::Number(0.0), Amf::Null, success]);
        if result_follows {
            upstream.answers("_result", CONNECT, &[Amf::Null]);
        }
        upstream.answers("_result", CREATE_STREAM, &[Amf::Null, Amf::Number(2.0)]);
        assert!(publishes_on(&mut upstream, 2));
    }
}

#[test]
fn a_start_is_known_in_any_spelling_and_on_any_stream() {
    for (level, code) in [
        ("status", "netstream.publish.start"),
        ("Status", "NETSTREAM.PUBLISH.START"),
        ("STATUS", " NetStream.Publish.Start "),
        ("warning", "NetStream.Publish.Start"),
        ("", "NetStream.Publish.Started"),
        ("status", "NetStream.Publish.Success"),
        ("status", "NetStream.publish.OK"),
        ("status", "Publish.Start"),
        ("status", ""),
    ] {
        for stream in [0, 1, 7] {
            let mut upstream = Upstream::starting();
            let events = notify(&mut upstream, stream, vec![Amf::Null, status(level, code, "")]);
            assert_eq!(events, [ClientEvent::Ready], "{level} {code} on {stream}");
        }
    }
}

#[test]
fn a_start_may_come_without_an_object() {
    let level = || Amf::Object(vec![("level", Amf::Text("status"))]);
    for values in [
        vec![],
        vec![Amf::Null],
        vec![Amf::Null, Amf::Null],
        vec![Amf::Null, Amf::Text(START)],
        vec![Amf::Text(START)],
        vec![Amf::Null, level()],
        vec![Amf::Null, Amf::Object(vec![("code", Amf::Text(START))])],
    ] {
        assert_eq!(answered(values), [ClientEvent::Ready]);
    }
}

#[test]
fn what_says_neither_yes_nor_no_is_waited_out() {
    for (level, code) in [
        ("status", "NetStream.Publish.Idle"),
        ("status", "NetStream.Data.Start"),
        ("status", "NetStream.Record.Start"),
        ("status", "NetStream.Play.PublishNotify"),
        ("status", "NetConnection.Connect.Success"),
        ("error", "NetConnection.Call.Failed"),
        ("error", "NetStream.Record.NoAccess"),
        ("warning", ""),
    ] {
        let mut upstream = Upstream::starting();
        let events = notify(&mut upstream, 1, vec![Amf::Null, status(level, code, "")]);
        assert_eq!(events, [], "{level} {code}");
        start(&mut upstream);
        assert_eq!(upstream.events(), [ClientEvent::Ready], "{level} {code}");
    }
    assert_eq!(answered(vec![Amf::Null, Amf::Text("the stream is not allowed")]), []);
}

#[test]
fn a_refusal_is_known_in_any_spelling_and_keeps_its_words() {
    for (level, code, kind) in [
        ("Error", "NetStream.Publish.BadName", RefusalKind::BadName),
        ("ERROR", "netstream.publish.badname", RefusalKind::BadName),
        ("status", "NetStream.Publish.Denied", RefusalKind::Denied),
        ("warning", "NetStream.Publish.rejected", RefusalKind::Denied),
        ("status", "NetConnection.Connect.InvalidApp", RefusalKind::InvalidApp),
        ("error", "Publish.Start.Forbidden", RefusalKind::Unknown),
    ] {
        let events = answered(vec![Amf::Null, status(level, code, "your plan has ended")]);
        assert_eq!(events, refused(code, "your plan has ended", kind), "{level} {code}");
    }
    let bad = "NetStream.Publish.BadName";
    assert_eq!(answered(vec![Amf::Null, Amf::Text(bad)]), refused(bad, "", RefusalKind::BadName));
}

#[test]
fn an_answer_to_create_stream_may_be_zero_or_no_stream_id_at_all() {
    for (number, stream) in [
        (Amf::Number(0.0), 0),
        (Amf::Text("0"), 0),
        (Amf::Number(-1.0), 1),
        (Amf::Number(1e20), 1),
        (Amf::Number(f64::INFINITY), 1),
        (Amf::Number(2.7), 2),
        (Amf::Text(" 3 "), 3),
        (Amf::Text("99999999999"), 1),
    ] {
        let mut upstream = Upstream::creating();
        upstream.answers("_result", CREATE_STREAM, &[Amf::Null, number]);
        assert!(publishes_on(&mut upstream, stream), "{stream}");
        start(&mut upstream);
        assert_eq!(upstream.events(), [ClientEvent::Ready]);
    }
}

#[test]
fn unknown_commands_and_errors_of_others_change_nothing() {
    let chatter = |upstream: &mut Upstream| {
        for name in ["onBWCheck", "_checkbw", "onPublishInfo", "", "|RtmpSampleAccess", "onFI"] {
            upstream.command(0, name, &[Amf::Number(9.0), Amf::Null, Amf::Text("x")]);
        }
        for transaction in [2.0, 3.0] {
            let failed = status("error", "NetConnection.Call.Failed", "no such method");
            upstream.answers("_error", transaction, &[Amf::Null, failed]);
        }
    };
    let mut upstream = Upstream::shaken(publisher());
    upstream.command(0, "onBWDone", &[]);
    upstream.answers("_RESULT", CONNECT, &[Amf::Null]);
    chatter(&mut upstream);
    upstream.answers("_Result", CREATE_STREAM, &[Amf::Null, Amf::Number(1.0)]);
    chatter(&mut upstream);
    assert_eq!(upstream.events(), []);
    let start = status("status", START, "");
    upstream.command(1, "OnStatus", &[Amf::Number(0.0), Amf::Null, start]);
    chatter(&mut upstream);
    assert_eq!(upstream.events(), [ClientEvent::Ready]);
}

#[test]
fn a_status_beside_the_publish_does_not_end_it() {
    for (level, code) in [
        ("status", START),
        ("status", "NetStream.Publish.Idle"),
        ("status", "NetStream.Data.Start"),
        ("status", "NetStream.Buffer.Full"),
        ("error", "NetStream.Record.DiskQuotaExceeded"),
        ("error", "NetStream.Record.Failed"),
        ("error", "NetConnection.Call.BadVersion"),
        ("error", "netconnection.call.failed"),
        ("warning", "NetStream.Play.InsufficientBW"),
        ("", ""),
    ] {
        let mut upstream = Upstream::starting();
        start(&mut upstream);
        notify(&mut upstream, 1, vec![Amf::Null, status(level, code, "x")]);
        assert_eq!(upstream.events(), [], "{level} {code}");
    }
    for (level, code) in
        [("status", "NetStream.Unpublish.Success"), ("Error", "x"), ("status", "NetStream.Failed")]
    {
        let mut upstream = Upstream::starting();
        start(&mut upstream);
        upstream.events();
        let events = notify(&mut upstream, 1, vec![Amf::Null, status(level, code, "why")]);
        let (code, description) = (code.into(), "why".into());
        assert_eq!(events, [ClientEvent::Ended { code, description }, ClientEvent::Close]);
    }
}

/// An onFCPublish with this status.
fn fc_publish(upstream: &mut Upstream, level: &str, code: &str) {
    let values = [Amf::Number(0.0), Amf::Null, status(level, code, "words")];
    upstream.command(0, "onFCPublish", &values);
}

#[test]
fn an_fc_publish_that_answers_publish_counts_if_nothing_else_comes() {
    let mut upstream = Upstream::starting();
    fc_publish(&mut upstream, "status", START);
    assert_eq!(upstream.after(Duration::from_millis(4_900)), Ok(()));
    assert_eq!(upstream.events(), []);
    assert_eq!(upstream.after(Duration::from_millis(200)), Ok(()));
    assert_eq!(upstream.events(), [ClientEvent::Ready]);
    start(&mut upstream);
    assert_eq!((upstream.events(), upstream.after(Duration::from_secs(60))), (vec![], Ok(())));

    let bad = "NetStream.Publish.BadName";
    let mut upstream = Upstream::starting();
    fc_publish(&mut upstream, "error", bad);
    assert_eq!(upstream.after(Duration::from_secs(6)), Ok(()));
    assert_eq!(upstream.events(), refused(bad, "words", RefusalKind::BadName));
}

#[test]
fn an_fc_publish_before_publish_counts_only_when_the_time_for_an_answer_has_passed() {
    let mut upstream = Upstream::creating();
    fc_publish(&mut upstream, "status", START);
    upstream.answers("_result", CREATE_STREAM, &[Amf::Null, Amf::Number(1.0)]);
    assert_eq!(upstream.after(Duration::from_secs(29)), Ok(()));
    assert_eq!(upstream.events(), []);
    assert_eq!(upstream.after(Duration::from_secs(2)), Ok(()));
    assert_eq!(upstream.events(), [ClientEvent::Ready]);
    // The actual answer decides.
    let mut upstream = Upstream::creating();
    fc_publish(&mut upstream, "error", "NetStream.Publish.BadName");
    upstream.answers("_result", CREATE_STREAM, &[Amf::Null, Amf::Number(1.0)]);
    start(&mut upstream);
    assert_eq!(upstream.events(), [ClientEvent::Ready]);
}
