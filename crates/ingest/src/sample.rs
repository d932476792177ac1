//! H.264 of the tests' publishers: valid as far as the core reads it.

/// Tag body with an AVCDecoderConfigurationRecord of constrained Baseline, 640x360, level 3.1.
pub(crate) const AVC_HEADER: &[u8] = &[
    0x17, 0, 0, 0, 0, 1, 0x42, 0xc0, 0x1f, 0xff, 0xe1, 0, 11, 0x67, 0x42, 0xc0, 0x1f, 0x8c, 0x8d,
    0x40, 0x50, 0x1e, 0xd0, 0x0f, 1, 0, 4, 0x68, 0xce, 0x3c, 0x80,
];
/// The same with another level.
pub(crate) const OTHER_AVC_HEADER: &[u8] = &[
    0x17, 0, 0, 0, 0, 1, 0x42, 0xc0, 0x28, 0xff, 0xe1, 0, 11, 0x67, 0x42, 0xc0, 0x28, 0x8c, 0x8d,
    0x40, 0x50, 0x1e, 0xd0, 0x0f, 1, 0, 4, 0x68, 0xce, 0x3c, 0x80,
];
/// Tag header, length of the NAL unit, its first byte and the frame's number.
pub(crate) const LEAST_PICTURE: usize = 14;
/// Place of the number.
const NUMBER_AT: usize = 10;

/// The `n`th of different headers.
pub(crate) fn avc_header(n: u8) -> Vec<u8> {
    let mut header = AVC_HEADER.to_vec();
    // In the picture parameter set, which must not end in a zero.
    if let Some(last) = header.last_mut() {
        *last = n | 0x80;
    }
    header
}

/// A video tag body of `bytes` bytes, at least [`LEAST_PICTURE`]: one slice that contains number `n`.
pub(crate) fn picture(is_keyframe: bool, n: u32, bytes: usize) -> Vec<u8> {
    let bytes = bytes.max(LEAST_PICTURE);
    let (first, unit) = if is_keyframe { (0x17, 0x65) } else { (0x27, 0x41) };
    let mut body = vec![first, 1, 0, 0, 0];
    body.extend(u32::try_from(bytes - 9).unwrap_or(0).to_be_bytes());
    body.push(unit);
    body.extend(n.to_be_bytes());
    body.resize(bytes, 0);
    body
}

/// The number in such a tag body.
pub(crate) fn number(body: &[u8]) -> Option<u32> {
    let number = body.get(NUMBER_AT..LEAST_PICTURE).filter(|_| body.get(1) == Some(&1))?;
    number.try_into().ok().map(u32::from_be_bytes)
}
