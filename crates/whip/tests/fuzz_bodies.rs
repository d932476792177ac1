//! Runs the fuzz bodies on the inputs kept in git and on changes of them that are the same in every run: a bounded part
//! of what `npm run fuzz` does.

use headgate_whip::fuzz;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRng, TestRunner};

/// Changed inputs per body; each takes well below a millisecond without optimisation.
const CASES: u32 = 1_500;

/// One change: removes, repeats or overwrites a range.
#[derive(Clone, Debug)]
struct Change {
    kind: u8,
    at: prop::sample::Index,
    bytes: Vec<u8>,
}

fn changes() -> impl Strategy<Value = Vec<Change>> {
    let bytes = vec(any::<u8>(), 0..24);
    let change = (0_u8..4, any::<prop::sample::Index>(), bytes);
    vec(change.prop_map(|(kind, at, bytes)| Change { kind, at, bytes }), 0..6)
}

fn apply(mut input: Vec<u8>, changes: &[Change]) -> Vec<u8> {
    for Change { kind, at, bytes } in changes {
        let at = at.index(input.len() + 1);
        let end = (at + bytes.len()).min(input.len());
        match kind {
            0 => input.truncate(at),
            1 => drop(input.splice(at..end, bytes.iter().copied())),
            2 => drop(input.splice(at..at, bytes.iter().copied())),
            _ => input.extend_from_within(at..end),
        }
    }
    input
}

fn replay(name: &str, body: fn(&[u8])) {
    let folder = format!("{}/../fuzz/corpus/{name}", env!("CARGO_MANIFEST_DIR"));
    let kept: Vec<Vec<u8>> = std::fs::read_dir(folder)
        .expect("a corpus")
        .map(|entry| std::fs::read(entry.expect("readable").path()).expect("readable"))
        .collect();
    assert!(!kept.is_empty());
    kept.iter().for_each(|input| body(input));
    let config = Config { cases: CASES, failure_persistence: None, ..Config::default() };
    let rng = TestRng::deterministic_rng(config.rng_algorithm);
    let of_kept = (prop::sample::select(kept), changes());
    let outcome = TestRunner::new_with_rng(config, rng).run(&of_kept, |(input, changes)| {
        body(&apply(input, &changes));
        Ok(())
    });
    outcome.expect("no body panics");
}

#[test]
fn an_offer_of_random_bytes_does_no_harm() {
    replay("sdp_offer", fuzz::sdp_offer);
}

#[test]
fn an_answer_of_random_bytes_does_no_harm() {
    replay("sdp_answer", fuzz::sdp_answer);
}

#[test]
fn a_fragment_of_random_bytes_does_no_harm() {
    replay("sdp_fragment", fuzz::sdp_fragment);
}

#[test]
fn random_payloads_make_complete_access_units_or_none() {
    replay("depacketizer", fuzz::depacketizer);
}

#[test]
fn random_packets_leave_the_timeline_in_order() {
    replay("jitter", fuzz::jitter);
}

#[test]
fn random_clocks_leave_the_timeline_in_order_and_near_the_time_of_receipt() {
    replay("clock", fuzz::clock);
}

#[test]
fn random_datagrams_do_a_session_no_harm() {
    replay("whip_session", fuzz::whip_session);
}

#[test]
fn random_media_of_a_client_with_keys_does_a_session_no_harm() {
    replay("whip_media", fuzz::whip_media);
    let config = Config { cases: CASES, failure_persistence: None, ..Config::default() };
    let rng = TestRng::deterministic_rng(config.rng_algorithm);
    let noise = vec(any::<u8>(), 0..4_000);
    let outcome = TestRunner::new_with_rng(config, rng).run(&noise, |input| {
        fuzz::whip_media(&input);
        Ok(())
    });
    outcome.expect("no input panics");
}
