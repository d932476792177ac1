//! A panic in one session's turn, or in what it asked for, ends that session and no other.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use headgate_rtmp::ClientRole;

use super::world::World;
use crate::EndReason;
use crate::publish::mailbox::Mailbox;
use crate::publish::registry::Publishes;

#[test]
fn a_panic_in_a_turn_ends_that_session_and_its_publish_with_its_reason() {
    let mut world = World::new();
    let faulty = world.publisher("faulty", 1, &[]);
    let neighbour = world.publisher("neighbour", 2, &[]);
    world.send_frame(neighbour, 0, 100);
    let player = world.player("neighbour");
    world.switchboard.turn(faulty, |_, _, _| panic!("a bug"));
    world.settle();
    for n in 1..20 {
        world.send_frame(neighbour, n, 100);
    }
    world.pass(Duration::from_secs(1));
    assert_eq!(world.reasons(), [(1, EndReason::InternalError)]);
    assert_eq!(world.frames(player), (0..20).collect::<Vec<_>>());
    // The name is free again, and the worker continues to serve.
    let again = world.publisher("faulty", 3, &[]);
    world.hang_up(again);
    assert_eq!(world.reasons().last(), Some(&(3, EndReason::BroadcasterLeft)));
}

#[test]
fn a_panic_while_an_effect_is_carried_out_ends_that_session_and_no_other() {
    let mut world = World::new();
    let is_faulty = Arc::new(AtomicBool::new(false));
    let wake = is_faulty.clone();
    let mailbox = Mailbox::new(Box::new(move || {
        assert!(!wake.swap(false, Ordering::Relaxed), "a bug");
    }));
    world.publishes = Publishes::new(mailbox);
    world.switchboard.sessions.context.publishes = world.publishes.clone();
    let neighbour = world.publisher("neighbour", 1, &[]);
    world.send_frame(neighbour, 0, 100);
    let player = world.player("neighbour");
    is_faulty.store(true, Ordering::Relaxed);
    let faulty = world.connect(ClientRole::Publish, "faulty");
    assert!(world.switchboard.sessions.session(faulty).is_none(), "it has ended");
    for n in 1..20 {
        world.send_frame(neighbour, n, 100);
    }
    assert_eq!(world.frames(player), (0..20).collect::<Vec<_>>());
    world.asked.clear();
    world.publisher("faulty", 2, &[]);
    assert!(world.reasons().is_empty());
}

#[test]
fn a_panic_outside_any_turn_ends_all_sessions_and_the_worker_continues() {
    let mut world = World::new();
    let publisher = world.publisher("a", 1, &[]);
    world.send_frame(publisher, 0, 100);
    world.player("a");
    let keys: Vec<_> = world.switchboard.sessions.keys().collect();
    world.switchboard.give_up();
    world.settle();
    let others = world.connect(ClientRole::Play, "a");
    assert!(!keys.contains(&others), "a key of an earlier session");
    world.hang_up(others);
    assert_eq!(world.reasons(), [(1, EndReason::InternalError)]);
    assert!(world.switchboard.is_empty());
    world.peers.clear();
    world.publisher("a", 2, &[]);
    assert!(world.switchboard.has_streams());
}
