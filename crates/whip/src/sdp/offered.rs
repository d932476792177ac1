//! What an offer offers: its sections as we use them.

/// What a section carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Audio,
    Video,
}

/// The offered audio.
#[derive(Clone, Debug)]
pub struct AudioSection {
    /// Section id; empty when the only section has none.
    pub mid: String,
    /// Payload type of Opus.
    pub payload_type: u8,
    /// The client accepts stereo.
    pub stereo: bool,
    /// The sender's SSRC, if the offer gives it.
    pub ssrc: Option<u32>,
    /// Id of the header extension with the transport-wide sequence number.
    pub transport_cc_id: Option<u8>,
    /// Transport-wide feedback was offered.
    pub has_transport_cc: bool,
    /// The sender answers NACK.
    pub has_nack: bool,
    pub(super) protocol: &'static str,
    pub(super) mid_id: Option<u8>,
    pub(super) has_rsize: bool,
}

/// Retransmissions in a separate stream (RFC 4588).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rtx {
    /// Payload type of the retransmissions.
    pub payload_type: u8,
    /// SSRC of the retransmissions, if the offer gives it.
    pub ssrc: Option<u32>,
}

/// The sources of one simulcast layer without a RID (`a=ssrc-group:SIM`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LayerSource {
    /// SSRC of the layer.
    pub ssrc: u32,
    /// SSRC of its retransmissions, if the offer gives it.
    pub rtx_ssrc: Option<u32>,
}

/// The offered video.
#[derive(Clone, Debug)]
pub struct VideoSection {
    /// Section id; empty when the only section has none.
    pub mid: String,
    /// Payload type of H.264.
    pub payload_type: u8,
    /// Packetization mode: 0 or 1.
    pub packetization_mode: u8,
    /// Profile, constraints and level; `None` when absent or malformed.
    pub profile_level_id: Option<[u8; 3]>,
    /// SPS and PPS contained in the offer.
    pub parameter_sets: Vec<Vec<u8>>,
    /// The sender's SSRC, if the offer gives it.
    pub ssrc: Option<u32>,
    /// Retransmissions of this payload type.
    pub rtx: Option<Rtx>,
    /// Id of the header extension with the transport-wide sequence number.
    pub transport_cc_id: Option<u8>,
    /// The sender answers NACK.
    pub has_nack: bool,
    /// The sender answers PLI.
    pub has_pli: bool,
    /// The sender answers FIR.
    pub has_fir: bool,
    /// Transport-wide feedback was offered.
    pub has_transport_cc: bool,
    /// The sender obeys REMB.
    pub has_remb: bool,
    /// Simulcast layers in the offer's order; empty without simulcast.
    pub rids: Vec<String>,
    /// Simulcast layers that are told apart by the sources they are sent with; empty if `rids` is not, or without
    /// simulcast.
    pub sources: Vec<LayerSource>,
    /// Id of the header extension with a packet's layer (RID).
    pub rid_id: Option<u8>,
    /// Id of the header extension with the layer that a retransmission belongs to.
    pub repaired_rid_id: Option<u8>,
    pub(super) protocol: &'static str,
    pub(super) mid_id: Option<u8>,
    pub(super) has_rsize: bool,
}

impl VideoSection {
    /// Payload type of the retransmissions that our answer accepts.
    pub(super) fn answered_rtx(&self) -> Option<u8> {
        self.rtx.filter(|_| self.has_nack).map(|rtx| rtx.payload_type)
    }

    /// Profile, constraints and level as six hexadecimal digits.
    pub(super) fn profile_level(&self) -> Option<String> {
        let [profile, constraints, level] = self.profile_level_id?;
        Some(format!("{profile:02x}{constraints:02x}{level:02x}"))
    }
}
