//! A connected pull: the source's events and the frames that it sends.

use std::ops::ControlFlow;
use std::time::Instant;

use headgate_media::{Frame, FrameKind};
use headgate_rtmp::{ClientEvent, MediaMessage};

use super::{NewestFrames, RtmpPull, State};
use crate::publish::pull_record::{PullEnd, PullState};
use crate::session::effect::Effect;
use crate::session::frame_rates::Verdict;

impl RtmpPull {
    /// Begins a new turn of the worker, with a full turn's allowance of work.
    pub(crate) fn begin_turn(&mut self) {
        if let State::Talking { session, .. } = &mut self.state {
            session.begin_turn();
        }
    }

    /// Whether bytes that were read are still to be handled, by `handle_input` with no bytes.
    pub(crate) fn has_unread_input(&self) -> bool {
        matches!(&self.state, State::Talking { session, .. } if session.has_unread_input())
    }

    /// Handles bytes from the source.
    pub(crate) fn handle_input(&mut self, input: &[u8], now: Instant, effects: &mut Vec<Effect>) {
        // While closing, further input is dropped.
        let State::Talking { session, .. } = &mut self.state else { return };
        if !input.is_empty() {
            self.publish.handle_input(input.len(), now);
        }
        let outcome = session.handle_input(input, now);
        // What the source said before the error gives the better reason.
        if self.handle_events(now, effects).is_continue()
            && let Err(error) = outcome
        {
            self.lose(&error.to_string(), now, effects);
        }
    }

    /// Breaks when the connection was given up.
    fn handle_events(&mut self, now: Instant, effects: &mut Vec<Effect>) -> ControlFlow<()> {
        loop {
            let State::Talking { session, is_ready } = &mut self.state else {
                return ControlFlow::Break(());
            };
            let Some(event) = session.poll_event() else { return ControlFlow::Continue(()) };
            match event {
                ClientEvent::Ready => *is_ready = true,
                ClientEvent::Media(message) => self.handle_media(message, now, effects),
                ClientEvent::Refused { code, description, .. } => {
                    self.end(PullEnd::Refused, &format!("{code}: {description}"), now, effects);
                }
                ClientEvent::Ended { code, .. } => {
                    self.end(PullEnd::SourceEnded, &code, now, effects);
                }
                // A node neither asks for credentials nor redirects.
                ClientEvent::Reconnect { .. } | ClientEvent::Redirected { .. } => {
                    self.end(PullEnd::Refused, "it is not a node of this service", now, effects);
                }
                ClientEvent::Close => self.lose("closed by the source", now, effects),
            }
        }
    }

    fn handle_media(&mut self, message: MediaMessage, now: Instant, effects: &mut Vec<Effect>) {
        let kind = message.kind;
        let frame = match self.clocks.read(message, now) {
            Ok(Some(frame)) => frame,
            Ok(None) => return,
            Err(error) => {
                if self.publish.handle_unread(kind, error, now) {
                    self.end(PullEnd::Invalid, &error.to_string(), now, effects);
                }
                return;
            }
        };
        if self.repeats.has(&frame) {
            return;
        }
        match self.publish.handle_frame(&frame, now) {
            Verdict::Pass => {}
            Verdict::PassAfter(configuration) => effects.push(Effect::Publish(configuration)),
            Verdict::Drop => return,
        }
        if is_media(&frame) {
            self.newest.note(&frame);
            self.has_media = true;
            if self.media_due.take().is_some() {
                self.set_state(PullState::Playing);
            }
        }
        effects.extend(self.clocks.missing_configuration(&frame).map(Effect::Publish));
        effects.push(Effect::Publish(frame));
    }
}

impl NewestFrames {
    /// Whether the frame is not newer than the newest one. The first newer frame of a track ends this check for it,
    /// because a clock may go back.
    fn has(&mut self, frame: &Frame) -> bool {
        let slot = if frame.kind == FrameKind::Audio { &mut self.audio } else { &mut self.video };
        let is_repeated = is_media(frame) && slot.is_some_and(|newest| frame.timestamp <= newest);
        if is_media(frame) && !is_repeated {
            *slot = None;
        }
        is_repeated
    }

    fn note(&mut self, frame: &Frame) {
        let slot = if frame.kind == FrameKind::Audio { &mut self.audio } else { &mut self.video };
        *slot = Some(frame.timestamp);
    }
}

const fn is_media(frame: &Frame) -> bool {
    match frame.kind {
        FrameKind::Keyframe | FrameKind::Inter | FrameKind::Disposable | FrameKind::Audio => true,
        FrameKind::Configuration | FrameKind::ColorInfo | FrameKind::Script => false,
    }
}
