//! The load generator and frame-exact sink behind `npm run bench`. Never shipped.
//!
//! `headgate-bench rtmp LISTEN TARGET NAME,NAME,… SECONDS` prints `measuring`, `measured` and then one JSON line.
#![forbid(unsafe_code)]

mod connection;
mod ledger;
mod load;
mod rtmp;

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["rtmp", listen, target, names, seconds] => run_rtmp(listen, target, names, seconds),
        _ => {
            eprintln!("headgate-bench rtmp LISTEN TARGET NAME,NAME,… SECONDS");
            ExitCode::from(2)
        }
    }
}

fn run_rtmp(listen: &str, target: &str, names: &str, seconds: &str) -> ExitCode {
    let (Ok(listen), Ok(target), Ok(seconds)) = (listen.parse(), target.parse(), seconds.parse())
    else {
        eprintln!("LISTEN and TARGET are ADDRESS:PORT, SECONDS is a number");
        return ExitCode::from(2);
    };
    let names: Vec<String> = names.split(',').map(str::to_owned).collect();
    let run = rtmp::Run { listen, target, names, seconds };
    let report = |begins| println!("{}", if begins { "measuring" } else { "measured" });
    match rtmp::run(&run, report) {
        Ok(rtmp::Outcome { balance, generator_late }) => {
            println!(
                "{{\"sent\":{},\"received\":{},\"lost\":{},\"misplaced\":{},\"delay_p50_ms\":{:.2},\"delay_p99_ms\":{:.2},\"generator_late_ms\":{:.2}}}",
                balance.sent,
                balance.received,
                balance.sent.saturating_sub(balance.received),
                balance.misplaced,
                f64::from(balance.delay_p50_us) / 1e3,
                f64::from(balance.delay_p99_us) / 1e3,
                generator_late.as_secs_f64() * 1e3,
            );
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("headgate-bench: {error}");
            ExitCode::FAILURE
        }
    }
}
