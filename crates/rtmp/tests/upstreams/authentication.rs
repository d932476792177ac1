//! Upstreams that require authentication: adobe and llnw, both in steps over new connections.

use headgate_rtmp::{ClientConfig, ClientEvent, ConnectArguments, Credentials, RefusalKind};

use crate::fake::{Upstream, publisher};

const ADOBE: &str = "[ AccessManager.Reject ] : [ code=403 need auth; authmod=adobe ] : ";
const ADOBE_CHALLENGE: &str = "[ AccessManager.Reject ] : [ authmod=adobe ] : \
     ?reason=needauth&user=ann&salt=c2FsdA==&challenge=Y2hhbA==&opaque=b3BxMQ==";
const LLNW: &str = "[ AccessManager.Reject ] : [ code=403 need auth; authmod=llnw ] : ";
const LLNW_CHALLENGE: &str =
    "[ AccessManager.Reject ] : [ authmod=llnw ] : ?reason=needauth&user=ann&nonce=bm9uY2U=";

/// A publisher with credentials, on a connection with the arguments requested on the previous one.
fn known(arguments: ConnectArguments) -> ClientConfig {
    let credentials = Some(Credentials { user: "ann".into(), password: "s3cret".into() });
    ClientConfig { credentials, arguments, ..publisher() }
}

/// The upstream refuses one connection after another with these descriptions; returns the arguments for the next one.
fn asked(descriptions: &[&str]) -> ConnectArguments {
    descriptions.iter().fold(ConnectArguments::default(), |arguments, description| {
        let mut upstream = Upstream::shaken(known(arguments));
        upstream.rejects(description);
        let events = upstream.events();
        let [ClientEvent::Reconnect { arguments }, ClientEvent::Close] = &events[..] else {
            panic!("{events:?}")
        };
        arguments.clone()
    })
}

fn refusal(config: ClientConfig, description: &str) -> RefusalKind {
    let mut upstream = Upstream::shaken(config);
    upstream.rejects(description);
    let events = upstream.events();
    let [ClientEvent::Refused { kind, .. }, ClientEvent::Close] = &events[..] else {
        panic!("{events:?}")
    };
    *kind
}

#[test]
fn a_first_connect_does_not_contain_the_user() {
    let config = known(ConnectArguments::default());
    assert_eq!(Upstream::shaken(config).connect_property("tcUrl"), "rtmp://upstream/live");
}

#[test]
fn adobe_first_gets_the_user() {
    let config = known(asked(&[ADOBE]));
    let want = "live?authmod=adobe&user=ann";
    assert_eq!(Upstream::shaken(config).connect_property("app"), want);
}

#[test]
fn adobe_then_gets_the_response_to_its_challenge() {
    let config = known(asked(&[ADOBE, ADOBE_CHALLENGE]));
    let want = "rtmp://upstream/live?authmod=adobe&user=ann&challenge=deadbeef\
                &response=U/EUZcv1CrHzaoqM8y/d7g==&opaque=b3BxMQ==";
    assert_eq!(Upstream::shaken(config).connect_property("tcUrl"), want);
}

#[test]
fn adobe_without_opaque_is_answered_with_its_challenge() {
    let challenge = ADOBE_CHALLENGE.split("&opaque").next().expect("the front");
    let config = known(asked(&[ADOBE, challenge]));
    let want = "live?authmod=adobe&user=ann&challenge=deadbeef&response=vA+YV9wJMw/S3WwB/YT2pA==";
    assert_eq!(Upstream::shaken(config).connect_property("app"), want);
}

#[test]
fn llnw_first_gets_the_user() {
    let config = known(asked(&[LLNW]));
    let want = "live?authmod=llnw&user=ann";
    assert_eq!(Upstream::shaken(config).connect_property("app"), want);
}

#[test]
fn llnw_then_gets_a_digest() {
    let config = known(asked(&[LLNW, LLNW_CHALLENGE]));
    let want = "live?authmod=llnw&user=ann&nonce=bm9uY2U=&cnonce=deadbeef&nc=00000001\
                &response=d5ad1ffd2e01663c963b90cb1879d0f4";
    assert_eq!(Upstream::shaken(config).connect_property("app"), want);
}

#[test]
fn without_credentials_an_authentication_request_is_a_refusal() {
    assert_eq!(refusal(publisher(), ADOBE), RefusalKind::Credentials);
}

#[test]
fn wrong_credentials_are_a_refusal() {
    for reason in ["authfailed", "nosuchuser"] {
        let words = format!("[ AccessManager.Reject ] : [ authmod=adobe ] : ?reason={reason}");
        let config = known(asked(&[ADOBE, ADOBE_CHALLENGE]));
        assert_eq!(refusal(config, &words), RefusalKind::Credentials);
    }
}

#[test]
fn a_repeated_authentication_request_is_not_answered_again() {
    let config = known(asked(&[ADOBE]));
    assert_eq!(refusal(config, ADOBE), RefusalKind::Credentials);
    let config = known(asked(&[ADOBE, ADOBE_CHALLENGE]));
    assert_eq!(refusal(config, ADOBE_CHALLENGE), RefusalKind::Credentials);
}

#[test]
fn an_unknown_scheme_is_a_refusal() {
    let config = known(ConnectArguments::default());
    let words = "[ code=403 need auth; authmod=kerberos ]";
    assert_eq!(refusal(config, words), RefusalKind::Credentials);
}

#[test]
fn an_endless_challenge_is_not_answered() {
    let words = format!("{ADOBE_CHALLENGE}{}", "A".repeat(4000));
    let config = known(ConnectArguments::default());
    assert_eq!(refusal(config, &words), RefusalKind::Denied);
}

#[test]
fn debug_output_contains_neither_password_nor_response() {
    let config = known(asked(&[ADOBE, ADOBE_CHALLENGE]));
    let printed = format!("{config:?}");
    assert!(!printed.contains("s3cret") && !printed.contains("response"), "{printed}");
}
