//! Any bytes as RTMP chunks, whole and in pieces.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| headgate_rtmp::fuzz::chunk_reader(bytes));
