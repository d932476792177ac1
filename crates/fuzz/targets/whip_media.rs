//! Sends any media that a client with keys can send.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| headgate_whip::fuzz::whip_media(bytes));
