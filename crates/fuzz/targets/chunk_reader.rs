//! Reads any bytes as RTMP chunks, at once and in pieces.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| headgate_rtmp::fuzz::chunk_reader(bytes));
