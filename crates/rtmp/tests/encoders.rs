//! Real encoders: their command sequences, assembled by hand, and the exact answers they get.

#[path = "encoders/capabilities.rs"]
mod capabilities;
#[path = "encoders/commands.rs"]
mod commands;
#[path = "encoders/ends.rs"]
mod ends;
#[path = "encoders/framing.rs"]
mod framing;
#[path = "encoders/messages.rs"]
mod messages;
#[path = "encoders/plays.rs"]
mod plays;
#[path = "encoders/rates.rs"]
mod rates;
#[path = "encoders/redirects.rs"]
mod redirects;
#[path = "support/encoder.rs"]
mod support;
#[path = "encoders/timestamps.rs"]
mod timestamps;
#[path = "encoders/turns.rs"]
mod turns;
#[path = "encoders/unread.rs"]
mod unread;
#[path = "encoders/unreadable.rs"]
mod unreadable;
#[path = "support/wire_times.rs"]
mod wire_times;

use headgate_rtmp::{MediaKind, ServerEvent};
use support::{
    COMMAND, COMMAND_AMF3, DATA, Encoder, Reply, SET_CHUNK_SIZE, SET_PEER_BANDWIDTH, USER_CONTROL,
    WINDOW_ACK_SIZE, boolean, command, null, number, object, reply, status, string, undefined,
};

const NAME: &str = "cam?passcode=s%2Fx&b=%20y";

fn started() -> Vec<u8> {
    status("status", "NetStream.Publish.Start", "Publishing")
}

fn fine(transaction: f64) -> Reply {
    reply(0, "_result", transaction, &[null(), undefined()])
}

fn created(transaction: f64) -> Reply {
    reply(0, "_result", transaction, &[null(), number(1.0)])
}

fn stream_begin() -> Reply {
    Reply { kind: USER_CONTROL, stream: 0, payload: vec![0, 0, 0, 0, 0, 1] }
}

fn publishes_on_stream_1() -> Reply {
    reply(1, "onStatus", 0.0, &[null(), started()])
}

fn announces_fc_publish() -> Reply {
    reply(0, "onFCPublish", 0.0, &[null(), started()])
}

fn wants(name: &str, arguments: &str) -> (String, Option<String>) {
    (name.into(), Some(arguments.into()))
}

#[test]
fn connect_is_answered_after_chunk_size_window_and_bandwidth() {
    let mut encoder = Encoder::new();
    encoder.connect(&[("app", string("live")), ("objectEncoding", number(0.0))]);
    let window = 2_500_000_u32.to_be_bytes().to_vec();
    let control = |kind, payload| Reply { kind, stream: 0, payload };
    let four_ccs = ["avc1", "hvc1", "av01", "vp09", "mp4a", "Opus"].map(string).concat();
    let properties = object(&[
        ("fmsVer", string("FMS/3,0,1,123")),
        ("capabilities", number(31.0)),
        ("fourCcList", [vec![10, 0, 0, 0, 6], four_ccs].concat()),
    ]);
    let information = object(&[
        ("level", string("status")),
        ("code", string("NetConnection.Connect.Success")),
        ("description", string("Connection succeeded")),
        ("objectEncoding", number(0.0)),
    ]);
    let want = [
        control(SET_CHUNK_SIZE, 65_536_u32.to_be_bytes().to_vec()),
        control(WINDOW_ACK_SIZE, window.clone()),
        control(SET_PEER_BANDWIDTH, [window, vec![2]].concat()),
        reply(0, "_result", 1.0, &[properties, information]),
    ];
    assert_eq!(encoder.replies(), want);
}

#[test]
fn ffmpeg_publishes() {
    let mut encoder = Encoder::new();
    encoder.connect(&[
        ("app", string("live")),
        ("type", string("nonprivate")),
        ("flashVer", string("FMLE/3.0 (compatible; Lavf59.27.100)")),
        ("tcUrl", string("rtmp://127.0.0.1:1935/live")),
    ]);
    encoder.replies();
    encoder.command(0, "releaseStream", 2.0, &[null(), string(NAME)]);
    encoder.command(0, "FCPublish", 3.0, &[null(), string(NAME)]);
    encoder.command(0, "createStream", 4.0, &[null()]);
    assert_eq!(encoder.replies(), [fine(2.0), fine(3.0), created(4.0)]);
    let publish = command("publish", 5.0, &[null(), string(NAME), string("live")]);
    encoder.message(8, COMMAND, 1, &publish);
    assert_eq!(encoder.replies(), [], "nothing is said before the decision");
    assert_eq!(encoder.asked(), wants("cam", "passcode=s%2Fx&b=%20y"));
    let want = [announces_fc_publish(), stream_begin(), publishes_on_stream_1()];
    assert_eq!(encoder.allow(), want);
    encoder.command(0, "FCUnpublish", 6.0, &[null(), string(NAME)]);
    assert_eq!(encoder.replies(), [fine(6.0)]);
    assert_eq!(encoder.events(), [ServerEvent::PublishEnded, ServerEvent::Close]);
    encoder.command(0, "deleteStream", 7.0, &[null(), number(1.0)]);
    assert_eq!(encoder.events(), [], "an end is reported once");
}

#[test]
fn obs_publishes_with_chunks_of_4096_from_the_start() {
    let mut encoder = Encoder::new();
    encoder.set_chunk_size(4096);
    encoder.connect(&[
        ("app", string("live")),
        ("type", string("nonprivate")),
        ("flashVer", string("FMLE/3.0 (compatible; FMSc/1.0)")),
        ("swfUrl", string("rtmp://127.0.0.1/live")),
        ("tcUrl", string("rtmp://127.0.0.1/live")),
        ("supportsGoAway", boolean(true)),
    ]);
    encoder.replies();
    encoder.command(0, "releaseStream", 2.0, &[null(), string(NAME)]);
    encoder.command(0, "FCPublish", 3.0, &[null(), string(NAME)]);
    encoder.command(0, "createStream", 4.0, &[null()]);
    encoder.message(
        4,
        COMMAND,
        1,
        &command("publish", 5.0, &[null(), string(NAME), string("live")]),
    );
    assert_eq!(encoder.replies(), [fine(2.0), fine(3.0), created(4.0)]);
    assert_eq!(encoder.asked(), wants("cam", "passcode=s%2Fx&b=%20y"));
}

#[test]
fn obs_gets_the_reason_for_a_denial_on_its_stream() {
    let mut encoder = Encoder::connected();
    encoder.command(0, "createStream", 4.0, &[null()]);
    encoder.command(1, "publish", 5.0, &[null(), string(NAME), string("live")]);
    encoder.replies();
    let denied = status("error", "NetStream.Publish.Denied", "The customer says no");
    let want = [reply(1, "onStatus", 0.0, &[null(), denied])];
    assert_eq!(encoder.deny("The customer says no"), want);
}

#[test]
fn gstreamer_publishes_with_transaction_0_and_deletes_by_name() {
    let mut encoder = Encoder::new();
    encoder.set_chunk_size(128);
    encoder.connect(&[("app", string("live")), ("flashVer", string("LNX 10,0,32,18"))]);
    encoder.replies();
    encoder.command(0, "releaseStream", 0.0, &[null(), string(NAME)]);
    encoder.command(0, "FCPublish", 0.0, &[null(), string(NAME)]);
    encoder.command(0, "createStream", 2.0, &[null()]);
    assert_eq!(encoder.replies(), [created(2.0)], "transaction 0 asks for no answer");
    encoder.command(1, "publish", 0.0, &[null(), string(NAME), string("live")]);
    assert_eq!(encoder.asked(), wants("cam", "passcode=s%2Fx&b=%20y"));
    let want = [announces_fc_publish(), stream_begin(), publishes_on_stream_1()];
    assert_eq!(encoder.allow(), want);
    encoder.command(0, "deleteStream", 0.0, &[null(), string(NAME)]);
    assert_eq!(encoder.replies(), []);
    assert_eq!(encoder.events(), [ServerEvent::PublishEnded, ServerEvent::Close]);
}

#[test]
fn nginx_pushes_without_fc_publish_and_with_bare_metadata() {
    let mut encoder = Encoder::connected();
    encoder.command(0, "createStream", 2.0, &[null()]);
    assert_eq!(encoder.replies(), [created(2.0)]);
    encoder.command(1, "publish", 0.0, &[null(), string("cam"), string("live")]);
    assert_eq!(encoder.asked(), ("cam".into(), None));
    assert_eq!(encoder.allow(), [stream_begin(), publishes_on_stream_1()]);
    let metadata = [string("onMetaData"), object(&[("width", number(1280.0))])].concat();
    encoder.message(5, DATA, 1, &metadata);
    let events = encoder.events();
    let [ServerEvent::Media(media)] = &events[..] else { panic!("{events:?}") };
    assert_eq!((media.kind, &media.payload[..]), (MediaKind::Script, &metadata[..]));
}

#[test]
fn haivision_checks_bandwidth_before_it_publishes() {
    let mut encoder = Encoder::connected();
    encoder.command(0, "_checkbw", 2.0, &[null()]);
    assert_eq!(encoder.replies(), [reply(0, "_result", 2.0, &[null(), null()])]);
    encoder.command(0, "createStream", 3.0, &[null()]);
    encoder.command(1, "FCPublish", 4.0, &[null(), string("cam")]);
    assert_eq!(encoder.replies(), [created(3.0), fine(4.0)]);
    encoder.command(1, "publish", 5.0, &[null(), string("cam"), string("live")]);
    assert_eq!(encoder.asked(), ("cam".into(), None));
}

#[test]
fn a_publish_on_stream_0_is_answered_on_stream_1() {
    let mut encoder = Encoder::connected();
    encoder.command(0, "publish", 5.0, &[null(), string("cam"), string("live")]);
    assert_eq!(encoder.allow(), [stream_begin(), publishes_on_stream_1()]);
}

#[test]
fn an_amf3_command_is_parsed_after_its_marker() {
    let mut encoder = Encoder::connected();
    let publish = command("publish", 5.0, &[null(), string("cam"), string("live")]);
    encoder.message(3, COMMAND_AMF3, 1, &[vec![0], publish].concat());
    assert_eq!(encoder.asked(), ("cam".into(), None));
}
