// Puts the service together: creates every part and passes its dependencies. It opens no port, starts no media core and
// owns neither store nor clock: main.ts does that for the service, the tests for themselves.
import type { Hono } from "hono";
import type { Logger } from "pino";
import { type AppDeps, createApp } from "./app.ts";
import type { Capacity, CapacityDeps } from "./capacity/capacity.ts";
import { joinAlone, type Membership } from "./cluster/membership.ts";
import { createNodeList } from "./cluster/node-list.ts";
import { type Config, readVersion } from "./config.ts";
import type { Cluster } from "./http/cluster/elsewhere.ts";
import type { Elsewhere } from "./http/cluster/forwarding.ts";
import type { Others } from "./http/cluster/others.ts";
import { Events } from "./http/monitoring/events.ts";
import type { Env } from "./http/openapi.ts";
import { steadyClock } from "./in-time.ts";
import { busiestOf } from "./media/workers.ts";
import type { Media } from "./media.ts";
import { watchTroubles } from "./metrics/node-metrics.ts";
import { createMetrics, type Metrics } from "./metrics.ts";
import { createCustomers } from "./organisation/customers.ts";
import { organisationOf } from "./organisation/streams.ts";
import { createStreamUpstreams } from "./organisation/upstreams.ts";
import { createWebhookSecrets } from "./organisation/webhook-secret.ts";
import { ownHosts } from "./own-addresses.ts";
import { checkWebhookUrl, resolveBySystem } from "./publish/addresses/address-guard.ts";
import { createGuardedFetch } from "./publish/addresses/guarded-fetch.ts";
import type { Resolve } from "./publish/addresses/resolver.ts";
import { createCaptures } from "./publish/capture/captures.ts";
import { createPublishKeys } from "./publish/key/publish-key.ts";
import { createWrongKeys } from "./publish/key/wrong-keys.ts";
import { createPublishing, type Publishing } from "./publish/lifecycle.ts";
import { createWrongNames } from "./publish/limits/wrong-names.ts";
import { createLiveSessions } from "./publish/live-sessions.ts";
import { createDeployment } from "./publish/monitoring/deployment.ts";
import { createMeasurements } from "./publish/monitoring/measurements.ts";
import { logAdmissionSteps } from "./publish/observers/admission-steps.ts";
import { noteDenied } from "./publish/observers/denied-publishes.ts";
import { logPublishes } from "./publish/observers/publish-log.ts";
import { countPublishes } from "./publish/observers/publish-metrics.ts";
import { NO_OTHER_NODES, type OtherNodes } from "./publish/players.ts";
import { createPreviews, type Previews } from "./publish/preview/previews.ts";
import { createPublishEvents, type PublishEvents } from "./publish/publish-events.ts";
import type { PublishingSettings } from "./publish/publishing-settings.ts";
import { createRefusals, type Refusals } from "./publish/refusals/refusals.ts";
import { TimelineRecorder } from "./publish/timeline/recorder.ts";
import { createTimelines } from "./publish/timeline/timelines.ts";
import { checkUpstreamUrl } from "./publish/upstreams/upstream-url.ts";
import type { StreamUrlRules } from "./publish/whip/stream-url.ts";
import { Whip } from "./publish/whip/whip-publishes.ts";
import type { Store } from "./store/open.ts";
import { openSecretBoxOf } from "./store/secret-box.ts";
import { loadTokenKeys, type TokenKeys } from "./token/keys.ts";
import { playToken } from "./token/play-token.ts";
import { requiredToken } from "./token/required-token.ts";
import { openRevocations } from "./token/revocations.ts";
import { createTokenRecords, type TokenRecords } from "./token/token-records.ts";
import { createTokens } from "./token/tokens.ts";

/** Dependencies of the service. */
export interface ServiceDeps {
  readonly db: Store["db"];
  readonly reads: Store["reads"];
  /** The configuration as last reloaded; by default it never changes. */
  readonly current?: () => Config;
  /** Why the store cannot be written; null while it can. Absent: unknown until a write is tried. */
  readonly storeProblem?: () => string | null;
  /** Epoch ms. */
  readonly clock: { now(): number };
  readonly log: Logger;
  /** This node among those on the store; by default it uses the store alone. */
  readonly member?: Membership;
  /** The connection to the other nodes; null, the default, where there are none. */
  readonly cluster?: Cluster | null;
  /** Measures whether this node has room; by default it always has. */
  readonly openCapacity?: (deps: CapacityDeps) => Capacity;
  /** Whether this node accepts no new publishes for now; by default it accepts them. */
  readonly isDraining?: () => boolean;
  /** Whether it stops when its publishes have ended; by default it does not. */
  readonly isStopping?: () => boolean;
  /** Called at each use: the media core starts after this, once publishing has taken over what the previous process
   *  left. */
  readonly media: () => Media;
  /** Resolves the names that customers supply; by default with the system's resolver. */
  readonly resolve?: Resolve;
  /** The other nodes of the service; by default there are none. */
  readonly otherNodes?: OtherNodes;
}

/** The parts used from outside. */
export interface Service
  extends Pick<AppDeps, "tokens" | "secrets" | "sessions" | "streamUpstreams" | "events" | "measurements"> {
  /** Dependencies of the HTTP application. */
  readonly appDeps: AppDeps;
  readonly app: Hono<Env>;
  /** Handles the events of the media core. */
  readonly publishing: Publishing;
  readonly tokenKeys: TokenKeys;
  readonly customers: ReturnType<typeof createCustomers>;
  readonly metrics: Metrics;
  readonly previews: Pick<Previews, "stop">;
  /** Why this node is full; null while it has room. */
  readonly full: () => string | null;
  /** Current epoch of this node. */
  readonly epoch: () => number;
  /** Writes pending timelines to the store. */
  flushTimelines(): Promise<void>;
  /** Call when the media core is open: starts measuring whether there is room. */
  startMeasuring(): void;
  /** Finishes pending work. Call after `Media.stop` and before the store is closed. */
  stop(): Promise<void>;
}

export async function createService(config: Config, deps: ServiceDeps): Promise<Service> {
  const { db, reads, clock, log, media, resolve = resolveBySystem } = deps;
  const { storeProblem = () => null, isDraining = () => false, isStopping = () => false } = deps;
  const { tokenKeys, ...records } = await openRecords(config, deps);
  const ownerOf = (name: string) => organisationOf(db, name);
  const metrics = createMetrics();
  const refusals = createRefusals({ db, reads, clock, log, metrics });
  const version = readVersion();
  const member = deps.member ?? (await joinAlone(db, { name: config.node.name, version, now: clock.now() }));
  const { elsewhere = null, others = null, rivals = null, plays = null } = deps.cluster ?? {};
  const events = createPublishEvents(log);
  const capacity = deps.openCapacity?.({
    config: config.capacity,
    media,
    log,
    registry: metrics.registry,
    publishes: () => publishing.running().length,
  });
  const full = () => capacity?.problem() ?? null;
  const captures = createCaptures({
    config: config.capture,
    media,
    version,
    clock,
    log,
    events,
    ...(elsewhere && { captureId: elsewhere.owners.sessionId }),
  });
  const recorder = new TimelineRecorder({ db, media, clock, log, events, publishing: () => publishing });
  observe(events, { clock, log, metrics, refusals, recorder, tokenRecords: records.tokenRecords });
  const publishing = createPublishing({
    ...storedFor(records, clock),
    ...(deps.otherNodes ?? plays ?? NO_OTHER_NODES),
    db,
    reads,
    member,
    rivals,
    room: capacity ?? null,
    ingestKbpsOf: (clientId) => monitoring.measurements.numbersOf(clientId).bitrateKbps,
    storeProblem,
    isDraining,
    rtmpElsewhere: elsewhere?.owners.rtmpWithRoom ?? (() => []),
    media,
    clock,
    log,
    organisationOf: ownerOf,
    resolve,
    metrics,
    refusals,
    events,
    settings: publishingSettings(config),
  });
  records.revocations.listen(publishing.endRevoked);
  const observed = { events, metrics, recorder, full, storeProblem, version, member, others };
  const monitoring = createMonitoring(config, deps, publishing, observed);
  const whip = new Whip({
    media,
    publishing,
    dev: config.dev,
    resolve,
    organisationOf: ownerOf,
    refusals,
    clock,
    ...(elsewhere && { sessionId: elsewhere.owners.sessionId }),
    ice: config.ice,
    limits: config.whip.limits,
    rules: streamUrlRules(config, media, elsewhere),
  });
  const appDeps: AppDeps = {
    ...records,
    ...monitoring,
    db,
    reads,
    config,
    clock,
    log,
    metrics,
    workbench: publishing.workbench,
    upstreamTests: publishing.upstreamTests,
    checkWebhookUrl: (url, options) => checkWebhookUrl(url, { ...options, resolve }),
    identityFetch: createGuardedFetch({ ca: config.webhook.ca, dev: config.dev, resolve }),
    checkUpstreamUrl: (url, owner) => checkUpstreamUrl(url, { dev: config.dev, owner, resolve }),
    captures,
    runningPublish: publishing.find,
    refusesPublishes() {
      if (isDraining() || isStopping()) return "draining";
      return full() === null ? null : "full";
    },
    ingestPorts: () => ({ rtmp: media().rtmpPort, rtmps: media().rtmpTlsPort }),
    version,
    whip,
    refusals,
    elsewhere,
    others,
  };
  return {
    ...records,
    ...monitoring,
    appDeps,
    app: createApp(appDeps),
    publishing,
    tokenKeys,
    metrics,
    full,
    epoch: () => member.epoch,
    flushTimelines: () => recorder.flush(),
    startMeasuring: () => capacity?.start(),
    async stop() {
      capacity?.stop();
      monitoring.events.stop();
      monitoring.measurements.stop();
      await publishing.stop();
      await refusals.stop();
      await records.tokenRecords.stop();
      await recorder.stop();
      records.revocations.stop();
    },
  };
}

/** Those who listen to what happens to publishes, besides the recorder. */
function observe(
  events: PublishEvents,
  {
    clock,
    log,
    metrics,
    refusals,
    recorder,
    tokenRecords,
  }: {
    readonly clock: ServiceDeps["clock"];
    readonly log: Logger;
    readonly metrics: Metrics;
    readonly refusals: Refusals;
    readonly recorder: TimelineRecorder;
    readonly tokenRecords: TokenRecords;
  },
): void {
  logPublishes(events, { log, clock, figuresOf: (clientId) => recorder.figuresOf(clientId) });
  countPublishes(events, metrics);
  logAdmissionSteps(events, log);
  noteDenied(events, refusals);
  events.listen((event) => {
    if (event.kind === "started" && event.publish.claims) tokenRecords.used(event.publish.claims.jti);
  });
}

/** What the store keeps for organisations, and the keys it is sealed with. */
async function openRecords(config: Config, { db, clock, log }: Pick<ServiceDeps, "db" | "clock" | "log">) {
  const secretBox = await openSecretBoxOf(db, config.dataDir);
  const { alg, issuer, rotateDays } = config.token;
  const tokenKeys = await loadTokenKeys(db, secretBox, { alg, rotateDays, now: clock.now() });
  const revocations = await openRevocations({ db, clock, log });
  const tokenRecords = createTokenRecords({ db, clock, log });
  const tokens = createTokens({
    keys: tokenKeys,
    issuer,
    clock,
    revocations,
    isShared: config.databaseUrl !== null,
  });
  const secrets = createWebhookSecrets({ db, box: secretBox, clock });
  const copySecrets = createWebhookSecrets({ db, box: secretBox, clock, table: "webhook_copy_secret" });
  const customers = createCustomers({ db, secrets, copySecrets, clock });
  const streamUpstreams = createStreamUpstreams({ db, secretBox });
  const publishKeys = createPublishKeys(secretBox);
  return {
    secretBox,
    tokenKeys,
    revocations,
    tokens,
    tokenRecords,
    secrets,
    copySecrets,
    customers,
    streamUpstreams,
    publishKeys,
  };
}

/** What of it decides about publishes and players. */
function storedFor(
  {
    tokens,
    tokenRecords,
    revocations,
    customers,
    streamUpstreams,
    publishKeys,
  }: Omit<Awaited<ReturnType<typeof openRecords>>, "tokenKeys">,
  clock: ServiceDeps["clock"],
) {
  return {
    streamUpstreams,
    customers,
    tokenOf: requiredToken(tokens),
    isRevoked: revocations.isRevoked,
    wrongNames: createWrongNames(steadyClock(clock)),
    publishKeys,
    wrongKeys: createWrongKeys(steadyClock(clock)),
    playTokenLack: playToken(tokens, tokenRecords.used),
  };
}

function publishingSettings(config: Config): PublishingSettings {
  return {
    deadlineMs: config.webhook.deadlineMs,
    updateSeconds: config.webhook.updateS,
    webhookCa: config.webhook.ca,
    dev: config.dev,
    upstreamPush: config.upstream.push,
    playAllow: config.play.allow,
    maxBitrateKbps: config.whip.maxBitrateKbps,
    organisationLimits: config.capacity.organisation,
    ...config.publish,
  };
}

/** Which stream_url means this service, and which other hosts it may name. */
function streamUrlRules(
  config: Config,
  media: ServiceDeps["media"],
  elsewhere: Elsewhere | null,
): () => StreamUrlRules {
  const hosts = ownHosts(config);
  return () => ({
    ownHosts: hosts,
    rtmpPort: media().rtmpPort,
    rtmpsPort: media().rtmpTlsPort,
    otherNodes: elsewhere?.owners.rtmpHosts() ?? [],
    allow: config.upstream.allow,
  });
}

/** What shows running publishes, and the service itself, to people and programs. */
function createMonitoring(
  config: Config,
  deps: ServiceDeps,
  publishing: Publishing,
  observed: {
    readonly events: PublishEvents;
    readonly metrics: Metrics;
    readonly recorder: TimelineRecorder;
    readonly full: () => string | null;
    readonly storeProblem: () => string | null;
    readonly version: string;
    readonly member: Membership;
    readonly others: Others | null;
  },
) {
  const { db, reads, clock, log, media, resolve = resolveBySystem } = deps;
  const { current = () => config } = deps;
  const { events: publishEvents, metrics, recorder, full, storeProblem, version, member, others } = observed;
  const { dev } = config;
  const findingsOf = (clientId: number) => measurements.findingsOf(clientId);
  const sessions = createLiveSessions({ publishing, media, clock, findingsOf, dev, resolve });
  const previews = createPreviews({ publishing, media, log });
  metrics.watchPreviews(previews.running);
  const measurements = createMeasurements({ publishing, media, clock, log, events: publishEvents });
  watchTroubles(metrics.registry, measurements.troubles);
  const events = new Events({ db: reads, measurements, sessions, others, clock, log });
  const deployment = createDeployment({ db, config, current, publishing, media, version, clock, storeProblem });
  const alone = () => ({
    publishes: publishing.running().length,
    load: busiestOf(media().workerStatus()),
    full: full(),
  });
  const nodes = createNodeList({
    db,
    clock,
    node: { name: config.node.name, version, epoch: () => member.epoch },
    alone: deps.member === undefined || config.databaseUrl === null ? alone : null,
  });
  const timelines = createTimelines({ db: reads, recorder, workbench: publishing.workbench, findingsOf, clock });
  return { sessions, previews, measurements, events, deployment, nodes, timelines };
}
