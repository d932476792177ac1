//! Any bytes as AMF0 values, written and read again.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| headgate_rtmp::fuzz::amf0(bytes));
