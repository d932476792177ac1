//! Depacketizes any payloads, in any order, with gaps.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| headgate_whip::fuzz::depacketizer(bytes));
