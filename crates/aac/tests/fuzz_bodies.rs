//! Runs the crate's fuzz body on inputs that are the same in every run.

/// Inputs; each has up to 24 frames, so they are fewer than those of parsers.
const ROUNDS: usize = 60;

#[test]
fn any_samples_at_any_bitrate_make_access_units_within_the_limit() {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    for round in 0..ROUNDS {
        let bytes: Vec<u8> = (0..3 + 5 * (round % 25))
            .map(|_| {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                (state >> 33) as u8
            })
            .collect();
        headgate_aac::fuzz::encode(&bytes);
    }
}
