//! Reads any bytes as a trickle ICE fragment.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| headgate_whip::fuzz::sdp_fragment(bytes));
