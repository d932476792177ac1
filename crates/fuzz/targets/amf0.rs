//! Any bytes as AMF0 values and as an aggregate message.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| headgate_rtmp::fuzz::amf0(bytes));
