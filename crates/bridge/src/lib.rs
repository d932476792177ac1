//! The N-API bridge: names and transfer objects, without decisions of its own.
//!
//! The core only *wakes* JavaScript; JavaScript drains the mailbox. Every export catches panics, which would otherwise
//! abort the process.

pub mod accepting;
pub mod capture;
mod counters;
mod hold;
mod preview;
mod pull;
mod transfer;
mod whip;
mod whole;
mod workers;

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use headgate_ingest::{
    AddedUpstream, Denial, EndReason, Event, Ingest, IngestConfig, RtmpTls, Upstream,
    UpstreamSource, UpstreamUrl, validate_fragment,
};
use napi::bindgen_prelude::{AsyncTask, Either, Function, Result, Task};
use napi::threadsafe_function::ThreadsafeFunctionCallMode;
use napi::{Env, Error, Status};
use napi_derive::napi;

use counters::PublishCounters;
use hold::{HoldOptions, hold_of};
use pull::{PullCounters, PullOptions, pull_source};
use transfer::{MailboxItem, MediaOptions, PlayerCounters, SdpRefusal, UpstreamOptions, number};
use whip::WhipOffer;
use whole::whole;

/// The allocator of the core. Frames are allocated and freed in the order of their groups, for which the system's
/// allocator takes a sixth of a media worker's time. Node keeps its own.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The running media core.
#[napi]
pub struct MediaCore {
    pub(crate) ingest: Option<Arc<Ingest>>,
    drain: Arc<dyn Fn() -> Vec<Event> + Send + Sync>,
    rtmp_port: Option<u16>,
    media_ports: Vec<u16>,
}

/// Binds the ports, starts the workers and begins to serve. `wake` is called when there is something to drain, and once
/// at most until the next drain. Throws with a code of `StartError`.
#[napi(catch_unwind)]
pub fn start_media(
    options: MediaOptions,
    wake: Function<'_, (), ()>,
) -> Result<MediaCore, &'static str> {
    let config = config_of(options).map_err(with_code)?;
    // Weak: the core alone does not keep the process alive.
    let wake = wake.build_threadsafe_function().weak::<true>().build().map_err(with_code)?;
    let wake = Box::new(move || {
        wake.call((), ThreadsafeFunctionCallMode::NonBlocking);
    });
    let ingest = Ingest::start(&config, wake)
        .map_err(|error| Error::new(error.code(), error.to_string()))?;
    let (rtmp_port, drain) = (ingest.rtmp_port(), Arc::new(ingest.drainer()));
    let media_ports = ingest.media_ports().to_vec();
    Ok(MediaCore { ingest: Some(Arc::new(ingest)), drain, rtmp_port, media_ports })
}

fn config_of(options: MediaOptions) -> Result<IngestConfig> {
    let public_addresses =
        options.public_addresses.iter().map(|text| address(text)).collect::<Result<_>>()?;
    let rtmp_host = address(&options.rtmp_host)?;
    let rtmp_tls = match (options.rtmp_tls_port, options.rtmp_tls_cert, options.rtmp_tls_key) {
        (Some(port), Some(cert_pem), Some(key_pem)) => {
            let address = SocketAddr::new(rtmp_host, port);
            let socket = options.rtmp_tls_socket.map(accepting::inherited).transpose()?;
            Some(RtmpTls { address, socket, cert_pem, key_pem })
        }
        _ => None,
    };
    Ok(IngestConfig {
        rtmp_tls,
        upstream_ca_pem: options.upstream_ca,
        rtmp: options.rtmp_port.map(|port| SocketAddr::new(rtmp_host, port)),
        trusted_proxies: options.rtmp_trusted_proxies,
        rtmp_socket: options.rtmp_socket.map(accepting::inherited).transpose()?,
        accepts: options.accepts,
        media: SocketAddr::new(address(&options.media_host)?, options.media_port),
        public_addresses,
        audio_workers: options.audio_workers as usize,
        workers: options.workers as usize,
        caches_gop: options.gop_cache,
        pushes_silence: options.push_silence,
        captures: options.captures,
        rtmp_connections: options.rtmp_connections as usize,
        rtmp_connections_per_address: options.rtmp_connections_per_address as usize,
    })
}

/// Errors that are not a `StartError` are reported with its code `io`.
fn with_code(error: Error) -> Error<&'static str> {
    Error::new("io", error.reason.clone())
}

/// Parses and validates a WHIP offer before the customer is asked.
#[napi(catch_unwind)]
pub fn parse_offer(offer: String) -> Either<WhipOffer, SdpRefusal> {
    match headgate_ingest::parse_offer(&offer) {
        Ok(offer) => Either::A(WhipOffer(offer)),
        Err(error) => {
            let (code, status) = (error.code().into(), error.status());
            Either::B(SdpRefusal { code, status, detail: error.to_string() })
        }
    }
}

/// Creates our own offer, to receive audio, video or both; throws for neither.
#[napi(catch_unwind)]
pub fn own_offer(audio: bool, video: bool) -> Result<WhipOffer> {
    let offer = headgate_ingest::own_offer(audio, video);
    offer.map(WhipOffer).ok_or_else(|| Error::new(Status::InvalidArg, "neither audio nor video"))
}

/// Why a trickled fragment is invalid, independent of any session; null when it is valid.
#[napi(catch_unwind)]
pub fn refuse_fragment(fragment: String) -> Option<SdpRefusal> {
    let error = validate_fragment(&fragment).err()?;
    let (code, status) = whip::code_of(&error);
    Some(SdpRefusal { code: code.into(), status, detail: error.to_string() })
}

#[napi]
impl MediaCore {
    /// The RTMP port; null if only RTMP over TLS is served.
    #[napi(getter, catch_unwind)]
    pub fn rtmp_port(&self) -> Option<u16> {
        self.rtmp_port
    }

    /// The RTMP over TLS port; null without one.
    #[napi(getter, catch_unwind)]
    pub fn rtmp_tls_port(&self) -> Option<u16> {
        self.ingest.as_ref().and_then(|ingest| ingest.rtmp_tls_port())
    }

    /// Uses this certificate for connections from now on. Throws when it cannot be used.
    #[napi(catch_unwind)]
    pub fn set_certificate(&self, cert: String, key: String) -> Result<()> {
        let Some(ingest) = &self.ingest else { return Ok(()) };
        ingest
            .set_certificate(&cert, &key)
            .map_err(|error| Error::new(Status::InvalidArg, error.to_string()))
    }

    /// The UDP ports, one per media worker.
    #[napi(getter, catch_unwind)]
    pub fn media_ports(&self) -> Vec<u16> {
        self.media_ports.clone()
    }

    /// Number of running transcoders.
    #[napi(catch_unwind)]
    pub fn transcoders(&self) -> u32 {
        self.ingest.as_ref().map_or(0, |ingest| ingest.transcoders() as u32)
    }

    /// Number of transcoders that failed since the start.
    #[napi(catch_unwind)]
    pub fn failed_transcoders(&self) -> f64 {
        number(self.ingest.as_ref().map_or(0, |ingest| ingest.failed_transcoders()))
    }

    /// RTMP connections closed at once because a limit was reached, and upstreams not dialled for the same reason,
    /// since the start.
    #[napi(catch_unwind)]
    pub fn refused_connections(&self) -> f64 {
        number(self.ingest.as_ref().map_or(0, |ingest| ingest.refused_connections()))
    }

    /// Datagrams dropped by the kernel on the media ports, not read in time; null if the system does not report it.
    #[napi(catch_unwind)]
    pub fn kernel_drops(&self) -> Option<f64> {
        self.ingest.as_ref().and_then(|ingest| ingest.kernel_drops()).map(number)
    }

    /// Receive buffer of each media port in bytes, if the kernel granted less than requested; null otherwise.
    #[napi(getter, catch_unwind)]
    pub fn small_receive_buffer(&self) -> Option<f64> {
        let granted = self.ingest.as_ref().and_then(|ingest| ingest.small_receive_buffer());
        granted.map(|bytes| number(bytes as u64))
    }

    /// All items since the last drain, oldest first.
    #[napi(catch_unwind)]
    pub fn drain(&self) -> Vec<MailboxItem> {
        (self.drain)().into_iter().map(MailboxItem::from).collect()
    }

    /// Allows a publish request: it goes live. A publish_ended follows in any case.
    #[napi(catch_unwind)]
    pub fn allow(
        &self,
        request: f64,
        client_id: f64,
        upstreams: Vec<UpstreamOptions>,
        hold: HoldOptions,
    ) -> Result<()> {
        let upstreams = upstreams.iter().map(upstream).collect::<Result<_>>()?;
        if let Some(ingest) = &self.ingest {
            ingest.allow(whole(request)?, whole(client_id)?, upstreams, hold_of(&hold)?);
        }
        Ok(())
    }

    /// Puts one of two publishes with the same name on air.
    #[napi(catch_unwind)]
    pub fn switch_to(&self, client_id: f64) -> Result<()> {
        if let Some(ingest) = &self.ingest {
            ingest.switch_to(whole(client_id)?);
        }
        Ok(())
    }

    /// Ends the upstreams and players of a lost publish, if they are held.
    #[napi(catch_unwind)]
    pub fn release(&self, client_id: f64) -> Result<()> {
        if let Some(ingest) = &self.ingest {
            ingest.release(whole(client_id)?);
        }
        Ok(())
    }

    /// Allows a play request: the player reads a publish on this node. `counted` is false for a player that is another
    /// node. A play_ended follows in any case.
    #[napi(catch_unwind)]
    pub fn allow_play(&self, request: f64, counted: bool) -> Result<()> {
        if let Some(ingest) = &self.ingest {
            ingest.allow_play(whole(request)?, counted);
        }
        Ok(())
    }

    /// Allows a play request: the player reads a stream pulled from another node. A play_ended follows in any case, and
    /// a pull_ended for each pull.
    #[napi(catch_unwind)]
    pub fn pull(&self, request: f64, source: PullOptions) -> Result<()> {
        let (request, source) = (whole(request)?, pull_source(&source)?);
        if let Some(ingest) = &self.ingest {
            ingest.pull(request, source);
        }
        Ok(())
    }

    /// Answers source_wanted; none means that the stream is not published anywhere.
    #[napi(catch_unwind)]
    pub fn dial_pull(&self, pull: f64, source: Option<PullOptions>) -> Result<()> {
        let source = source.map(|source| pull_source(&source)).transpose()?;
        if let Some(ingest) = &self.ingest {
            ingest.dial_pull(whole(pull)?, source);
        }
        Ok(())
    }

    /// The running pulls, by name.
    #[napi(catch_unwind)]
    pub fn pulls(&self) -> Vec<PullCounters> {
        let pulls = self.ingest.as_ref().map(|ingest| ingest.pulls());
        pulls.into_iter().flatten().map(PullCounters::from).collect()
    }

    /// Denies a publish or play request, with code `bad_name` or `denied`.
    #[napi(catch_unwind)]
    pub fn deny(&self, request: f64, code: String, description: String) -> Result<()> {
        let denial = if code == "bad_name" { Denial::BadName } else { Denial::Denied };
        if let Some(ingest) = &self.ingest {
            ingest.deny(whole(request)?, denial, description);
        }
        Ok(())
    }

    /// Refuses a publish request here. A publisher that is known to follow is redirected, once, to one of these tcUrls;
    /// any other gets the description.
    #[napi(catch_unwind)]
    pub fn redirect(&self, request: f64, tc_urls: Vec<String>, description: String) -> Result<()> {
        if let Some(ingest) = &self.ingest {
            ingest.redirect(whole(request)?, tc_urls, description);
        }
        Ok(())
    }

    /// Answers address_wanted; no address means "not now". Invalid addresses are ignored.
    #[napi(catch_unwind)]
    pub fn dial(&self, push: f64, addresses: Vec<String>) -> Result<()> {
        let addresses = addresses.iter().filter_map(|address| address.parse().ok()).collect();
        if let Some(ingest) = &self.ingest {
            ingest.dial(whole(push)?, addresses);
        }
        Ok(())
    }

    /// Ends a running publish.
    #[napi(catch_unwind)]
    pub fn end(&self, client_id: f64, reason: String, description: String) -> Result<()> {
        let reason = match reason.as_str() {
            "rejected_by_customer" => EndReason::RejectedByCustomer,
            "replaced" => EndReason::Replaced,
            "kicked" => EndReason::Kicked,
            "unpublished" => EndReason::Unpublished,
            "broadcaster_left" => EndReason::BroadcasterLeft,
            _ => return Err(Error::new(Status::InvalidArg, "unknown reason")),
        };
        if let Some(ingest) = &self.ingest {
            ingest.end(whole(client_id)?, reason, description);
        }
        Ok(())
    }

    /// Counters of a running publish; null when it is not running.
    #[napi(catch_unwind)]
    pub fn snapshot(&self, client_id: f64) -> Result<Option<PublishCounters>> {
        let client_id = whole(client_id)?;
        let snapshot = self.ingest.as_ref().and_then(|ingest| ingest.snapshot(client_id));
        Ok(snapshot.map(|snapshot| PublishCounters::new(number(client_id), snapshot)))
    }

    /// The players of a running publish, oldest first; empty when it is not running.
    #[napi(catch_unwind)]
    pub fn players(&self, client_id: f64) -> Result<Vec<PlayerCounters>> {
        let client_id = whole(client_id)?;
        let players = self.ingest.as_ref().map(|ingest| ingest.players(client_id));
        Ok(players.into_iter().flatten().map(PlayerCounters::from).collect())
    }

    /// Pushes a running publish to an additional upstream. Returns added, not_running or too_many.
    #[napi(catch_unwind)]
    pub fn add_upstream(&self, client_id: f64, options: UpstreamOptions) -> Result<String> {
        let (client_id, upstream) = (whole(client_id)?, upstream(&options)?);
        let Some(ingest) = &self.ingest else { return Ok("not_running".into()) };
        let outcome = match ingest.add_upstream(client_id, upstream) {
            AddedUpstream::Added => "added",
            AddedUpstream::NotRunning => "not_running",
            AddedUpstream::TooMany => "too_many",
        };
        Ok(outcome.into())
    }

    /// Removes an upstream from a running publish. False when there is none with this id.
    #[napi(catch_unwind)]
    pub fn remove_upstream(&self, client_id: f64, id: String) -> Result<bool> {
        let client_id = whole(client_id)?;
        Ok(self.ingest.as_ref().is_some_and(|ingest| ingest.remove_upstream(client_id, &id)))
    }

    /// Ends every session and joins the workers outside the JavaScript thread. Drain once more afterwards.
    #[napi(catch_unwind)]
    pub fn stop(&self) -> AsyncTask<StopTask> {
        // Not `&mut self`: the mailbox is drained while this runs.
        AsyncTask::new(StopTask { ingest: self.ingest.clone() })
    }
}

pub(crate) fn upstream(options: &UpstreamOptions) -> Result<Upstream> {
    let url = UpstreamUrl::parse(&options.url)
        .ok_or_else(|| Error::new(Status::InvalidArg, "not an RTMP URL"))?;
    let source = match options.source.as_str() {
        "deployment" => UpstreamSource::Deployment,
        "stream" => UpstreamSource::Stream,
        "session" => UpstreamSource::Session,
        "own" => UpstreamSource::Own,
        _ => return Err(Error::new(Status::InvalidArg, "unknown source")),
    };
    Ok(Upstream { id: options.id.clone(), url, source })
}

pub(crate) fn address(text: &str) -> Result<IpAddr> {
    text.parse().map_err(|_| Error::new(Status::InvalidArg, "not an IP address"))
}

/// The task that joins the workers.
pub struct StopTask {
    ingest: Option<Arc<Ingest>>,
}

impl Task for StopTask {
    type Output = ();
    type JsValue = ();

    fn compute(&mut self) -> Result<()> {
        if let Some(ingest) = self.ingest.take() {
            ingest.stop();
        }
        Ok(())
    }

    fn resolve(&mut self, _: Env, (): ()) -> Result<()> {
        Ok(())
    }
}
