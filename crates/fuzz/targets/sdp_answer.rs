//! Reads any bytes as an SDP answer.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| headgate_whip::fuzz::sdp_answer(bytes));
