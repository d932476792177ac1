//! The gateway's part when a publish is allowed.

use headgate_rtmp::{ClientRole, MediaKind};

use super::super::SessionKey;
use super::super::message::{Message, Opening};
use super::world::{AVC_HEADER, World, upstream};
use crate::publish::hold::Hold;
use crate::publish::near::Near;
use crate::publish::whip_record::WhipRecord;

impl World {
    /// A publisher of `name`, allowed under `client_id`, with its headers sent.
    pub(super) fn publisher(
        &mut self,
        name: &str,
        client_id: u64,
        upstreams: &[&str],
    ) -> SessionKey {
        let key = self.broadcaster(name, client_id, Near::default(), upstreams);
        self.send(key, MediaKind::Video, 0, AVC_HEADER);
        key
    }

    /// The same, but nothing was sent yet; it is related to the publishes `near`.
    pub(super) fn broadcaster(
        &mut self,
        name: &str,
        client_id: u64,
        near: Near,
        upstreams: &[&str],
    ) -> SessionKey {
        let key = self.connect(ClientRole::Publish, name);
        let request = self.asked.pop_front().expect("it asked");
        let opening = self.opening(client_id, near, None, upstreams);
        self.switchboard.handle_message(Message::Allow { request, opening });
        self.settle();
        key
    }

    /// What the gateway opens as it allows a publish.
    pub(super) fn opening(
        &self,
        client_id: u64,
        near: Near,
        whip: Option<WhipRecord>,
        upstreams: &[&str],
    ) -> Opening {
        let worker = self.switchboard.sessions.context.worker;
        let guard = near.open(&self.publishes, client_id, worker, whip, self.now);
        let upstreams = upstreams.iter().map(|url| upstream(url)).collect();
        Opening { window: self.window, near, ..Opening::new(guard, upstreams) }
    }

    /// The publishes of a name, by client id: a held one to continue, and a running one to be opened beside.
    pub(super) fn near(&self, continues: Option<u64>, beside: Option<u64>) -> Near {
        Near::find(&self.publishes, 0, &Hold { continues, beside, ..Hold::default() })
    }
}
