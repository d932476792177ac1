//! A transcoder on a complete stream, with ffmpeg decoding its output.

#![allow(clippy::unwrap_used, reason = "a test ends at what it does not expect")]

mod bounds;
mod encoders;
mod figures;
mod instructions;
mod support;

use super::*;
use support::*;

/// Steps of 1024 samples: 21,333 or 21,334 µs.
fn assert_steady(out: &[Frame]) {
    let times = micros(out);
    for (index, pair) in times.windows(2).enumerate() {
        assert!((21_333..=21_334).contains(&(pair[1] - pair[0])), "frame {index}: {pair:?}");
    }
}

#[test]
fn tones_stay_on_their_channels() {
    for count in [1, 2] {
        let (out, counters) = transcode(&encode(&tones(2.0, count), count, 500_000));
        assert_eq!(out[0].kind, FrameKind::Configuration);
        assert_eq!(out[0].data[..], aac::lc_48k(channels(count)));
        assert_eq!(out[0].timestamp, out[1].timestamp);
        assert_eq!(micros(&out)[0], 500_000);
        assert_eq!(audio(&out).count(), 94, "2 s in frames of 1024, the last one made whole");
        assert_eq!(counters, TranscodeCounters::default());
        assert_steady(&out);
        let Some(pcm) = decode_aac(&out, count) else { continue };
        assert_eq!(pcm.len(), 94 * 1024 * count);
        for (index, hertz) in [440.0, 1_000.0].into_iter().enumerate().take(count) {
            let heard = share(&side(&pcm, index, count)[9_600..86_400], hertz);
            assert!(heard > 0.97, "{hertz} Hz: {heard}");
        }
    }
}

/// The encoder's overlap and look-ahead are 1,536 samples.
#[test]
fn a_frame_is_sent_as_soon_as_2560_samples_from_its_first_on_have_come() {
    let mut transcoder = Transcoder::new(stereo(128_000), Encoders::default());
    let sent: Vec<usize> = encode(&tones(0.1, 1), 1, 0)
        .iter()
        .map(|frame| {
            let mut out = Vec::new();
            transcoder.handle_frame(frame, arrival(frame), &mut out).unwrap();
            audio(&out).count()
        })
        .collect();
    assert_eq!(sent, [0, 0, 1, 1, 1]);
}

/// A packet comes when its first sample was heard, so that nothing waits but for the samples that the encoder needs.
#[test]
fn no_frame_is_later_than_2560_samples_after_its_first_one_when_packets_are_in_time() {
    for samples in [120, 240, 480, 960, 1_920, 2_880] {
        let mut transcoder = Transcoder::new(stereo(128_000), Encoders::default());
        let silence = match samples {
            120 => vec![0xe0, 0xff, 0xfe],
            240 => vec![0xe8, 0xff, 0xfe],
            480 => vec![0xf0, 0xff, 0xfe],
            // A packet of two or three frames of 20 ms, of the same length, has their number in its second byte.
            1_920 | 2_880 => {
                let count = samples / 960;
                let mut packet = vec![0xfb, count as u8];
                packet.extend([0xff, 0xfe].repeat(count));
                packet
            }
            _ => vec![0xf8, 0xff, 0xfe],
        };
        let (mut sent, mut latest) = (0, 0);
        for packet in 0..96_000 / samples {
            // Whole microseconds, as a receiver's clock has them.
            let heard = packet * samples;
            let mut out = Vec::new();
            let frame = opus_frame((heard * 1_000 / 48) as i64, &silence);
            transcoder.handle_frame(&frame, arrival(&frame), &mut out).unwrap();
            for _ in audio(&out) {
                latest = latest.max(heard.saturating_sub(sent * 1_024));
                sent += 1;
            }
        }
        assert!(sent > 85, "{sent} frames from packets of {samples}");
        assert!(latest <= 2_560, "{latest} samples late from packets of {samples}");
    }
}

#[test]
fn audio_keeps_its_time() {
    for count in [1, 2] {
        let frames = encode(&speech(2.0, count), count, 0);
        let (out, _) = transcode(&frames);
        let Some(heard) = decode_aac(&out, count) else { continue };
        let reference = side(&decode_opus(&frames, count), 0, count);
        let (lag, likeness) = lag(&reference, &side(&heard, 0, count));
        assert!(lag.abs() <= 1, "{count} channels: {lag} samples late");
        // Noise is substituted in some bands.
        assert!(likeness > 0.9, "{likeness}");
    }
}

#[test]
fn a_stereo_packet_makes_the_stream_stereo_for_good() {
    let mono = encode(&speech(3.0, 1), 1, 0);
    let stereo = encode(&speech(3.0, 2), 2, 0);
    let frames = [&mono[..50], &stereo[50..100], &mono[100..]].concat();
    let (out, counters) = transcode(&frames);
    let configurations: Vec<_> =
        out.iter().filter(|frame| frame.kind == FrameKind::Configuration).collect();
    assert_eq!(configurations.len(), 2);
    assert_eq!(configurations[0].data[..], [0x11, 0x88]);
    assert_eq!(configurations[1].data[..], [0x11, 0x90]);
    assert_eq!(counters, TranscodeCounters::default());
    assert_steady(&out);

    let switch = out.iter().rposition(|frame| frame.kind == FrameKind::Configuration).unwrap();
    assert_eq!(out[switch].timestamp, out[switch + 1].timestamp);
    let (Some(mut heard), Some(rest)) =
        (decode_aac(&out[..switch], 1), decode_aac(&out[switch..], 2))
    else {
        return;
    };
    heard.extend(rest.iter().step_by(2));
    let reference = side(&decode_opus(&mono, 1), 0, 1);
    let (lag, likeness) = lag(&reference, &side(&heard, 0, 1));
    assert!(lag.abs() <= 1 && likeness > 0.9, "{lag} samples late, {likeness}");
}

#[test]
fn missing_packets_are_concealed_and_nothing_shifts() {
    let frames = encode(&speech(3.0, 1), 1, 0);
    let lost = |index: usize| index % 10 == 7 || (60..66).contains(&index);
    let received: Vec<_> = frames
        .iter()
        .enumerate()
        .filter(|(index, _)| !lost(*index))
        .map(|(_, f)| f.clone())
        .collect();
    let (out, counters) = transcode(&received);
    assert_eq!(counters.concealed_samples as usize, (frames.len() - received.len()) * PACKET);
    assert_eq!(counters.discontinuities, 0);
    assert_eq!(audio(&out).count(), 141);
    assert_steady(&out);
    let Some(heard) = decode_aac(&out, 1) else { return };
    let (lag, likeness) = lag(&side(&decode_opus(&frames, 1), 0, 1), &side(&heard, 0, 1));
    assert!(lag.abs() <= 1 && likeness > 0.7, "{lag} samples late, {likeness}");
}

#[test]
fn redundancy_restores_a_single_loss_better_than_concealment() {
    let frames = encode(&speech(3.0, 1), 1, 0);
    let whole = decode_opus(&frames, 1);
    let mut errors = [0.0; 2];
    for (error, redundancy) in errors.iter_mut().zip([true, false]) {
        let mut decoder = decoder::OpusDecoder::new(Channels::Mono).unwrap();
        let mut pcm = [0.0; PACKET];
        for (index, frame) in frames.iter().enumerate() {
            if index % 10 == 4 {
                continue;
            }
            if index % 10 == 5 {
                let mut made_up = [0.0; PACKET];
                if redundancy {
                    decoder.recover(&frame.data, &mut made_up);
                } else {
                    decoder.conceal(&mut made_up);
                }
                let true_pcm = &whole[(index - 1) * PACKET..][..PACKET];
                let square =
                    |(a, b): (&f32, &i16)| (f64::from(a * 32_768.0) - f64::from(*b)).powi(2);
                *error += made_up.iter().zip(true_pcm).map(square).sum::<f64>();
            }
            assert!(decoder.decode(&frame.data, &mut pcm));
        }
    }
    assert!(errors[0] < 0.8 * errors[1], "{errors:?}");
}

#[test]
fn gaps_of_more_than_a_second_are_kept_and_time_continues_after_them() {
    let mut frames = encode(&tones(2.0, 2), 2, 0);
    for frame in &mut frames[50..] {
        frame.timestamp = Timestamp::from_micros(frame.timestamp.as_micros() + 5_000_000);
    }
    let (out, counters) = transcode(&frames);
    assert_eq!(counters.discontinuities, 1);
    assert_eq!(counters.concealed_samples, 0);
    let times = micros(&out);
    assert_eq!(times.len(), 2 * 47);
    assert_eq!(times[47], 6_000_000);
    assert!(times.is_sorted_by(|a, b| a < b));
    assert_eq!(out.iter().filter(|frame| frame.kind == FrameKind::Configuration).count(), 1);
}

#[test]
fn gaps_of_half_a_second_are_filled() {
    let mut frames = encode(&tones(1.0, 1), 1, 0);
    frames.drain(10..35);
    let (out, counters) = transcode(&frames);
    assert_eq!(counters.concealed_samples, 24_000);
    assert_eq!(audio(&out).count(), 47);
    assert_steady(&out);
}

#[test]
fn duplicate_and_late_packets_are_dropped() {
    let frames = encode(&tones(1.0, 1), 1, 0);
    let doubled: Vec<_> = frames.iter().flat_map(|frame| [frame.clone(), frame.clone()]).collect();
    let (out, counters) = transcode(&doubled);
    assert_eq!(counters.late_packets, 50);
    assert_eq!(micros(&out), micros(&transcode(&frames).0));
}

#[test]
fn one_corrupt_packet_is_concealed() {
    let mut frames = encode(&tones(1.0, 2), 2, 0);
    frames[20].data = Bytes::new();
    // Two frames of equal size cannot share an even number of bytes after a TOC (RFC 6716 3.2.3).
    frames[30].data = Bytes::from_static(&[0xfd, 1, 2, 3]);
    let (out, counters) = transcode(&frames);
    assert_eq!(counters.corrupt_packets, 2);
    assert_eq!(counters.concealed_samples, 2 * 960);
    assert_eq!(audio(&out).count(), 47);
    assert_steady(&out);
}

#[test]
fn pauses_of_the_sender_keep_their_length() {
    let frames = encode(&tones(2.0, 1), 1, 0);
    let pause = opus_frame(40 * 20_000, &[frames[0].data[0] & !3]);
    let (out, counters) = transcode(&[&frames[..40], &[pause], &frames[61..]].concat());
    assert_eq!(counters.concealed_samples, 20 * 960);
    assert_eq!(counters.corrupt_packets, 0);
    assert_eq!(audio(&out).count(), 94);
    assert_steady(&out);
}

#[test]
fn random_packets_do_no_harm() {
    let mut random = Random(11);
    let frames: Vec<_> = (0..1_000)
        .map(|index| {
            let length = random.next() % 200;
            let packet: Vec<u8> = (0..length).map(|_| random.next() as u8).collect();
            opus_frame(index * 20_000, &packet)
        })
        .collect();
    let (out, _) = transcode(&frames);
    let times = micros(&out);
    assert!(times.len() > 900, "{}", times.len());
    assert!(times.is_sorted_by(|a, b| a < b));
}

#[test]
fn packets_of_every_duration_add_up() {
    let pcm = speech(2.4, 1);
    for samples in [120, 240, 480, 960, 1920, 2880] {
        let layout = ::opus::Channels::Mono;
        let mut encoder = ::opus::Encoder::new(48_000, layout, ::opus::Application::Audio).unwrap();
        let packets = pcm.chunks_exact(samples).map(|pcm| encoder.encode_vec(pcm, 1_500).unwrap());
        let frames: Vec<_> = (0..)
            .zip(packets)
            .map(|(index, packet)| opus_frame(index * samples as i64 * 125 / 6, &packet))
            .collect();
        let (out, counters) = transcode(&frames);
        assert_eq!(counters, TranscodeCounters::default());
        assert_eq!(audio(&out).count(), 113, "{samples}");
        assert_steady(&out);
    }
}

#[test]
fn frames_of_other_codecs_are_rejected_and_configurations_ignored() {
    let mut transcoder = Transcoder::new(stereo(128_000), Encoders::default());
    let mut frame = opus_frame(0, &opus::head(Channels::Stereo));
    frame.kind = FrameKind::Configuration;
    assert_eq!(transcoder.handle_frame(&frame, arrival(&frame), &mut Vec::new()), Ok(()));
    frame.codec = Codec::Aac;
    assert_eq!(
        transcoder.handle_frame(&frame, arrival(&frame), &mut Vec::new()),
        Err(TranscodeError::Codec)
    );
}

#[test]
fn a_transcoder_can_be_moved_to_another_thread() {
    const fn sendable<T: Send>() {}
    sendable::<Transcoder>();
}
