//! AMF3 values within AMF0, as clients written for Flash send them (AMF0 3.1): plain values are read, all others are
//! skipped.

use crate::amf_value::Value;

/// Values skipped within one value: each takes a byte or more.
const VALUES_LIMIT: usize = 1024;
/// Traits that later objects of the same value may refer to.
const TRAITS_LIMIT: usize = 64;

/// Takes a value from the front of `left`, with at most `depth` levels of objects; those become undefined. `None`: it
/// is cut, of an unknown type, or beyond the limits.
pub(crate) fn value(left: &mut &[u8], depth: usize) -> Option<Value> {
    Skip { left, traits: Vec::new(), values: 0 }.value(depth)
}

/// The names of an object's properties, as far as their number matters.
#[derive(Clone, Copy)]
struct Traits {
    sealed: usize,
    is_dynamic: bool,
}

struct Skip<'a, 'b> {
    left: &'a mut &'b [u8],
    traits: Vec<Traits>,
    values: usize,
}

impl<'b> Skip<'_, 'b> {
    fn value(&mut self, depth: usize) -> Option<Value> {
        self.values += 1;
        let depth = depth.checked_sub(1).filter(|_| self.values <= VALUES_LIMIT)?;
        let marker = self.byte()?;
        match marker {
            0 => Some(Value::Undefined),
            1 => Some(Value::Null),
            2 => Some(Value::Boolean(false)),
            3 => Some(Value::Boolean(true)),
            4 => {
                // 29 bits with a sign (AMF3 1.3.1).
                let number = i64::from(self.number()?);
                let signed = if number < 1 << 28 { number } else { number - (1 << 29) };
                Some(Value::Number(f64::from(i32::try_from(signed).ok()?)))
            }
            5 => Some(Value::Number(f64::from_be_bytes(*self.take(8)?.first_chunk()?))),
            // A reference to an earlier string is nothing that can be passed on.
            6 => Some(self.text()?.map_or(Value::Undefined, |text| Value::String(text.to_vec()))),
            // XML, date, array, object, XML, bytes, vectors, dictionary.
            7..=17 => self.complex(marker, depth).map(|()| Value::Undefined),
            _ => None,
        }
    }

    fn complex(&mut self, marker: u8, depth: usize) -> Option<()> {
        let head = self.number()?;
        let length = usize::try_from(head >> 1).ok()?;
        if head & 1 == 0 {
            // A reference to an earlier object.
            return Some(());
        }
        match marker {
            8 => self.take(8).map(drop),
            7 | 11 | 12 => self.take(length).map(drop),
            9 => {
                self.dynamic(depth)?;
                self.values(length, depth)
            }
            10 => self.object(head, depth),
            // Vectors of numbers, after the mark of a fixed length.
            13..=15 => {
                let width = if marker == 15 { 8 } else { 4 };
                self.take(1)?;
                self.take(length.checked_mul(width)?).map(drop)
            }
            16 => {
                self.take(1)?;
                self.text()?;
                self.values(length, depth)
            }
            _ => {
                self.take(1)?;
                self.values(length.checked_mul(2)?, depth)
            }
        }
    }

    /// The traits follow the mark of the object: a reference, or the number of names and the names (AMF3 3.12).
    fn object(&mut self, head: u32, depth: usize) -> Option<()> {
        let traits = if head & 2 == 0 {
            *self.traits.get(usize::try_from(head >> 2).ok()?)?
        } else if head & 4 == 0 {
            let sealed = usize::try_from(head >> 4).ok()?;
            let traits = Traits { sealed, is_dynamic: head & 8 != 0 };
            self.text()?;
            for _ in 0..sealed {
                self.text()?;
            }
            if self.traits.len() < TRAITS_LIMIT {
                self.traits.push(traits);
            }
            traits
        } else {
            // The class alone knows the length of its content.
            return None;
        };
        self.values(traits.sealed, depth)?;
        if traits.is_dynamic { self.dynamic(depth) } else { Some(()) }
    }

    /// Names and values up to the empty name.
    fn dynamic(&mut self, depth: usize) -> Option<()> {
        while self.text()?.is_none_or(|name| !name.is_empty()) {
            self.value(depth)?;
        }
        Some(())
    }

    fn values(&mut self, count: usize, depth: usize) -> Option<()> {
        for _ in 0..count {
            self.value(depth)?;
        }
        Some(())
    }

    /// A string; inside, `None` for a reference to an earlier one.
    fn text(&mut self) -> Option<Option<&'b [u8]>> {
        let head = self.number()?;
        if head & 1 == 0 {
            return Some(None);
        }
        self.take(usize::try_from(head >> 1).ok()?).map(Some)
    }

    /// An unsigned number of 29 bits in one to four bytes (AMF3 1.3.1).
    fn number(&mut self) -> Option<u32> {
        let mut number = 0;
        for _ in 0..3 {
            let byte = self.byte()?;
            number = number << 7 | u32::from(byte & 0x7f);
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        Some(number << 8 | u32::from(self.byte()?))
    }

    fn byte(&mut self) -> Option<u8> {
        self.take(1).and_then(|bytes| bytes.first().copied())
    }

    fn take(&mut self, length: usize) -> Option<&'b [u8]> {
        let (taken, rest) = self.left.split_at_checked(length)?;
        *self.left = rest;
        Some(taken)
    }
}
