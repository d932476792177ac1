//! Reads any bytes as the app and the name of a publish.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| headgate_rtmp::fuzz::target(bytes));
