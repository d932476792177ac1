//! Commands and data that cannot be read, in whole or in part: each costs at most itself.

use headgate_rtmp::{Dropped, MediaKind, ServerEvent};

use crate::support::{
    COMMAND, COMMAND_AMF3, DATA, DATA_AMF3, Encoder, boolean, command, null, number, object, string,
};

/// Values that are cut, unknown or of types that nobody needs.
fn odd_values() -> Vec<Vec<u8>> {
    vec![
        vec![7, 0, 0],
        vec![4],
        vec![9],
        vec![13],
        vec![14],
        [&[14][..], &[0, 0, 0, 2], &[1, 2]].concat(),
        vec![15, 0, 0, 0, 4, b'<', b'a', b'/', b'>'],
        b"\x10\0\x01T\0\x01k\x05\0\0\x09".to_vec(),
        [&[11][..], &[0; 10]].concat(),
        vec![17, 4, 5],
        vec![17, 1],
        vec![17, 0x0a, 0x0b, 1, 3, b'a', 6, 3, b'b', 1],
        vec![17, 9, 3, 1, 5, 0, 0, 0, 0, 0, 0, 0, 0],
        vec![17],
        vec![17, 99],
        vec![18, 1, 2],
        vec![255],
        vec![2, 0, 9, b'x'],
        vec![2, 0],
        vec![0, 0, 0],
        vec![12, 0xff, 0xff, 0xff, 0xff],
        vec![10, 0xff, 0xff, 0xff, 0xff, 5],
        [[10, 0, 0, 0, 1].repeat(40), vec![5]].concat(),
        [&[3][..], &[1, 1], &[b'k'; 257], &[5, 0, 0, 9]].concat(),
        b"\x03\0\x01a\x63\0\0\x09".to_vec(),
    ]
}

/// That the publish continues, with video.
fn assert_runs(encoder: &mut Encoder, what: &[u8]) {
    encoder.events();
    encoder.message(6, 9, 1, b"\x27\x01\0\0\0next");
    let media = encoder.media();
    assert_eq!(media.len(), 1, "after {what:x?}");
    assert_eq!((media[0].kind, &media[0].payload[5..]), (MediaKind::Video, &b"next"[..]));
}

#[test]
fn any_value_in_any_command_of_a_publish_costs_at_most_the_command() {
    for value in odd_values() {
        for name in ["releaseStream", "FCPublish", "theirOwnThing", "onStatus", "_result"] {
            for values in [
                command(name, 2.0, std::slice::from_ref(&value)),
                command(name, 2.0, &[null(), value.clone(), string("cam")]),
                command(name, 2.0, &[object(&[("a", value.clone()), ("b", null())])]),
                [string(name), value.clone()].concat(),
            ] {
                let mut encoder = Encoder::publishing();
                encoder.message(3, COMMAND, 1, &values);
                encoder.message(3, COMMAND_AMF3, 1, &[&[0][..], &values].concat());
                encoder.message(3, COMMAND_AMF3, 1, &values);
                assert_runs(&mut encoder, &value);
            }
        }
        let mut encoder = Encoder::publishing();
        encoder.message(3, COMMAND, 1, &value);
        assert_runs(&mut encoder, &value);
    }
}

#[test]
fn commands_without_a_name_are_named_and_ignored() {
    for (kind, payload) in [
        (COMMAND, &[][..]),
        (COMMAND_AMF3, &[]),
        (COMMAND_AMF3, &[0]),
        (COMMAND, &[0, 1]),
        (COMMAND, &[5]),
        (COMMAND, &[9]),
        (COMMAND_AMF3, &[3, 9, 9]),
        (DATA, &[]),
        (DATA_AMF3, &[]),
        (DATA_AMF3, &[0]),
        (DATA, &[5]),
        (DATA, &[2, 0, 9, b'x']),
        (DATA, &[0xff; 9]),
        // Metadata without any would replace what is kept, and servers refuse it.
        (DATA, b"\x02\0\x0d@setDataFrame"),
        (DATA, b"\x02\0\x0d@setDataFrame\x02\0\x0aonMetaData"),
        (DATA, b"\x02\0\x0aonMetaData\x05"),
        (DATA, b"\x02\0\x0aonMetaData\x08\0\0"),
    ] {
        let mut encoder = Encoder::publishing();
        encoder.message(3, kind, 1, payload);
        let want = [ServerEvent::Dropped(Dropped::Unreadable)];
        assert_eq!(encoder.events(), want, "{kind} {payload:x?}");
        assert_runs(&mut encoder, payload);
    }
}

#[test]
fn a_connect_and_a_publish_with_odd_values_are_accepted() {
    let whole = odd_values().into_iter().filter(|value| {
        let end = [&b"\x03\0\x01v"[..], value, b"\0\x01w\x05\0\0\x09"].concat();
        // Values after which the rest of an object can be read.
        !matches!(end[4], 17 | 18 | 255 | 2 | 0 | 12 | 10 | 3)
            || matches!(value[..], [17, 1 | 4, ..])
    });
    for (value, app_first) in
        odd_values().into_iter().map(|value| (value, true)).chain(whole.map(|value| (value, false)))
    {
        if value.len() > 6 && value[0] == 14 && !app_first {
            continue;
        }
        let mut encoder = Encoder::new();
        let app = ("app", string("live"));
        let odd = ("odd", value.clone());
        encoder.connect(&if app_first { [app, odd] } else { [odd, app] });
        let publish =
            command("publish", 5.0, &[null(), string("cam"), string("live"), value.clone()]);
        encoder.message(3, COMMAND, 1, &publish);
        assert_eq!(encoder.asked(), ("cam".into(), None), "{value:x?} {app_first}");
        encoder.allow();
        assert_runs(&mut encoder, &value);
    }
}

#[test]
fn amf3_commands_are_read_with_and_without_their_format_byte() {
    let publish = command("publish", 5.0, &[null(), string("cam"), string("live")]);
    for (kind, prefix) in [(COMMAND_AMF3, &[0][..]), (COMMAND_AMF3, &[]), (COMMAND, &[0])] {
        let mut encoder = Encoder::new();
        let connect = command("connect", 1.0, &[object(&[("app", string("live"))])]);
        encoder.message(3, kind, 0, &[prefix, &connect].concat());
        encoder.message(3, kind, 1, &[prefix, &publish].concat());
        assert_eq!(encoder.asked(), ("cam".into(), None), "{kind} {prefix:x?}");
    }
}

#[test]
fn a_publish_with_a_name_that_is_no_string_asks_for_none() {
    for name in [number(7.0), boolean(true), object(&[]), vec![17, 4, 1], vec![2, 0, 9, b'x']] {
        let mut encoder = Encoder::connected();
        encoder.command(1, "publish", 5.0, &[null(), name]);
        assert_eq!(encoder.asked(), (String::new(), None));
    }
}

#[test]
fn data_that_not_every_reader_can_read_leaves_as_what_could_be_read() {
    let media = |payload: &[u8]| {
        let mut encoder = Encoder::publishing();
        encoder.message(3, DATA, 1, payload);
        let events = encoder.events();
        let is_named = events.first() == Some(&ServerEvent::Dropped(Dropped::Unreadable));
        let media = events.into_iter().find_map(|event| match event {
            ServerEvent::Media(media) => Some(media.payload.to_vec()),
            _ => None,
        });
        (media.expect("what could be read"), is_named)
    };
    let metadata = |value: &[u8]| {
        let properties = [("width", number(1280.0)), ("odd", value.to_vec())];
        [string("onMetaData"), object(&properties)].concat()
    };
    for value in [&[17, 1][..], &[17, 4, 5], &[7, 0, 0], &[14], &[9]] {
        let (left, is_named) = media(&metadata(value));
        let width = [string("onMetaData"), object(&[("width", number(1280.0))])].concat();
        assert!(left.starts_with(&width[..width.len() - 3]) && left.ends_with(&[0, 0, 9]));
        assert!(is_named && !left.contains(&17), "{left:x?}");
    }
    let whole = metadata(&number(1.0));
    for cut in [whole.len() - 1, whole.len() - 3, whole.len() - 8] {
        let (left, is_named) = media(&whole[..cut]);
        assert!(is_named && left.ends_with(&[0, 0, 9]), "{cut}");
    }
    // Sound, with everything that readers know.
    for value in [vec![13], vec![15, 0, 0, 0, 1, b'<'], b"\x10\0\x01T\0\0\x09".to_vec(), vec![6]] {
        let payload = metadata(&value);
        assert_eq!(media(&payload), (payload, false));
    }
}
