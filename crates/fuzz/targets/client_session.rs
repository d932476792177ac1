//! Sends any bytes to an RTMP client past its handshake.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| headgate_rtmp::fuzz::client_session(bytes));
