//! App and name as programs send them, each with the stream and the arguments that are meant.

use super::*;

fn split(app: &str, name: &str) -> (String, Option<String>) {
    let target = Target::parse("live", app.as_bytes(), name.as_bytes());
    assert_eq!(target.app, "live");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
    (text(target.name), target.arguments.map(text))
}

/// Each row: app, name, and the stream and arguments they mean.
fn check(rows: &[(&str, &str, &str, Option<&str>)]) {
    for (app, name, stream, arguments) in rows {
        let want = ((*stream).to_owned(), arguments.map(str::to_owned));
        assert_eq!(split(app, name), want, "{app:?} and {name:?}");
        assert!(Target::is_app("live", app.as_bytes()), "{app:?}");
    }
}

#[test]
fn arguments_are_what_follows_the_first_question_mark_untouched() {
    check(&[
        ("live", "cam?a=s%2Fx&b=%20y?c=/d", "cam", Some("a=s%2Fx&b=%20y?c=/d")),
        ("live", "cam", "cam", None),
        ("live", "live", "live", None),
        ("live", "cam?", "cam", Some("")),
        ("live", "cam??k=v", "cam", Some("?k=v")),
        ("live", "cam?k=v?k=v", "cam", Some("k=v?k=v")),
        ("live", "cam?k=v/", "cam", Some("k=v/")),
        ("live", "cam?k=v ", "cam", Some("k=v ")),
        ("live", "cam?k=\"v\"", "cam", Some("k=\"v\"")),
        ("live", "cam?u=rtmp://h/live/x", "cam", Some("u=rtmp://h/live/x")),
        ("live", "cam?k=v%3Fx", "cam", Some("k=v%3Fx")),
        ("live", "cam?&k=v&&", "cam", Some("&k=v&&")),
    ]);
}

#[test]
fn an_address_cut_inside_its_arguments_means_the_same() {
    check(&[
        ("live/cam?u=a", "b", "cam", Some("u=a/b")),
        ("live/cam?u=a", "b&k=v?x", "cam", Some("u=a/b&k=v?x")),
        ("live/cam?u=http:/", "h/x", "cam", Some("u=http://h/x")),
        ("live/cam?u=a/", "b", "cam", Some("u=a//b")),
    ]);
}

#[test]
fn the_whole_path_may_be_in_the_app() {
    check(&[
        ("live/cam", "", "cam", None),
        ("live/cam?k=v", "", "cam", Some("k=v")),
        ("live/cam?k=v/", "", "cam", Some("k=v/")),
        ("live/cam", "?k=v", "cam", Some("k=v")),
        ("live/cam/", "/", "cam", None),
        ("live/cam", " \n", "cam", None),
    ]);
}

#[test]
fn arguments_that_are_sent_twice_count_once() {
    check(&[
        ("live/cam?passcode=x", "?passcode=x", "cam", Some("passcode=x")),
        ("live/cam?k=a%2Fb", "?k=a/b", "cam", Some("k=a%2Fb")),
        ("live/cam?k=v", "?k=v&clientConfigId=7", "cam", Some("k=v&clientConfigId=7")),
        ("live/cam?a=1&b=2", "?b=2&a=1", "cam", Some("a=1&b=2")),
        ("live/cam?a=1", "?b=2", "cam", Some("a=1&b=2")),
        ("live/cam?k=v", "&k=v", "cam", Some("k=v")),
        ("live/cam?", "?k=v", "cam", Some("k=v")),
        ("live/cam?k=v", "?", "cam", Some("k=v")),
    ]);
}

#[test]
fn a_name_that_is_in_the_app_and_in_the_key_counts_once() {
    check(&[
        ("live/cam", "cam", "cam", None),
        ("live/cam", "cam?k=v", "cam", Some("k=v")),
        ("live/cam?k=v", "cam", "cam", Some("k=v")),
        ("live/cam?k=v", "cam?k=v", "cam", Some("k=v")),
        ("live", "live/cam?k=v", "cam", Some("k=v")),
        ("live/cam", "live/cam", "cam", None),
        ("live/eu", "cam", "eu/cam", None),
    ]);
}

#[test]
fn a_whole_url_may_be_pasted_as_the_key() {
    check(&[
        ("live", "rtmp://h/live/cam?k=v", "cam", Some("k=v")),
        ("live", " RTMPS://h:443/Live/cam", "cam", None),
        ("live", "rtmp://[2001:db8::1]:1935/live/cam", "cam", None),
        ("live/cam", "rtmp://h/live/cam", "cam", None),
        ("live", "rtmp://h/live", "", None),
        ("live", "rtmp://h", "", None),
        ("rtmp://h/live", "cam", "cam", None),
    ]);
}

#[test]
fn what_surrounds_a_pasted_key_is_left_out() {
    check(&[
        ("live", " cam", "cam", None),
        ("live", "cam\r\n", "cam", None),
        ("live", "\u{a0}cam\u{a0}", "cam", None),
        ("live", "\u{feff}cam\u{200b}\t", "cam", None),
        ("live", "cam\0", "cam", None),
        ("live", "cam ?k=v", "cam", Some("k=v")),
        ("live", "\"cam\"", "cam", None),
        ("live", "'cam?k=v'", "cam", Some("k=v")),
        ("live", "\u{201c}cam?k=v\u{201d} \n", "cam", Some("k=v")),
        ("live", "cam?k=v\r\n", "cam", Some("k=v")),
        ("live ", "cam", "cam", None),
        (" live", "\n cam", "cam", None),
    ]);
    let latin_1 = Target::parse("live", b"live", b"\xa0cam");
    assert_eq!(&latin_1.name[..], b"\xa0cam", "what is not text stays");
}

#[test]
fn empty_segments_of_the_path_do_not_count() {
    check(&[
        ("live//", "cam", "cam", None),
        ("/live", "cam", "cam", None),
        ("//live//cam//", "", "cam", None),
        ("live", "/cam/", "cam", None),
        ("live", "//cam?k=/v/", "cam", Some("k=/v/")),
        ("live/", "/cam//?k=v", "cam", Some("k=v")),
    ]);
}

#[test]
fn other_servers_ways_of_writing_are_understood() {
    check(&[
        ("live", "mp4:cam", "cam", None),
        ("live", "flv:cam?k=v", "cam", Some("k=v")),
        ("live", "MP4:live/cam", "cam", None),
        ("live/mp4:cam", "", "cam", None),
        ("live/_definst_", "cam", "cam", None),
        ("live/_definst_", "_definst_/mp4:cam", "cam", None),
        ("live:1935", "cam", "cam", None),
        (":1935/live", "cam", "cam", None),
        ("Live", "cam", "cam", None),
        ("LIVE/cam", "", "cam", None),
    ]);
}

#[test]
fn what_is_written_instead_of_a_question_mark_is_understood() {
    check(&[
        ("live", "cam%3Fk=v%26", "cam", Some("k=v%26")),
        ("live", "cam%3fk%3Da%2Fb%26c%3Dd", "cam", Some("k=a/b&c=d")),
        ("live", "cam&k=v", "cam", Some("k=v")),
        ("live", "cam&k=v?x=y", "cam", Some("k=v?x=y")),
        ("live/cam%3Fk=v", "", "cam", Some("k=v")),
    ]);
}

#[test]
fn arguments_of_the_connection_are_ignored() {
    check(&[
        ("live?k=v", "cam?a=b", "cam", Some("a=b")),
        ("live?k=v", "cam", "cam", None),
        ("live/?k=v/w", "cam", "cam", None),
        ("live/_definst_?k=v", "cam", "cam", None),
    ]);
}

#[test]
fn without_a_name_the_name_is_empty() {
    check(&[
        ("live", "", "", None),
        ("live/", " ", "", None),
        ("live?k=v", "", "", None),
        ("live", "?k=v", "", Some("k=v")),
    ]);
}

#[test]
fn other_apps_are_not_ours() {
    for app in
        ["", "/", "vod", "live2", "live x", "cam/live", "live:x", "lïve", ":1935", "\u{fffd}"]
    {
        assert!(!Target::is_app("live", app.as_bytes()), "{app:?}");
    }
}

#[test]
fn any_bytes_yield_a_target_no_longer_than_they_are() {
    let pieces: [&[u8]; 14] = [
        b"live",
        b"/",
        b"?",
        b"%3F",
        b"%",
        b"&",
        b"\"",
        b"rtmp://",
        b"mp4:",
        b"\xff",
        b"\xc2\xa0",
        b"=",
        b":",
        b"a",
    ];
    let mut seed = 1_u64;
    let mut text = || {
        let mut text = Vec::new();
        for _ in 0..8 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let at = usize::try_from(seed >> 33).expect("31 bits") % pieces.len();
            text.extend_from_slice(pieces[at]);
        }
        text
    };
    for _ in 0..20_000 {
        let (app, name) = (text(), text());
        let target = Target::parse("live", &app, &name);
        let arguments = target.arguments.map_or(0, |arguments| arguments.len());
        assert!(target.name.len() + arguments <= app.len() + name.len() + 1);
    }
}

#[test]
fn debug_output_hides_arguments() {
    let shown = format!("{:?}", Target::parse("live", b"live", b"cam?passcode=s3cret"));
    assert!(!shown.contains("s3cret"), "{shown}");
}
