//! Reads any bytes as an SDP offer.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| headgate_whip::fuzz::sdp_offer(bytes));
