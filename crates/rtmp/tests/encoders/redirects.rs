//! Redirects of a refused publisher: in the form that it follows, and only once.

use headgate_rtmp::ServerEvent;

use crate::support::{Encoder, Reply, null, number, object, reply, string};

const WORDS: &str = "Publish again";
const ELSEWHERE: &[&str] = &["rtmp://b:1935/live", "rtmps://b:1936/live"];

type Properties<'a> = &'a [(&'a str, &'a str)];

/// The replies to a publish after a connect with these properties.
fn replies_to(texts: Properties<'_>, caps_ex: Option<f64>, tc_urls: &[&str]) -> Vec<Reply> {
    let mut encoder = Encoder::new();
    let mut properties: Vec<(&str, Vec<u8>)> =
        texts.iter().map(|(key, text)| (*key, string(text))).collect();
    if !texts.iter().any(|(key, _)| *key == "app") {
        properties.push(("app", string("live")));
    }
    properties.extend(caps_ex.map(|mask| ("capsEx", number(mask))));
    encoder.connect(&properties);
    encoder.command(1, "publish", 5.0, &[null(), string("cam"), string("live")]);
    encoder.replies();
    encoder.events();
    let replies = encoder.redirect(tc_urls, WORDS);
    assert_eq!(encoder.events(), [ServerEvent::Close]);
    replies
}

fn denied() -> Reply {
    let information = object(&[
        ("level", string("error")),
        ("code", string("NetStream.Publish.Denied")),
        ("description", string(WORDS)),
    ]);
    reply(1, "onStatus", 0.0, &[null(), information])
}

fn found(url: &str) -> Reply {
    let ex = object(&[("code", number(302.0)), ("redirect", string(url))]);
    let information = object(&[
        ("level", string("error")),
        ("code", string("NetConnection.Connect.Rejected")),
        ("description", string(WORDS)),
        ("ex", ex),
    ]);
    reply(1, "onStatus", 0.0, &[null(), information])
}

fn reconnect_request(url: &str) -> Reply {
    let information = object(&[
        ("level", string("status")),
        ("code", string("NetConnection.Connect.ReconnectRequest")),
        ("description", string(WORDS)),
        ("tcUrl", string(url)),
    ]);
    reply(0, "onStatus", 0.0, &[null(), information])
}

const HEADGATE: (&str, &str) = ("flashVer", "FMLE/3.0 (compatible; Headgate)");

#[test]
fn a_client_that_supports_reconnect_requests_gets_one_and_is_refused() {
    for caps_ex in [1.0, 7.0, 15.0] {
        let want = [reconnect_request("rtmp://b:1935/live?headgate-redirected"), denied()];
        assert_eq!(replies_to(&[], Some(caps_ex), ELSEWHERE), want, "{caps_ex}");
    }
}

#[test]
fn a_headgate_that_pushes_is_redirected() {
    let want = [found("rtmp://b:1935/live?headgate-redirected")];
    assert_eq!(replies_to(&[HEADGATE], None, ELSEWHERE), want);
}

#[test]
fn a_client_that_follows_no_known_redirect_gets_the_description() {
    for texts in [&[][..], &[("flashVer", "FMLE/3.0 (compatible; FMSc/1.0)")]] {
        for caps_ex in [None, Some(6.0), Some(-1.0), Some(f64::NAN)] {
            assert_eq!(replies_to(texts, caps_ex, ELSEWHERE), [denied()], "{texts:?} {caps_ex:?}");
        }
    }
}

#[test]
fn a_redirected_client_is_not_redirected_again() {
    for (key, value) in [
        ("app", "live?headgate-redirected"),
        ("app", "live?a=b&headgate-redirected"),
        ("tcUrl", "rtmp://a:1935/live?headgate-redirected"),
    ] {
        assert_eq!(
            replies_to(&[HEADGATE, (key, value)], None, ELSEWHERE),
            [denied()],
            "{key} {value}"
        );
        assert_eq!(replies_to(&[(key, value)], Some(1.0), ELSEWHERE), [denied()], "{key} {value}");
    }
}

#[test]
fn a_client_on_tls_is_redirected_only_to_tls() {
    let secure = ("tcUrl", "rtmps://a:1936/live");
    let want = [found("rtmps://b:1936/live?headgate-redirected")];
    assert_eq!(replies_to(&[HEADGATE, secure], None, ELSEWHERE), want);
    assert_eq!(replies_to(&[HEADGATE, secure], None, &ELSEWHERE[..1]), [denied()]);
    assert_eq!(replies_to(&[HEADGATE], None, &ELSEWHERE[1..]), [denied()]);
    assert_eq!(replies_to(&[HEADGATE], None, &[]), [denied()]);
}
