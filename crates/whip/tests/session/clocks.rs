//! Pauses in which the sender's RTP clock of audio stands still, from its datagrams to the session's frames.

use std::time::Duration;

use headgate_media::{Codec, FrameKind, Irregularity};
use headgate_peer::Settings;

use crate::world::World;

#[test]
fn a_paused_microphone_leaves_no_track_behind_and_is_named() {
    let mut world = World::new(Settings::default());
    assert!(world.connect());
    world.publish(50, 1_000);
    assert_eq!(world.session.take_irregularities().iter().count(), 0);
    for _ in 0..4 {
        for _ in 0..75 {
            world.send_video(1_000);
            world.pass(Duration::from_millis(40));
        }
        world.publish(150, 1_000);
    }
    let last = |is_audio: bool| {
        let mut of = world.frames.iter().rev().filter(|frame| {
            (frame.codec != Codec::H264) == is_audio && frame.kind != FrameKind::Configuration
        });
        of.next().expect("frames").timestamp.as_millis()
    };
    let apart = last(true) - last(false);
    assert!((-25..=45).contains(&apart), "audio ends {apart} ms after the video");
    let counts: Vec<_> = world.session.take_irregularities().iter().collect();
    assert_eq!(counts, [(Irregularity::TimeStopped, 4)]);
}
