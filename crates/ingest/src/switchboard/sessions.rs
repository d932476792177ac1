//! The sessions of one worker and what they share with its broadcasts: the time, timers, the index of streams, and what
//! is left for the reactor.

use std::collections::VecDeque;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustc_hash::FxHashMap;
use slotmap::SlotMap;

use super::action::{Action, Context};
use super::keys::{SessionKey, StreamKey, SubscriberKey};
use super::least_rate::LeastRate;
use super::timers::{TimerOwner, Timers};
use crate::publish::end_reason::EndReason;
use crate::publish::mailbox::{Event, OnAirCause, OnAirChanged};
use crate::publish::record::{PublishRecord, StreamId};
use crate::session::Session;
use crate::session::effect::Effect;
use crate::session::rtmp_push::RtmpPush;

/// Sessions and workers that a change of a broadcast concerns.
#[derive(Debug, Default)]
pub(super) struct Woken {
    /// Subscribers on this worker whose queue grew or ended.
    pub(super) readers: Vec<SessionKey>,
    /// Other workers at the other end of a relay that has something new.
    pub(super) workers: Vec<usize>,
}

/// A subscriber's queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Reading {
    pub(super) stream: StreamKey,
    pub(super) subscriber: SubscriberKey,
}

/// A session and its relations to streams, questions and timers.
#[derive(Default)]
pub(super) struct Entry {
    /// Taken out while its turn runs, so that nothing of it remains after a panic.
    pub(super) session: Option<Session>,
    /// The stream that it publishes.
    pub(super) publishes: Option<StreamKey>,
    /// The stream that it pushes.
    pub(super) pushes: Option<StreamKey>,
    /// Its queue on the stream that it reads.
    pub(super) reads: Option<Reading>,
    /// Its pending question to the gateway.
    pub(super) question: Option<u64>,
    /// When its waiting frames are no longer held back: audio waits for the next video frame, a preview's frames for
    /// a larger batch.
    pub(super) held_until: Option<Instant>,
    pub(super) least_rate: LeastRate,
    /// Whether its deadline may have changed since the timer was armed.
    is_touched: bool,
    /// Whether datagrams have arrived since its last `settle`.
    pub(super) is_unsettled: bool,
}

impl Entry {
    /// Holds its waiting frames back until `hold` has passed since the first such call; without `hold` no longer.
    /// Returns whether they are held.
    pub(super) fn hold_back(&mut self, hold: Option<Duration>, now: Instant) -> bool {
        let until = hold.map(|hold| self.held_until.unwrap_or(now + hold));
        self.held_until = until.filter(|until| now < *until);
        self.held_until.is_some()
    }
}

/// What a broadcast may reach while it handles something.
pub(super) struct Sessions {
    pub(super) context: Context,
    pub(super) now: Instant,
    /// The streams by the publishes that they belong to, or belonged to until the last takeover.
    pub(super) by_id: FxHashMap<StreamId, StreamKey>,
    pub(super) timers: Timers,
    pub(super) woken: Woken,
    pub(super) actions: Vec<Action>,
    pub(super) is_stopping: bool,
    /// Effects of turns that a broadcast ran, oldest first: carried out when it is done.
    deferred: VecDeque<(SessionKey, Effect)>,
    /// Pulls whose names were taken by publishes.
    replaced: Vec<Arc<PublishRecord>>,
    entries: SlotMap<SessionKey, Entry>,
    touched: Vec<SessionKey>,
    drawn: u64,
    hasher: RandomState,
}

impl Sessions {
    /// None.
    pub(super) fn new(context: Context, now: Instant) -> Self {
        Self {
            context,
            now,
            by_id: FxHashMap::default(),
            timers: Timers::default(),
            woken: Woken::default(),
            actions: Vec::new(),
            is_stopping: false,
            deferred: VecDeque::new(),
            replaced: Vec::new(),
            entries: SlotMap::with_key(),
            touched: Vec::new(),
            drawn: 0,
            hasher: RandomState::new(),
        }
    }

    pub(super) fn insert(&mut self, session: Session) -> SessionKey {
        let key = self.entries.insert(Entry { session: Some(session), ..Entry::default() });
        self.touch(key);
        key
    }

    pub(super) fn remove(&mut self, key: SessionKey) -> Option<Entry> {
        self.timers.disarm(TimerOwner::Session(key));
        self.entries.remove(key)
    }

    /// Runs a session's turn. Its effects are the caller's to carry out. False: it panicked, and is gone.
    pub(super) fn run(
        &mut self,
        key: SessionKey,
        effects: &mut Vec<Effect>,
        act: impl FnOnce(&mut Session, Instant, &mut Vec<Effect>),
    ) -> bool {
        let taken = self.get_mut(key).and_then(|entry| entry.session.take());
        let Some(mut session) = taken else { return true };
        let now = self.now;
        let outcome = catch_unwind(AssertUnwindSafe(|| act(&mut session, now, effects)));
        if outcome.is_ok()
            && let Some(entry) = self.entries.get_mut(key)
        {
            entry.session = Some(session);
            self.touch(key);
        }
        outcome.is_ok()
    }

    /// The same; its output for the socket then waits to be written.
    pub(super) fn run_awake(
        &mut self,
        key: SessionKey,
        effects: &mut Vec<Effect>,
        act: impl FnOnce(&mut Session, Instant, &mut Vec<Effect>),
    ) -> bool {
        let mut is_awake = false;
        let is_sound = self.run(key, effects, |session, now, effects| {
            act(session, now, effects);
            let has_output = session.output_mut().is_some_and(|output| !output.is_empty());
            is_awake = has_output || session.is_closing();
        });
        if is_awake {
            self.woken.readers.push(key);
        }
        is_sound
    }

    /// Runs a turn of a push on behalf of its broadcast, and keeps the effects until the broadcast is done.
    pub(super) fn turn_push(
        &mut self,
        key: SessionKey,
        act: impl FnOnce(&mut RtmpPush, Instant, &mut Vec<Effect>),
    ) {
        self.turn(key, |session, now, effects| {
            if let Session::Push(push) = session {
                act(push, now, effects);
            }
        });
    }

    /// The same for a session of any kind.
    pub(super) fn turn(
        &mut self,
        key: SessionKey,
        act: impl FnOnce(&mut Session, Instant, &mut Vec<Effect>),
    ) {
        let mut effects = Vec::new();
        if !self.run_awake(key, &mut effects, act) {
            effects = vec![Effect::Close(EndReason::InternalError)];
        }
        self.deferred.extend(effects.into_iter().map(|effect| (key, effect)));
    }

    /// Whether broadcasts have left something to carry out.
    pub(super) fn has_deferred(&self) -> bool {
        !self.deferred.is_empty() || !self.replaced.is_empty()
    }

    /// The next effect of the turns that broadcasts ran.
    pub(super) fn poll_deferred(&mut self) -> Option<(SessionKey, Effect)> {
        self.deferred.pop_front()
    }

    /// A publish has this name from now on.
    pub(super) fn enter_name(&mut self, name: &[u8], record: &Arc<PublishRecord>) {
        self.replaced.extend(self.context.publishes.enter_name(name, record));
    }

    /// The next pull whose name a publish has taken.
    pub(super) fn poll_replaced(&mut self) -> Option<Arc<PublishRecord>> {
        self.replaced.pop()
    }

    /// Reports whether a publish is on air or stands by.
    pub(super) fn report_on_air(
        &self,
        record: &PublishRecord,
        is_on_air: bool,
        other: Option<u64>,
        cause: OnAirCause,
    ) {
        let changed = OnAirChanged { client_id: record.client_id, is_on_air, other, cause };
        self.context.publishes.mailbox().put(Event::OnAirChanged(changed));
    }

    /// Notes that the session's deadline may have changed.
    pub(super) fn touch(&mut self, key: SessionKey) {
        if let Some(entry) = self.entries.get_mut(key)
            && !entry.is_touched
        {
            entry.is_touched = true;
            self.touched.push(key);
        }
    }

    /// When the first session or stream has something to do.
    pub(super) fn poll_timeout(&mut self) -> Option<Instant> {
        for key in std::mem::take(&mut self.touched) {
            let Some(entry) = self.entries.get_mut(key) else { continue };
            entry.is_touched = false;
            let deadline = entry.session.as_ref().and_then(Session::deadline);
            if let Some(at) = deadline.into_iter().chain(entry.held_until).min() {
                self.timers.arm(TimerOwner::Session(key), at);
            }
        }
        self.timers.next()
    }

    /// A number that this worker has not used yet, and no other worker uses.
    pub(super) const fn new_handle(&mut self) -> u64 {
        self.drawn += 1;
        self.drawn * self.context.workers as u64 + self.context.worker as u64
    }

    /// 64 unpredictable bits.
    pub(super) fn random(&mut self) -> u64 {
        self.drawn += 1;
        let mut hasher = self.hasher.build_hasher();
        hasher.write_u64(self.drawn);
        hasher.finish()
    }

    /// Drops all sessions. The generations of keys and the numbers of handles continue: old ones refer to nothing.
    pub(super) fn clear(&mut self) {
        self.entries.clear();
        self.by_id.clear();
        self.timers = Timers::default();
        self.woken.readers.clear();
        self.deferred.clear();
        self.replaced.clear();
        self.touched.clear();
    }

    pub(super) fn get(&self, key: SessionKey) -> Option<&Entry> {
        self.entries.get(key)
    }

    pub(super) fn get_mut(&mut self, key: SessionKey) -> Option<&mut Entry> {
        self.entries.get_mut(key)
    }

    pub(super) fn session(&self, key: SessionKey) -> Option<&Session> {
        self.get(key)?.session.as_ref()
    }

    pub(super) fn session_mut(&mut self, key: SessionKey) -> Option<&mut Session> {
        self.get_mut(key)?.session.as_mut()
    }

    pub(super) fn contains_key(&self, key: SessionKey) -> bool {
        self.entries.contains_key(key)
    }

    pub(super) fn keys(&self) -> impl Iterator<Item = SessionKey> {
        self.entries.keys()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }
}
