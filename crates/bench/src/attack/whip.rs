//! A hostile WebRTC publisher: connects normally, then sends RTP that no encoder makes as fast as the kernel accepts
//! it, beside valid media on the track it does not attack.

use std::io;
use std::time::{Duration, Instant};

use headgate_peer::Settings;
use headgate_rtmp::MediaKind;

use super::{Attempt, Run};
use crate::whip_alone::WhipAlone;
use crate::whip_http::post_path;

/// Packets sent between two reads of the socket and the clock.
pub(super) const BATCH: u32 = 32;
/// Just below the 2,000 that a receiver may treat as a restart of the source (RFC 3550 A.1 has 3,000).
const JUMP: u16 = 1_999;
/// As `headgate_peer` offers them.
pub(super) const VIDEO_PAYLOAD_TYPE: u8 = 102;
pub(super) const AUDIO_PAYLOAD_TYPE: u8 = 111;
const TRANSPORT_CC_ID: u8 = 3;
/// A whole P slice, and an Opus packet.
const SLICE: [u8; 40] = [0x41; 40];
const OPUS: [u8; 40] = [0xfc; 40];

/// What is wrong with the packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Packets {
    /// On the video track: each sequence number is far ahead of the previous one.
    SequenceJumps,
    /// On the audio track: the timestamp does not advance.
    StillAudioClock,
    /// Each packet has its own SSRC.
    ManySsrcs,
}

impl Packets {
    pub(super) fn of(kind: &str) -> Option<Self> {
        Some(match kind {
            "sequence-jumps" => Self::SequenceJumps,
            "still-audio-clock" => Self::StillAudioClock,
            "many-ssrcs" => Self::ManySsrcs,
            _ => return None,
        })
    }

    /// The `number`-th packet, `elapsed` after the first.
    fn packet(self, number: u32, elapsed: Duration, (audio, video): (u32, u32)) -> Vec<u8> {
        #[allow(clippy::cast_possible_truncation, reason = "sequence numbers wrap")]
        let count = number as u16;
        let video_time = u32::try_from(elapsed.as_millis() * 90).unwrap_or(0);
        let (payload_type, sequence, time, ssrc, payload) = match self {
            Self::SequenceJumps => {
                (VIDEO_PAYLOAD_TYPE, count.wrapping_mul(JUMP), video_time, video, &SLICE)
            }
            Self::StillAudioClock => (AUDIO_PAYLOAD_TYPE, count, 0, audio, &OPUS),
            Self::ManySsrcs => (VIDEO_PAYLOAD_TYPE, count, video_time, !number, &SLICE),
        };
        let mut packet = vec![0x90, 0x80 | payload_type];
        packet.extend_from_slice(&sequence.to_be_bytes());
        packet.extend_from_slice(&time.to_be_bytes());
        packet.extend_from_slice(&ssrc.to_be_bytes());
        packet.extend_from_slice(&[0xbe, 0xde, 0, 1, TRANSPORT_CC_ID << 4 | 1]);
        packet.extend_from_slice(&sequence.to_be_bytes());
        packet.push(0);
        packet.extend_from_slice(payload);
        packet
    }

    /// Whether the track is also sent as valid media.
    const fn leaves(self, kind: MediaKind) -> bool {
        match self {
            Self::SequenceJumps => matches!(kind, MediaKind::Audio),
            Self::StillAudioClock => matches!(kind, MediaKind::Video),
            Self::ManySsrcs => true,
        }
    }
}

pub(super) fn attack(run: &Run, packets: Packets, until: Instant) -> io::Result<Attempt> {
    let settings = Settings { stereo: true, ..Settings::default() };
    let mut whip = WhipAlone::ask(run.http, &post_path(&run.stream_url, &run.name), settings)?;
    whip.connect()?;
    let mut number = 0_u32;
    while Instant::now() < until && !whip.publisher.is_closed {
        for _ in 0..BATCH {
            let packet = packets.packet(number, whip.elapsed(), whip.publisher.ssrcs());
            whip.publisher.send_rtp(&packet, &mut whip.asked);
            number = number.wrapping_add(1);
        }
        whip.send_due(|kind| packets.leaves(kind));
        whip.serve();
    }
    let ended = whip.publisher.is_closed.then(|| "DTLS closed".to_owned());
    whip.publisher.close(&mut whip.asked);
    whip.delete()?;
    let bytes = u64::from(number) * (20 + 40);
    Ok(Attempt { messages: u64::from(number), bytes, ended })
}
