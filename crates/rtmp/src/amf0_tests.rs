//! AMF0: written values read back, and what cannot be read costs only itself and what follows.

use super::*;
use proptest::prelude::*;

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        any::<i32>().prop_map(|n| Value::Number(n.into())),
        any::<bool>().prop_map(Value::Boolean),
        proptest::collection::vec(any::<u8>(), 0..40).prop_map(Value::String),
        Just(Value::Null),
        Just(Value::Undefined),
        any::<i32>().prop_map(|n| Value::Date(n.into())),
    ];
    leaf.prop_recursive(6, 60, 6, |inner| {
        let key = proptest::collection::vec(1_u8.., 1..20);
        let properties = proptest::collection::vec((key, inner.clone()), 0..6);
        prop_oneof![
            properties.clone().prop_map(Value::Object),
            properties.prop_map(Value::EcmaArray),
            proptest::collection::vec(inner, 0..6).prop_map(Value::StrictArray),
        ]
    })
}

proptest! {
    #[test]
    fn written_values_read_back(value in any_value()) {
        let mut bytes = Vec::new();
        write(&mut bytes, &value);
        let mut reader = Reader::new(&bytes);
        prop_assert_eq!(reader.value(), Ok(value));
        prop_assert!(reader.is_empty() && !reader.is_odd());
    }
}

/// All values that can be read, and whether something was odd.
fn read(bytes: &[u8]) -> (Vec<Value>, bool) {
    let mut reader = Reader::new(bytes);
    let values = std::iter::from_fn(|| (!reader.is_empty()).then(|| reader.value().ok())?);
    (values.collect(), reader.is_odd())
}

fn object(properties: &[(&str, Value)]) -> Value {
    let owned = |(key, value): &(&str, Value)| (key.as_bytes().to_vec(), value.clone());
    Value::Object(properties.iter().map(owned).collect())
}

#[test]
fn nesting_stops_at_its_limit() {
    let nested = |depth: usize| {
        let mut bytes = [10, 0, 0, 0, 1].repeat(depth);
        bytes.push(5);
        read(&bytes).1
    };
    assert!(!nested(DEPTH_LIMIT));
    assert!(nested(DEPTH_LIMIT + 1) && nested(100_000));
}

#[test]
fn properties_beyond_the_limit_are_left_out_and_keys_have_any_length() {
    let object = |count: usize, key: usize| {
        let mut bytes = vec![3];
        write_properties(&mut bytes, &vec![(vec![b'k'; key], Value::Null); count]);
        let (values, is_odd) = read(&bytes);
        let Some(Value::Object(properties)) = values.first() else { panic!("{values:?}") };
        (properties.len(), is_odd)
    };
    assert_eq!(object(PROPERTIES_LIMIT, 2), (PROPERTIES_LIMIT, false));
    assert_eq!(object(PROPERTIES_LIMIT + 1, 2), (PROPERTIES_LIMIT, true));
    assert_eq!(object(1, 5_000), (1, false));
}

#[test]
fn declared_lengths_allocate_nothing() {
    assert_eq!(read(&[2, 0xff, 0xff, b'x']), (vec![], true));
    assert_eq!(read(&[12, 0xff, 0xff, 0xff, 0xff, b'x']), (vec![], true));
    let cut = Value::StrictArray(vec![Value::Null]);
    assert_eq!(read(&[10, 0xff, 0xff, 0xff, 0xff, 5]), (vec![cut], true));
}

#[test]
fn an_array_that_is_never_closed_still_counts() {
    let bytes = [&[8, 0, 0, 0, 9, 0, 1, b'k'][..], &[1, 1]].concat();
    let array = Value::EcmaArray(vec![(b"k".to_vec(), Value::Boolean(true))]);
    assert_eq!(read(&bytes), (vec![array], true));
}

#[test]
fn values_of_types_that_nobody_needs_are_passed_over() {
    let odd: [&[u8]; 10] = [
        &[7, 0, 1],                           // reference
        &[4],                                 // movie clip
        &[9],                                 // end of no object
        &[14],                                // record set
        &[17, 1],                             // AMF3: null
        &[17, 9, 5, 1, 4, 3, 6, 3, b'x'],     // an array of an integer and a string
        &[17, 10, 0x0b, 1, 3, b'a', 4, 1, 1], // an object with the property a
        &[17, 12, 5, 1, 2],                   // two bytes
        &[17, 8, 1, 0, 0, 0, 0, 0, 0, 0, 0],  // a date
        // An array of two objects; the second refers to the traits of the first.
        &[17, 9, 5, 1, 10, 0x13, 1, 3, b'a', 4, 5, 10, 1, 4, 6],
    ];
    for value in odd {
        let in_object = [&[3, 0, 1, b'a'][..], value, b"\0\x01b\x01\x01\0\0\x09\x05"].concat();
        let want = object(&[("a", Value::Undefined), ("b", Value::Boolean(true))]);
        let (values, is_odd) = read(&in_object);
        let Some(Value::Object(properties)) = values.first() else { panic!("{value:x?}") };
        assert_eq!(properties.last(), Some(&(b"b".to_vec(), Value::Boolean(true))), "{value:x?}");
        assert_eq!((values.len(), is_odd), (2, true), "{value:x?} {want:?}");
    }
    let sound: [(&[u8], Value); 3] = [
        (&[13], Value::Undefined),
        (&[15, 0, 0, 0, 2, b'<', b'>'], Value::string("<>")),
        (b"\x10\0\x01T\0\x01k\x05\0\0\x09", object(&[("k", Value::Null)])),
    ];
    for (bytes, value) in sound {
        assert_eq!(read(bytes), (vec![value], false), "{bytes:x?}");
    }
}

#[test]
fn plain_amf3_values_are_read() {
    for (bytes, value) in [
        (&[17, 4, 5][..], Value::Number(5.0)),
        (&[17, 4, 0xff, 0xff, 0xff, 0xff], Value::Number(-1.0)),
        (&[17, 5, 0x3f, 0xf8, 0, 0, 0, 0, 0, 0], Value::Number(1.5)),
        (&[17, 6, 7, b'c', b'a', b'm'], Value::string("cam")),
        (&[17, 2], Value::Boolean(false)),
        (&[17, 3], Value::Boolean(true)),
    ] {
        assert_eq!(read(bytes), (vec![value], true), "{bytes:x?}");
    }
}

#[test]
fn a_value_that_cannot_be_read_ends_the_message_and_what_came_before_counts() {
    let before = [&b"\x02\0\x03cam"[..], b"\x03\0\x01a\x01\x01"].concat();
    for rest in [&b"\0\x01b\x63\0\0\x09\x05"[..], b"\0\x01b\x02\0\x09xy", b"\0\x01b", b"\0"] {
        let want = vec![Value::string("cam"), object(&[("a", Value::Boolean(true))])];
        assert_eq!(read(&[&before[..], rest].concat()), (want, true), "{rest:x?}");
    }
}
