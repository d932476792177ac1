//! Reads any bytes as FLV and Enhanced RTMP tag bodies.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| headgate_media::flv::fuzz::tag_body(bytes));
