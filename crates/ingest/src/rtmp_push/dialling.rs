//! The way to an upstream: its address from the gateway, then the connection, address by address.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use headgate_rtmp::{ClientConfig, ClientRole, ClientSession, Limits, OUR_FOUR_CCS};
use mio::net::TcpStream;

use super::{Failure, Push, State};
use crate::link::Link;
use crate::mailbox::{AddressWanted, Event};
use crate::seat::{After, Entry, Ready};
use crate::worker::Worker;

/// The gateway resolves a name within this.
const ADDRESS_LIMIT: Duration = Duration::from_secs(10);
/// TCP connect, per address.
const CONNECT_LIMIT: Duration = Duration::from_secs(5);

impl Push {
    /// Asks the gateway where the upstream is: the name may have moved, and the guard decides anew.
    pub(super) fn ask_address(&mut self, worker: &mut Worker, key: usize) -> After {
        let push = worker.new_question(key);
        let target = self.target();
        let (client_id, host, port) = (self.client_id, target.host.clone(), target.port);
        let source = self.record.upstream.source;
        let wanted = AddressWanted { push, client_id, host, port, source };
        self.record.set_connecting();
        worker.shared.mailbox.put(Event::AddressWanted(wanted));
        self.state = State::Resolving { push, until: worker.now + ADDRESS_LIMIT };
        After::Stay
    }

    pub(super) fn connect_next(&mut self, worker: &mut Worker, key: usize) -> After {
        while let Some(address) = self.addresses.pop_front() {
            let target = self.target();
            let tls = match target.is_tls.then(|| worker.shared.tls.connect(&target.host)) {
                None => None,
                Some(Ok(tls)) => Some(tls),
                Some(Err(error)) => {
                    return self.fail(worker, key, &Failure::lost(format!("TLS: {error}")));
                }
            };
            let Ok(mut socket) = TcpStream::connect(SocketAddr::new(address, target.port)) else {
                continue;
            };
            if worker.watch(key, &mut socket).is_ok() {
                self.address = Some(address);
                let link = Link::new(socket, tls, worker.now);
                self.state = State::Connecting { link, until: worker.now + CONNECT_LIMIT };
                return After::Stay;
            }
        }
        self.fail(worker, key, &Failure::lost("cannot connect"))
    }

    pub(super) fn finish_connect(&mut self, worker: &mut Worker, key: usize) -> After {
        let State::Connecting { link, .. } = &mut self.state else { return After::Stay };
        if !matches!(link.socket.take_error(), Ok(None)) || link.socket.peer_addr().is_err() {
            return self.connect_next(worker, key);
        }
        // Media is gathered by us, not by the kernel; without it only latency suffers.
        let _ = link.socket.set_nodelay(true);
        let target = self.target();
        let config = ClientConfig {
            role: ClientRole::Publish,
            app: target.app.clone(),
            tc_url: target.tc_url(),
            name: target.name.clone().into_bytes(),
            credentials: target.credentials.clone(),
            arguments: self.arguments.clone(),
            seed: worker.random().to_ne_bytes(),
            limits: Limits::default(),
            four_cc_list: OUR_FOUR_CCS.map(str::to_owned).to_vec(),
            connect_info: self.connect_info.clone(),
        };
        let session = Box::new(ClientSession::new(config, worker.now));
        let connecting = std::mem::replace(&mut self.state, State::Pausing { until: worker.now });
        if let State::Connecting { link, .. } = connecting {
            self.state = State::Talking { link, session, ready_since: None };
        }
        match self.talk(worker, key, Ready::BOTH) {
            Ok(()) => After::Stay,
            Err(failure) => self.fail(worker, key, &failure),
        }
    }
}

impl Worker {
    /// The gateway's answer to [`AddressWanted`].
    pub(crate) fn dial(&mut self, push: u64, addresses: Vec<IpAddr>) {
        let Some(key) = self.questions.remove(&push) else { return };
        self.turn(key, |worker, key, entry| match entry {
            Entry::Push(asker) => match &asker.state {
                State::Resolving { push: asked, .. } if *asked == push => {
                    asker.addresses = addresses.into();
                    asker.connect_next(worker, key)
                }
                State::Resolving { .. }
                | State::Connecting { .. }
                | State::Talking { .. }
                | State::Closing { .. }
                | State::Pausing { .. } => After::Stay,
            },
            Entry::Server(_) | Entry::Whip(_) => After::Stay,
        });
    }
}
