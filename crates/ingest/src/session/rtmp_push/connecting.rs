//! Connecting to an upstream: its addresses from the gateway, then one connection attempt per address.

use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use headgate_rtmp::{ClientConfig, ClientRole, ClientSession, Limits, OUR_FOUR_CCS};

use super::{Effect, Failure, RtmpPush, State};

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
        let (client_id, source) = (self.client_id, self.record.upstream.source);
        effects.push(Effect::Resolve { client_id, source, host, port });
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

    pub(super) fn connect_next(&mut self, now: Instant, effects: &mut Vec<Effect>) {
        let Some(address) = self.addresses.pop_front() else {
            self.fail(&Failure::lost("cannot connect"), now, effects);
            return;
        };
        self.address = Some(address);
        self.state = State::Connecting { until: now + CONNECT_LIMIT };
        let target = self.target();
        let tls_host = target.is_tls.then(|| target.host.clone());
        effects.push(Effect::Connect { address: SocketAddr::new(address, target.port), tls_host });
    }

    /// The connection could not be established; `fault` is set if no other address would help, and says why.
    pub(crate) fn handle_connect_failed(
        &mut self,
        fault: Option<&str>,
        now: Instant,
        effects: &mut Vec<Effect>,
    ) {
        match fault {
            _ if !matches!(self.state, State::Connecting { .. }) => {}
            Some(fault) => self.fail(&Failure::lost(fault), now, effects),
            None => self.connect_next(now, effects),
        }
    }

    /// The TCP connection is established: RTMP begins.
    pub(crate) fn handle_connected(&mut self, now: Instant) {
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
        self.state = State::Talking { session, ready_since: None };
    }
}
