//! Places frames with any timestamps and arrival times.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| headgate_media::time_policy::fuzz::time_policy(bytes));
