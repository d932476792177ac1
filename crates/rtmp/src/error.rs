//! The errors that end a session.

/// An error that ends a session, grouped by cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    // The peer misbehaved.
    /// The first byte is not a valid RTMP version.
    #[error("the peer does not speak RTMP")]
    Version,
    /// A chunk header is not valid after the chunks before it.
    #[error("a chunk does not fit the chunks before it")]
    Chunk,
    /// The peer answered a command with a failure that makes no sense there.
    #[error("the peer answered out of order")]
    Answer,
    // A limit was exceeded.
    /// The handshake took too long.
    #[error("the handshake took too long")]
    HandshakeLimit,
    /// The publish or play command took too long.
    #[error("no publish or play command in time")]
    CommandLimit,
    /// The other side's answer took too long.
    #[error("no answer in time")]
    AnswerLimit,
    /// More chunk streams than allowed.
    #[error("too many chunk streams")]
    ChunkStreamLimit,
    /// More unfinished bytes over all chunk streams than allowed.
    #[error("too many unfinished bytes")]
    PartialLimit,
    /// More unread answers than allowed are queued for the peer.
    #[error("the peer does not read our answers")]
    AnswerBytesLimit,
}

impl Error {
    /// Stable name for logs and metrics.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Version => "version",
            Self::Chunk => "chunk",
            Self::Answer => "answer",
            Self::HandshakeLimit => "handshake_limit",
            Self::CommandLimit => "command_limit",
            Self::AnswerLimit => "answer_limit",
            Self::ChunkStreamLimit => "chunk_stream_limit",
            Self::PartialLimit => "partial_limit",
            Self::AnswerBytesLimit => "answer_bytes_limit",
        }
    }

    /// Whether a limit was exceeded, rather than the protocol violated.
    #[must_use]
    pub const fn is_limit(&self) -> bool {
        match self {
            Self::Version | Self::Chunk | Self::Answer => false,
            Self::HandshakeLimit
            | Self::CommandLimit
            | Self::AnswerLimit
            | Self::ChunkStreamLimit
            | Self::PartialLimit
            | Self::AnswerBytesLimit => true,
        }
    }
}
