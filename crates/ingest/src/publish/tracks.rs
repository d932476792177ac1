//! The tracks of a publish, read from its decoder configurations. Pure.

use headgate_media::{Codec, Frame, Track, aac::AudioSpecificConfig, h264};

/// The video of a publish.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VideoTrack {
    /// Codec of the video.
    pub codec: Codec,
    /// Width and height in pixels, if the configuration contains them.
    pub size: Option<(u32, u32)>,
}

/// The audio of a publish as its broadcaster sends it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AudioTrack {
    /// Codec of the audio.
    pub codec: Codec,
    /// Sample rate in Hz and number of channels, if the configuration contains them.
    pub form: Option<(u32, u8)>,
}

/// Both tracks, as far as their configurations have arrived.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tracks {
    /// Video.
    pub video: Option<VideoTrack>,
    /// Audio.
    pub audio: Option<AudioTrack>,
}

impl Tracks {
    /// Notes a configuration from the broadcaster.
    pub(crate) fn handle_configuration(&mut self, frame: &Frame) {
        let codec = frame.codec;
        match frame.track() {
            Track::Video => {
                let size = if codec == Codec::H264 { size_of_avc(&frame.data) } else { None };
                self.video = Some(VideoTrack { codec, size });
            }
            Track::Audio => {
                let form = match codec {
                    Codec::Aac => AudioSpecificConfig::parse(&frame.data)
                        .ok()
                        .map(|config| (config.sample_rate, config.channels)),
                    // OpusHead (RFC 7845 5.1): the channel count follows magic and version; the clock rate is always 48
                    // kHz.
                    Codec::Opus => frame.data.get(9).map(|channels| (48_000, *channels)),
                    _ => None,
                };
                self.audio = Some(AudioTrack { codec, form });
            }
            Track::Script => {}
        }
    }
}

/// The size given by the first SPS of an AVCDecoderConfigurationRecord (ISO 14496-15 5.3.3.1).
fn size_of_avc(record: &[u8]) -> Option<(u32, u32)> {
    let &[count, high, low] = record.get(5..8)?.first_chunk()?;
    let length = usize::from(u16::from_be_bytes([high, low]));
    let sps = record.get(8..8 + length)?;
    if count & 0x1f == 0 { None } else { h264::resolution(sps) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use headgate_media::{FrameKind, Timestamp};

    fn configuration(codec: Codec, data: &[u8]) -> Frame {
        let (kind, timestamp) = (FrameKind::Configuration, Timestamp::ZERO);
        let data = Bytes::copy_from_slice(data);
        Frame { codec, kind, timestamp, composition_ms: 0, data }
    }

    #[test]
    fn audio_form_and_video_size_are_read_from_configurations_that_contain_them() {
        let mut tracks = Tracks::default();
        tracks.handle_configuration(&configuration(Codec::Aac, &[0x12, 0x10]));
        assert_eq!(tracks.audio.and_then(|audio| audio.form), Some((44_100, 2)));
        // 1280x720 Main profile by x264.
        let sps = [
            0x67, 0x4d, 0x40, 0x1f, 0xec, 0xa0, 0x28, 0x02, 0xdd, 0x80, 0x88, 0x00, 0x00, 0x03,
            0x00, 0x08, 0x00, 0x00, 0x03, 0x01, 0x90, 0x78, 0xc1, 0x8c, 0xb0,
        ];
        let record = [&[1, 0x4d, 0x40, 0x1f, 0xff, 0xe1, 0, 25][..], &sps, &[0]].concat();
        tracks.handle_configuration(&configuration(Codec::H264, &record));
        assert_eq!(tracks.video.and_then(|video| video.size), Some((1280, 720)));
    }

    #[test]
    fn a_truncated_configuration_leaves_the_size_unknown() {
        let mut tracks = Tracks::default();
        tracks.handle_configuration(&configuration(
            Codec::H264,
            &[1, 0x42, 0, 0x1f, 0xff, 0xe1, 0, 9],
        ));
        tracks.handle_configuration(&configuration(Codec::Opus, b"Opus"));
        let video = VideoTrack { codec: Codec::H264, size: None };
        let audio = AudioTrack { codec: Codec::Opus, form: None };
        assert_eq!(tracks, Tracks { video: Some(video), audio: Some(audio) });
    }
}
