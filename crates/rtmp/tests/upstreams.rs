//! Replies of real upstreams, as bytes made by hand: their variants here, the rest in modules.

#[path = "upstreams/authentication.rs"]
mod authentication;
#[path = "upstreams/fake.rs"]
mod fake;
#[path = "upstreams/media.rs"]
mod media;
#[path = "upstreams/odd.rs"]
mod odd;
#[path = "upstreams/refusals.rs"]
mod refusals;
#[path = "upstreams/turns.rs"]
mod turns;
#[path = "support/wire_times.rs"]
mod wire_times;

use std::time::Duration;

use fake::{Amf, CONNECT, CREATE_STREAM, Upstream, position, publisher, status};
use headgate_rtmp::{ClientConfig, ClientEvent, ClientRole};

const SECOND: Duration = Duration::from_secs(1);
const START: &str = "NetStream.Publish.Start";

/// Whether the client wrote a publish command on this message stream.
fn publishes_on(upstream: &mut Upstream, stream: u8) -> bool {
    let written = upstream.written();
    let publish = [&[20, stream, 0, 0, 0, 2, 0, 7][..], b"publish"].concat();
    position(&written, &publish).is_some()
}

/// The upstream reports that the publish has started.
fn start(upstream: &mut Upstream) {
    let values = [Amf::Number(0.0), Amf::Null, status("status", START, "")];
    upstream.command(1, "onStatus", &values);
}

#[test]
fn an_upstream_that_answers_only_the_essential_commands_is_accepted() {
    let mut upstream = Upstream::starting();
    assert!(publishes_on(&mut upstream, 1));
    start(&mut upstream);
    assert_eq!(upstream.events(), [ClientEvent::Ready]);
}

#[test]
fn an_answer_to_create_stream_may_overtake_others() {
    let mut upstream = Upstream::creating();
    upstream.answers("_result", CREATE_STREAM, &[Amf::Null, Amf::Number(5.0)]);
    upstream.answers("_result", 3.0, &[Amf::Null, Amf::Null]);
    upstream.answers("_result", 2.0, &[Amf::Null, Amf::Null]);
    assert!(publishes_on(&mut upstream, 5));
    start(&mut upstream);
    assert_eq!(upstream.events(), [ClientEvent::Ready]);
}

#[test]
fn answers_to_release_stream_and_fc_publish_create_no_stream() {
    let mut upstream = Upstream::creating();
    upstream.answers("_result", 2.0, &[Amf::Null, Amf::Null]);
    upstream.answers("_result", 3.0, &[Amf::Null, Amf::Number(7.0)]);
    assert!(!publishes_on(&mut upstream, 7));
}

#[test]
fn a_refused_release_stream_is_ignored() {
    let mut upstream = Upstream::creating();
    let information = status("error", "NetConnection.Call.Failed", "no such stream");
    upstream.answers("_error", 2.0, &[Amf::Null, information]);
    assert_eq!(upstream.events(), []);
}

#[test]
fn a_stream_id_is_found_at_every_position_and_in_every_form() {
    let four = || Amf::Number(CREATE_STREAM);
    for (values, stream) in [
        (vec![four(), Amf::Null, Amf::Text("3")], 3),
        (vec![Amf::Text("4"), Amf::Null, Amf::Number(3.0)], 3),
        (vec![Amf::Number(0.0), Amf::Null, Amf::Number(3.0)], 3),
        (vec![Amf::Number(17.0), Amf::Null, Amf::Text("3")], 3),
        (vec![Amf::Null, Amf::Number(3.0)], 3),
        (vec![four(), Amf::Number(3.0)], 3),
        (vec![four(), Amf::Null], 1),
        (vec![four(), Amf::Null, Amf::Text("one")], 1),
        (vec![four(), Amf::Null, Amf::Number(f64::NAN)], 1),
    ] {
        let mut upstream = Upstream::creating();
        upstream.written();
        upstream.command(0, "_result", &values);
        assert!(publishes_on(&mut upstream, stream));
    }
}

#[test]
fn connect_may_be_answered_without_its_transaction_id() {
    let mut upstream = Upstream::shaken(publisher());
    upstream.command(0, "_result", &[Amf::Null]);
    assert!(position(&upstream.written(), b"createStream").is_some());
}

#[test]
fn a_start_without_level_counts() {
    let mut upstream = Upstream::starting();
    upstream.command(1, "onStatus", &[Amf::Number(0.0), Amf::Null, status("", START, "")]);
    assert_eq!(upstream.events(), [ClientEvent::Ready]);
}

#[test]
fn a_start_may_come_on_stream_0() {
    let mut upstream = Upstream::starting();
    upstream.command(0, "onStatus", &[Amf::Number(5.0), Amf::Null, status("status", START, "")]);
    assert_eq!(upstream.events(), [ClientEvent::Ready]);
}

#[test]
fn a_start_may_take_the_place_of_the_command_object() {
    let mut upstream = Upstream::starting();
    upstream.command(1, "onStatus", &[Amf::Number(0.0), status("status", START, "")]);
    assert_eq!(upstream.events(), [ClientEvent::Ready]);
}

#[test]
fn bandwidth_done_and_on_fc_publish_are_ignored_at_any_time() {
    let mut upstream = Upstream::shaken(publisher());
    let chatter = |upstream: &mut Upstream| {
        upstream.command(0, "onBWDone", &[Amf::Number(0.0), Amf::Null, Amf::Number(8192.0)]);
        let information = status("status", START, "cam");
        upstream.command(0, "onFCPublish", &[Amf::Number(0.0), Amf::Null, information]);
    };
    chatter(&mut upstream);
    upstream.answers("_result", CONNECT, &[Amf::Null]);
    chatter(&mut upstream);
    upstream.answers("_result", CREATE_STREAM, &[Amf::Null, Amf::Number(1.0)]);
    chatter(&mut upstream);
    assert_eq!(upstream.events(), []);
    start(&mut upstream);
    chatter(&mut upstream);
    assert_eq!(upstream.events(), [ClientEvent::Ready]);
}

#[test]
fn window_bandwidth_chunk_size_and_stream_begin_come_in_any_order() {
    const CONTROLS: [(u8, &[u8]); 4] = [
        (5, &[0, 0x26, 0x25, 0xa0]),
        (6, &[0, 0x26, 0x25, 0xa0, 2]),
        (1, &[0, 0, 0, 128]),
        (4, &[0, 0, 0, 0, 0, 1]),
    ];
    for first in 0..CONTROLS.len() {
        let mut upstream = Upstream::shaken(publisher());
        let mut controls = CONTROLS.iter().cycle().skip(first);
        let mut say = |upstream: &mut Upstream, count| {
            for (kind, payload) in controls.by_ref().take(count) {
                upstream.sends(*kind, 0, payload);
            }
        };
        say(&mut upstream, 2);
        upstream.answers("_result", CONNECT, &[Amf::Null]);
        say(&mut upstream, 1);
        upstream.answers("_result", CREATE_STREAM, &[Amf::Null, Amf::Number(1.0)]);
        say(&mut upstream, 1);
        start(&mut upstream);
        assert_eq!(upstream.events(), [ClientEvent::Ready], "from {first} on");
    }
}

#[test]
fn a_ping_is_answered_while_we_wait() {
    let mut upstream = Upstream::starting();
    upstream.written();
    upstream.sends(4, 0, &[0, 6, 1, 2, 3, 4]);
    assert!(upstream.written().ends_with(&[0, 7, 1, 2, 3, 4]));
}

#[test]
fn other_messages_do_not_extend_the_time_of_an_upstream() {
    let mut upstream = Upstream::creating();
    for _ in 0..9 {
        upstream.command(0, "onBWDone", &[Amf::Number(0.0), Amf::Null]);
        assert_eq!(upstream.after(SECOND), Ok(()));
    }
    assert!(upstream.after(SECOND).is_err());
}

#[test]
fn connect_lists_codecs_in_the_form_of_version_2() {
    let four_cc_list = ["avc1", "Opus"].map(str::to_owned).to_vec();
    for (role, mask) in [(ClientRole::Publish, 4.0_f64), (ClientRole::Play, 1.0)] {
        let config = ClientConfig { role, four_cc_list: four_cc_list.clone(), ..publisher() };
        let written = Upstream::shaken(config).written();
        let entry = |map: &[u8], four_cc: &[u8]| {
            let mask = mask.to_be_bytes();
            [map, &[3, 0, 4], four_cc, &[0], &mask, &[0, 0, 9]].concat()
        };
        assert!(position(&written, b"fourCcList").is_some());
        assert!(position(&written, &entry(b"videoFourCcInfoMap", b"avc1")).is_some());
        assert!(position(&written, &entry(b"audioFourCcInfoMap", b"Opus")).is_some());
    }
}

#[test]
fn without_codecs_connect_lists_none() {
    let written = Upstream::shaken(publisher()).written();
    assert_eq!(position(&written, b"FourCc").or(position(&written, b"fourCc")), None);
}
