//! Runs the crate's fuzz body on inputs that are the same in every run.

#[path = "../../fuzz/replay.rs"]
mod replay;

use headgate_media::flv::fuzz;
use headgate_media::repair;

#[test]
fn tag_bodies_of_random_bytes_do_no_harm_and_frames_read_back() {
    replay::run_all(fuzz::tag_body, "tag_body");
}

#[test]
fn frames_of_random_bytes_leave_decodable_or_not_at_all() {
    replay::run_all(repair::fuzz::frames, "repair");
}
