//! Upstreams that refuse or redirect us.

use headgate_rtmp::{ClientEvent, RefusalKind};

use crate::fake::{Amf, CONNECT, CREATE_STREAM, Upstream, publisher, status};

const REJECTED: &str = "NetConnection.Connect.Rejected";

fn kind(upstream: &mut Upstream) -> RefusalKind {
    let events = upstream.events();
    let [ClientEvent::Refused { kind, .. }, ClientEvent::Close] = &events[..] else {
        panic!("{events:?}")
    };
    *kind
}

/// The kind of a publish refusal with this code and description; an empty level is omitted.
fn publish_refused(level: &str, code: &str, description: &str) -> RefusalKind {
    let mut upstream = Upstream::starting();
    let values = [Amf::Number(0.0), Amf::Null, status(level, code, description)];
    upstream.command(1, "onStatus", &values);
    kind(&mut upstream)
}

/// A redirect in the form SRS sends.
fn redirect<'a>(code: Amf<'a>, url: &'a str) -> Amf<'a> {
    let ex = vec![("code", code), ("redirect", Amf::Text(url))];
    Amf::Object(vec![
        ("level", Amf::Text("error")),
        ("code", Amf::Text(REJECTED)),
        ("description", Amf::Text("RTMP 302 Redirect")),
        ("ex", Amf::Object(ex)),
    ])
}

fn redirected() -> [ClientEvent; 2] {
    [ClientEvent::Redirected { url: "rtmp://other:1940/live".into() }, ClientEvent::Close]
}

#[test]
fn a_redirect_is_reported_once_as_error_or_as_status() {
    for code in [|| Amf::Number(302.0), || Amf::Text("302")] {
        let mut upstream = Upstream::shaken(publisher());
        let information = redirect(code(), "rtmp://other:1940/live");
        upstream.answers("_error", CONNECT, &[Amf::Null, information]);
        assert_eq!(upstream.events(), redirected());

        let mut upstream = Upstream::shaken(publisher());
        for _ in 0..2 {
            let information = redirect(code(), "rtmp://other:1940/live");
            upstream.command(0, "onStatus", &[Amf::Number(0.0), Amf::Null, information]);
        }
        assert_eq!(upstream.events(), redirected());
    }
}

#[test]
fn a_publish_may_be_redirected() {
    let mut upstream = Upstream::starting();
    let information = redirect(Amf::Number(302.0), "rtmp://other:1940/live");
    upstream.command(0, "onStatus", &[Amf::Number(0.0), Amf::Null, information]);
    assert_eq!(upstream.events(), redirected());
}

#[test]
fn a_redirect_to_an_invalid_url_is_a_refusal() {
    let long = format!("rtmp://other/{}", "a".repeat(4000));
    for url in ["", "http://other/live", "/live", "rtmp://other/a b", "rtmp://other/\r\n", &long] {
        let mut upstream = Upstream::shaken(publisher());
        let information = redirect(Amf::Number(302.0), url);
        upstream.answers("_error", CONNECT, &[Amf::Null, information]);
        assert_eq!(kind(&mut upstream), RefusalKind::Denied, "{url}");
    }
}

#[test]
fn a_redirect_url_has_at_most_2048_bytes() {
    for (length, is_followed) in [(2048, true), (2049, false)] {
        let url = format!("{:a<length$}", "rtmps://other/");
        let mut upstream = Upstream::shaken(publisher());
        let information = redirect(Amf::Number(302.0), &url);
        upstream.answers("_error", CONNECT, &[Amf::Null, information]);
        let is_redirected = upstream.events().contains(&ClientEvent::Redirected { url });
        assert_eq!(is_redirected, is_followed, "{length} bytes");
    }
}

#[test]
fn permanent_refusals_are_fatal() {
    for (code, description, want) in [
        ("NetStream.Publish.BadName", "no such name", RefusalKind::BadName),
        ("NetStream.Publish.Denied", "", RefusalKind::Denied),
        ("NetStream.Publish.Rejected", "", RefusalKind::Denied),
        ("NetStream.Publish.Unauthorized", "", RefusalKind::Denied),
        ("NetConnection.Connect.InvalidApp", "", RefusalKind::InvalidApp),
        (REJECTED, "[ Server.Reject ] : Application (x) is not defined.", RefusalKind::InvalidApp),
    ] {
        let kind = publish_refused("error", code, description);
        assert_eq!((kind, kind.is_fatal()), (want, true), "{code} {description}");
    }
}

#[test]
fn temporary_refusals_are_not_fatal() {
    for (code, description, want) in [
        ("NetStream.Publish.BadName", "Already publishing", RefusalKind::Occupied),
        ("NetStream.Publish.BadName", "stream 'cam' is busy.", RefusalKind::Occupied),
        (REJECTED, "[ Server.Reject ] : server full", RefusalKind::Full),
        (REJECTED, "Too many connections.", RefusalKind::Full),
        ("NetStream.Publish.Odd", "successfully odd", RefusalKind::Unknown),
        ("", "", RefusalKind::Unknown),
    ] {
        let kind = publish_refused("error", code, description);
        assert_eq!((kind, kind.is_fatal()), (want, false), "{code} {description}");
    }
}

#[test]
fn a_refusal_without_level_counts_by_its_code() {
    let kind = publish_refused("", "NetStream.Publish.Denied", "");
    assert_eq!(kind, RefusalKind::Denied);
}

#[test]
fn an_error_without_any_information_is_a_refusal_of_an_unknown_kind() {
    let mut upstream = Upstream::shaken(publisher());
    upstream.command(0, "_error", &[]);
    assert_eq!(kind(&mut upstream), RefusalKind::Unknown);
    let mut upstream = Upstream::creating();
    upstream.answers("_error", CREATE_STREAM, &[Amf::Null]);
    assert_eq!(kind(&mut upstream), RefusalKind::Unknown);
}

#[test]
fn a_running_publish_that_fails_without_level_has_ended() {
    let mut upstream = Upstream::starting();
    for code in ["NetStream.Publish.Start", "NetStream.Publish.BadName"] {
        upstream.command(1, "onStatus", &[Amf::Number(0.0), Amf::Null, status("", code, "why")]);
    }
    let (code, description) = ("NetStream.Publish.BadName".into(), "why".into());
    let ended = ClientEvent::Ended { code, description };
    let want = [ClientEvent::Ready, ended, ClientEvent::Close];
    assert_eq!(upstream.events(), want);
}
