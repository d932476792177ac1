//! Video in chunks with the timestamps of a long publish, assembled by hand.

const VIDEO: u8 = 9;
/// A message without effect.
pub(crate) const ACKNOWLEDGEMENT_BYTES: [u8; 16] = [2, 0, 0, 0, 0, 0, 4, 3, 0, 0, 0, 0, 0, 0, 0, 0];
/// On both sides of the 24-, 31- and 32-bit limits.
pub(crate) const EDGES: [u32; 9] = [
    0x00ff_fffe,
    0x00ff_ffff,
    0x0100_0000,
    0x7fff_ffff,
    0x8000_0000,
    0x8000_0028,
    0xffff_ffff,
    0,
    40,
];

/// A frame of 300 bytes in three chunks: with a full header at `time` or, after another frame, with it as a delta.
pub(crate) fn video(is_difference: bool, time: u32, fill: u8, repeats: bool) -> Vec<u8> {
    let is_extended = time >= 0x00ff_ffff;
    let [_, t0, t1, t2] = time.min(0x00ff_ffff).to_be_bytes();
    let format = if is_difference { 0x40 } else { 0 };
    let mut bytes = vec![format | 6, t0, t1, t2, 0, 1, 44, VIDEO];
    if !is_difference {
        bytes.extend([1, 0, 0, 0]);
    }
    for (n, length) in [128, 128, 44].into_iter().enumerate() {
        if n > 0 {
            bytes.push(0xc6);
        }
        if is_extended && (n == 0 || repeats) {
            bytes.extend(time.to_be_bytes());
        }
        bytes.extend(vec![fill; length]);
    }
    bytes
}
