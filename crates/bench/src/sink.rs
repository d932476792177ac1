//! The upstream that a server under test pushes to: accepts every publish and hands out its media.

use std::io;
use std::net::SocketAddr;
use std::time::Instant;

use headgate_rtmp::{Limits, MediaMessage, ServerConfig, ServerEvent, ServerSession};
use mio::net::TcpListener;
use mio::{Interest, Registry, Token};

use crate::connection::{Connection, Session};

const LISTENER: Token = Token(usize::MAX);
/// Tokens from here on belong to the sink.
const FIRST: usize = 1 << 32;

/// What the sink announces that it accepts besides plain FLV.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Takes {
    /// What our RTMP server accepts, including Opus.
    Everything,
    /// No Opus: the server under test must transcode.
    NoOpus,
}

/// The server's pushes, in the order of connecting.
pub(crate) struct Sink {
    listener: TcpListener,
    takes: Takes,
    pushes: Vec<Option<Connection>>,
}

impl Sink {
    pub(crate) fn open(listen: SocketAddr, takes: Takes, registry: &Registry) -> io::Result<Self> {
        let mut listener = TcpListener::bind(listen)?;
        registry.register(&mut listener, LISTENER, Interest::READABLE)?;
        Ok(Self { listener, takes, pushes: Vec::new() })
    }

    /// Whether a token belongs here.
    pub(crate) const fn owns(token: Token) -> bool {
        token.0 >= FIRST
    }

    /// Handles readiness; `hear` receives each message with the number of its push.
    pub(crate) fn serve(
        &mut self,
        token: Token,
        registry: &Registry,
        buffer: &mut [u8],
        mut hear: impl FnMut(usize, &MediaMessage),
    ) -> io::Result<()> {
        if token == LISTENER {
            return self.accept(registry);
        }
        let at = token.0 - FIRST;
        let Some(slot) = self.pushes.get_mut(at) else { return Ok(()) };
        let Some(push) = slot else { return Ok(()) };
        let is_open = push.receive(buffer);
        if let Session::Sink(session) = &mut push.session {
            while let Some(event) = session.poll_event() {
                match event {
                    ServerEvent::PublishRequested(_) => session.allow(),
                    ServerEvent::Media(message) => hear(at, &message),
                    ServerEvent::PlayRequested(_)
                    | ServerEvent::Boundary { .. }
                    | ServerEvent::Dropped(_)
                    | ServerEvent::PublishEnded
                    | ServerEvent::PlayEnded
                    | ServerEvent::AppRefused
                    | ServerEvent::Close => {}
                }
            }
        }
        push.flush();
        if !is_open {
            *slot = None;
        }
        Ok(())
    }

    fn accept(&mut self, registry: &Registry) -> io::Result<()> {
        while let Ok((mut socket, _)) = self.listener.accept() {
            socket.set_nodelay(true)?;
            let token = Token(FIRST + self.pushes.len());
            let interest = Interest::READABLE | Interest::WRITABLE;
            registry.register(&mut socket, token, interest)?;
            // The bench reads without limits: it measures the service and needs no fairness itself.
            let limits = Limits { turn_work: u32::MAX, ..Limits::default() };
            let config = ServerConfig { limits, ..ServerConfig::default() };
            let session = Box::new(ServerSession::new(config, Instant::now()));
            let connection = Connection::new(socket, Session::Sink(session));
            self.pushes.push(Some(match self.takes {
                Takes::Everything => connection,
                Takes::NoOpus => connection.hiding_opus(),
            }));
        }
        Ok(())
    }
}
