//! The 32-bit timestamps of the wire through a whole server session: absolute, as deltas, extended, with and without
//! repetition on type 3 chunks.

use crate::support::Encoder;
use crate::wire_times::{ACKNOWLEDGEMENT_BYTES, EDGES, video};

/// Timestamps of the received frames, all of which are complete.
fn arrived(encoder: &mut Encoder) -> Vec<u32> {
    // A peer that omits the extended timestamp is recognised only when the following bytes have arrived.
    encoder.chunks(&ACKNOWLEDGEMENT_BYTES);
    let media = encoder.media();
    for (n, message) in (1_u8..).zip(&media) {
        assert_eq!(message.payload, vec![n; 300], "the bytes of frame {n}");
    }
    media.iter().map(|message| message.timestamp).collect()
}

#[test]
fn full_headers_carry_all_32_bits() {
    for repeats in [true, false] {
        let mut encoder = Encoder::publishing();
        for (n, time) in (1..).zip(EDGES) {
            encoder.chunks(&video(false, time, n, repeats));
        }
        assert_eq!(arrived(&mut encoder), EDGES, "repeated on type 3: {repeats}");
    }
}

#[test]
fn timestamp_deltas_add_up_across_every_boundary() {
    for repeats in [true, false] {
        let mut encoder = Encoder::publishing();
        encoder.chunks(&video(false, EDGES[0], 1, repeats));
        for (n, pair) in (2..).zip(EDGES.windows(2)) {
            let [before, time] = pair else { unreachable!("windows of two") };
            encoder.chunks(&video(true, time.wrapping_sub(*before), n, repeats));
        }
        assert_eq!(arrived(&mut encoder), EDGES, "repeated on type 3: {repeats}");
    }
}

#[test]
fn a_message_that_starts_with_type_3_adds_the_delta_again() {
    for repeats in [true, false] {
        for (difference, extended) in [(40, None), (0x0100_0000, Some(0x0100_0000_u32))] {
            let mut encoder = Encoder::publishing();
            encoder.chunks(&video(false, 1000, 1, repeats));
            encoder.chunks(&video(true, difference, 2, repeats));
            for length in [128, 128, 44] {
                encoder.chunks(&[0xc6]);
                if let Some(extended) = extended
                    && repeats
                {
                    encoder.chunks(&extended.to_be_bytes());
                }
                encoder.chunks(&vec![3; length]);
            }
            let want = [1000, 1000 + difference, 1000 + 2 * difference];
            assert_eq!(arrived(&mut encoder), want, "repeated on type 3: {repeats}");
        }
    }
}
