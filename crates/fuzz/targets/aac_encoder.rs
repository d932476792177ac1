//! Encodes any samples at any bitrate as AAC.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| headgate_aac::fuzz::encode(bytes));
