//! Runs the crate's fuzz body on inputs that are the same in every run.

#[path = "../../fuzz/replay.rs"]
mod replay;

use headgate_media::flv::fuzz;

#[test]
fn tag_bodies_of_any_bytes_do_no_harm_and_frames_survive_writing() {
    replay::run_all(fuzz::tag_body, "tag_body");
}
