//! The N-API bridge: names and transfer objects, without decisions of its own.
//!
//! The core only *wakes* JavaScript; JavaScript drains the mailbox. Every export catches panics, which would otherwise
//! abort the process.

pub mod accepting;
pub mod capture;
mod counters;
mod events;
mod hold;
mod names;
mod offer;
mod preview;
mod pull;
mod transfer;
mod whip;
mod whole;
mod workers;

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use headgate_ingest::{Ingest, IngestConfig, RtmpTls, UpstreamUrl, validate_fragment};
use napi::bindgen_prelude::{AsyncTask, Either, Function, Result, Task};
use napi::threadsafe_function::ThreadsafeFunctionCallMode;
use napi::{Env, Error, Status};
use napi_derive::napi;

use counters::PublishSnapshot;
use events::MediaEvent;
use hold::{Hold, hold_of};
use names::{AddedUpstream, Denial, EndRequest, PushOrder};
use offer::{OfferParsed, OfferRead, WhipOffer};
use pull::{PullSource, PullStatus, pull_source};
use transfer::{MediaOptions, PlayerStatus, SdpRefused, Upstream, number};
use whole::whole;

/// The allocator of the core. Frames are allocated and freed in the order of their groups, for which the system's
/// allocator takes a sixth of a media worker's time. Node keeps its own.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The running media core.
#[napi]
pub struct MediaCore {
    pub(crate) ingest: Arc<Ingest>,
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
    Ok(MediaCore { ingest: Arc::new(ingest) })
}

fn config_of(options: MediaOptions) -> Result<IngestConfig> {
    let public_addresses =
        options.public_addresses.iter().map(|text| address(text)).collect::<Result<_>>()?;
    let rtmp_host = address(&options.rtmp_host)?;
    let inherited = |socket: Option<i32>| socket.map(accepting::inherited).transpose();
    let tls_socket = inherited(options.rtmp_sockets.tls)?;
    let rtmp_tls = options.rtmp_tls.map(|tls| RtmpTls {
        address: SocketAddr::new(rtmp_host, tls.port),
        socket: tls_socket,
        cert_pem: tls.cert,
        key_pem: tls.key,
    });
    Ok(IngestConfig {
        rtmp_tls,
        upstream_ca_pem: options.upstream_ca,
        rtmp: options.rtmp_port.map(|port| SocketAddr::new(rtmp_host, port)),
        trusted_proxies: options.rtmp_trusted_proxies,
        rtmp_socket: inherited(options.rtmp_sockets.plain)?,
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
pub fn parse_offer(offer: String) -> OfferRead {
    let (summary, offer) = headgate_ingest::parse_offer(&offer);
    let result = match offer {
        Ok(offer) => Either::A(OfferParsed { outcome: "parsed", offer: WhipOffer(offer) }),
        Err(error) => Either::B(SdpRefused::new(error.code(), error.status(), &error)),
    };
    OfferRead { summary: summary.into(), result }
}

/// Creates our own offer, to receive audio, video or both; throws for neither.
#[napi(catch_unwind)]
pub fn own_offer(audio: bool, video: bool) -> Result<WhipOffer> {
    let offer = headgate_ingest::own_offer(audio, video);
    offer.map(WhipOffer).ok_or_else(|| Error::new(Status::InvalidArg, "neither audio nor video"))
}

/// Why a trickled fragment is invalid, independent of any session; null when it is valid.
#[napi(catch_unwind)]
pub fn refuse_fragment(fragment: String) -> Option<SdpRefused> {
    let error = validate_fragment(&fragment).err()?;
    let (code, status) = whip::code_of(&error);
    Some(SdpRefused::new(code, status, &error))
}

#[napi]
impl MediaCore {
    /// The RTMP port; null if only RTMP over TLS is served.
    #[napi(getter, catch_unwind)]
    pub fn rtmp_port(&self) -> Option<u16> {
        self.ingest.rtmp_port()
    }

    /// The RTMP over TLS port; null without one.
    #[napi(getter, catch_unwind)]
    pub fn rtmp_tls_port(&self) -> Option<u16> {
        self.ingest.rtmp_tls_port()
    }

    /// Uses this certificate for connections from now on. Throws when it cannot be used.
    #[napi(catch_unwind)]
    pub fn set_certificate(&self, cert: String, key: String) -> Result<()> {
        self.ingest
            .set_certificate(&cert, &key)
            .map_err(|error| Error::new(Status::InvalidArg, error.to_string()))
    }

    /// The UDP ports, one per media worker.
    #[napi(getter, catch_unwind)]
    pub fn media_ports(&self) -> Vec<u16> {
        self.ingest.media_ports().to_vec()
    }

    /// Number of running transcoders.
    #[napi(catch_unwind)]
    pub fn transcoders(&self) -> u32 {
        self.ingest.transcoders() as u32
    }

    /// Number of transcoders that failed since the start.
    #[napi(catch_unwind)]
    pub fn failed_transcoders(&self) -> f64 {
        number(self.ingest.failed_transcoders())
    }

    /// RTMP connections closed at once because a limit was reached, and upstreams not dialled for the same reason,
    /// since the start.
    #[napi(catch_unwind)]
    pub fn refused_connections(&self) -> f64 {
        number(self.ingest.refused_connections())
    }

    /// Datagrams dropped by the kernel on the media ports, not read in time; null if the system does not report it.
    #[napi(catch_unwind)]
    pub fn kernel_drops(&self) -> Option<f64> {
        self.ingest.kernel_drops().map(number)
    }

    /// Receive buffer of each media port in bytes, if the kernel granted less than requested; null otherwise.
    #[napi(getter, catch_unwind)]
    pub fn small_receive_buffer(&self) -> Option<f64> {
        let granted = self.ingest.small_receive_buffer();
        granted.map(|bytes| number(bytes as u64))
    }

    /// All events since the last drain, oldest first.
    #[napi(catch_unwind)]
    pub fn drain(&self) -> Vec<MediaEvent> {
        self.ingest.drain().into_iter().map(MediaEvent::from).collect()
    }

    /// Allows a publish request: it goes live. A publish_ended follows in any case.
    #[napi(catch_unwind)]
    pub fn allow(
        &self,
        request: f64,
        client_id: f64,
        upstreams: Vec<Upstream>,
        hold: Hold,
    ) -> Result<()> {
        let upstreams = upstreams.into_iter().map(upstream).collect::<Result<_>>()?;
        self.ingest.allow(whole(request)?, whole(client_id)?, upstreams, hold_of(&hold)?);
        Ok(())
    }

    /// Puts one of two publishes of a name on air, on the connections of the other, immediately or at its next keyframe; an
    /// on_air_changed of each follows. No effect on one that is already on air.
    #[napi(catch_unwind)]
    pub fn switch_to(&self, client_id: f64) -> Result<()> {
        self.ingest.switch_to(whole(client_id)?);
        Ok(())
    }

    /// Ends the upstreams and players of a lost publish, if they are held; a hold_ended follows.
    #[napi(catch_unwind)]
    pub fn release(&self, client_id: f64) -> Result<()> {
        self.ingest.release(whole(client_id)?);
        Ok(())
    }

    /// Allows a play request: the player reads a publish on this node. `counted` is false for a player that is another
    /// node. A play_ended follows in any case.
    #[napi(catch_unwind)]
    pub fn allow_play(&self, request: f64, counted: bool) -> Result<()> {
        self.ingest.allow_play(whole(request)?, counted);
        Ok(())
    }

    /// Lets a player read a stream of another node: through the running pull of its name, else a new one. The player gets
    /// its success response once media arrives; after 5 s without any, that there is no such stream. A play_ended
    /// follows in any case, and one pull_ended for each pull. Throws when the URL or the address is invalid.
    #[napi(catch_unwind)]
    pub fn pull(&self, request: f64, source: PullSource) -> Result<()> {
        let (request, source) = (whole(request)?, pull_source(&source)?);
        self.ingest.pull(request, source);
        Ok(())
    }

    /// The present source of a pull that lost its connection; null: none, and the pull ends.
    #[napi(catch_unwind)]
    pub fn dial_pull(&self, pull: f64, source: Option<PullSource>) -> Result<()> {
        let source = source.map(|source| pull_source(&source)).transpose()?;
        self.ingest.dial_pull(whole(pull)?, source);
        Ok(())
    }

    /// The running pulls, by name.
    #[napi(catch_unwind)]
    pub fn pulls(&self) -> Vec<PullStatus> {
        let pulls = self.ingest.pulls();
        pulls.into_iter().map(PullStatus::from).collect()
    }

    /// Denies a publish or play request.
    #[napi(catch_unwind)]
    pub fn deny(&self, request: f64, code: Denial, description: String) -> Result<()> {
        self.ingest.deny(whole(request)?, code.into(), description);
        Ok(())
    }

    /// Refuses a publish request here. A publisher that is known to follow is redirected, once, to one of these tcUrls;
    /// any other gets the description.
    #[napi(catch_unwind)]
    pub fn redirect(&self, request: f64, tc_urls: Vec<String>, description: String) -> Result<()> {
        self.ingest.redirect(whole(request)?, tc_urls, description);
        Ok(())
    }

    /// Resolved addresses for a push; none means "cannot be resolved, try later". Invalid addresses are ignored.
    #[napi(catch_unwind)]
    pub fn dial(&self, push: f64, addresses: Vec<String>) -> Result<()> {
        let addresses = addresses.iter().filter_map(|address| address.parse().ok()).collect();
        self.ingest.dial(whole(push)?, addresses);
        Ok(())
    }

    /// The other answer to address_wanted: no connection to that host is allowed.
    #[napi(catch_unwind)]
    pub fn forbid(&self, push: f64) -> Result<()> {
        self.ingest.forbid(whole(push)?);
        Ok(())
    }

    /// Ends a running publish; unknown client ids are ignored.
    #[napi(catch_unwind)]
    pub fn end(&self, client_id: f64, reason: EndRequest, description: String) -> Result<()> {
        self.ingest.end(whole(client_id)?, reason.into(), description);
        Ok(())
    }

    /// Counters of a running publish; null when it is not running.
    #[napi(catch_unwind)]
    pub fn snapshot(&self, client_id: f64) -> Result<Option<PublishSnapshot>> {
        let client_id = whole(client_id)?;
        let snapshot = self.ingest.snapshot(client_id);
        Ok(snapshot.map(|snapshot| PublishSnapshot::new(number(client_id), snapshot)))
    }

    /// The players of a running publish, oldest first, at most a thousand; empty when it is not running.
    #[napi(catch_unwind)]
    pub fn players(&self, client_id: f64) -> Result<Vec<PlayerStatus>> {
        let client_id = whole(client_id)?;
        let players = self.ingest.players(client_id);
        Ok(players.into_iter().map(PlayerStatus::from).collect())
    }

    /// Pushes a running publish to an additional upstream.
    #[napi(catch_unwind)]
    pub fn add_upstream(&self, client_id: f64, options: Upstream) -> Result<AddedUpstream> {
        let (client_id, upstream) = (whole(client_id)?, upstream(options)?);
        Ok(self.ingest.add_upstream(client_id, upstream).into())
    }

    /// Removes an upstream from a running publish; false when it has none with that id.
    #[napi(catch_unwind)]
    pub fn remove_upstream(&self, client_id: f64, id: String) -> Result<bool> {
        let client_id = whole(client_id)?;
        Ok(self.ingest.remove_upstream(client_id, &id))
    }

    /// Orders something for the push of a running publish to an upstream; false when it has none with that id.
    #[napi(catch_unwind)]
    pub fn order_push(&self, client_id: f64, id: String, order: PushOrder) -> Result<bool> {
        Ok(self.ingest.order_push(whole(client_id)?, &id, order.into()))
    }

    /// Tests an upstream: connects as a push does, and publishes a test picture and silence for two seconds. `test` is
    /// an id that no publish has; address_wanted and upstream_tested come under it.
    #[napi(catch_unwind)]
    pub fn test_upstream(&self, test: f64, options: Upstream) -> Result<()> {
        self.ingest.test_upstream(whole(test)?, upstream(options)?);
        Ok(())
    }

    /// Ends every session and joins the workers outside the JavaScript thread. Drain once more afterwards.
    #[napi(catch_unwind)]
    pub fn stop(&self) -> AsyncTask<StopTask> {
        // Not `&mut self`: the mailbox is drained while this runs.
        AsyncTask::new(StopTask { ingest: self.ingest.clone() })
    }
}

pub(crate) fn upstream(options: Upstream) -> Result<headgate_ingest::Upstream> {
    let url = UpstreamUrl::parse(&options.url)
        .ok_or_else(|| Error::new(Status::InvalidArg, "not an RTMP URL"))?;
    let (id, source, is_paused) =
        (options.id, options.source.into(), options.paused.unwrap_or(false));
    Ok(headgate_ingest::Upstream { id, url, source, is_paused })
}

pub(crate) fn address(text: &str) -> Result<IpAddr> {
    text.parse().map_err(|_| Error::new(Status::InvalidArg, "not an IP address"))
}

/// The task that joins the workers.
pub struct StopTask {
    ingest: Arc<Ingest>,
}

impl Task for StopTask {
    type Output = ();
    type JsValue = ();

    fn compute(&mut self) -> Result<()> {
        self.ingest.stop();
        Ok(())
    }

    fn resolve(&mut self, _: Env, (): ()) -> Result<()> {
        Ok(())
    }
}
