//! Two publishes of one name: one is on air, the other stands by with its newest GOP and takes over at its own
//! keyframe, on the same connections to upstreams and players. The gateway decides which publish may do so and orders
//! switches.

use std::time::Duration;

use headgate_media::Frame;

use super::join_point::is_header;
use super::message::Opening;
use super::queue::is_video;
use super::source::{Ending, LocalSource, Source};
use super::stage::{Publication, Stage, Standby};
use super::{SessionKey, StreamKey, Switchboard};
use crate::publish::mailbox::{Event, OnAirCause, OnAirChanged};
use crate::publish::record::StreamId;

/// If the publish on air has sent no media for this long, a standby that sent media all the time takes over, even
/// though the other one is still connected.
const SILENCE_LIMIT: Duration = Duration::from_secs(3);
/// A GOP whose newest frame is older than this is not used at a takeover: the next keyframe is awaited.
const FRESH_LIMIT: Duration = Duration::from_secs(1);
/// How long a stream stays without media if a publish that took over is lost before its first frame.
const FIRST_FRAME_LIMIT: Duration = Duration::from_secs(10);

impl Switchboard {
    /// The other publish of the name that a new publish is opened beside, if it still runs.
    pub(super) fn other_of(&self, opening: &Opening) -> Option<StreamKey> {
        let key = self.stream(opening.beside?)?;
        let local = self.hub.stream(key)?.source.local()?;
        (!local.stage.is_draining()).then_some(key)
    }

    /// Opens a publish beside another one: it stands by if that one is on air; otherwise it goes on air itself.
    pub(super) fn open_beside(
        &mut self,
        publisher: SessionKey,
        name: Vec<u8>,
        opening: Opening,
        other: StreamKey,
    ) -> StreamKey {
        let key = if self.stands_by(other) {
            // Its upstreams are those of the publish that ended before it.
            opening.guard.record().upstreams.clear();
            self.open_anew(publisher, name, opening)
        } else {
            self.open_standby(name, opening.publication(publisher).0)
        };
        self.pair(other, key);
        if self.local(other).is_some_and(|local| local.stage.is_held()) {
            // The publish on air was lost while the message was in flight.
            self.hand_over(key, OnAirCause::Lost);
            return other;
        }
        key
    }

    /// Nobody but previews gets the frames of a publish that stands by; its newest GOP is kept in any case.
    fn open_standby(&mut self, name: Vec<u8>, publication: Publication) -> StreamKey {
        let (now, publisher) = (self.now, publication.publisher);
        let record = publication.guard.record().clone();
        let stage = Stage::Standby(publication, Standby::new(now));
        let source = Source::Local(Box::new(LocalSource::new(name, stage, now)));
        let key = self.hub.open(record.clone(), source, true);
        self.by_id.insert(record.stream, key);
        record.set_on_air(false);
        self.set_published(publisher, key);
        key
    }

    fn pair(&mut self, one: StreamKey, other: StreamKey) {
        // A publish that is being replaced may still be paired.
        for former in [self.partner(one), self.partner(other)].into_iter().flatten() {
            if let Some(local) = self.local_mut(former) {
                local.partner = None;
            }
        }
        self.set_partners(one, other);
        if self.stands_by(other) {
            self.tell_on_air(other, self.client_id(one), OnAirCause::Began);
        }
    }

    fn set_partners(&mut self, one: StreamKey, other: StreamKey) {
        for (key, with) in [(one, other), (other, one)] {
            if let Some(local) = self.local_mut(key) {
                local.partner = Some(with);
            }
        }
    }

    /// A stream or a standby publish ends: the other publish of its name becomes single.
    pub(super) fn unpair(&mut self, key: StreamKey) {
        let partner = self.local_mut(key).and_then(|local| local.partner.take());
        if let Some(local) = partner.and_then(|partner| self.local_mut(partner)) {
            local.partner = None;
        }
    }

    /// Lets the standby take over from a publish that ends like this, if possible; returns whether it did.
    pub(super) fn hand_over_at_end(&mut self, key: StreamKey, ending: Ending) -> bool {
        let Some(partner) = self.partner(key) else { return false };
        let may_pass = ending.reason.passes_on() && !self.is_stopping;
        if self.stands_by(key) || !may_pass {
            return false;
        }
        let until = self.now + FIRST_FRAME_LIMIT;
        self.begin_hold(key, ending.reason, until);
        self.hand_over(partner, OnAirCause::Lost);
        true
    }

    /// A held stream had no successor in time: the standby takes over. Returns false if there is none.
    pub(super) fn hand_over_held(&mut self, key: StreamKey) -> bool {
        let partner = self.partner(key);
        if let Some(partner) = partner {
            self.hand_over(partner, OnAirCause::Lost);
        }
        partner.is_some()
    }

    /// The gateway orders this publish on air, now or at its next keyframe.
    pub(super) fn switch_to(&mut self, stream: StreamId) {
        let Some(key) = self.stream(stream) else { return };
        let has_partner = self.partner(key).is_some();
        let Some(standby) = self.local_mut(key).and_then(|local| local.stage.standby_mut()) else {
            // It is already on air. Cancel a pending switch to the other one.
            let partner = self.partner(key).and_then(|partner| self.local_mut(partner));
            if let Some(standby) = partner.and_then(|local| local.stage.standby_mut()) {
                standby.is_wanted = false;
            }
            return;
        };
        standby.is_wanted = true;
        if !has_partner {
            self.go_on_air(key);
        } else if self.is_ready(key) {
            self.hand_over(key, OnAirCause::Switched);
        } else {
            self.want_keyframe(key);
        }
    }

    /// Called after a publisher's frames: a standby that should take over does so as soon as it can.
    pub(super) fn settle_standby(&mut self, key: StreamKey) {
        let now = self.now;
        let Some(local) = self.local_mut(key) else { return };
        let partner = local.partner;
        let Some(standby) = local.stage.standby_mut() else { return };
        let (is_steady, is_wanted) = (standby.note_frame(now), standby.is_wanted);
        let cause = if is_wanted {
            OnAirCause::Switched
        } else if is_steady && partner.is_some_and(|partner| self.is_silent(partner)) {
            OnAirCause::Silent
        } else {
            return;
        };
        if partner.is_none() {
            // The publish on air ended before this one could take over.
            self.go_on_air(key);
        } else if self.is_ready(key) {
            self.hand_over(key, cause);
        } else {
            self.want_keyframe(key);
        }
    }

    /// Subscribers name a stream by the id that it had when they joined, which may have changed hands: never return a
    /// standby.
    pub(super) fn read_stream(&self, id: StreamId) -> Option<StreamKey> {
        let key = self.stream(id)?;
        if self.stands_by(key) { self.partner(key) } else { Some(key) }
    }

    fn is_silent(&self, key: StreamKey) -> bool {
        let Some(local) = self.local(key) else {
            return false;
        };
        let newest = local.timeline.newest_at().map_or(local.since, |at| at.max(local.since));
        !local.stage.is_held() && self.now >= newest + SILENCE_LIMIT
    }

    /// Whether it has a recent GOP to begin with, or no video.
    fn is_ready(&self, key: StreamKey) -> bool {
        let local = self.local(key);
        let newest = local.and_then(|local| local.timeline.newest_at());
        newest.is_some_and(|at| self.now <= at + FRESH_LIMIT) && self.hub.can_begin(key)
    }

    /// Puts a standby on air when nothing else is: its name is live from then on.
    fn go_on_air(&mut self, key: StreamKey) {
        let (now, caches_gop) = (self.now, self.context.caches_gop);
        let Some(local) = self.local_mut(key) else { return };
        local.stage.go_on_air(now);
        local.since = now;
        let connect_info = local.stage.running().map(|of| of.connect_info.clone());
        let (name, connect_info) = (local.name.clone(), connect_info.unwrap_or_default());
        let Some(record) = self.hub.stream(key).map(|live| live.record.clone()) else { return };
        self.hub.set_caches_gop(key, caches_gop);
        record.set_on_air(true);
        let replaced = self.context.publishes.enter_name(&name, &record);
        let upstreams = record.upstreams.take();
        self.tell_on_air(key, None, OnAirCause::Switched);
        self.open_pushes(key, upstreams, &connect_info);
        if let Some(pull) = replaced {
            self.end_pull(&pull);
        }
    }

    /// The standby `to` takes over the stream of its partner, which itself goes on standby if it still runs.
    fn hand_over(&mut self, to: StreamKey, cause: OnAirCause) {
        let now = self.now;
        let Some(on_air) = self.partner(to) else { return };
        self.close_transcoder(to);
        let kept = if self.is_ready(to) { self.hub.kept(to) } else { self.hub.kept_headers(to) };
        let Some(closed) = self.hub.close(to, &mut self.woken) else { return };
        self.by_id.remove(&closed.record.stream);
        let Source::Local(next) = closed.source else { return };
        let Stage::Standby(successor, _) = next.stage else { return };
        self.close_transcoder(on_air);
        let headers = self.hub.kept_headers(on_air);
        let Some(live) = self.hub.stream_mut(on_air) else { return };
        let (former_id, record) = (live.record.client_id, closed.record);
        let Some(local) = live.source.local_mut() else { return };
        let publisher = successor.publisher;
        let former = local.stage.take_over(successor, now + FIRST_FRAME_LIMIT);
        (local.since, local.partner) = (now, None);
        let (name, pushes) = (local.name.clone(), local.pushes.clone());
        self.succeed(on_air, &record);
        record.set_on_air(true);
        self.context.publishes.enter_name(&name, &record);
        self.set_published(publisher, on_air);
        for push in pushes {
            self.turn_push(push, |push, _, _| push.set_client_id(record.client_id));
        }
        self.tell_on_air(on_air, Some(former_id), cause);
        if let Some(former) = former {
            let key = self.open_standby(name, former);
            self.set_partners(on_air, key);
            for header in &headers {
                self.hub.publish(key, header, &mut self.woken);
            }
            self.tell_on_air(key, Some(record.client_id), cause);
        }
        self.begin_with(on_air, &kept);
    }

    /// Passes on the cached frames of a publish that has just taken over.
    fn begin_with(&mut self, key: StreamKey, kept: &[Frame]) {
        let video = || kept.iter().filter(|frame| is_video(frame.kind));
        if let (Some(first), Some(last)) = (video().next(), video().next_back()) {
            let (first, newest, frames) = (first.timestamp, last.timestamp, video().count());
            let headers = kept.iter().filter(|frame| is_header(frame.kind));
            for header in headers {
                self.feed(key, header);
            }
            self.splice_group(key, first, newest, frames);
            for frame in kept.iter().filter(|frame| !is_header(frame.kind)) {
                self.feed(key, frame);
            }
        } else {
            // No cached video: begin with the next frames.
            for header in kept.iter().filter(|frame| is_header(frame.kind)) {
                self.feed(key, header);
            }
            self.want_keyframe(key);
        }
    }

    /// Notes that the session publishes this stream.
    pub(super) fn set_published(&mut self, publisher: SessionKey, stream: StreamKey) {
        if let Some(entry) = self.sessions.get_mut(publisher) {
            entry.publishes = Some(stream);
        }
    }

    pub(super) fn tell_on_air(&self, key: StreamKey, other: Option<u64>, cause: OnAirCause) {
        let Some(client_id) = self.client_id(key) else { return };
        let is_on_air = !self.stands_by(key);
        let changed = OnAirChanged { client_id, is_on_air, other, cause };
        self.context.publishes.mailbox().put(Event::OnAirChanged(changed));
    }

    fn client_id(&self, key: StreamKey) -> Option<u64> {
        self.hub.stream(key).map(|live| live.record.client_id)
    }

    fn partner(&self, key: StreamKey) -> Option<StreamKey> {
        self.hub.stream(key)?.source.local()?.partner
    }

    /// Whether the publish of this stream is on standby.
    pub(super) fn stands_by(&self, key: StreamKey) -> bool {
        self.local(key).is_some_and(|local| local.stage.standby().is_some())
    }
}
