//! Gives the clock of a WHIP session any timestamps, sender reports and arrivals.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| headgate_whip::fuzz::clock(bytes));
