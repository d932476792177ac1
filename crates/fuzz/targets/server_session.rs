//! Sends any bytes to an RTMP server past its handshake.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| headgate_rtmp::fuzz::server_session(bytes));
