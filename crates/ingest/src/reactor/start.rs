//! Opens everything before any thread runs, so that a port in use is reported immediately.

use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Instant;

use headgate_transcode::Encoders;
use mio::{Interest, Poll, Waker};

use super::accept::{Acceptor, RtmpPorts};
use super::config::{IngestConfig, RtmpTls, StartError};
use super::connection_limits::{ConnectionLimits, descriptor_limit};
use super::cycle::Reactor;
use super::media_tcp::{MediaTcp, open_media_ports};
use super::networks::Networks;
use super::shared::{Inbox, Shared};
use super::tls::TlsContext;
use super::tokens::{MEDIA, MEDIA_LISTENER, WAKER};
use super::worker_load::WorkerLoad;
use crate::publish::registry::Publishes;
use crate::switchboard::{Context, Switchboard};
use crate::transcoding::{Transcoders, TranscodingThreads};

/// The core, ready to run.
pub(crate) struct Opened {
    pub(crate) shared: Arc<Shared>,
    pub(crate) rtmp: RtmpPorts,
    pub(crate) media_ports: Vec<u16>,
    /// Size in bytes of each media port's receive buffer when that is less than was requested.
    pub(crate) small_receive_buffer: Option<usize>,
    pub(crate) reactors: Vec<Reactor>,
    pub(crate) transcoding: TranscodingThreads,
}

/// Opens all workers of the process; the first one accepts connections for all.
pub(crate) fn open(config: &IngestConfig, publishes: Arc<Publishes>) -> Result<Opened, StartError> {
    let (acceptor, rtmp) = Acceptor::open(config)?;
    let tls = TlsContext::new(config.upstream_ca_pem.clone());
    if let Some(RtmpTls { cert_pem, key_pem, .. }) = &config.rtmp_tls {
        tls.set_certificate(cert_pem, key_pem)?;
    }
    let mut parts = Vec::new();
    let mut inboxes = Vec::new();
    let mut media_ports = Vec::new();
    let mut small_receive_buffer = None;
    for index in 0..config.workers.max(1) {
        let poll = Poll::new()?;
        let (mut udp, mut tcp) = open_media_ports(config, index)?;
        poll.registry().register(&mut udp.socket, MEDIA, Interest::READABLE)?;
        poll.registry().register(&mut tcp, MEDIA_LISTENER, Interest::READABLE)?;
        media_ports.push(udp.port()?);
        small_receive_buffer = udp.small_receive_buffer().or(small_receive_buffer);
        let waker = Waker::new(poll.registry(), WAKER)?;
        let (commands, receiver) = channel();
        inboxes.push(Inbox::new(commands, waker));
        parts.push((poll, udp, tcp, receiver));
    }
    let (transcoders, transcoding) = Transcoders::new(config.audio_workers, Encoders::default());
    let transcoders = Arc::new(transcoders);
    let connections = ConnectionLimits::new(
        config.rtmp_connections,
        config.rtmp_connections_per_address,
        descriptor_limit(),
    );
    let shared = Arc::new(Shared {
        publishes: publishes.clone(),
        transcoders: transcoders.clone(),
        tls,
        connections,
        trusted_proxies: Networks::parse(&config.trusted_proxies)?,
        loads: inboxes.iter().map(|_| WorkerLoad::new(Instant::now())).collect(),
        inboxes,
    });
    let mut acceptor = Some(acceptor);
    let mut reactors = Vec::new();
    for (worker, (poll, udp, tcp, commands)) in parts.into_iter().enumerate() {
        let context = Context {
            worker,
            workers: config.workers.max(1),
            caches_gop: config.caches_gop,
            pushes_silence: config.pushes_silence,
            captures: config.captures,
            publishes: publishes.clone(),
            transcoders: transcoders.clone(),
        };
        let switchboard = Switchboard::new(context, Instant::now());
        let mut acceptor = acceptor.take();
        if let Some(acceptor) = acceptor.as_mut().filter(|_| config.accepts) {
            acceptor.start(poll.registry())?;
        }
        reactors.push(Reactor::new(
            worker,
            poll,
            shared.clone(),
            commands,
            switchboard,
            udp,
            MediaTcp::new(tcp),
            acceptor,
        ));
    }
    Ok(Opened { shared, rtmp, media_ports, small_receive_buffer, reactors, transcoding })
}
