//! AMF0, as far as commands and metadata need it. Strings are bytes, because stream names are not always UTF-8.

use crate::Error;

/// Nesting of objects and arrays.
const DEPTH_LIMIT: usize = 16;
/// Properties and elements in one message.
const PROPERTIES_LIMIT: usize = 1024;
/// Length of a property's key.
const KEY_LIMIT: usize = 256;

/// One AMF0 value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    Number(f64),
    Boolean(bool),
    String(Vec<u8>),
    Object(Vec<(Vec<u8>, Value)>),
    Null,
    Undefined,
    EcmaArray(Vec<(Vec<u8>, Value)>),
    StrictArray(Vec<Value>),
    Date(f64),
}

impl Value {
    pub(crate) fn string(text: &str) -> Self {
        Self::String(text.as_bytes().to_vec())
    }

    pub(crate) fn object<const N: usize>(properties: [(&str, Self); N]) -> Self {
        let owned = |(key, value): (&str, Self)| (key.as_bytes().to_vec(), value);
        Self::Object(properties.into_iter().map(owned).collect())
    }

    pub(crate) fn as_bytes(&self) -> Option<&[u8]> {
        match self {
            Self::String(bytes) => Some(bytes),
            Self::Number(_)
            | Self::Boolean(_)
            | Self::Object(_)
            | Self::Null
            | Self::Undefined
            | Self::EcmaArray(_)
            | Self::StrictArray(_)
            | Self::Date(_) => None,
        }
    }

    pub(crate) fn as_text(&self) -> Option<String> {
        self.as_bytes().map(|bytes| String::from_utf8_lossy(bytes).into_owned())
    }

    pub(crate) const fn as_number(&self) -> Option<f64> {
        if let Self::Number(number) = self { Some(*number) } else { None }
    }

    /// Appends a property to an object.
    pub(crate) fn push(&mut self, key: &str, value: Self) {
        if let Self::Object(properties) = self {
            properties.push((key.as_bytes().to_vec(), value));
        }
    }

    /// A property of an object or ECMA array. Keys are compared without case, because peers spell `tcUrl` in two ways.
    pub(crate) fn property(&self, key: &str) -> Option<&Self> {
        let (Self::Object(properties) | Self::EcmaArray(properties)) = self else { return None };
        let same = |(name, _): &&(Vec<u8>, Self)| name.eq_ignore_ascii_case(key.as_bytes());
        properties.iter().find(same).map(|(_, value)| value)
    }
}

/// Reads values from the front of a message.
pub(crate) struct Reader<'a> {
    left: &'a [u8],
    properties: usize,
}

impl<'a> Reader<'a> {
    pub(crate) const fn new(bytes: &'a [u8]) -> Self {
        Self { left: bytes, properties: 0 }
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.left.is_empty()
    }

    pub(crate) fn value(&mut self) -> Result<Value, Error> {
        self.value_at(0)
    }

    fn value_at(&mut self, depth: usize) -> Result<Value, Error> {
        if depth > DEPTH_LIMIT {
            return Err(Error::AmfLimit);
        }
        let [marker] = self.array()?;
        Ok(match marker {
            0 => Value::Number(f64::from_be_bytes(self.array()?)),
            1 => Value::Boolean(self.array::<1>()? != [0]),
            2 => Value::String(self.short()?.to_vec()),
            3 => Value::Object(self.object(depth)?),
            5 => Value::Null,
            6 => Value::Undefined,
            8 => {
                // The count is only a hint, and encoders get it wrong; the end marker is decisive.
                let [..] = self.array::<4>()?;
                Value::EcmaArray(self.object(depth)?)
            }
            10 => {
                let count = u32::from_be_bytes(self.array()?) as usize;
                if count > self.left.len() {
                    return Err(Error::Amf);
                }
                let mut values = Vec::new();
                for _ in 0..count {
                    self.count_property()?;
                    values.push(self.value_at(depth + 1)?);
                }
                Value::StrictArray(values)
            }
            11 => {
                let millis = f64::from_be_bytes(self.array()?);
                let [..] = self.array::<2>()?;
                Value::Date(millis)
            }
            // Long string, XML document.
            12 | 15 => {
                let length = u32::from_be_bytes(self.array()?) as usize;
                Value::String(self.take(length)?.to_vec())
            }
            13 => Value::Undefined,
            16 => {
                self.short()?;
                Value::Object(self.object(depth)?)
            }
            // Movie clip, reference, record set, AMF3: no known peer sends them.
            _ => return Err(Error::Amf),
        })
    }

    fn object(&mut self, depth: usize) -> Result<Vec<(Vec<u8>, Value)>, Error> {
        let mut properties = Vec::new();
        loop {
            // Some encoders omit the end marker of the last array.
            if self.left.is_empty() {
                return Ok(properties);
            }
            let key = self.short()?;
            if key.is_empty() && self.left.first() == Some(&9) {
                self.take(1)?;
                return Ok(properties);
            }
            if key.len() > KEY_LIMIT {
                return Err(Error::AmfLimit);
            }
            self.count_property()?;
            let value = self.value_at(depth + 1)?;
            properties.push((key.to_vec(), value));
        }
    }

    const fn count_property(&mut self) -> Result<(), Error> {
        self.properties += 1;
        if self.properties > PROPERTIES_LIMIT { Err(Error::AmfLimit) } else { Ok(()) }
    }

    fn short(&mut self) -> Result<&'a [u8], Error> {
        let length = usize::from(u16::from_be_bytes(self.array()?));
        self.take(length)
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], Error> {
        let (taken, rest) = self.left.split_at_checked(length).ok_or(Error::Amf)?;
        self.left = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        let (taken, rest) = self.left.split_first_chunk().ok_or(Error::Amf)?;
        self.left = rest;
        Ok(*taken)
    }
}

/// Appends a value.
pub(crate) fn write(out: &mut Vec<u8>, value: &Value) {
    match value {
        Value::Number(number) => {
            out.push(0);
            out.extend(number.to_be_bytes());
        }
        Value::Boolean(flag) => out.extend([1, u8::from(*flag)]),
        Value::String(bytes) => match u16::try_from(bytes.len()) {
            Ok(length) => {
                out.push(2);
                out.extend(length.to_be_bytes());
                out.extend(bytes);
            }
            Err(_) => {
                out.push(12);
                out.extend(u32::try_from(bytes.len()).unwrap_or(u32::MAX).to_be_bytes());
                out.extend(bytes);
            }
        },
        Value::Object(properties) => {
            out.push(3);
            write_properties(out, properties);
        }
        Value::Null => out.push(5),
        Value::Undefined => out.push(6),
        Value::EcmaArray(properties) => {
            out.push(8);
            out.extend(u32::try_from(properties.len()).unwrap_or(u32::MAX).to_be_bytes());
            write_properties(out, properties);
        }
        Value::StrictArray(values) => {
            out.push(10);
            out.extend(u32::try_from(values.len()).unwrap_or(u32::MAX).to_be_bytes());
            for value in values {
                write(out, value);
            }
        }
        Value::Date(millis) => {
            out.push(11);
            out.extend(millis.to_be_bytes());
            out.extend([0, 0]);
        }
    }
}

fn write_properties(out: &mut Vec<u8>, properties: &[(Vec<u8>, Value)]) {
    for (key, value) in properties {
        let key = key.get(..KEY_LIMIT).unwrap_or(key);
        out.extend(u16::try_from(key.len()).unwrap_or(0).to_be_bytes());
        out.extend(key);
        write(out, value);
    }
    out.extend([0, 0, 9]);
}

#[cfg(test)]
mod tests {
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
    fn declared_lengths_allocate_nothing() {
        assert_eq!(read(&[2, 0xff, 0xff, b'x']), Err(Error::Amf));
        assert_eq!(read(&[12, 0xff, 0xff, 0xff, 0xff, b'x']), Err(Error::Amf));
        assert_eq!(read(&[10, 0xff, 0xff, 0xff, 0xff, 5]), Err(Error::Amf));
    }

    #[test]
    fn an_array_that_is_never_closed_still_counts() {
        let bytes = [&[8, 0, 0, 0, 9, 0, 1, b'k'][..], &[1, 1]].concat();
        assert_eq!(read(&bytes), Ok(Value::EcmaArray(vec![(b"k".to_vec(), Value::Boolean(true))])));
    }
}
