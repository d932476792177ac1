//! Nobody gets frames of a stream that he did not join.

use std::time::Duration;

use super::world::World;
use crate::EndReason;

#[test]
fn a_slow_player_of_an_ended_stream_gets_no_frame_of_the_next_one() {
    let mut world = World::new();
    let a = world.publisher("a", 1, &[]);
    world.send_frame(a, 0, 100);
    let slow = world.player("a");
    world.peers.get_mut(&slow).expect("there").reads = 0;
    for n in 1..60 {
        world.send_frame(a, n, 20_000);
        world.pass(Duration::from_millis(40));
    }
    world.hang_up(a);
    world.pass(Duration::from_secs(1));
    assert_eq!(world.reasons(), [(1, EndReason::BroadcasterLeft)], "its stream is closed by now");
    // The next stream and its slow player take the places that the first ones had.
    let b = world.publisher("b", 2, &[]);
    world.send_frame(b, 1_000_000, 100);
    let theirs = world.player("b");
    world.peers.get_mut(&slow).expect("there").reads = usize::MAX;
    for n in 1..60 {
        world.send_frame(b, 1_000_000 + n, 1_000);
        world.pass(Duration::from_millis(40));
    }
    let strange = world.frames(slow).into_iter().filter(|n| *n >= 1_000_000).count();
    assert_eq!(strange, 0, "frames of another stream");
    world.hang_up(slow);
    for n in 60..120 {
        world.send_frame(b, 1_000_000 + n, 1_000);
        world.pass(Duration::from_millis(40));
    }
    let want: Vec<_> = (1_000_000..1_000_120).collect();
    assert_eq!(world.frames(theirs), want, "the other's leaving removed nobody else");
}

#[test]
fn a_player_gets_what_waits_for_it_when_the_publisher_leaves_and_then_the_end() {
    let mut world = World::new();
    let a = world.publisher("a", 1, &[]);
    world.send_frame(a, 0, 100);
    let player = world.player("a");
    world.peers.get_mut(&player).expect("there").reads = 0;
    for n in 1..10 {
        world.send_frame(a, n, 1_000);
    }
    world.hang_up(a);
    world.peers.get_mut(&player).expect("there").reads = usize::MAX;
    world.pass(Duration::from_millis(100));
    assert_eq!(world.frames(player), (0..10).collect::<Vec<_>>());
    let events = &world.peers[&player].events;
    assert!(events.iter().any(|event| event.contains("UnpublishNotify")), "{events:?}");
    assert_eq!(world.reasons(), [(1, EndReason::BroadcasterLeft)]);
    assert!(!world.switchboard.has_streams());
}
