//! What may be irregular about the media and messages of a publisher without ending its publish: each is tolerated,
//! repaired or left out, and counted by name. Pure.

/// One kind of irregularity, named for what was done about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Irregularity {
    /// An audio or video tag ended inside its own header and was ignored.
    TruncatedTag,
    /// Audio of a codec or form that cannot be carried was dropped.
    UnsupportedAudio,
    /// Video of a codec that cannot be carried was dropped.
    UnsupportedVideo,
    /// A command or data message could not be read and was ignored.
    UnreadableMessage,
    /// Messages (captions, cue points, commands, frames, configurations) beyond the rate limits were dropped.
    ExcessData,
    /// A message longer than the limits was dropped.
    OversizedMessage,
    /// A timestamp far from its neighbours was replaced.
    TimeOutlier,
    /// The publisher's clock restarted or jumped; its time was continued without the step.
    TimeStep,
    /// The publisher sent no usable timestamps; arrival times were used.
    TimeMissing,
    /// A timestamp went back within its track and was raised.
    TimeBackward,
    /// The publisher's RTP clock stood still while time passed; the time was inserted.
    TimeStopped,
    /// Silence or other filler was not generated because its budget was used up.
    FillerLimited,
    /// Audio stopped while video continued and was replaced by silence.
    AudioGap,
    /// Video frames were withheld because no usable decoder configuration had arrived.
    VideoConfigurationMissing,
    /// Audio frames were withheld because no usable decoder configuration had arrived.
    AudioConfigurationMissing,
    /// A decoder configuration that cannot be used was ignored.
    ConfigurationInvalid,
    /// A decoder configuration was built from parameter sets or headers inside the media.
    ConfigurationRebuilt,
    /// Frames in another framing (Annex B, ADTS) were converted.
    FramingConverted,
    /// Frames whose framing could not be read were dropped.
    FramingInvalid,
    /// A keyframe was not marked as one, or a frame was marked as one that is none.
    KeyframeMismarked,
    /// The video has no IDR pictures; readers start at recovery points.
    RecoveryPoint,
    /// An RTP payload was malformed and was repaired or dropped.
    MalformedPayload,
    /// The sender sets the RTP marker where no picture ends; pictures were completed by their timestamps.
    MarkerMisplaced,
    /// Retransmissions that were requested never arrived.
    RetransmissionsMissing,
    /// A picture that later pictures do not need was lost and left out.
    DisposableLost,
}

impl Irregularity {
    /// All of them, in the order of their counters.
    pub const ALL: [Self; 25] = [
        Self::TruncatedTag,
        Self::UnsupportedAudio,
        Self::UnsupportedVideo,
        Self::UnreadableMessage,
        Self::ExcessData,
        Self::OversizedMessage,
        Self::TimeOutlier,
        Self::TimeStep,
        Self::TimeMissing,
        Self::TimeBackward,
        Self::TimeStopped,
        Self::FillerLimited,
        Self::AudioGap,
        Self::VideoConfigurationMissing,
        Self::AudioConfigurationMissing,
        Self::ConfigurationInvalid,
        Self::ConfigurationRebuilt,
        Self::FramingConverted,
        Self::FramingInvalid,
        Self::KeyframeMismarked,
        Self::RecoveryPoint,
        Self::MalformedPayload,
        Self::MarkerMisplaced,
        Self::RetransmissionsMissing,
        Self::DisposableLost,
    ];
}

/// How often each irregularity has occurred.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IrregularityCounts([u64; Irregularity::ALL.len()]);

impl IrregularityCounts {
    /// Counts `times` more of one kind.
    pub const fn add(&mut self, kind: Irregularity, times: u64) {
        let count = &mut self.0[kind as usize];
        *count = count.saturating_add(times);
    }

    /// How often this kind has occurred.
    #[must_use]
    pub const fn count(&self, kind: Irregularity) -> u64 {
        self.0[kind as usize]
    }

    /// Those that have occurred.
    pub fn iter(&self) -> impl Iterator<Item = (Irregularity, u64)> + '_ {
        Irregularity::ALL.into_iter().zip(self.0).filter(|(_, count)| *count > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_has_its_own_counter() {
        let mut counts = IrregularityCounts::default();
        for (place, kind) in Irregularity::ALL.into_iter().enumerate() {
            assert_eq!(kind as usize, place, "{kind:?}");
            counts.add(kind, place as u64);
        }
        assert!(counts.iter().all(|(kind, count)| count == kind as u64));
    }
}
