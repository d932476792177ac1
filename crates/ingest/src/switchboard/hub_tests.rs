use std::net::IpAddr;
use std::time::{Instant, SystemTime};

use bytes::Bytes;
use headgate_media::{Codec, FrameKind, Timestamp};

use super::*;
use crate::publish::record::StreamId;

fn frame(kind: FrameKind, millis: i64) -> Frame {
    let codec = if kind == FrameKind::Audio { Codec::Aac } else { Codec::H264 };
    let timestamp = Timestamp::from_millis(millis);
    Frame { codec, kind, timestamp, composition_ms: 0, data: Bytes::from_static(b"0123456789") }
}

struct Live {
    hub: Hub,
    stream: StreamKey,
    record: Arc<PublishRecord>,
    woken: Woken,
    readers: SlotMap<SessionKey, ()>,
}

impl Live {
    fn new(caches_gop: bool) -> Self {
        let record = Arc::new(PublishRecord::new(1, StreamId(0), 0, None, Instant::now()));
        let mut hub = Hub::default();
        let source = Source::Remote { relay: Arc::default(), home: 0, is_seeded: true };
        let stream = hub.open(record.clone(), source, caches_gop);
        Self { hub, stream, record, woken: Woken::default(), readers: SlotMap::with_key() }
    }

    fn subscribe(&mut self, form: AudioForm) -> SubscriberKey {
        let reader = self.readers.insert(());
        self.hub.subscribe(self.stream, reader, form).expect("live")
    }

    fn push(&mut self, form: AudioForm, after: Option<i64>) -> SubscriberKey {
        let (reader, after) = (self.readers.insert(()), after.map(Timestamp::from_millis));
        self.hub.subscribe_push(self.stream, reader, form, after).expect("live")
    }

    fn publish(&mut self, frames: &[(FrameKind, i64)]) {
        for (kind, millis) in frames {
            self.hub.publish(self.stream, &frame(*kind, *millis), &mut self.woken);
        }
    }

    fn drain(&mut self, key: SubscriberKey) -> Vec<(FrameKind, i64)> {
        std::iter::from_fn(|| self.hub.next_frame(key))
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
    assert_eq!(live.woken.readers.len(), 1);
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
        live.record.players.enter(address, Instant::now(), &delivery);
        live.hub.count(key, delivery);
    }
    live.publish(&[(Configuration, 0), (Keyframe, 0), (Audio, 10)]);
    for key in keys {
        live.drain(key);
    }
    let players = live.record.players.status(Instant::now(), SystemTime::now());
    let each: Vec<u64> = players.iter().map(|of| of.bytes_out).collect();
    assert_eq!((each, live.record.bytes().1), (vec![20; 3], 3 * 20));
}

#[test]
fn the_end_follows_the_waiting_frames() {
    let mut live = Live::new(true);
    let key = live.subscribe(AudioForm::Undecided);
    live.publish(&[(Keyframe, 0)]);
    live.hub.end(live.stream, &mut live.woken);
    assert!(!live.hub.is_finished(key));
    assert_eq!(live.drain(key), [(Keyframe, 0)]);
    assert!(live.hub.is_finished(key));
    live.hub.unsubscribe(key);
    assert!(live.hub.is_unread(live.stream));
}

#[test]
fn a_relay_continues_where_the_burst_ends() {
    let mut live = Live::new(true);
    live.publish(&[(Configuration, 0), (Keyframe, 0)]);
    let relay = Arc::new(Relay::default());
    let burst = live.hub.attach(live.stream, 1, relay.clone()).expect("live");
    live.publish(&[(Inter, 40)]);
    assert_eq!(burst.len(), 2);
    assert_eq!(relay.pop().map(|frame| frame.kind), Some(Inter));
    live.hub.end(live.stream, &mut live.woken);
    assert!(relay.is_ended());
    assert!(!live.hub.is_unread(live.stream));
    live.hub.detach(live.stream, &relay);
    assert!(live.hub.is_unread(live.stream));
}

#[test]
fn a_key_that_outlives_its_stream_leads_to_no_other_stream() {
    let mut live = Live::new(true);
    let stale = live.subscribe(AudioForm::Undecided);
    live.hub.close(live.stream, &mut live.woken);
    let (others, record) = (live.stream, live.record.clone());
    let source = Source::Remote { relay: Arc::default(), home: 0, is_seeded: true };
    live.stream = live.hub.open(record, source, true);
    let theirs = live.subscribe(AudioForm::Undecided);
    live.publish(&[(Configuration, 0), (Keyframe, 0)]);
    assert_ne!(others, live.stream);
    assert!(live.hub.next_frame(stale).is_none(), "frames of a stream it never joined");
    live.hub.unsubscribe(stale);
    assert_eq!(live.drain(theirs), [(Configuration, 0), (Keyframe, 0)]);
}

#[test]
fn a_reader_is_not_offered_the_tracks_that_it_excludes() {
    let mut live = Live::new(true);
    let reader = live.subscribe(AudioForm::Aac);
    live.hub.leave_out(reader, vec![Codec::H264]);
    live.publish(&[(Configuration, 0), (Keyframe, 0), (Audio, 0), (Inter, 40)]);
    assert_eq!(live.hub.offered(reader), 10);
    assert_eq!(live.drain(reader), [(Audio, 0)]);
}

/// A stream of Opus with a subscriber that takes AAC.
fn transcoded() -> Live {
    let mut live = Live::new(true);
    live.publish(&[(Configuration, 0), (Keyframe, 0)]);
    for kind in [Configuration, Audio] {
        let opus = Frame { codec: Codec::Opus, ..frame(kind, 0) };
        live.hub.publish(live.stream, &opus, &mut live.woken);
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
    let push = live.push(AudioForm::Undecided, None);
    live.publish(&[(Audio, 64)]);
    live.hub.forget_aac(live.stream);
    live.hub.accept(push, AudioForm::Aac);
    live.publish(&[(Audio, 0), (Audio, 21)]);
    assert_eq!(live.drain(push), [(Configuration, 0), (Keyframe, 0), (Audio, 0), (Audio, 21)]);
}
