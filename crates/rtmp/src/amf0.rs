//! AMF0, as far as commands and metadata need it. Strings are bytes, because stream names are not always UTF-8.

use crate::amf_value::Value;
use crate::amf3;

/// Nesting of objects and arrays.
const DEPTH_LIMIT: usize = 16;
/// Properties and elements in one message: the index of a recording's keyframes has thousands.
const PROPERTIES_LIMIT: usize = 16_384;

/// Why a value cannot be read: it is cut, of an unknown type, or beyond the limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unreadable;

/// Reads values from the front of a message. An object or array of which a part cannot be read ends there, and so does
/// the message.
pub(crate) struct Reader<'a> {
    left: &'a [u8],
    properties: usize,
    is_odd: bool,
}

impl<'a> Reader<'a> {
    pub(crate) const fn new(bytes: &'a [u8]) -> Self {
        Self { left: bytes, properties: 0, is_odd: false }
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.left.is_empty()
    }

    /// Whether something could not be read as it is: a part is cut or missing, or a value of a type that cannot be
    /// passed on was replaced.
    pub(crate) const fn is_odd(&self) -> bool {
        self.is_odd
    }

    pub(crate) fn value(&mut self) -> Result<Value, Unreadable> {
        let value = self.value_at(0);
        if value.is_err() {
            self.stop();
        }
        value
    }

    fn value_at(&mut self, depth: usize) -> Result<Value, Unreadable> {
        if depth > DEPTH_LIMIT {
            return Err(Unreadable);
        }
        let [marker] = self.array()?;
        Ok(match marker {
            0 => Value::Number(f64::from_be_bytes(self.array()?)),
            1 => Value::Boolean(self.array::<1>()? != [0]),
            2 => Value::String(self.short()?.to_vec()),
            3 => Value::Object(self.object(depth)),
            5 => Value::Null,
            6 | 13 => Value::Undefined,
            8 => {
                // The count is only a hint, and encoders get it wrong; the end marker is decisive.
                let [..] = self.array::<4>()?;
                Value::EcmaArray(self.object(depth))
            }
            10 => Value::StrictArray(self.strict_array(depth)?),
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
            16 => {
                self.short()?;
                Value::Object(self.object(depth))
            }
            // Types that nobody needs, and that readers do not know. Those without a defined content have none: movie
            // clip, record set, the end of an object that did not begin.
            4 | 9 | 14 => self.replaced(Value::Undefined),
            // A reference to an earlier object.
            7 => {
                let [..] = self.array::<2>()?;
                self.replaced(Value::Undefined)
            }
            17 => {
                let value = amf3::value(&mut self.left, DEPTH_LIMIT - depth).ok_or(Unreadable)?;
                self.replaced(value)
            }
            _ => return Err(Unreadable),
        })
    }

    fn object(&mut self, depth: usize) -> Vec<(Vec<u8>, Value)> {
        let mut properties = Vec::new();
        loop {
            match self.property(depth) {
                Ok(Some(property)) => properties.push(property),
                Ok(None) => return properties,
                Err(Unreadable) => {
                    self.stop();
                    return properties;
                }
            }
        }
    }

    /// The next property; `None` after the last one.
    fn property(&mut self, depth: usize) -> Result<Option<(Vec<u8>, Value)>, Unreadable> {
        let key = self.short()?;
        if key.is_empty() && self.left.first() == Some(&9) {
            self.take(1)?;
            return Ok(None);
        }
        self.count_property()?;
        Ok(Some((key.to_vec(), self.value_at(depth + 1)?)))
    }

    fn strict_array(&mut self, depth: usize) -> Result<Vec<Value>, Unreadable> {
        let count = u32::from_be_bytes(self.array()?);
        let mut values = Vec::new();
        for _ in 0..count {
            match self.count_property().and_then(|()| self.value_at(depth + 1)) {
                Ok(value) => values.push(value),
                Err(Unreadable) => {
                    self.stop();
                    break;
                }
            }
        }
        Ok(values)
    }

    const fn count_property(&mut self) -> Result<(), Unreadable> {
        self.properties += 1;
        if self.properties > PROPERTIES_LIMIT { Err(Unreadable) } else { Ok(()) }
    }

    /// Nothing that follows can be read.
    const fn stop(&mut self) {
        (self.left, self.is_odd) = (&[], true);
    }

    const fn replaced(&mut self, value: Value) -> Value {
        self.is_odd = true;
        value
    }

    fn short(&mut self) -> Result<&'a [u8], Unreadable> {
        let length = usize::from(u16::from_be_bytes(self.array()?));
        self.take(length)
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], Unreadable> {
        let (taken, rest) = self.left.split_at_checked(length).ok_or(Unreadable)?;
        self.left = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Unreadable> {
        let (taken, rest) = self.left.split_first_chunk().ok_or(Unreadable)?;
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
        let key = key.get(..usize::from(u16::MAX)).unwrap_or(key);
        out.extend(u16::try_from(key.len()).unwrap_or(0).to_be_bytes());
        out.extend(key);
        write(out, value);
    }
    out.extend([0, 0, 9]);
}

#[cfg(test)]
#[path = "amf0_tests.rs"]
mod tests;
