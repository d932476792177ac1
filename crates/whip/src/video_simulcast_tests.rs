//! Layers that are told apart by their SSRCs, and layers that are not all repaired.

use super::tests::{SPS_LARGE, SPS_QUARTER, Track, key};

const BY_SOURCE: &str = "a=ssrc-group:SIM 1 2\r\na=ssrc-group:FID 1 11\r\na=ssrc-group:FID 2 12\r\n\
a=ssrc:1 cname:x\r\na=ssrc:2 cname:x\r\n";

/// Publishes both layers for `seconds`, 25 frames a second, a keyframe every two seconds or when requested. `loses`:
/// whether this packet of the layer is lost; layer 1 is the small one. Returns the frames shown and how often the shown
/// layer changed.
fn publish(
    track: &mut Track,
    sources: [u32; 2],
    seconds: u64,
    loses: impl Fn(usize, u64) -> bool,
    repairs: [bool; 2],
) -> (u64, usize) {
    let (mut shown, mut changes, mut layer) = (0, 0, String::new());
    let mut wants = [false; 2];
    let mut repeats = Vec::new();
    for ms in 0..seconds * 1_000 {
        if ms % 40 == 0 {
            let frame = ms / 40;
            for (n, source) in sources.into_iter().enumerate() {
                let is_key = std::mem::take(&mut wants[n]) || frame.is_multiple_of(50);
                let sps = if n == 0 { SPS_QUARTER } else { SPS_LARGE };
                let payload = if is_key { key(sps, 1) } else { vec![0x41, 0x9a, 2] };
                if !loses(n, frame) {
                    track.packet(ms, (96, source), frame as u16, &payload, "");
                }
                if repairs[n] {
                    repeats.push((ms, source, frame as u16, payload));
                }
            }
        }
        track.wait(ms);
        let now = track.at(ms);
        if let Some(ssrc) = track.video.poll_pli(now) {
            wants[usize::from(ssrc == sources[1])] = true;
        }
        let mut asked = Vec::new();
        for layer in track.video.layers_mut() {
            let Some(ssrc) = layer.receiver.ssrc() else { continue };
            let before = asked.len();
            let mut numbers = Vec::new();
            layer.receiver.poll_nack(now, &mut numbers);
            asked.extend(numbers.into_iter().map(|number| (ssrc, number)));
            assert!(asked.len() - before <= 64);
        }
        for (ssrc, number) in asked {
            let of = |repeat: &&(u64, u32, u16, Vec<u8>)| (repeat.1, repeat.2) == (ssrc, number);
            if let Some((sampled, _, _, payload)) = repeats.iter().find(of).cloned() {
                let payload = [&number.to_be_bytes()[..], &payload].concat();
                track.packet_of(ms, sampled, (97, ssrc + 10), number, &payload, "");
            }
        }
        repeats.retain(|repeat| ms < repeat.0 + 2_000);
        shown += track.frames_shown();
        let now_shown = track.video.shown().map(|layer| layer.rid.clone()).unwrap_or_default();
        if now_shown != layer {
            (layer, changes) = (now_shown, changes + 1);
        }
    }
    (shown, changes)
}

#[test]
fn layers_without_rids_are_distinguished_by_their_sources() {
    for (further, sources) in [(BY_SOURCE, [1, 2]), (BY_SOURCE, [5, 6]), (BY_SOURCE, [2, 1])] {
        let mut track = Track::new(further);
        let (shown, changes) = publish(&mut track, sources, 20, |_, _| false, [false; 2]);
        assert_eq!(track.video.resolution(), Some((640, 360)), "{sources:?}");
        assert!(shown >= 498 && changes <= 2, "{sources:?}: {shown} in {changes} layers");
    }
}

#[test]
fn of_sources_that_no_group_declares_one_is_shown_and_stays() {
    let mut track = Track::new("");
    let (shown, _) = publish(&mut track, [1, 2], 20, |_, _| false, [false; 2]);
    assert!(shown >= 490, "{shown} of 500");
}

fn one_in_fifty(layer: usize, frame: u64) -> bool {
    frame > 25
        && (frame * 2 + layer as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40 < (1 << 24) / 50
}

#[test]
fn a_layer_that_is_repaired_is_preferred_to_a_larger_one_that_is_not() {
    for repairs in [[true, false], [false, true], [true, true]] {
        let mut track = Track::new(BY_SOURCE);
        let (shown, changes) = publish(&mut track, [1, 2], 20, one_in_fifty, repairs);
        println!("{repairs:?}: {shown} of 500, {changes} layers");
        assert!(shown >= 440, "{repairs:?}: {shown} of 500");
        let size = if repairs[1] { (640, 360) } else { (320, 180) };
        assert_eq!(track.video.resolution(), Some(size), "{repairs:?}");
        assert!(changes <= 3, "{repairs:?}: {changes}");
    }
    let mut track = Track::new(BY_SOURCE);
    let (shown, _) = publish(&mut track, [1, 2], 20, one_in_fifty, [false, false]);
    println!("neither: {shown} of 500");
    assert!(shown >= 300, "{shown} of 500");
}
