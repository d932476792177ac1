//! Overwrites the strings of a command (RTMP 7.1.1) with x, except those that contain no personal data. AMF0 2.

/// Nesting depth of objects; a deeper one is wiped.
const DEPTH_LIMIT: usize = 16;
/// Properties of `connect` that contain program and codec names.
const KEPT_PROPERTIES: [&[u8]; 3] = [b"flashVer", b"type", b"fourCcList"];
/// Publishing types.
const KEPT_ARGUMENTS: [&[u8]; 3] = [b"live", b"record", b"append"];

/// How the current string is treated.
#[derive(Clone, Copy)]
enum Keep {
    All,
    /// The application, which may be followed by a stream name.
    App,
    Nothing,
}

/// Overwrites a command in place; anything that is not AMF0 is zeroed.
pub(super) fn wipe(payload: &mut [u8]) {
    let mut walk = Walk { bytes: payload, at: 0 };
    let mut keep = Keep::All;
    while walk.at < walk.bytes.len() {
        if walk.value(keep, 0).is_none() {
            walk.bytes.iter_mut().skip(walk.at).for_each(|byte| *byte = 0);
            return;
        }
        // Only the first value, the command's name, is kept.
        keep = Keep::Nothing;
    }
}

struct Walk<'a> {
    bytes: &'a mut [u8],
    at: usize,
}

impl Walk<'_> {
    /// Skips over one value. `None`: it cannot be read, and `at` is not past it.
    fn value(&mut self, keep: Keep, depth: usize) -> Option<()> {
        let marker = *self.bytes.get(self.at)?;
        self.at += 1;
        (depth < DEPTH_LIMIT).then(|| self.content(marker, keep, depth)).flatten()
    }

    fn content(&mut self, marker: u8, keep: Keep, depth: usize) -> Option<()> {
        match marker {
            0x00 => self.skip(8),
            0x01 => self.skip(1),
            0x02 => {
                let length = self.number(2)?;
                self.string(length, keep)
            }
            0x03 => self.properties(depth),
            0x05 | 0x06 | 0x0d => Some(()),
            0x07 => self.skip(2),
            0x08 => {
                self.skip(4)?;
                self.properties(depth)
            }
            0x0a => {
                let count = self.number(4)?;
                for _ in 0..count {
                    self.value(keep, depth + 1)?;
                }
                Some(())
            }
            0x0b => self.skip(10),
            0x0c | 0x0f => {
                let length = self.number(4)?;
                self.string(length, keep)
            }
            _ => None,
        }
    }

    /// Skips over names and values up to the end of an object.
    fn properties(&mut self, depth: usize) -> Option<()> {
        loop {
            let length = self.number(2)?;
            let name = self.bytes.get(self.at..self.at + length)?;
            let keep = match name {
                b"app" => Keep::App,
                name if KEPT_PROPERTIES.contains(&name) => Keep::All,
                _ => Keep::Nothing,
            };
            self.at += length;
            if length == 0 && self.bytes.get(self.at) == Some(&0x09) {
                self.at += 1;
                return Some(());
            }
            self.value(keep, depth + 1)?;
        }
    }

    fn string(&mut self, length: usize, keep: Keep) -> Option<()> {
        let text = self.bytes.get_mut(self.at..self.at.checked_add(length)?)?;
        let from = match keep {
            Keep::All => length,
            Keep::App => text.iter().position(|byte| b"/?".contains(byte)).unwrap_or(length),
            Keep::Nothing if KEPT_ARGUMENTS.contains(&&*text) => length,
            Keep::Nothing => 0,
        };
        for byte in text.iter_mut().skip(from).filter(|byte| !b"/?&=:".contains(byte)) {
            *byte = b'x';
        }
        self.skip(length)
    }

    fn number(&mut self, width: usize) -> Option<usize> {
        let field = self.bytes.get(self.at..self.at + width)?;
        let number = field.iter().fold(0, |number, byte| number << 8 | usize::from(*byte));
        self.at += width;
        Some(number)
    }

    fn skip(&mut self, count: usize) -> Option<()> {
        let to = self.at.checked_add(count).filter(|to| *to <= self.bytes.len())?;
        self.at = to;
        Some(())
    }
}
