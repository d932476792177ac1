//! A client whose address changes without its knowledge, because its NAT dropped the mapping: its next ICE check comes
//! seconds later (RFC 7675 5.1), but its media keeps arriving, and only the client can protect it.

use std::time::Instant;

use super::{WhipEvent, WhipSession};
use crate::transport::ice_lite::PathChange;
use crate::transport::path::Path;

impl WhipSession {
    /// Takes media from a path on which no check has arrived. A packet with a valid tag that is not a replay proves
    /// the path as a check would. A TCP connection always begins with a check.
    pub(super) fn handle_moved_media(
        &mut self,
        now: Instant,
        source: Path,
        datagram: &mut [u8],
    ) -> Option<usize> {
        if source.is_tcp || !self.media.is_started() || !self.strange_packets.admit(now) {
            self.rejected += 1;
            return None;
        }
        let opened = self.handle_media(now, datagram)?;
        self.ice.prove_by_media(now, source);
        self.announce_paths();
        Some(opened)
    }

    pub(super) fn announce_paths(&mut self) {
        while let Some(change) = self.ice.poll_change() {
            self.events.push_back(match change {
                PathChange::Proven(path) => WhipEvent::Proven(path),
                PathChange::Forgotten(path) => WhipEvent::Forgotten(path),
            });
        }
    }
}
