//! Reads any bytes as the messages that contain others: commands, script data, aggregates.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| headgate_rtmp::fuzz::message(bytes));
