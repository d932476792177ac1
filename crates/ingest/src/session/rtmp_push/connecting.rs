//! Connecting to an upstream: its addresses from the gateway, then one connection attempt per address.

use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use headgate_rtmp::{ClientConfig, ClientRole, ClientSession, Limits, OUR_FOUR_CCS};

use super::failure::Failure;
use super::{Effect, RtmpPush, State};
use crate::publish::upstream_cause::UpstreamCause;

/// Time limit for the gateway to resolve a name.
const ADDRESS_LIMIT: Duration = Duration::from_secs(10);
/// Time limit of the TCP connect, per address.
const CONNECT_LIMIT: Duration = Duration::from_secs(5);

impl RtmpPush {
    /// Requests the upstream's addresses from the gateway: DNS may have changed, and the guard must check again.
    pub(super) fn resolve(&mut self, now: Instant, effects: &mut Vec<Effect>) {
        let target = self.target();
        let (host, port) = (target.host.clone(), target.port);
        self.record.set_connecting(now);
        self.state = State::Resolving { until: now + ADDRESS_LIMIT };
        self.address_cause = UpstreamCause::Dns;
        let (client_id, source) = (self.client_id, self.record.upstream.source);
        effects.push(Effect::Resolve { client_id, source, host, port });
        self.advance_test(now, effects);
    }

    /// The gateway's answer to [`Effect::Resolve`].
    pub(crate) fn handle_addresses(
        &mut self,
        addresses: Vec<IpAddr>,
        now: Instant,
        effects: &mut Vec<Effect>,
    ) {
        if matches!(self.state, State::Resolving { .. }) {
            self.addresses = addresses.into();
            self.connect_next(now, effects);
        }
    }

    /// The gateway's other answer to [`Effect::Resolve`]: it allows no connection to the host's addresses.
    pub(crate) fn handle_forbidden(&mut self, now: Instant, effects: &mut Vec<Effect>) {
        if matches!(self.state, State::Resolving { .. }) {
            let words = "the address must be publicly reachable";
            self.fail(&Failure::lost(UpstreamCause::AddressForbidden, words), now, effects);
        }
    }

    pub(super) fn connect_next(&mut self, now: Instant, effects: &mut Vec<Effect>) {
        let Some(address) = self.addresses.pop_front() else {
            let words = match self.address_cause {
                UpstreamCause::Dns => "the name has no address",
                UpstreamCause::ConnectionRefused => "the connection was refused",
                UpstreamCause::TimedOut => "no connection in time",
                _ => "cannot connect",
            };
            self.fail(&Failure::lost(self.address_cause, words), now, effects);
            return;
        };
        self.address = Some(address);
        self.state = State::Connecting { until: now + CONNECT_LIMIT };
        let target = self.target();
        let tls_host = target.is_tls.then(|| target.host.clone());
        effects.push(Effect::Connect { address: SocketAddr::new(address, target.port), tls_host });
        self.advance_test(now, effects);
    }

    /// The connection could not be established; `fault` is set if no other address would help, and says why.
    pub(crate) fn handle_connect_failed(
        &mut self,
        cause: UpstreamCause,
        fault: Option<&str>,
        now: Instant,
        effects: &mut Vec<Effect>,
    ) {
        match fault {
            _ if !matches!(self.state, State::Connecting { .. }) => {}
            Some(fault) => self.fail(&Failure::lost(cause, fault), now, effects),
            None => {
                self.address_cause = cause;
                self.connect_next(now, effects);
            }
        }
    }

    /// The handshake of TLS is complete.
    pub(crate) fn handle_secured(&mut self, now: Instant, effects: &mut Vec<Effect>) {
        if let State::Talking { is_secured, .. } = &mut self.state {
            *is_secured = true;
            self.advance_test(now, effects);
        }
    }

    /// The TCP connection is established: RTMP begins.
    pub(crate) fn handle_connected(&mut self, now: Instant, effects: &mut Vec<Effect>) {
        if !matches!(self.state, State::Connecting { .. }) {
            return;
        }
        let seed = self.random().to_ne_bytes();
        let target = self.target();
        let config = ClientConfig {
            role: ClientRole::Publish,
            app: target.app.clone(),
            tc_url: target.tc_url(),
            name: target.name.clone().into_bytes(),
            credentials: target.credentials.clone(),
            arguments: self.arguments.clone(),
            seed,
            limits: Limits::default(),
            four_cc_list: OUR_FOUR_CCS.map(str::to_owned).to_vec(),
            connect_info: self.connect_info.clone(),
        };
        let session = Box::new(ClientSession::new(config, now));
        self.last_progress = now;
        let is_secured = !self.target().is_tls;
        self.state = State::Talking { session, is_secured, ready_since: None };
        self.advance_test(now, effects);
    }
}
