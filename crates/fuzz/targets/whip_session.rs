//! Sends any datagrams to a WHIP session in its handshake.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| headgate_whip::fuzz::whip_session(bytes));
