//! The tokens under which a worker polls its sockets.

use mio::Token;
use slotmap::{Key, KeyData};

use crate::switchboard::SessionKey;

// Tokens of sessions use more than 32 bits, because the generation of their key is never zero.
pub(super) const WAKER: Token = Token(0);
pub(super) const LISTENER: Token = Token(1);
pub(super) const MEDIA: Token = Token(2);
pub(super) const TLS_LISTENER: Token = Token(3);
pub(super) const MEDIA_LISTENER: Token = Token(4);
pub(super) const PULL_LISTENER: Token = Token(5);

/// The token of a session's socket.
pub(super) fn token_of(key: SessionKey) -> Token {
    Token(usize::try_from(key.data().as_ffi()).unwrap_or(usize::MAX))
}

/// The session whose socket has this token.
pub(super) fn session_of(token: Token) -> SessionKey {
    KeyData::from_ffi(token.0 as u64).into()
}
