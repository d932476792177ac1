//! Loads of `npm run endure`: thousands of short publishes, connections that stop half-way, and sessions whose network
//! changes. Each prints one line of JSON.

mod churn;
mod half_open;
mod trials;

use crate::commands::Outcome;

/// For the usage text.
pub(crate) const USAGE: &str = "headgate-bench churn RTMP HTTP STREAM_URL NAME,NAME,… COUNT AT_ONCE all|delete
headgate-bench half-open RTMP HTTP STREAM_URL NAME,NAME,… COUNT
headgate-bench trials LISTEN HTTP STREAM_URL NAME,NAME,… blackout-3|blackout-10|blackout-30|gone|rebind ROUNDS";

/// Runs one of its three commands; `None` for anything else.
pub(crate) fn run(words: &[&str]) -> Outcome {
    match *words {
        ["churn", rtmp, http, url, names, count, at_once, ways] => Some(churn::run(&churn::Run {
            rtmp: rtmp.parse().ok()?,
            http: http.parse().ok()?,
            stream_url: url.to_owned(),
            names: crate::split(names),
            count: count.parse().ok()?,
            at_once: at_once.parse().ok()?,
            is_delete_alone: match ways {
                "all" => false,
                "delete" => true,
                _ => return None,
            },
        })),
        ["half-open", rtmp, http, url, names, count] => Some(half_open::run(&half_open::Run {
            rtmp: rtmp.parse().ok()?,
            http: http.parse().ok()?,
            stream_url: url.to_owned(),
            names: crate::split(names),
            count: count.parse().ok()?,
        })),
        ["trials", listen, http, url, names, kind, rounds] => Some(trials::run(&trials::Run {
            listen: listen.parse().ok()?,
            http: http.parse().ok()?,
            stream_url: url.to_owned(),
            names: crate::split(names),
            kind: trials::Kind::of(kind)?,
            rounds: rounds.parse().ok()?,
        })),
        _ => None,
    }
}
