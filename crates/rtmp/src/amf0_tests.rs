//! AMF0 reads back as written, and no input makes it cost more than it weighs.

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
    fn what_is_written_reads_back(value in any_value()) {
        let mut bytes = Vec::new();
        write(&mut bytes, &value);
        let mut reader = Reader::new(&bytes);
        prop_assert_eq!(reader.value(), Ok(value));
        prop_assert!(reader.is_empty());
    }
}

fn read(bytes: &[u8]) -> Result<Value, Error> {
    Reader::new(bytes).value()
}

#[test]
fn nesting_stops_at_its_limit() {
    let nested = |depth: usize| {
        let mut bytes = [10, 0, 0, 0, 1].repeat(depth);
        bytes.push(5);
        bytes
    };
    assert!(read(&nested(DEPTH_LIMIT)).is_ok());
    assert_eq!(read(&nested(DEPTH_LIMIT + 1)), Err(Error::AmfLimit));
    assert_eq!(read(&nested(100_000)), Err(Error::AmfLimit));
}

#[test]
fn properties_and_keys_stop_at_their_limits() {
    let object = |count: usize, key: usize| {
        let mut bytes = vec![3];
        write_properties(&mut bytes, &vec![(vec![b'k'; key], Value::Null); count]);
        bytes
    };
    assert!(read(&object(1024, 2)).is_ok());
    assert_eq!(read(&object(1025, 2)), Err(Error::AmfLimit));
    let long_key = [&[3, 1, 1][..], &[b'k'; 257], &[5, 0, 0, 9]].concat();
    assert_eq!(read(&long_key), Err(Error::AmfLimit));
}

#[test]
fn declared_lengths_cost_nothing() {
    assert_eq!(read(&[2, 0xff, 0xff, b'x']), Err(Error::Amf));
    assert_eq!(read(&[12, 0xff, 0xff, 0xff, 0xff, b'x']), Err(Error::Amf));
    assert_eq!(read(&[10, 0xff, 0xff, 0xff, 0xff, 5]), Err(Error::Amf));
}

#[test]
fn an_array_that_is_never_closed_still_counts() {
    let bytes = [&[8, 0, 0, 0, 9, 0, 1, b'k'][..], &[1, 1]].concat();
    assert_eq!(read(&bytes), Ok(Value::EcmaArray(vec![(b"k".to_vec(), Value::Boolean(true))])));
}
