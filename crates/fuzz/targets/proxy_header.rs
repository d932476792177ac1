//! Reads any bytes as a PROXY protocol header, as it arrives.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| headgate_rtmp::fuzz::proxy_header(bytes));
