//! Fast logarithms and powers of two, accurate to 0.001: enough for decibels.

/// Logarithm to base 2 of a positive, normal number.
#[inline]
pub(crate) fn log2(value: f32) -> f32 {
    let bits = value.to_bits();
    let exponent = (bits >> 23) as i32 - 127;
    let mantissa = f32::from_bits(bits & 0x7f_ffff | 0x3f80_0000);
    // Minimax polynomial on 1..2.
    let high = (-0.080_011 * mantissa + 0.635_511) * mantissa - 2.099_402;
    (high * mantissa + 4.049_617) * mantissa - 2.505_615 + exponent as f32
}

/// Two to the power of a value from -126 to 126.
#[inline]
pub(crate) fn exp2(value: f32) -> f32 {
    let value = value.clamp(-126.0, 126.0);
    let whole = value.floor();
    let fraction = value - whole;
    let power = ((0.079_086 * fraction + 0.224_516) * fraction + 0.696_391) * fraction + 0.999_897;
    power * f32::from_bits(((whole as i32 + 127) as u32) << 23)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_are_accurate_enough_for_decibels() {
        for index in -4_000..4_000 {
            let value = index as f32 * 0.01;
            assert!((log2(value.exp2()) - value).abs() < 0.001, "{value}: {}", log2(value.exp2()));
            assert!((exp2(value) / value.exp2() - 1.0).abs() < 0.001, "{value}: {}", exp2(value));
        }
    }
}
