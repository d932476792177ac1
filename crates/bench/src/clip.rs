//! The frames that honest publishers send: a clip of x264 and AAC in an FLV file, or the recorded sizes of one; every
//! frame ends with a stamp. Tracks repeat independently of each other.

use std::io;
use std::path::Path;
use std::time::Duration;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use headgate_rtmp::MediaKind;

use crate::load::{HEADERS, Stamp, due};

/// Bytes of a stamp; it replaces the end of a frame, which in video lies inside the last slice.
const STAMP_BYTES: usize = 16;
/// Tag header, NAL length and NAL header before a stamp.
const SMALLEST: usize = 32;
/// FLV file header with the first PreviousTagSize (FLV E.2), and the header of a tag (E.4.1).
const FILE_HEADER: usize = 13;
const TAG_HEADER: usize = 11;
const TAG_AUDIO: u8 = 8;
const TAG_VIDEO: u8 = 9;
/// AAC and AVC tag bodies: the codec id in half of the first byte, and the packet types.
const AVC: u8 = 7;
const AAC: u8 = 10;
const SEQUENCE_HEADER: u8 = 0;
const CODED: u8 = 1;

/// Sizes in bytes of the video frames of one GOP: x264 `veryfast`, 720p25, 2 Mbit/s with a buffer of one second.
const RECORDED: &str = include_str!("../recordings/x264-720p25-2mbps.txt");
/// AAC at 128 kbit/s and 48 kHz.
const RECORDED_AUDIO: usize = 341;
/// Packets after which the audio track repeats: eight seconds.
const RECORDED_SOUNDS: u32 = 375;

/// Tag bodies of both tracks.
pub(crate) struct Clip {
    pub(crate) headers: Vec<(MediaKind, Bytes)>,
    video: Track,
    audio: Track,
}

/// Frames with their times, repeated after the last one.
#[derive(Default)]
struct Track {
    units: Vec<(Duration, Bytes)>,
}

impl Clip {
    /// Reads an FLV file of AAC and perhaps AVC, which begins with a keyframe.
    pub(crate) fn read(path: &Path) -> io::Result<Self> {
        let file = Bytes::from(std::fs::read(path)?);
        let clip = Self::parse(file).ok_or_else(|| io::Error::other("the clip is cut short"))?;
        let tracks = usize::from(!clip.video.units.is_empty()) + 1;
        let is_usable = !clip.audio.units.is_empty() && clip.headers.len() == tracks;
        let mut units = clip.video.units.iter().chain(&clip.audio.units);
        if !is_usable || units.any(|(_, unit)| unit.len() < SMALLEST) {
            return Err(io::Error::other("the clip is not AVC and AAC with units of 32 bytes"));
        }
        Ok(clip)
    }

    /// Without a clip: the recorded sizes and the bench's own decoder configurations.
    pub(crate) fn recorded() -> Self {
        let sizes = RECORDED.split_ascii_whitespace().filter_map(|size| size.parse::<usize>().ok());
        let video = sizes.enumerate().map(|(at, size)| {
            let mut body = BytesMut::with_capacity(size);
            body.put_slice(&[if at == 0 { 0x17 } else { 0x27 }, CODED, 0, 0, 0]);
            body.put_u32(u32::try_from(size - 9).unwrap_or(0));
            body.put_u8(if at == 0 { 0x65 } else { 0x41 });
            body.resize(size, 0x55);
            (due(MediaKind::Video, u32::try_from(at).unwrap_or(0)), body.freeze())
        });
        let mut audio = BytesMut::from(&[0xaf, CODED][..]);
        audio.resize(RECORDED_AUDIO, 0x55);
        let audio = audio.freeze();
        let sounds = (0..RECORDED_SOUNDS).map(|at| (due(MediaKind::Audio, at), audio.clone()));
        let headers = HEADERS.map(|(kind, body)| (kind, Bytes::from_static(body)));
        let (video, audio) = (Track { units: video.collect() }, Track { units: sounds.collect() });
        Self { headers: headers.into(), video, audio }
    }

    fn parse(mut file: Bytes) -> Option<Self> {
        let (mut headers, mut video, mut audio) = (Vec::new(), Track::default(), Track::default());
        if !file.starts_with(b"FLV") || file.len() < FILE_HEADER {
            return None;
        }
        file.advance(FILE_HEADER);
        while let Some(&[tag, l0, l1, l2, t0, t1, t2, t3, ..]) = file.first_chunk::<TAG_HEADER>() {
            file.advance(TAG_HEADER);
            let length = u32::from_be_bytes([0, l0, l1, l2]) as usize;
            // A tag is followed by its size.
            if file.len() < length + 4 {
                return None;
            }
            let body = file.split_to(length);
            // The highest byte comes last (E.4.1).
            let time = Duration::from_millis(u32::from_be_bytes([t3, t0, t1, t2]).into());
            file.advance(4);
            match (tag, body.first(), body.get(1)) {
                (TAG_VIDEO, Some(first), Some(&SEQUENCE_HEADER)) if first & 0x0f == AVC => {
                    headers.push((MediaKind::Video, body));
                }
                (TAG_VIDEO, Some(first), Some(&CODED)) if first & 0x0f == AVC => {
                    video.units.push((time, body));
                }
                (TAG_AUDIO, Some(first), Some(&SEQUENCE_HEADER)) if first >> 4 == AAC => {
                    headers.push((MediaKind::Audio, body));
                }
                (TAG_AUDIO, Some(first), Some(&CODED)) if first >> 4 == AAC => {
                    audio.units.push((time, body));
                }
                _ => {}
            }
        }
        Some(Self { headers, video, audio })
    }

    /// The tag body of one unit.
    pub(crate) fn unit(&self, kind: MediaKind, stamp: Stamp) -> Bytes {
        let source = self.source(kind, stamp.number).map_or(&[][..], |body| body);
        let mut body = BytesMut::with_capacity(source.len());
        let kept = source.len().saturating_sub(STAMP_BYTES);
        body.put_slice(source.get(..kept).unwrap_or_default());
        stamp.write(&mut body);
        body.freeze()
    }

    /// The stamp of a frame, and whether all its other bytes are unchanged; `None` for headers and metadata.
    pub(crate) fn recognise(&self, kind: MediaKind, body: &[u8]) -> Option<(Stamp, bool)> {
        if kind == MediaKind::Script || body.get(1) != Some(&CODED) {
            return None;
        }
        let (kept, stamp) = body.split_at_checked(body.len().checked_sub(STAMP_BYTES)?)?;
        let stamp = Stamp::read(stamp)?;
        let source = self.source(kind, stamp.number)?;
        Some((stamp, source.len() == body.len() && source.starts_with(kept)))
    }

    /// Whether a video tag body is a keyframe.
    pub(crate) fn is_key(body: &[u8]) -> bool {
        body.first().is_some_and(|first| first >> 4 == 1)
    }

    /// When a frame is due, from the start of the clip; `None` when the clip has no such track.
    pub(crate) fn due(&self, kind: MediaKind, number: u32) -> Option<Duration> {
        self.track(kind).due(number)
    }

    fn source(&self, kind: MediaKind, number: u32) -> Option<&Bytes> {
        let units = &self.track(kind).units;
        units.get(number as usize % units.len().max(1)).map(|(_, body)| body)
    }

    const fn track(&self, kind: MediaKind) -> &Track {
        match kind {
            MediaKind::Audio => &self.audio,
            MediaKind::Video | MediaKind::Script => &self.video,
        }
    }
}

impl Track {
    fn due(&self, number: u32) -> Option<Duration> {
        let count = u32::try_from(self.units.len()).ok().filter(|count| *count > 1)?;
        let ((first, _), (last, _)) = (self.units.first()?, self.units.last()?);
        // The last unit is as long as the others on average.
        let length = (*last - *first) * count / (count - 1);
        let (at, _) = self.units.get((number % count) as usize)?;
        Some(length * (number / count) + *at - *first)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn flv(tags: &[(u8, &[u8])]) -> Bytes {
        let mut file = b"FLV\x01\x05\0\0\0\x09\0\0\0\0".to_vec();
        for (tag, body) in tags {
            file.push(*tag);
            file.extend_from_slice(&(body.len() as u32).to_be_bytes()[1..]);
            file.extend_from_slice(&[0; 7]);
            file.extend_from_slice(body);
            file.extend_from_slice(&[0; 4]);
        }
        file.into()
    }

    #[test]
    fn an_flv_file_is_split_into_headers_and_units() {
        let file = flv(&[
            (18, b"\x02\0\x0aonMetaData"),
            (9, b"\x17\0\0\0\0config"),
            (8, b"\xaf\0\x11\x90"),
            (9, b"\x17\x01\0\0\0frame"),
            (8, b"\xaf\x01packet"),
        ]);
        let clip = Clip::parse(file.clone()).expect("whole");
        let counts = (clip.headers.len(), clip.video.units.len(), clip.audio.units.len());
        assert_eq!(counts, (2, 1, 1));
        assert!(Clip::parse(file.slice(..file.len() - 5)).is_none());
    }

    #[test]
    fn a_repeated_track_keeps_its_pace() {
        let clip = Clip::recorded();
        for kind in [MediaKind::Video, MediaKind::Audio] {
            for number in [0, 1, 49, 50, 374, 375, 1_000] {
                let (due, even) = (clip.due(kind, number).expect("a track"), due(kind, number));
                assert!(due.abs_diff(even) < Duration::from_millis(1), "{number}: {due:?}");
            }
        }
    }

    #[test]
    fn a_unit_is_recognised_by_its_stamp_and_a_changed_byte_is_detected() {
        let clip = Clip::recorded();
        for kind in [MediaKind::Video, MediaKind::Audio] {
            let stamp = Stamp { publisher: 7, number: 51, sent: Duration::from_micros(9) };
            let mut body = clip.unit(kind, stamp).to_vec();
            assert_eq!(clip.recognise(kind, &body), Some((stamp, true)));
            body[20] ^= 1;
            assert_eq!(clip.recognise(kind, &body), Some((stamp, false)));
        }
    }
}
