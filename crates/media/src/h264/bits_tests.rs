use super::*;

/// Writes Exp-Golomb numbers and fixed-length fields, most significant bit first.
#[derive(Default)]
pub(crate) struct Writer(Vec<bool>);

impl Writer {
    pub(crate) fn number(mut self, value: u32) -> Self {
        let coded = u64::from(value) + 1;
        let length = 64 - coded.leading_zeros();
        self.0.extend((1..length).map(|_| false));
        self.0.extend((0..length).rev().map(|bit| coded >> bit & 1 == 1));
        self
    }

    pub(crate) fn numbers(self, values: &[u32]) -> Self {
        values.iter().fold(self, |writer, value| writer.number(*value))
    }

    pub(crate) fn bit(mut self, bit: bool) -> Self {
        self.0.push(bit);
        self
    }

    /// Appends the low `count` bits.
    pub(crate) fn fixed(self, value: u64, count: u32) -> Self {
        (0..count).rev().fold(self, |writer, at| writer.bit(value >> at & 1 == 1))
    }

    /// The NAL unit: `head`, the bits with a stop bit, and emulation prevention (7.4.1.1).
    pub(crate) fn nal(mut self, head: &[u8]) -> Vec<u8> {
        self.0.push(true);
        let byte = |bits: &[bool]| {
            bits.iter().enumerate().fold(0, |byte, (n, bit)| byte | u8::from(*bit) << (7 - n))
        };
        let mut nal = head.to_vec();
        for byte in self.0.chunks(8).map(byte) {
            if byte <= 3 && nal.ends_with(&[0, 0]) {
                nal.push(3);
            }
            nal.push(byte);
        }
        nal
    }
}

#[test]
fn numbers_of_any_length_are_read() {
    let values = [0, 1, 2, 7, 254, 65_535, 0x7fff_fffe, u32::MAX - 1];
    let nal = Writer::default().numbers(&values).nal(&[]);
    let mut bits = Bits::new(&nal);
    for value in values {
        assert_eq!(bits.exp_golomb(), Some(value));
    }
}

#[test]
fn a_number_longer_than_32_bits_is_none() {
    let nal = Writer::default().fixed(0, 32).fixed(u64::MAX, 34).nal(&[]);
    assert_eq!(Bits::new(&nal).exp_golomb(), None);
}

#[test]
fn only_a_three_after_two_zeros_is_removed() {
    let mut bits = Bits::new(&[0, 3, 0, 0, 3, 0, 0, 3, 3]);
    for byte in [0, 3, 0, 0, 0, 0, 3] {
        assert_eq!(bits.fixed(8), Some(byte));
    }
    assert_eq!(bits.fixed(1), None);
}

#[test]
fn the_last_32_bits_of_a_fixed_field_are_kept() {
    assert_eq!(Bits::new(&[0x12, 0x34, 0x56]).fixed(24), Some(0x12_3456));
    assert_eq!(Bits::new(&[0xff, 1, 2, 3, 4]).fixed(40), Some(0x0102_0304));
}
