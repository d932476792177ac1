//! What the gateway orders for pushes that run, and tests of upstreams, which are pushes without a stream.

use std::sync::Arc;

use bytes::Bytes;

use super::{SessionKey, Switchboard};
use crate::publish::record::StreamId;
use crate::publish::upstream_cause::PushOrder;
use crate::publish::upstreams::{Upstream, UpstreamRecord};
use crate::session::Session;
use crate::session::rtmp_push::RtmpPush;

impl Switchboard {
    /// Carries out an order for the push of a stream to one upstream.
    pub(super) fn order_push(&mut self, stream: StreamId, serial: u64, order: PushOrder) {
        let Some(key) = self.read_stream(stream) else { return };
        let pushes = self.local(key).map(|local| local.pushes.clone());
        let mut paused = None;
        for push in pushes.into_iter().flatten() {
            self.turn_push(push, |push, now, effects| {
                if push.record().serial != serial {
                    return;
                }
                match order {
                    PushOrder::Pause => paused = push.pause(now, effects).or_else(|| paused.take()),
                    PushOrder::Resume => push.resume(now, effects),
                    PushOrder::Retry => push.retry_now(now, effects),
                }
            });
        }
        if let Some(record) = paused {
            self.open_push(key, record, Bytes::new());
        }
    }

    /// The gateway allows no connection to the host of a push.
    pub(super) fn forbid(&mut self, push: u64) {
        if let Some(key) = self.take_question(push) {
            self.turn_push(key, |push, now, effects| push.handle_forbidden(now, effects));
        }
    }

    /// Tests an upstream.
    pub(super) fn test_upstream(&mut self, test: u64, upstream: Upstream) {
        if self.is_stopping {
            return;
        }
        let record = Arc::new(UpstreamRecord::new(0, upstream, self.now));
        let push = RtmpPush::of_test(test, record, self.random(), self.now);
        let key = self.insert(Session::Push(Box::new(push)));
        self.turn_push(key, |push, now, effects| push.start(now, effects));
    }

    /// The handshake of TLS with an upstream is complete.
    pub(crate) fn handle_secured(&mut self, key: SessionKey) {
        self.turn_push(key, |push, now, effects| push.handle_secured(now, effects));
    }
}
