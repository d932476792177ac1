// Builds the service from a configuration, starts it and stops it gracefully. The only place where the clock is made.
import { lookup } from "node:dns/promises";
import { hostname, networkInterfaces } from "node:os";
import type { Logger } from "pino";
import { createApp } from "./app.ts";
import { type Certificate, type CertificateFiles, readCertificate, watchCertificate } from "./certificate.ts";
import { type Config, readVersion } from "./config.ts";
import { forbidCoreDumps } from "./core-dumps.ts";
import { ConfigInvalid, PortTaken, StoreFailed, StoreUnavailable } from "./errors.ts";
import { healthApp } from "./http/health.ts";
import { type Listening, listen } from "./listen.ts";
import { createLog } from "./log.ts";
import { type Media, MediaStartError, startMedia } from "./media.ts";
import { warnOfSmallBuffer } from "./media-ports.ts";
import { createMetrics } from "./metrics.ts";
import { createCustomers } from "./organisation/customers.ts";
import { ensureFirstOrganisation, ensureFirstPerson } from "./organisation/organisations.ts";
import { createStreamUpstreams } from "./organisation/upstreams.ts";
import { createWebhookSecrets } from "./organisation/webhook-secret.ts";
import { checkWebhookUrl, withoutBrackets } from "./publish/address-guard.ts";
import { withAdmissionSteps } from "./publish/admission-steps.ts";
import { createPublishing } from "./publish/lifecycle.ts";
import { createLiveSessions } from "./publish/sessions.ts";
import { checkUpstreamUrl } from "./publish/upstream-url.ts";
import { createWhip } from "./publish/whip.ts";
import { watchStore } from "./store/health.ts";
import { openStore } from "./store/open.ts";
import { keepPruned } from "./store/retention.ts";
import { openSecretBox } from "./store/secret-box.ts";
import { createTokenBroadcasts } from "./token/broadcasts.ts";
import { keepTokenKeys, loadTokenKeys } from "./token/keys.ts";
import { playToken } from "./token/play-token.ts";
import { requiredToken } from "./token/required-token.ts";
import { openRevocations } from "./token/revocations.ts";
import { createTokens } from "./token/tokens.ts";

/** The time of day, epoch ms. */
export const clock = { now: () => Date.now() };

/** Where the running service is reached: the ready line of operations.md §2. */
export interface Addresses {
  readonly http: string;
  readonly rtmp: string;
  readonly rtmps: string | null;
  /** UDP addresses of the media workers. */
  readonly media: readonly string[];
  readonly metrics: string;
}

export interface Service {
  readonly addresses: Addresses;
  /** Not ready, no new publish, running ones until `drain_s`; then everything ends and every done event is sent or
   *  kept for the next start. */
  stop(): Promise<void>;
  /** Cuts the wait of `stop` short: running publishes end now. */
  hurry(): void;
  /** Rejects when the store dies while the service runs; nothing works after that. */
  readonly failed: Promise<never>;
}

/** Starts everything. Rejects with `ConfigInvalid`, `PortTaken` or `StoreUnavailable`, and leaves nothing behind.
 *  `announceKey` and `announcePassword` show the first administrator's key and password to the person who starts a new
 *  store; they are never logged. */
export async function serve(
  config: Config,
  terminal: { readonly isTerminal: boolean; announceKey(key: string): void; announcePassword(password: string): void },
): Promise<Service> {
  const log = createLog(config.log, terminal.isTerminal);
  forbidCoreDumps(log);
  /** What has been started, to be stopped in the reverse order. */
  const started: (() => Promise<void>)[] = [];
  let ready = false;

  async function start(): Promise<Service> {
    const store = await openStore(config);
    started.push(() => store.close());
    const folder = config.databaseUrl === null ? config.dataDir : null;
    const storeHealth = watchStore({ db: store.db, folder, log });
    started.push(async () => storeHealth.stop());
    const { alg, issuer, rotateDays } = config.token;
    const box = openSecretBox(config.dataDir);
    const streamUpstreams = createStreamUpstreams({ db: store.db, secretBox: box });
    const keys = await loadTokenKeys(store.db, box, { alg, rotateDays, now: clock.now() });
    started.push(keepTokenKeys(keys, { clock, log }));
    started.push(keepPruned({ db: store.db, days: config.retention, clock, log }));
    const revocations = await openRevocations({ db: store.db, clock, log });
    started.push(async () => revocations.stop());
    const secrets = createWebhookSecrets({ db: store.db, box, clock });
    const customers = createCustomers({ db: store.db, secrets, clock });
    const tokens = createTokens({ keys, issuer, clock, revocations });
    const metrics = createMetrics();

    let media: Media | null = null;
    const running = (): Media => {
      if (media === null) throw new Error("the media core is not started");
      return media;
    };
    const publishing = withAdmissionSteps(createPublishing, {
      db: store.db,
      storeProblem: storeHealth.problem,
      media: running,
      streamUpstreams: streamUpstreams.of,
      clock,
      log,
      customers,
      holdsToken: requiredToken(tokens),
      holdsPlayToken: playToken(tokens),
      metrics,
      settings: {
        deadlineMs: config.webhook.deadlineMs,
        updateSeconds: config.webhook.updateS,
        webhookCa: config.webhook.ca,
        dev: config.dev,
        upstreamPush: config.upstream.push,
        playAllow: config.play.allow,
        maxBitrateKbps: config.whip.maxBitrateKbps,
        duplicate: config.publish.duplicate,
      },
    });
    started.push(() => publishing.stop());
    await publishing.recover();
    media = await openMedia(config, publishing.handle, (err) => log.error({ err }, "media event failed"));
    started.push(() => running().stop());
    metrics.watchMedia(media);
    warnOfSmallBuffer(media.smallReceiveBuffer, log);
    if (config.rtmp.tls !== null) {
      started.push(reloading(config.rtmp.tls, "rtmp", (renewed) => running().setCertificate(renewed), log));
    }

    const problem = () => (ready ? storeHealth.problem() : "starting or stopping");
    const health = healthApp({ registry: metrics.registry, problem });
    const metricsPort = await listen(health.fetch, { ...config.metrics, name: "metrics.port" });
    started.push(() => metricsPort.stop());
    const app = createApp({
      db: store.db,
      config,
      clock,
      log,
      tokens,
      revocations,
      tokenBroadcasts: createTokenBroadcasts({
        revocations,
        end: (clientId) => running().end(clientId, "kicked", "Token revoked"),
        onEnded: publishing.onEnded,
      }),
      metrics,
      secrets,
      customers,
      workbench: publishing.workbench,
      checkWebhookUrl,
      checkUpstreamUrl: (url, owner) => checkUpstreamUrl(url, { dev: config.dev, owner }),
      streamUpstreams,
      secretBox: box,
      sessions: createLiveSessions({ publishing, media: running, dev: config.dev }),
      rtmpPort: media.rtmpPort,
      version: readVersion(),
      whip: createWhip({
        media: running,
        publishing,
        dev: config.dev,
        clock,
        ice: config.ice,
        limits: config.whip.limits,
        rules: {
          ownHosts: ownHosts(config),
          rtmpPort: media.rtmpPort,
          rtmpsPort: media.rtmpTlsPort,
          allow: config.upstream.allow,
        },
      }),
    });
    const { tls } = config.http;
    const certificate = tls && readCertificate(tls);
    const http = await listen(app.fetch, { ...config.http, name: "http.port" }, certificate);
    started.push(() => http.stop());
    if (tls !== null) started.push(reloading(tls, "http", http.setCertificate, log));

    // Last: a start that fails before has made no key, so that the one that succeeds makes and shows it.
    const first = await ensureFirstOrganisation(store.db, config.bootstrap.apiKey, clock.now());
    if (first.outcome === "bootstrap_key_unused") {
      log.warn("bootstrap.api_key is none of this store's keys and opens nothing");
    }
    if (first.outcome === "created" && first.key !== null) terminal.announceKey(first.key);
    const password = await ensureFirstPerson(store.db, config.bootstrap.adminPassword, clock.now());
    if (password !== null) terminal.announcePassword(password);
    ready = true;
    log.info("ready");
    let hurry = (): void => {};
    const hurried = new Promise<void>((resolve) => {
      hurry = resolve;
    });
    return {
      hurry,
      addresses: addressesOf(config, media, http, metricsPort),
      failed: store.failed.then((error) => Promise.reject(error)),
      async stop() {
        ready = false;
        http.drain();
        await Promise.race([publishing.drain(config.drainS * 1_000), hurried]);
        await stopAll(started);
      },
    };
  }

  try {
    return await start();
  } catch (error) {
    await stopAll(started);
    if (!(error instanceof StoreFailed)) throw error;
    const place = config.databaseUrl === null ? `the store in ${config.dataDir}` : "the database";
    throw new StoreUnavailable(`cannot use ${place}: ${error.message}`, { cause: error });
  }
}

/** A renewed certificate is used from the next connection on; one that cannot be used changes nothing. */
function reloading(
  files: CertificateFiles,
  section: "http" | "rtmp",
  use: (certificate: Certificate) => void,
  log: Logger,
): () => Promise<void> {
  const unwatch = watchCertificate(files, () => {
    try {
      use(readCertificate(files));
      log.info({ section }, "certificate reloaded");
    } catch (err) {
      log.error({ err, section }, "the new certificate cannot be used; the old one stays");
    }
  });
  return async () => unwatch();
}

async function stopAll(started: (() => Promise<void>)[]): Promise<void> {
  for (const stop of started.splice(0).reverse()) await stop();
}

async function openMedia(
  config: Config,
  handle: Parameters<typeof startMedia>[1],
  failed: (error: unknown) => void,
): Promise<Media> {
  const { host, port } = config.rtmp;
  try {
    const { address: rtmpHost } = await lookup(host);
    const { address: mediaHost } = await lookup(config.media.host);
    const { port: mediaPort, workers, audioWorkers, gopCache, pushSilence } = config.media;
    const publicAddresses = publicAddressesOf(config, mediaHost);
    const { tls, limits } = config.rtmp;
    const rtmpTls = tls && { port: tls.port, ...readCertificate(tls) };
    const upstreamCa = config.webhook.ca;
    return startMedia(
      {
        rtmpHost,
        rtmpPort: port,
        rtmpTls,
        upstreamCa,
        mediaHost,
        mediaPort,
        publicAddresses,
        workers,
        audioWorkers,
        gopCache,
        pushSilence,
        rtmpConnections: limits.connections,
        rtmpConnectionsPerAddress: limits.connectionsPerAddress,
      },
      handle,
      failed,
    );
  } catch (error) {
    if (error instanceof MediaStartError && error.code === "tls") {
      const names = [config.rtmp.tls && `${config.rtmp.tls.section}.tls_cert`, config.webhook.ca && "webhook.ca"];
      throw new ConfigInvalid(`${names.filter(Boolean).join(", ")}: cannot be used for RTMPS: ${error.message}`, {
        cause: error,
      });
    }
    if (error instanceof MediaStartError && error.code === "port_taken") {
      const { tls } = config.rtmp;
      if (tls !== null && error.message.includes(`port ${tls.port} is`)) {
        throw new PortTaken(`cannot listen on ${host}:${tls.port} (rtmp.tls_port): it is in use by another program`, {
          cause: error,
        });
      }
      const isRtmp = error.message.includes(`port ${port} is`);
      const where = isRtmp
        ? `${host}:${port} (rtmp.port)`
        : `${config.media.host}, UDP and TCP (media.port): ${error.message}`;
      throw new PortTaken(`cannot listen on ${where}: it is in use by another program`, { cause: error });
    }
    throw error;
  }
}

function addressesOf(config: Config, media: Media, http: Listening, metrics: Listening): Addresses {
  const reach = (host: string, port: number) => `${nameOf(host)}:${port}`;
  return {
    http:
      config.http.publicUrl ?? `${config.http.tls === null ? "http" : "https"}://${reach(config.http.host, http.port)}`,
    rtmp: `rtmp://${reach(config.ingest.hosts[0] ?? config.rtmp.host, media.rtmpPort)}/live`,
    rtmps:
      media.rtmpTlsPort === null
        ? null
        : `rtmps://${reach(config.ingest.hosts[0] ?? config.rtmp.host, media.rtmpTlsPort)}/live`,
    media: media.mediaPorts.map((port) => `${config.media.host}:${port}`),
    metrics: `http://${reach(config.metrics.host, metrics.port)}`,
  };
}

/** What WebRTC answers name: as configured, the one address media is bound to, or those of the interfaces. */
function publicAddressesOf(config: Config, mediaHost: string): readonly string[] {
  if (config.media.publicAddresses.length > 0) return config.media.publicAddresses;
  if (mediaHost !== "0.0.0.0" && mediaHost !== "::") return [mediaHost];
  const addresses = interfaceAddresses().filter(({ internal }) => !internal);
  // IPv4 first: some clients take the first candidate and look no further.
  const ordered = [...addresses.filter(({ family }) => family === "IPv4")];
  if (mediaHost === "::") ordered.push(...addresses.filter(({ family }) => family === "IPv6"));
  return ordered.length > 0 ? ordered.map(({ address }) => address) : ["127.0.0.1"];
}

function interfaceAddresses() {
  const all = Object.values(networkInterfaces()).flatMap((addresses) => addresses ?? []);
  return all.filter(({ address }) => !/^fe80:/i.test(address));
}

/** Hosts in a stream_url that mean ourselves: as configured, else every name and address of this machine. */
function ownHosts(config: Config): readonly string[] {
  const configured = config.ingest.hosts.map((host) => withoutBrackets(host).toLowerCase());
  if (configured.length > 0) return configured;
  return ["localhost", hostname().toLowerCase(), ...interfaceAddresses().map(({ address }) => address)];
}

/** A host as a URL can hold it; "all addresses" is reached on this machine by loopback. */
function nameOf(host: string): string {
  if (host === "0.0.0.0" || host === "::") return "127.0.0.1";
  return host.includes(":") && !host.startsWith("[") ? `[${host}]` : host;
}
