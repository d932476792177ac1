//! Reads any bytes as a capture file.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| headgate_capture::fuzz::capture_reader(bytes));
