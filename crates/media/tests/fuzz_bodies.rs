//! Runs the crate's fuzz bodies on inputs that are the same in every run.

#[path = "../../fuzz/replay.rs"]
mod replay;

use headgate_media::flv::fuzz;
use headgate_media::{repair, time_policy};

#[test]
fn tag_bodies_of_random_bytes_do_no_harm_and_frames_read_back() {
    replay::run_all(fuzz::tag_body, "tag_body");
}

#[test]
fn frames_of_random_bytes_leave_decodable_or_not_at_all() {
    replay::run_all(repair::fuzz::frames, "repair");
}

#[test]
fn no_track_goes_back_whatever_its_timestamps_and_both_keep_in_step() {
    replay::run_all(time_policy::fuzz::time_policy, "time_policy");
}
