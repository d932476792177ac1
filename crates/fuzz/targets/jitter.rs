//! Sends any packets of two layers through the jitter buffer, with pauses and reports.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| headgate_whip::fuzz::jitter(bytes));
