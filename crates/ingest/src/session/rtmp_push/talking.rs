//! A connected push: messages from the upstream, and the frames sent to it.

use std::time::Instant;

use headgate_media::{Frame, FrameKind};
use headgate_rtmp::ClientEvent;

use super::failure::{Failure, Next};
use super::{Effect, RtmpPush, State};
use crate::publish::end_reason::EndReason;
use crate::publish::mailbox::UpstreamChanged;
use crate::publish::upstream_cause::UpstreamCause;
use crate::publish::upstream_url::UpstreamUrl;
use crate::session::keep_alive::KeepAlive;
use crate::session::retry::GOOD_SENDING;
use crate::session::rtmp_frames::{audio_form, takes_codec, write_to_upstream};
use crate::session::shared_frame::SharedFrame;
use crate::session::silence::Silence;

impl RtmpPush {
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

    /// Handles bytes from the upstream.
    pub(crate) fn handle_input(&mut self, input: &[u8], now: Instant, effects: &mut Vec<Effect>) {
        // While closing, further input is dropped.
        let State::Talking { session, .. } = &mut self.state else { return };
        let outcome = session.handle_input(input, now);
        self.advance_test(now, effects);
        // What the upstream sent before the error gives the better reason.
        if self.handle_events(now, effects).is_continue()
            && let Err(error) = outcome
        {
            self.fail(&Failure::from(error), now, effects);
        }
    }

    /// The upstream closed, or the connection broke; `fault` is why TLS failed.
    pub(crate) fn handle_closed(
        &mut self,
        fault: Option<&str>,
        now: Instant,
        effects: &mut Vec<Effect>,
    ) {
        match &self.state {
            State::Talking { is_secured, .. } => {
                let failure = match fault {
                    Some(fault) => Failure::lost(UpstreamCause::Tls, format!("TLS: {fault}")),
                    None if !is_secured => {
                        Failure::lost(UpstreamCause::Tls, "TLS: closed by the upstream")
                    }
                    None => Failure::lost(UpstreamCause::Closed, "closed by the upstream"),
                };
                self.fail(&failure, now, effects);
            }
            State::Closing { .. } => effects.push(Effect::Close(EndReason::Unpublished)),
            State::Resolving { .. }
            | State::Connecting { .. }
            | State::Pausing { .. }
            | State::Paused => {}
        }
    }

    /// Writes the next frame of the stream.
    pub(crate) fn write_frame(&mut self, frame: &SharedFrame, now: Instant) {
        let State::Talking { session, ready_since: Some(since), .. } = &mut self.state else {
            return;
        };
        if now >= *since + GOOD_SENDING {
            self.retry.reset();
        }
        match frame.kind {
            FrameKind::Configuration if !takes_codec(session.four_cc_list(), frame.codec) => {
                self.record.note_unlisted(frame.codec);
            }
            FrameKind::Configuration | FrameKind::ColorInfo => {}
            FrameKind::Keyframe
            | FrameKind::Inter
            | FrameKind::Disposable
            | FrameKind::Audio
            | FrameKind::Script => self.sent = self.sent.max(Some(frame.timestamp)),
        }
        let keep_alive = &mut self.keep_alive;
        if let Some(silence) = &mut self.silence
            && !silence.passes(frame, now)
        {
            let write = |frame: &Frame| {
                keep_alive.note(frame, now);
                write_to_upstream(session, frame);
            };
            silence.handle_frame(frame, now, write);
            self.made.add(silence.take_made());
            return;
        }
        keep_alive.note(frame, now);
        match frame.framed() {
            Some(framed) => session.send_framed(framed),
            None => write_to_upstream(session, frame),
        }
    }

    /// When [`RtmpPush::write_keep_alive`] has something to do; `None` while earlier output is still unsent.
    pub(super) fn keep_alive_deadline(&self) -> Option<Instant> {
        let State::Talking { session, ready_since: Some(_), .. } = &self.state else {
            return None;
        };
        self.keep_alive.deadline().filter(|_| session.output().is_empty())
    }

    /// Nothing was sent for a while: shows the upstream that the publish continues.
    pub(super) fn write_keep_alive(&mut self, now: Instant) {
        if self.keep_alive_deadline().is_none() {
            return;
        }
        let State::Talking { session, .. } = &mut self.state else { return };
        if let Some(configuration) = self.keep_alive.poll(now) {
            write_to_upstream(session, &configuration);
        }
    }

    /// The stream has ended and every frame is written.
    pub(crate) fn finish(&mut self, now: Instant, effects: &mut Vec<Effect>) {
        self.close(now, effects);
    }

    /// Breaks when the connection was given up.
    fn handle_events(
        &mut self,
        now: Instant,
        effects: &mut Vec<Effect>,
    ) -> std::ops::ControlFlow<()> {
        loop {
            let State::Talking { session, .. } = &mut self.state else {
                return std::ops::ControlFlow::Break(());
            };
            let Some(event) = session.poll_event() else {
                return std::ops::ControlFlow::Continue(());
            };
            if let Some(failure) = self.handle_event(event, now, effects) {
                self.fail(&failure, now, effects);
                return std::ops::ControlFlow::Break(());
            }
        }
    }

    fn handle_event(
        &mut self,
        event: ClientEvent,
        now: Instant,
        effects: &mut Vec<Effect>,
    ) -> Option<Failure> {
        match event {
            ClientEvent::Ready => {
                self.handle_accepted(now, effects);
                None
            }
            ClientEvent::Refused { code, description, kind } => Some(Failure {
                cause: UpstreamCause::Rejected,
                detail: format!("{code}: {description}"),
                is_refusal: kind.is_fatal(),
                next: Next::Pause,
            }),
            ClientEvent::Reconnect { arguments } => {
                let next = Next::Reconnect(arguments);
                Some(Failure {
                    next,
                    ..Failure::lost(UpstreamCause::Rejected, "asked for credentials")
                })
            }
            ClientEvent::Redirected { url } => {
                let name = &self.record.upstream.url.name;
                Some(match UpstreamUrl::at(&url, name) {
                    Some(url) => {
                        let next = Next::Follow(Box::new(url));
                        Failure { next, ..Failure::lost(UpstreamCause::Protocol, "redirected") }
                    }
                    None => {
                        let words = "redirected to an invalid RTMP address";
                        Failure::lost(UpstreamCause::Protocol, words)
                    }
                })
            }
            ClientEvent::Ended { code, description } if description.is_empty() => {
                Some(Failure::lost(UpstreamCause::Closed, code))
            }
            ClientEvent::Ended { code, description } => {
                Some(Failure::lost(UpstreamCause::Closed, format!("{code}: {description}")))
            }
            ClientEvent::Close => Some(Failure::lost(UpstreamCause::Closed, "closed")),
            ClientEvent::Media(_) => None,
        }
    }

    fn handle_accepted(&mut self, now: Instant, effects: &mut Vec<Effect>) {
        let State::Talking { session, ready_since, .. } = &mut self.state else { return };
        *ready_since = Some(now);
        let form = audio_form(session.four_cc_list());
        self.was_accepted = true;
        self.redirects = 0;
        let renewed = || self.silence.as_ref().map_or_else(Silence::default, Silence::renewed);
        self.silence = self.adds_silence.then(renewed);
        self.keep_alive = KeepAlive::default();
        self.expect_audio(self.expects_audio);
        if self.test.is_some() {
            self.advance_test(now, effects);
            return;
        }
        self.record.set_sending(now);
        effects.push(Effect::Report(UpstreamChanged {
            client_id: self.client_id,
            upstream_id: self.record.upstream.id.clone(),
            upstream: self.record.upstream.url.to_string(),
            sending: true,
            detail: String::new(),
            cause: None,
        }));
        if self.reads {
            effects.push(Effect::Accepted(form));
        } else if self.is_live {
            self.read(form, effects);
        } else {
            // It accepted a stream that has ended meanwhile.
            self.close(now, effects);
        }
    }
}
