use std::net::IpAddr;
use std::time::Instant;

use bytes::Bytes;
use headgate_media::{Codec, FrameKind, Timestamp};

use super::*;

fn frame(kind: FrameKind, millis: i64) -> Frame {
    let codec = if kind == FrameKind::Audio { Codec::Aac } else { Codec::H264 };
    let timestamp = Timestamp::from_millis(millis);
    Frame { codec, kind, timestamp, composition_ms: 0, data: Bytes::from_static(b"0123456789") }
}

struct Live {
    hub: Hub,
    stream: StreamKey,
    counters: Arc<Counters>,
    woken: Woken,
}

impl Live {
    fn new(caches_gop: bool) -> Self {
        let counters = Arc::new(Counters::new(Instant::now()));
        let mut hub = Hub::default();
        let stream = hub.open(counters.clone(), caches_gop);
        Self { hub, stream, counters, woken: Woken::default() }
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
fn a_late_player_starts_at_configuration_and_keyframe() {
    let mut live = Live::new(true);
    live.publish(&[
        (Configuration, 0),
        (Keyframe, 0),
        (Inter, 40),
        (Keyframe, 80),
        (Audio, 90),
        (Inter, 120),
    ]);
    let key = live.hub.subscribe(live.stream, 7, SoundForm::Undecided, None).expect("live");
    live.publish(&[(Inter, 160)]);
    let want = [(Configuration, 0), (Keyframe, 80), (Audio, 90), (Inter, 120), (Inter, 160)];
    assert_eq!(live.drain(key), want);
    assert_eq!(live.woken.readers, [7]);
}

#[test]
fn sound_from_before_the_first_picture_is_kept_for_joiners() {
    let mut live = Live::new(true);
    live.publish(&[(Configuration, 0), (Audio, 0), (Audio, 1500), (Inter, 1510), (Keyframe, 1520)]);
    let key = live.hub.subscribe(live.stream, 7, SoundForm::Undecided, None).expect("live");
    assert_eq!(live.drain(key), [(Configuration, 0), (Audio, 1500), (Keyframe, 1520)]);
}

#[test]
fn without_the_cache_a_player_waits_for_the_next_keyframe() {
    let mut live = Live::new(false);
    live.publish(&[(Configuration, 0), (Keyframe, 0), (Inter, 40)]);
    let key = live.hub.subscribe(live.stream, 7, SoundForm::Undecided, None).expect("live");
    live.publish(&[(Inter, 80), (Keyframe, 120)]);
    assert_eq!(live.drain(key), [(Configuration, 0), (Keyframe, 120)]);
}

#[test]
fn an_unchanged_header_is_not_repeated() {
    let mut live = Live::new(true);
    let key = live.hub.subscribe(live.stream, 7, SoundForm::Undecided, None).expect("live");
    live.publish(&[(Configuration, 0), (Keyframe, 0), (Configuration, 40), (Keyframe, 40)]);
    assert_eq!(live.drain(key), [(Configuration, 0), (Keyframe, 0), (Keyframe, 40)]);
}

#[test]
fn bytes_out_is_the_sum_over_everyone_who_read() {
    let mut live = Live::new(true);
    let keys = [1, 2, 3].map(|reader| {
        live.hub.subscribe(live.stream, reader, SoundForm::Undecided, None).expect("live")
    });
    let address = IpAddr::from([192, 0, 2, 1]);
    for key in keys {
        live.hub.count(key, live.counters.players.enter(address));
    }
    live.publish(&[(Configuration, 0), (Keyframe, 0), (Audio, 10)]);
    for key in keys {
        live.drain(key);
    }
    let each: Vec<u64> = live.counters.players.status().iter().map(|of| of.bytes_out).collect();
    assert_eq!((each, live.counters.bytes().1), (vec![20; 3], 3 * 20));
}

#[test]
fn the_end_comes_after_what_waits() {
    let mut live = Live::new(true);
    let key = live.hub.subscribe(live.stream, 7, SoundForm::Undecided, None).expect("live");
    live.publish(&[(Keyframe, 0)]);
    live.hub.end(live.stream, &mut live.woken);
    assert!(!live.hub.is_finished(key));
    assert_eq!(live.drain(key), [(Keyframe, 0)]);
    assert!(live.hub.is_finished(key));
    live.hub.unsubscribe(key);
    assert!(live.hub.is_unread(live.stream));
}

#[test]
fn a_relay_carries_on_where_the_burst_ends() {
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
