//! Any bytes as a trickled fragment.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| headgate_whip::fuzz::sdp_fragment(bytes));
