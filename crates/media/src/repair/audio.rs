//! AAC: the configuration, and ADTS headers, which FLV does not have.

use bytes::Bytes;

use super::Repaired;
use crate::aac::{
    AudioSpecificConfig, Error, SAMPLES_PER_FRAME, adts_configuration, is_adts, take_adts_frame,
};
use crate::{Frame, FrameKind, Irregularity, Timestamp};

/// ADTS frames in one tag: a second of audio.
const FRAMES_LIMIT: usize = 96;

#[derive(Debug, Default)]
pub(super) struct AudioRepair {
    /// The one that was passed on.
    configuration: Option<Bytes>,
    /// The newest frame of a tag with several: the next tag may be stamped before it.
    newest: Timestamp,
    has_withheld: bool,
    /// Until its first configuration nothing is repaired.
    is_resumed: bool,
}

impl AudioRepair {
    pub(super) fn resumed() -> Self {
        Self { is_resumed: true, ..Self::default() }
    }

    pub(super) const fn has_withheld(&self) -> bool {
        self.has_withheld
    }

    /// Returns a frame that passes unchanged, or puts others into `repaired`.
    pub(super) fn handle_frame(
        &mut self,
        mut frame: Frame,
        repaired: &mut Repaired,
    ) -> Option<Frame> {
        if frame.kind == FrameKind::Configuration {
            self.is_resumed = false;
            if let Some(configuration) = adts_configuration(&frame.data) {
                repaired.note(Irregularity::ConfigurationRebuilt);
                frame.data = Bytes::copy_from_slice(&configuration);
            } else if !is_usable(&frame.data) {
                repaired.note(Irregularity::ConfigurationInvalid);
                return None;
            }
            self.configuration = Some(frame.data.clone());
            return Some(frame);
        }
        if self.is_resumed {
            return Some(frame);
        }
        if is_adts(&frame.data) {
            self.handle_adts(&frame, repaired);
            return None;
        }
        if self.configuration.is_none() {
            self.withhold(repaired);
            return None;
        }
        frame.timestamp = frame.timestamp.max(self.newest);
        Some(frame)
    }

    /// The frames in a tag, without their headers.
    fn handle_adts(&mut self, tag: &Frame, repaired: &mut Repaired) {
        let mut rest = &tag.data[..];
        let mut frames = 0_u32;
        while let Some(adts) = take_adts_frame(&mut rest).filter(|_| frames < FRAMES_LIMIT as u32) {
            let after_us = AudioSpecificConfig::parse(&adts.configuration).map_or(0, |of| {
                i64::from(frames) * i64::from(SAMPLES_PER_FRAME) * 1_000_000
                    / i64::from(of.sample_rate.max(1))
            });
            let timestamp =
                Timestamp::from_micros(tag.timestamp.as_micros().saturating_add(after_us));
            let timestamp = timestamp.max(self.newest);
            self.newest = timestamp;
            if !self.describes(adts.configuration) {
                if !is_usable(&adts.configuration) || has_no_channels(adts.configuration) {
                    return self.withhold(repaired);
                }
                repaired.note(Irregularity::ConfigurationRebuilt);
                let data = Bytes::copy_from_slice(&adts.configuration);
                self.configuration = Some(data.clone());
                let kind = FrameKind::Configuration;
                repaired.frames.push_back(Frame { timestamp, kind, data, ..tag.clone() });
            }
            let data = tag.data.slice_ref(adts.data);
            repaired.frames.push_back(Frame { timestamp, data, ..tag.clone() });
            frames += 1;
        }
        repaired.note(match frames {
            0 => Irregularity::FramingInvalid,
            _ => Irregularity::FramingConverted,
        });
    }

    /// Whether the current configuration describes such frames. The publisher's may say more: that of HE-AAC gives twice
    /// the rate, which an ADTS header cannot express.
    fn describes(&self, configuration: [u8; 2]) -> bool {
        let Some(current) = &self.configuration else { return false };
        if current[..] == configuration || has_no_channels(configuration) {
            return true;
        }
        let parsed = AudioSpecificConfig::parse(current).ok();
        let adts = AudioSpecificConfig::parse(&configuration).ok();
        parsed.zip(adts).is_some_and(|(current, adts)| {
            let is_doubled = current.sample_rate == 2 * adts.sample_rate;
            current.object_type == adts.object_type
                && (current.sample_rate == adts.sample_rate || is_doubled)
                && (current.channels == adts.channels || adts.channels == 1 && is_doubled)
        })
    }

    fn withhold(&mut self, repaired: &mut Repaired) {
        repaired.note(Irregularity::AudioConfigurationMissing);
        self.has_withheld = true;
    }
}

/// Whether a decoder can use the configuration: channels may be described in it in another way than we read.
fn is_usable(configuration: &[u8]) -> bool {
    let has_object = configuration.first().is_some_and(|first| first >> 3 != 0);
    has_object
        && match AudioSpecificConfig::parse(configuration) {
            Ok(_) => true,
            // Described after the first two bytes.
            Err(Error::Channels(0)) => configuration.len() > 2,
            Err(Error::Channels(_)) => true,
            Err(Error::Truncated | Error::Rate) => false,
        }
}

/// Whether the channels are described in the data: a configuration made from the header would lack them.
const fn has_no_channels([_, second]: [u8; 2]) -> bool {
    second & 0x78 == 0
}
