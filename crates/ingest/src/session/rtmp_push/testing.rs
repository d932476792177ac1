//! A push that tests its upstream: it sends two seconds of a test picture and silence in place of a stream, tries once,
//! and reports how far it came.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use headgate_rtmp::ClientStage;

use super::failure::Failure;
use super::upstream_test::{UpstreamTest, test_picture, time_of};
use super::{Effect, RtmpPush, State};
use crate::publish::end_reason::EndReason;
use crate::publish::upstream_cause::{PushStep, UpstreamCause, UpstreamTested};
use crate::publish::upstreams::UpstreamRecord;
use crate::session::shared_frame::SharedFrame;

/// How long media is sent.
const MEDIA_TIME: Duration = Duration::from_secs(2);
/// Time limit until the upstream has accepted the publish.
const TEST_LIMIT: Duration = Duration::from_secs(12);

impl RtmpPush {
    /// A push that tests an upstream; `test` is the gateway's id of it.
    pub(crate) fn of_test(test: u64, record: Arc<UpstreamRecord>, seed: u64, now: Instant) -> Self {
        let frames = test_picture().into_iter();
        let steps = vec![(PushStep::Dns, now)];
        let test_push = UpstreamTest { steps, frames, until: now + TEST_LIMIT };
        let push = Self::new(test, record, Bytes::new(), false, seed, now);
        Self { test: Some(Box::new(test_push)), ..push }
    }

    /// When [`RtmpPush::advance_test`] has something to do.
    pub(super) fn test_deadline(&self) -> Option<Instant> {
        let test = self.test.as_ref()?;
        let State::Talking { ready_since: Some(since), .. } = self.state else {
            return Some(test.until);
        };
        let next = test.frames.as_slice().first();
        let due = next.map_or(since + MEDIA_TIME, |frame| since + time_of(frame));
        Some(due)
    }

    /// Notes the step that has been reached, sends the frames that are due, and ends a test that is over.
    pub(super) fn advance_test(&mut self, now: Instant, effects: &mut Vec<Effect>) {
        let step = self.step();
        let Some(test) = &mut self.test else { return };
        if let Some(step) = step
            && test.steps.last().is_none_or(|(last, _)| *last < step)
        {
            test.steps.push((step, now));
        }
        let State::Talking { ready_since: Some(since), .. } = self.state else {
            if now >= test.until {
                let failure = Failure::lost(UpstreamCause::TimedOut, "the test took too long");
                self.end_test(Some(&failure), now, effects);
                effects.push(Effect::Close(EndReason::Unpublished));
            }
            return;
        };
        let mut due = Vec::new();
        while test.frames.as_slice().first().is_some_and(|of| now >= since + time_of(of)) {
            due.extend(test.frames.next());
        }
        let is_over = test.frames.as_slice().is_empty() && now >= since + MEDIA_TIME;
        for frame in due {
            self.write_frame(&SharedFrame::from(frame), now);
        }
        if is_over {
            self.end_test(None, now, effects);
            self.close(now, effects);
        }
    }

    /// Reports a test's result, once; returns whether this push is a test. Its owner closes it.
    pub(super) fn end_test(
        &mut self,
        failure: Option<&Failure>,
        now: Instant,
        effects: &mut Vec<Effect>,
    ) -> bool {
        let Some(test) = self.test.take() else { return false };
        let ends = test.steps.iter().skip(1).map(|(_, began)| *began).chain([now]);
        let took = |((step, began), end): (&(PushStep, Instant), Instant)| {
            let time = end.saturating_duration_since(*began);
            (*step, u64::try_from(time.as_millis()).unwrap_or(u64::MAX))
        };
        let url = &self.record.upstream.url;
        effects.push(Effect::ReportTest(UpstreamTested {
            client_id: self.client_id,
            steps: test.steps.iter().zip(ends).map(took).collect(),
            cause: failure.map(|failure| failure.cause),
            detail: failure.map(|failure| url.conceal(&failure.detail)).unwrap_or_default(),
        }));
        true
    }

    /// The step that is under way; `None` between attempts.
    fn step(&self) -> Option<PushStep> {
        match &self.state {
            State::Resolving { .. } => Some(PushStep::Dns),
            State::Connecting { .. } => Some(PushStep::Tcp),
            State::Talking { is_secured: false, .. } => Some(PushStep::Tls),
            State::Talking { session, .. } => match session.stage() {
                ClientStage::Handshake => Some(PushStep::Handshake),
                ClientStage::Connect => Some(PushStep::Connect),
                ClientStage::Start => Some(PushStep::Publish),
                ClientStage::Media => Some(PushStep::Media),
                ClientStage::Over => None,
            },
            State::Closing { .. } | State::Pausing { .. } | State::Paused => None,
        }
    }
}
