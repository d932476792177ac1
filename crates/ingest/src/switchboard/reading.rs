//! Subscribers: players, pushes and previews join broadcasts, get their frames, and leave. Only as many frames move to
//! a session's output as its socket is likely to accept soon, so that the rest can still be dropped.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use headgate_media::{Codec, Timestamp};
use slotmap::SlotMap;

use super::action::Action;
use super::broadcast::{Broadcast, Role, Stage};
use super::message::Message;
use super::sessions::{Reading, Sessions};
use super::{SessionKey, StreamKey, SubscriberKey, Switchboard};
use crate::publish::end_reason::EndReason;
use crate::publish::play_guard::PlayGuard;
use crate::publish::preview_pipe::{PreviewEnd, PreviewWriter};
use crate::publish::record::{PublishRecord, StreamId};
use crate::session::Session;
use crate::session::effect::{AudioForm, Effect};
use crate::session::flv_preview::FlvPreview;

/// Bytes that may wait in a session's output before frames stay in its queue.
const AHEAD_LIMIT: usize = 128 * 1024;
/// How long audio waits to be written together with a video frame: a write costs the same for 200 bytes as for 10 kB.
const AUDIO_HOLD: Duration = Duration::from_millis(40);

/// How long a preview's frames wait to form a batch: each batch costs the gateway's single thread a turn and a write.
const PREVIEW_HOLD: Duration = Duration::from_millis(100);
/// The interval at which a full preview is checked for room, while its reader takes nothing.
const FULL_PREVIEW_HOLD: Duration = Duration::from_millis(50);

/// A player whose play request the gateway has allowed.
pub(super) struct Player {
    pub(super) key: SessionKey,
    /// The stream name that it requested.
    pub(super) name: Vec<u8>,
    /// How it takes Opus audio.
    form: AudioForm,
    /// Codecs that it does not take.
    left_out: Vec<Codec>,
    address: IpAddr,
}

/// Whether the frames that wait for a session are passed on.
enum Readiness {
    /// Not yet; a timer or the next frame checks again.
    Held,
    /// To the session's output.
    Ready,
    /// To the gateway, as a preview.
    Preview,
}

/// What remained after filling an output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Filled {
    /// Nothing.
    Drained,
    /// Frames beyond the limit: fill again once the socket has accepted bytes.
    More,
}

impl Switchboard {
    /// The gateway allowed a play request; one of another node is not counted.
    pub(super) fn allow_play(&mut self, request: u64, guard: PlayGuard, is_counted: bool) {
        let Some(player) = self.take_player(request) else { return };
        let key = player.key;
        let live = self.sessions.context.publishes.find_name(&player.name);
        let joined = live.and_then(|record| self.join(player, &record, guard, is_counted));
        self.turn(key, |session, now, effects| {
            if let Session::Server(server) = session {
                match joined {
                    Some(()) if is_counted => server.accept_play(now),
                    Some(()) => server.accept_pull(now),
                    None => server.refuse_stream(now, effects),
                }
            }
        });
    }

    /// The player whose play request is answered; `None` while the worker stops.
    pub(super) fn take_player(&mut self, request: u64) -> Option<Player> {
        let key = self.take_question(request).filter(|_| !self.sessions.is_stopping)?;
        let Some(Session::Server(server)) = self.sessions.session(key) else { return None };
        let ((form, left_out), address) = (server.takes(), server.peer());
        Some(Player { key, name: server.name().to_vec(), form, left_out, address })
    }

    /// Lets the player read this stream; `None` if it is gone.
    pub(super) fn join(
        &mut self,
        player: Player,
        record: &Arc<PublishRecord>,
        guard: PlayGuard,
        is_counted: bool,
    ) -> Option<()> {
        let known = self.sessions.by_id.get(&record.stream).copied();
        let stream = known.or_else(|| self.open_remote(record))?;
        self.stop_reading(player.key);
        let live = self.broadcasts.get_mut(stream)?;
        let role = if is_counted { Role::Player } else { Role::Uncounted };
        let subscriber = live.join(player.key, player.form, role, &mut self.sessions);
        if is_counted {
            record.players.enter(player.address, self.sessions.now, guard.delivery());
        }
        live.hold(subscriber, guard, player.left_out);
        Some(())
    }

    /// Opens a copy of another worker's stream for its first player here. `None` if the stream lived here and is gone.
    pub(super) fn open_remote(&mut self, record: &Arc<PublishRecord>) -> Option<StreamKey> {
        let (home, reader) = (record.worker, self.sessions.context.worker);
        if home == reader {
            return None;
        }
        let (stream, relay) = (record.stream, Arc::default());
        let attach = Message::Attach { stream, reader, relay: Arc::clone(&relay) };
        self.sessions.actions.push(Action::Tell(home, attach));
        let stage = Stage::Elsewhere { relay, home, is_seeded: false, is_ended: false };
        let (record, sessions) = (record.clone(), &mut self.sessions);
        let open = |key| Broadcast::new(key, Vec::new(), record, stage, sessions);
        Some(self.broadcasts.insert_with_key(open))
    }

    /// Opens a preview of a publish that runs here.
    pub(super) fn open_preview(&mut self, id: StreamId, mut writer: PreviewWriter) {
        let stream = self.sessions.by_id.get(&id).and_then(|key| self.broadcasts.get_mut(*key));
        let Some(live) = stream else {
            // The stream ended while the message was in flight.
            writer.set_end(PreviewEnd::PublishEnded);
            return;
        };
        let role = if live.is_standby(id) { Role::OfStandby } else { Role::Uncounted };
        let preview = FlvPreview::new(writer, self.sessions.now);
        let key = self.sessions.insert(Session::Preview(Box::new(preview)));
        live.join(key, AudioForm::Opus, role, &mut self.sessions);
    }

    /// Lets a push read its stream.
    pub(super) fn read_own_stream(
        &mut self,
        push: SessionKey,
        form: AudioForm,
        after: Option<Timestamp>,
    ) {
        self.stop_reading(push);
        let stream = self.sessions.get(push).and_then(|entry| entry.pushes);
        let Some(live) = stream.and_then(|stream| self.broadcasts.get_mut(stream)) else { return };
        let subscriber = live.join(push, form, Role::Push { after }, &mut self.sessions);
        if let Some(Session::Push(session)) = self.sessions.session_mut(push) {
            session.expect_audio(live.expects_audio());
            if live.has_paused_audio() {
                session.set_audio_stopped();
            }
            live.count(subscriber, session.record().delivery.clone());
        }
    }

    /// The upstream of a push that reads its stream has accepted.
    pub(super) fn accept_push(&mut self, push: SessionKey, form: AudioForm) {
        if let Some((live, subscriber)) = read_by(&mut self.broadcasts, &self.sessions, push) {
            live.accept(subscriber, form, &mut self.sessions);
        }
    }

    /// Stops `reader` from reading its stream.
    pub(super) fn stop_reading(&mut self, reader: SessionKey) {
        if let Some(entry) = self.sessions.get_mut(reader)
            && let Some(Reading { stream, subscriber }) = entry.reads.take()
        {
            entry.held_until = None;
            if let Some(live) = self.broadcasts.get_mut(stream) {
                live.unsubscribe(subscriber);
                self.close_if_done(stream);
            }
        }
    }

    /// The sessions that may have something to write, without duplicates. Previews, which have no socket, are served
    /// here.
    pub(crate) fn poll_ready(&mut self) -> Vec<SessionKey> {
        let mut ready = std::mem::take(&mut self.sessions.woken.readers);
        ready.sort_unstable();
        ready.dedup();
        ready.retain(|key| match self.readiness(*key) {
            Readiness::Held => false,
            Readiness::Ready => true,
            Readiness::Preview => {
                self.serve_preview(*key);
                false
            }
        });
        ready
    }

    /// Passes waiting frames to a session's output.
    pub(crate) fn fill(&mut self, key: SessionKey) -> Filled {
        let mut filled = Filled::Drained;
        let Some((live, subscriber)) = read_by(&mut self.broadcasts, &self.sessions, key) else {
            return filled;
        };
        let mut effects = std::mem::take(&mut self.spare_effects);
        let is_sound = self.sessions.run(key, &mut effects, |session, now, effects| {
            if let Session::Server(server) = session
                && server.awaits_stream()
            {
                // A waiting player's play is accepted with the first frame, and refused if the stream ended before.
                if live.has_frames(subscriber) {
                    server.accept_play(now);
                } else if live.is_finished(subscriber) {
                    server.refuse_stream(now, effects);
                }
            }
            if !session.takes_frames() {
                return;
            }
            loop {
                if session.output_mut().is_none_or(|output| output.pending_bytes() >= AHEAD_LIMIT) {
                    filled = Filled::More;
                    break;
                }
                let Some(frame) = live.next_frame(subscriber) else { break };
                session.write_frame(&frame, now);
            }
            if let Session::Push(push) = session
                && let Some(made) = push.take_made()
            {
                live.count_made(subscriber, made);
            }
            if filled == Filled::Drained && live.is_finished(subscriber) {
                session.finish_reading(now, effects);
            }
        });
        self.finish_turn(key, is_sound, effects);
        filled
    }

    /// Passes waiting frames of a preview to the gateway, until its pipe is full.
    fn serve_preview(&mut self, key: SessionKey) {
        let now = self.sessions.now;
        let mut read = read_by(&mut self.broadcasts, &self.sessions, key);
        let mut effects = std::mem::take(&mut self.spare_effects);
        let is_sound = self.sessions.run(key, &mut effects, |session, _, effects| {
            let Session::Preview(preview) = session else { return };
            if let Some((live, subscriber)) = &mut read {
                while preview.takes_frames()
                    && let Some(frame) = live.next_frame(*subscriber)
                {
                    if !preview.has_begun() {
                        let (has_video, has_audio) = live.tracks_of(*subscriber);
                        preview.begin(has_video, has_audio);
                    }
                    preview.write_frame(&frame);
                }
            }
            preview.hand_over();
            if read.as_ref().is_none_or(|(live, subscriber)| live.is_finished(*subscriber)) {
                preview.finish(effects);
            }
        });
        let has_frames = read.is_some_and(|(live, subscriber)| live.has_frames(subscriber));
        self.finish_turn(key, is_sound, effects);
        if has_frames && let Some(entry) = self.sessions.get_mut(key) {
            // Nothing notifies us when the gateway takes batches: check again after a while.
            entry.hold_back(Some(FULL_PREVIEW_HOLD), now);
            self.sessions.touch(key);
        }
    }

    /// The session's socket accepted `bytes`; `is_behind`: more waits for it.
    pub(crate) fn handle_written(&mut self, key: SessionKey, bytes: usize, is_behind: bool) {
        let now = self.sessions.now;
        let Some(entry) = self.sessions.get_mut(key) else { return };
        if let Some(session) = &mut entry.session {
            session.handle_written(now);
        }
        let read = entry.reads.filter(|_| is_behind);
        let read = read.and_then(|of| Some((self.broadcasts.get(of.stream)?, of.subscriber)));
        let offered = read.map_or(0, |(live, subscriber)| live.offered(subscriber));
        if !entry.least_rate.handle_written(bytes, offered, is_behind, now) {
            self.turn(key, |session, now, effects| match session {
                Session::Push(push) => push.handle_too_slow(now, effects),
                Session::Server(_) | Session::Whip(_) | Session::Pull(_) | Session::Preview(_) => {
                    effects.push(Effect::Close(EndReason::BroadcasterLeft));
                }
            });
        }
        self.sessions.touch(key);
    }

    /// Whether the frames that wait for a session are passed on; this is then the subscriber's turn. Held back are audio
    /// frames without video if a video frame may still come to be written with them, and a preview's frames while its
    /// next batch fills.
    fn readiness(&mut self, key: SessionKey) -> Readiness {
        let now = self.sessions.now;
        let Some(entry) = self.sessions.get_mut(key) else { return Readiness::Held };
        let Some(Reading { stream, subscriber }) = entry.reads else { return Readiness::Ready };
        let live = self.broadcasts.get_mut(stream);
        let (readiness, hold) = if let Some(Session::Preview(preview)) = &entry.session {
            let is_ended = live.as_ref().is_none_or(|live| live.is_ended(subscriber));
            let hold = if !preview.takes_frames() {
                Some(FULL_PREVIEW_HOLD)
            } else if preview.has_begun() && !is_ended {
                Some(PREVIEW_HOLD)
            } else {
                None
            };
            (Readiness::Preview, hold)
        } else {
            let output = entry.session.as_mut().and_then(Session::output_mut);
            let has_output = output.is_some_and(|output| !output.is_empty());
            let may_wait = !has_output
                && live.as_ref().is_some_and(|live| live.may_wait_for_video(subscriber));
            (Readiness::Ready, may_wait.then_some(AUDIO_HOLD))
        };
        if entry.hold_back(hold, now) {
            self.sessions.touch(key);
            return Readiness::Held;
        }
        if let Some(live) = live {
            live.note_turn(subscriber);
        }
        readiness
    }
}

/// What a session reads.
fn read_by<'a>(
    broadcasts: &'a mut SlotMap<StreamKey, Broadcast>,
    sessions: &Sessions,
    reader: SessionKey,
) -> Option<(&'a mut Broadcast, SubscriberKey)> {
    let Reading { stream, subscriber } = sessions.get(reader)?.reads?;
    Some((broadcasts.get_mut(stream)?, subscriber))
}
