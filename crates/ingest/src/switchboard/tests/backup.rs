//! Two publishes of one name, in virtual time: one stands by, and takes over on the connections of the other.

use std::time::Duration;

use headgate_rtmp::MediaKind;

use super::super::message::Message;
use super::super::{EndReason, SessionKey};
use super::world::{AAC_FRAME, AAC_HEADER, URL, World};
use crate::publish::mailbox::{HoldEnded, OnAirCause, OnAirChanged};
use crate::publish::near::Near;

/// A different AVCDecoderConfigurationRecord.
const OTHER_HEADER: &[u8] = crate::sample::OTHER_AVC_HEADER;
const STEP: Duration = Duration::from_millis(40);

/// Opens a publish of "a" beside the one with client id `other`.
fn open_beside(world: &mut World, client_id: u64, other: u64) -> SessionKey {
    let near = world.near(None, Some(other));
    assert!(near.beside().is_some(), "it runs");
    open_near(world, client_id, near)
}

fn open_near(world: &mut World, client_id: u64, near: Near) -> SessionKey {
    let key = world.broadcaster("a", client_id, near, &[URL]);
    world.send(key, MediaKind::Video, 0, OTHER_HEADER);
    world.send(key, MediaKind::Audio, 0, AAC_HEADER);
    key
}

/// Main and backup, each with `frames` frames sent; the backup's timestamps and frame numbers begin at frame 1,000.
fn live_pair(frames: u32) -> (World, SessionKey, SessionKey, SessionKey) {
    let mut world = World::new();
    let main = world.publisher("a", 1, &[URL]);
    world.send(main, MediaKind::Audio, 0, AAC_HEADER);
    let backup = open_beside(&mut world, 2, 1);
    send_both(&mut world, Some(main), Some(backup), 0..frames);
    let upstream = world.upstream_peer().expect("connected");
    (world, main, backup, upstream)
}

/// Sends frames from those that are given, in real time.
fn send_both(
    world: &mut World,
    main: Option<SessionKey>,
    backup: Option<SessionKey>,
    numbers: std::ops::Range<u32>,
) {
    for n in numbers {
        for (key, n) in [(main, n), (backup, n + 1_000)] {
            let Some(key) = key else { continue };
            world.send_frame(key, n, 100);
            world.send(key, MediaKind::Audio, n * 40, AAC_FRAME);
        }
        world.pass(STEP);
    }
}

fn switch_to(world: &mut World, client_id: u64) {
    let stream = world.publishes.find(client_id).expect("it runs").stream;
    world.switchboard.handle_message(Message::SwitchTo(stream));
    world.settle();
}

/// The largest step between two frames of a kind; fails unless each is later than the one before.
fn widest_step(world: &World, peer: SessionKey, kind: MediaKind) -> u32 {
    let times = world.times(peer, kind);
    assert!(times.is_sorted_by(|one, next| one < next), "{kind:?} goes back: {times:?}");
    world.widest_step(peer, kind)
}

fn on_air(world: &World, client_id: u64) -> bool {
    world.snapshot(client_id).is_on_air
}

#[test]
fn a_publish_on_standby_sends_nothing_and_opens_no_upstream() {
    let (mut world, _, backup, upstream) = live_pair(50);
    let player = world.player("a");
    send_both(&mut world, None, Some(backup), 50..60);
    for peer in [upstream, player] {
        assert!(world.frames(peer).iter().all(|number| *number < 1_000));
    }
    let snapshot = world.snapshot(2);
    assert_eq!((snapshot.is_on_air, snapshot.bytes_out, snapshot.subscribers), (false, 0, 0));
    assert!(snapshot.bytes_in > 0 && on_air(&world, 1));
    assert_eq!(world.resolved.len(), 1);
    let began =
        OnAirChanged { client_id: 2, is_on_air: false, other: Some(1), cause: OnAirCause::Began };
    assert_eq!(world.on_air, [began]);
}

#[test]
fn a_lost_publish_is_replaced_immediately_from_the_newest_keyframe_on_the_same_connections() {
    // In the middle of a GOP, even without a hold window.
    let (mut world, main, backup, upstream) = live_pair(70);
    let player = world.player("a");
    world.hang_up(main);
    send_both(&mut world, None, Some(backup), 70..120);
    assert_eq!(world.upstream_peer(), Some(upstream), "the connection is the same");
    assert_eq!(world.resolved.len(), 1);
    for peer in [upstream, player] {
        let frames = world.frames(peer);
        let taken = frames.iter().position(|number| *number >= 1_000).expect("it took over");
        assert_eq!(frames[taken..taken + 3], [1_050, 1_051, 1_052], "at its keyframe");
        assert_eq!(frames.last(), Some(&1_119));
        assert!(widest_step(&world, peer, MediaKind::Video) <= 80);
        assert!(widest_step(&world, peer, MediaKind::Audio) <= 200);
        // The cached frames are passed on within a moment: the stream does not run ahead.
        let ahead = world.times(peer, MediaKind::Video).last().expect("video").abs_diff(119 * 40);
        assert!(ahead <= 150, "{ahead} ms");
        let video = world.peers[&peer].media.iter().filter(|of| of.kind == MediaKind::Video);
        let headers: Vec<_> = video.filter(|of| of.payload[1] == 0).collect();
        assert_eq!(&headers.last().expect("headers").payload[..], OTHER_HEADER);
    }
    assert_eq!(world.reasons(), [(1, EndReason::BroadcasterLeft)]);
    assert_eq!(world.holds_ended, [HoldEnded { client_id: 1, successor: Some(2) }]);
    let took =
        OnAirChanged { client_id: 2, is_on_air: true, other: Some(1), cause: OnAirCause::Lost };
    assert_eq!(world.on_air.last(), Some(&took));
    let snapshot = world.snapshot(2);
    assert_eq!((snapshot.subscribers, snapshot.upstreams.len()), (2, 1));
    assert!(world.publishes.find_name(b"a").is_some_and(|live| live.client_id == 2));
}

#[test]
fn the_gateway_switches_there_and_back_and_both_publishes_continue() {
    let (mut world, main, backup, upstream) = live_pair(60);
    let mut n = 60;
    for to in [2, 1, 2, 1] {
        switch_to(&mut world, to);
        switch_to(&mut world, to);
        send_both(&mut world, Some(main), Some(backup), n..n + 60);
        n += 60;
        assert!(on_air(&world, to) && !on_air(&world, 3 - to));
        let is_backup = world.frames(upstream).last().expect("frames") >= &1_000;
        assert_eq!(is_backup, to == 2);
    }
    assert!(widest_step(&world, upstream, MediaKind::Video) <= 200);
    assert!(widest_step(&world, upstream, MediaKind::Audio) <= 250);
    assert_eq!((world.resolved.len(), world.ended.len()), (1, 0));
    let switches =
        world.on_air.iter().filter(|of| of.cause == OnAirCause::Switched && of.is_on_air);
    assert_eq!(switches.map(|of| of.client_id).collect::<Vec<_>>(), [2, 1, 2, 1]);
    world.hang_up(backup);
    world.hang_up(main);
    world.pass(Duration::from_secs(2));
    assert!(world.has_ended(upstream) && world.switchboard.is_empty());
}

#[test]
fn a_switch_waits_for_a_keyframe_while_the_other_publish_continues() {
    let mut world = World::new();
    let main = world.publisher("a", 1, &[URL]);
    let backup = open_beside(&mut world, 2, 1);
    send_both(&mut world, Some(main), None, 0..10);
    let upstream = world.upstream_peer().expect("connected");
    // Frame 1,011 is no keyframe.
    send_both(&mut world, Some(main), Some(backup), 11..15);
    switch_to(&mut world, 2);
    send_both(&mut world, Some(main), Some(backup), 15..24);
    assert!(on_air(&world, 1));
    assert_eq!(world.frames(upstream).last(), Some(&23));
    send_both(&mut world, Some(main), Some(backup), 24..30);
    assert!(on_air(&world, 2));
    assert!(world.frames(upstream).ends_with(&[1_025, 1_026, 1_027, 1_028, 1_029]));
}

#[test]
fn a_silent_publish_goes_on_standby_and_the_other_takes_over() {
    let (mut world, main, backup, upstream) = live_pair(100);
    send_both(&mut world, None, Some(backup), 100..174);
    assert!(on_air(&world, 1), "not for less than three seconds");
    send_both(&mut world, None, Some(backup), 174..200);
    assert!(on_air(&world, 2) && !on_air(&world, 1) && world.ended.is_empty());
    assert!(widest_step(&world, upstream, MediaKind::Video) < 3_200);
    // The first one is back, and the other falls silent in turn.
    send_both(&mut world, Some(main), Some(backup), 200..300);
    assert!(on_air(&world, 2), "nothing on air is interrupted");
    send_both(&mut world, Some(main), None, 300..380);
    assert!(on_air(&world, 1));
    assert!(widest_step(&world, upstream, MediaKind::Video) < 3_200);
}

#[test]
fn after_an_intended_end_the_standby_publish_goes_on_air_only_when_ordered() {
    let (mut world, _, backup, upstream) = live_pair(60);
    let stream = world.publishes.find(1).expect("it runs").stream;
    world.switchboard.end_publish(stream, EndReason::Kicked, "");
    world.pass(Duration::from_secs(2));
    assert!(world.has_ended(upstream) && world.publishes.find_name(b"a").is_none());
    send_both(&mut world, None, Some(backup), 60..90);
    assert!(!on_air(&world, 2) && world.resolved.len() == 1);
    switch_to(&mut world, 2);
    send_both(&mut world, None, Some(backup), 90..130);
    assert!(on_air(&world, 2) && world.publishes.find_name(b"a").is_some());
    let anew = world.upstream_peer().expect("connected again");
    assert_eq!((world.resolved.len(), world.frames(anew).last()), (2, Some(&1_129)));
}

#[test]
fn a_publish_that_joins_a_lone_standby_publish_goes_on_air() {
    let (mut world, main, backup, _) = live_pair(60);
    let stream = world.publishes.find(1).expect("it runs").stream;
    world.switchboard.end_publish(stream, EndReason::Kicked, "");
    world.hang_up(main);
    world.pass(Duration::from_secs(2));
    let third = open_beside(&mut world, 3, 2);
    send_both(&mut world, Some(third), Some(backup), 60..120);
    assert!(on_air(&world, 3) && !on_air(&world, 2));
    let upstream = world.upstream_peer().expect("connected");
    assert_eq!(world.frames(upstream).last(), Some(&119));
    world.hang_up(third);
    send_both(&mut world, None, Some(backup), 120..150);
    assert!(on_air(&world, 2));
    assert_eq!(world.frames(upstream).last(), Some(&1_149));
}

#[test]
fn the_end_of_a_standby_publish_does_not_affect_the_stream() {
    let (mut world, main, backup, upstream) = live_pair(60);
    world.hang_up(backup);
    assert_eq!(world.reasons(), [(2, EndReason::BroadcasterLeft)]);
    assert!(!world.ended[0].is_held);
    let again = open_beside(&mut world, 3, 1);
    send_both(&mut world, Some(main), Some(again), 60..100);
    world.hang_up(main);
    send_both(&mut world, None, Some(again), 100..130);
    assert!(on_air(&world, 3) && !world.has_ended(upstream));
    assert_eq!(world.frames(upstream).last(), Some(&1_129));
}

#[test]
fn silence_is_sent_while_the_publish_that_took_over_has_no_media() {
    let mut world = World::new();
    let main = world.publisher("a", 1, &[URL]);
    world.send(main, MediaKind::Audio, 0, AAC_HEADER);
    let backup = open_beside(&mut world, 2, 1);
    send_both(&mut world, Some(main), None, 0..50);
    let upstream = world.upstream_peer().expect("connected");
    world.hang_up(main);
    world.pass(Duration::from_secs(4));
    assert!(on_air(&world, 2) && !world.has_ended(upstream));
    assert!(widest_step(&world, upstream, MediaKind::Audio) <= 60);
    send_both(&mut world, None, Some(backup), 0..30);
    assert!(world.frames(upstream).ends_with(&[1_028, 1_029]));
    assert!((3_900..4_300).contains(&widest_step(&world, upstream, MediaKind::Video)));
}

#[test]
fn the_standby_publish_takes_over_from_a_faulty_one() {
    let (mut world, main, backup, upstream) = live_pair(60);
    // A chunk that continues no message.
    world.send_bytes(main, &[0xff]);
    assert_eq!(world.reasons(), [(1, EndReason::ProtocolError)]);
    send_both(&mut world, None, Some(backup), 60..90);
    assert!(on_air(&world, 2));
    assert_eq!(world.frames(upstream).last(), Some(&1_089));
}

#[test]
fn a_switch_waiting_for_a_keyframe_survives_the_end_of_the_other_publish() {
    let mut world = World::new();
    let main = world.publisher("a", 1, &[URL]);
    let backup = open_beside(&mut world, 2, 1);
    send_both(&mut world, Some(main), Some(backup), 11..15);
    switch_to(&mut world, 2);
    let stream = world.publishes.find(1).expect("it runs").stream;
    world.switchboard.end_publish(stream, EndReason::Kicked, "");
    world.pass(Duration::from_secs(1));
    send_both(&mut world, None, Some(backup), 15..30);
    assert!(on_air(&world, 2) && world.publishes.find_name(b"a").is_some());
}

#[test]
fn a_new_backup_takes_over_from_a_publish_that_was_just_lost() {
    let mut world = World::new();
    world.window = Duration::from_secs(10);
    let main = world.publisher("a", 1, &[URL]);
    send_both(&mut world, Some(main), None, 0..30);
    let upstream = world.upstream_peer().expect("connected");
    let near = world.near(None, Some(1));
    world.hang_up(main);
    let backup = open_near(&mut world, 2, near);
    send_both(&mut world, None, Some(backup), 0..10);
    assert!(on_air(&world, 2));
    assert_eq!((world.frames(upstream).last(), world.resolved.len()), (Some(&1_009), 1));
    assert_eq!(world.holds_ended, [HoldEnded { client_id: 1, successor: Some(2) }]);
}

#[test]
fn a_replaced_publish_of_a_pair_can_still_be_ended() {
    let (mut world, main, ..) = live_pair(50);
    switch_to(&mut world, 2);
    let third = open_beside(&mut world, 3, 2);
    for n in 0..50 {
        world.send_frame(third, n, 100);
        world.pass(STEP);
    }
    switch_to(&mut world, 3);
    assert!(on_air(&world, 3) && !on_air(&world, 1));
    world.send_frame(main, 50, 100);
    let stream = world.publishes.find(1).expect("it runs").stream;
    let (reason, description) = (EndReason::Replaced, String::new());
    world.switchboard.handle_message(Message::End { stream, reason, description });
    world.settle();
    assert_eq!(world.reasons(), [(1, EndReason::Replaced)]);
}

#[test]
fn an_end_that_is_meant_for_a_lost_publish_does_not_reach_the_one_that_took_over() {
    let (mut world, main, backup, _) = live_pair(60);
    let stream = world.publishes.find(1).expect("it runs").stream;
    world.hang_up(main);
    send_both(&mut world, None, Some(backup), 60..90);
    assert!(on_air(&world, 2));
    let (reason, description) = (EndReason::Kicked, String::new());
    world.switchboard.handle_message(Message::End { stream, reason, description });
    world.settle();
    assert!(on_air(&world, 2));
    assert_eq!(world.reasons(), [(1, EndReason::BroadcasterLeft)]);
}

#[test]
fn an_upstream_that_reads_nothing_while_another_publish_takes_over_continues_at_a_keyframe() {
    // Before, during and after the takeover; in the last case the former publish's frames are still queued.
    for (pause_from, lost_at, pause_to) in [(60, 70, 160), (70, 70, 170), (60, 130, 160)] {
        let (mut world, main, backup, upstream) = live_pair(pause_from);
        let reads = std::mem::take(&mut world.peers.get_mut(&upstream).expect("connected").reads);
        send_both(&mut world, Some(main), Some(backup), pause_from..lost_at);
        world.hang_up(main);
        send_both(&mut world, None, Some(backup), lost_at..pause_to);
        world.peers.get_mut(&upstream).expect("kept").reads = reads;
        send_both(&mut world, None, Some(backup), pause_to..260);
        assert_eq!(world.resolved.len(), 1, "one connection");
        let frames = world.frames(upstream);
        let taken = frames.iter().position(|number| *number >= 1_000).expect("it took over");
        assert_eq!(frames[taken] % 25, 0, "at a keyframe: {}", frames[taken]);
        assert_eq!(frames.last(), Some(&1_259));
        let after_gaps = frames.windows(2).filter(|pair| pair[1] != pair[0] + 1);
        assert!(after_gaps.clone().all(|pair| pair[1] % 25 == 0), "a gap ends at a keyframe");
        widest_step(&world, upstream, MediaKind::Video);
        widest_step(&world, upstream, MediaKind::Audio);
        let ahead =
            world.times(upstream, MediaKind::Video).last().expect("video").abs_diff(259 * 40);
        assert!(ahead <= 150, "{ahead} ms");
    }
}
