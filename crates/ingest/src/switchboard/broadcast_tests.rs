use std::net::IpAddr;
use std::time::SystemTime;

use headgate_media::Timestamp;

use super::super::action::Context;
use super::super::tests::recorder::recording_encoders;
use super::*;
use crate::publish::mailbox::Mailbox;
use crate::publish::play_guard::PlayGuard;
use crate::publish::registry::Publishes;
use crate::session::effect::AudioForm;
use crate::transcoding::Transcoders;

fn frame(kind: FrameKind, millis: i64) -> Frame {
    let codec = if kind == FrameKind::Audio { Codec::Aac } else { Codec::H264 };
    let timestamp = Timestamp::from_millis(millis);
    Frame { codec, kind, timestamp, composition_ms: 0, data: Bytes::from_static(b"0123456789") }
}

struct Live {
    broadcast: Broadcast,
    sessions: Sessions,
    readers: SlotMap<SessionKey, ()>,
}

impl Live {
    fn new(caches_gop: bool) -> Self {
        let now = Instant::now();
        let record = Arc::new(PublishRecord::new(1, StreamId(0), 0, None, now));
        let context = Context {
            worker: 0,
            workers: 1,
            caches_gop,
            pushes_silence: true,
            captures: false,
            publishes: Publishes::new(Mailbox::new(Box::new(|| {}))),
            transcoders: Arc::new(Transcoders::new(1, recording_encoders(Arc::default())).0),
        };
        let mut sessions = Sessions::new(context, now);
        let (relay, key) = (Arc::default(), StreamKey::default());
        let stage = Stage::Elsewhere { relay, home: 0, is_seeded: true, is_ended: false };
        let broadcast = Broadcast::new(key, Vec::new(), record, stage, &mut sessions);
        Self { broadcast, sessions, readers: SlotMap::with_key() }
    }

    fn subscribe(&mut self, form: AudioForm) -> SubscriberKey {
        let reader = self.readers.insert(());
        self.broadcast.subscribe(reader, form, Role::Player)
    }

    fn push(&mut self, form: AudioForm) -> SubscriberKey {
        let reader = self.readers.insert(());
        self.broadcast.subscribe(reader, form, Role::Push { after: None })
    }

    fn publish(&mut self, frames: &[(FrameKind, i64)]) {
        for (kind, millis) in frames {
            self.publish_frame(&frame(*kind, *millis));
        }
    }

    fn publish_frame(&mut self, frame: &Frame) {
        self.broadcast.publish(frame, &mut self.sessions.woken);
    }

    fn drain(&mut self, key: SubscriberKey) -> Vec<(FrameKind, i64)> {
        std::iter::from_fn(|| self.broadcast.next_frame(key))
            .map(|frame| (frame.kind, frame.timestamp.as_millis()))
            .collect()
    }
}

use FrameKind::{Audio, Configuration, Inter, Keyframe};

#[test]
fn a_late_player_starts_with_configuration_and_keyframe() {
    let mut live = Live::new(true);
    live.publish(&[
        (Configuration, 0),
        (Keyframe, 0),
        (Inter, 40),
        (Keyframe, 80),
        (Audio, 90),
        (Inter, 120),
    ]);
    let key = live.subscribe(AudioForm::Undecided);
    live.publish(&[(Inter, 160)]);
    let want = [(Configuration, 0), (Keyframe, 80), (Audio, 90), (Inter, 120), (Inter, 160)];
    assert_eq!(live.drain(key), want);
    assert_eq!(live.sessions.woken.readers.len(), 1);
}

#[test]
fn audio_from_before_the_first_video_frame_is_kept_for_joiners() {
    let mut live = Live::new(true);
    live.publish(&[(Configuration, 0), (Audio, 0), (Audio, 1500), (Inter, 1510), (Keyframe, 1520)]);
    let key = live.subscribe(AudioForm::Undecided);
    assert_eq!(live.drain(key), [(Configuration, 0), (Audio, 1500), (Keyframe, 1520)]);
}

#[test]
fn without_the_cache_a_player_waits_for_the_next_keyframe() {
    let mut live = Live::new(false);
    live.publish(&[(Configuration, 0), (Keyframe, 0), (Inter, 40)]);
    let key = live.subscribe(AudioForm::Undecided);
    live.publish(&[(Inter, 80), (Keyframe, 120)]);
    assert_eq!(live.drain(key), [(Configuration, 0), (Keyframe, 120)]);
}

#[test]
fn an_unchanged_header_is_not_repeated() {
    let mut live = Live::new(true);
    let key = live.subscribe(AudioForm::Undecided);
    live.publish(&[(Configuration, 0), (Keyframe, 0), (Configuration, 40), (Keyframe, 40)]);
    assert_eq!(live.drain(key), [(Configuration, 0), (Keyframe, 0), (Keyframe, 40)]);
}

#[test]
fn bytes_out_is_the_sum_over_all_readers() {
    let mut live = Live::new(true);
    let keys = [1, 2, 3].map(|_| live.subscribe(AudioForm::Undecided));
    let address = IpAddr::from([192, 0, 2, 1]);
    for key in keys {
        let delivery = Arc::default();
        live.broadcast.record.players.enter(address, Instant::now(), &delivery);
        live.broadcast.count(key, delivery);
    }
    live.publish(&[(Configuration, 0), (Keyframe, 0), (Audio, 10)]);
    for key in keys {
        live.drain(key);
    }
    let players = live.broadcast.record.players.status(Instant::now(), SystemTime::now());
    let each: Vec<u64> = players.iter().map(|of| of.bytes_out).collect();
    assert_eq!((each, live.broadcast.record.bytes().1), (vec![20; 3], 3 * 20));
}

#[test]
fn the_end_follows_the_waiting_frames() {
    let mut live = Live::new(true);
    let key = live.subscribe(AudioForm::Undecided);
    live.publish(&[(Keyframe, 0)]);
    live.broadcast.end(&mut live.sessions.woken);
    assert!(!live.broadcast.is_finished(key));
    assert_eq!(live.drain(key), [(Keyframe, 0)]);
    assert!(live.broadcast.is_finished(key));
    live.broadcast.unsubscribe(key);
    assert!(live.broadcast.is_unread());
}

#[test]
fn a_relay_continues_where_the_burst_ends() {
    let mut live = Live::new(true);
    live.publish(&[(Configuration, 0), (Keyframe, 0)]);
    let relay = Arc::new(Relay::default());
    live.broadcast.attach(1, relay.clone());
    live.publish(&[(Inter, 40)]);
    assert_eq!(relay.take_news().burst.map(|burst| burst.len()), Some(2));
    assert_eq!(relay.pop().map(|frame| frame.kind), Some(Inter));
    live.broadcast.end(&mut live.sessions.woken);
    assert!(relay.is_ended());
    assert!(!live.broadcast.is_unread());
    relay.leave();
    assert!(live.broadcast.hear_readers(&mut live.sessions));
    assert!(live.broadcast.is_unread());
}

#[test]
fn a_key_that_outlives_its_reader_leads_to_no_other() {
    let mut live = Live::new(true);
    let stale = live.subscribe(AudioForm::Undecided);
    live.broadcast.unsubscribe(stale);
    let theirs = live.subscribe(AudioForm::Undecided);
    live.publish(&[(Configuration, 0), (Keyframe, 0)]);
    assert!(live.broadcast.next_frame(stale).is_none(), "frames that it was never offered");
    live.broadcast.unsubscribe(stale);
    assert_eq!(live.drain(theirs), [(Configuration, 0), (Keyframe, 0)]);
}

#[test]
fn a_reader_is_not_offered_the_tracks_that_it_excludes() {
    let mut live = Live::new(true);
    let reader = live.subscribe(AudioForm::Aac);
    let player = PlayGuard::new(live.sessions.context.publishes.clone(), 1);
    live.broadcast.hold(reader, player, vec![Codec::H264]);
    live.publish(&[(Configuration, 0), (Keyframe, 0), (Audio, 0), (Inter, 40)]);
    assert_eq!(live.broadcast.offered(reader), 10);
    assert_eq!(live.drain(reader), [(Audio, 0)]);
}

/// A stream of Opus with a subscriber that takes AAC.
fn transcoded() -> Live {
    let mut live = Live::new(true);
    live.publish(&[(Configuration, 0), (Keyframe, 0)]);
    for kind in [Configuration, Audio] {
        let opus = Frame { codec: Codec::Opus, ..frame(kind, 0) };
        live.publish_frame(&opus);
    }
    live.publish(&[(Audio, 0), (Audio, 21), (Audio, 43)]);
    live
}

#[test]
fn restarted_aac_is_not_repeated_to_readers_that_already_have_it() {
    let mut live = transcoded();
    let [first, second] = [0; 2].map(|_| live.subscribe(AudioForm::Aac));
    assert_eq!(live.drain(first).len(), 5);
    // All subscribers that took AAC left and returned: it starts at the cached keyframe again.
    live.publish(&[(Audio, 0), (Audio, 21), (Audio, 43), (Audio, 64)]);
    assert_eq!(live.drain(first), [(Audio, 64)]);
    let want = [Configuration, Keyframe, Audio, Audio, Audio, Audio];
    for key in [second, live.subscribe(AudioForm::Aac)] {
        let got = live.drain(key);
        assert_eq!(got.iter().map(|(kind, _)| *kind).collect::<Vec<_>>(), want, "{got:?}");
    }
}

#[test]
fn an_upstream_that_has_not_accepted_yet_drops_the_aac_of_an_ended_transcoder() {
    let mut live = transcoded();
    let push = live.push(AudioForm::Undecided);
    live.publish(&[(Audio, 64)]);
    live.broadcast.forget_aac();
    live.broadcast.accept(push, AudioForm::Aac, &mut live.sessions);
    live.publish(&[(Audio, 0), (Audio, 21)]);
    assert_eq!(live.drain(push), [(Configuration, 0), (Keyframe, 0), (Audio, 0), (Audio, 21)]);
}
