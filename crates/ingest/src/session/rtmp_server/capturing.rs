//! Captures that begin in mid-publish, and sessions that resume from the state stored in one.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Instant;

use headgate_media::repair::Repair;
use headgate_rtmp::{Limits, ReadingState, ServerConfig, ServerSession};

use super::{Captured, Publishing, Role, RtmpServer};
use crate::publish::capture::{CLOCK_BYTES, Tap};
use crate::publish::record::PublishRecord;
use crate::session::publish_session::PublishSession;
use crate::session::receive_mark::ReceiveMark;
use crate::session::rtmp_frames::TrackClocks;

impl RtmpServer {
    /// Captures the running publish from its next message. False if it is already being captured or if there is none.
    pub(crate) fn capture(&mut self, tap: Tap) -> bool {
        let is_publish = matches!(self.role, Role::Publishing(_));
        let begins = is_publish && self.captured.begin_next(tap);
        if begins {
            self.session.find_boundary();
        }
        begins
    }

    /// A message boundary is reached: starts a capture that waits for it.
    pub(super) fn begin_capture(&mut self, state: &ReadingState, rest: &[u8], now: Instant) {
        if let Role::Publishing(publishing) = &self.role {
            let mut bytes = publishing.clocks.to_bytes(now).to_vec();
            bytes.extend_from_slice(&state.to_bytes());
            self.captured.begin(&bytes, rest, now);
        }
    }

    /// A session that resumes from the state stored in a capture; `None` if that is invalid.
    pub(crate) fn resume(state: &[u8], record: Arc<PublishRecord>, now: Instant) -> Option<Self> {
        let (clocks, state) = state.split_first_chunk::<CLOCK_BYTES>()?;
        let state = ReadingState::read(state, &Limits::default())?;
        let publishing = Publishing {
            publish: PublishSession::new(record, now),
            clocks: TrackClocks::read_bytes(clocks, now),
            repair: Repair::resumed(),
            mark: ReceiveMark::new(now),
            overdue_at: None,
        };
        Some(Self {
            session: ServerSession::resume(ServerConfig::default(), &state, now),
            peer: IpAddr::V4(Ipv4Addr::UNSPECIFIED),
            role: Role::Publishing(Box::new(publishing)),
            captured: Captured::default(),
            closing_until: None,
            last_progress: now,
        })
    }
}
