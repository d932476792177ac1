//! Any bytes as RTMP chunks.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| headgate_rtmp::fuzz::chunk_reader(bytes));
