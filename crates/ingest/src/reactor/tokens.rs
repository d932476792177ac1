//! Names of what a worker polls.

use mio::Token;
use slotmap::{Key, KeyData};

use crate::switchboard::SessionKey;

// Tokens of sessions are above 32 bits: the generation of their key is never zero.
pub(super) const WAKER: Token = Token(0);
pub(super) const LISTENER: Token = Token(1);
pub(super) const MEDIA: Token = Token(2);
pub(super) const TLS_LISTENER: Token = Token(3);
pub(super) const MEDIA_LISTENER: Token = Token(4);
pub(super) const PULL_LISTENER: Token = Token(5);

/// The name of a session's socket.
pub(super) fn token_of(key: SessionKey) -> Token {
    Token(usize::try_from(key.data().as_ffi()).unwrap_or(usize::MAX))
}

/// The session whose socket has this name.
pub(super) fn session_of(token: Token) -> SessionKey {
    KeyData::from_ffi(token.0 as u64).into()
}
