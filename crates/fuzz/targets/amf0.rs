//! Reads any bytes as AMF0 values, which are written and read again.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| headgate_rtmp::fuzz::amf0(bytes));
