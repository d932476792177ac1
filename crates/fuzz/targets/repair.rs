//! Repairs any bytes as frames of an RTMP publisher.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| headgate_media::repair::fuzz::frames(bytes));
