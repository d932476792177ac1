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
import { createEvents } from "./http/monitoring/events.ts";
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
import { withAdmissionSteps } from "./publish/admission-steps.ts";
import { createCaptures } from "./publish/capture/captures.ts";
import { createPublishKeys } from "./publish/key/publish-key.ts";
import { createWrongKeys } from "./publish/key/wrong-keys.ts";
import { createPublishing, type Publishing } from "./publish/lifecycle.ts";
import { createWrongNames } from "./publish/limits/wrong-names.ts";
import { createLiveSessions } from "./publish/live-sessions.ts";
import { createDeployment } from "./publish/monitoring/deployment.ts";
import { createMeasurements } from "./publish/monitoring/measurements.ts";
import { NO_OTHER_NODES, type OtherNodes } from "./publish/players.ts";
import { createPreviews, type Previews } from "./publish/preview/previews.ts";
import { createRefusals } from "./publish/refusals/refusals.ts";
import { createTimelineRecorder } from "./publish/timeline/recorder.ts";
import { createTimelines } from "./publish/timeline/timelines.ts";
import { checkUpstreamUrl } from "./publish/upstreams/upstream-url.ts";
import { createWhip } from "./publish/whip/whip-publishes.ts";
import type { Store } from "./store/open.ts";
import { openSecretBoxOf } from "./store/secret-box.ts";
import { loadTokenKeys, type TokenKeys } from "./token/keys.ts";
import { playToken } from "./token/play-token.ts";
import { requiredToken } from "./token/required-token.ts";
import { openRevocations } from "./token/revocations.ts";
import { createTokens } from "./token/tokens.ts";

/** Dependencies of the service. */
export interface ServiceDeps {
  readonly db: Store["db"];
  readonly reads: Store["reads"];
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
  const { db, reads, clock, log, media, storeProblem, resolve = resolveBySystem } = deps;
  const { dev } = config;
  const box = await openSecretBoxOf(db, config.dataDir);
  const { alg, issuer, rotateDays } = config.token;
  const tokenKeys = await loadTokenKeys(db, box, { alg, rotateDays, now: clock.now() });
  const revocations = await openRevocations({ db, clock, log });
  const tokens = createTokens({
    ...{ keys: tokenKeys, issuer, clock, revocations },
    isShared: config.databaseUrl !== null,
  });
  const secrets = createWebhookSecrets({ db, box, clock });
  const customers = createCustomers({ db, secrets, clock });
  const streamUpstreams = createStreamUpstreams({ db, secretBox: box });
  const publishKeys = createPublishKeys(box);
  const ownerOf = (name: string) => organisationOf(db, name);
  const metrics = createMetrics();
  const refusals = createRefusals({ db, reads, clock, log, metrics });
  const version = readVersion();
  const member = deps.member ?? (await joinAlone(db, { name: config.node.name, version, now: clock.now() }));
  const { elsewhere = null, others = null, rivals = null, plays = null } = deps.cluster ?? {};
  const recorder = createTimelineRecorder({ db, media, clock, log });
  const capacity = deps.openCapacity?.({
    ...{ config: config.capacity, media, log, registry: metrics.registry },
    publishes: () => publishing.running().length,
  });
  const full = () => capacity?.problem() ?? null;
  const captures = createCaptures({
    ...{ config: config.capture, media, version, clock, log },
    ...(elsewhere && { captureId: elsewhere.owners.sessionId }),
  });
  const decided = withAdmissionSteps(createPublishing, {
    db,
    reads,
    member,
    rivals,
    ...(capacity && { room: capacity }),
    ingestKbpsOf: (clientId) => measurements.numbersOf(clientId).bitrateKbps,
    ...(storeProblem && { storeProblem }),
    ...(deps.isDraining && { isDraining: deps.isDraining }),
    ...(elsewhere && { rtmpElsewhere: elsewhere.owners.rtmpWithRoom }),
    media,
    streamUpstreams: streamUpstreams.of,
    clock,
    log,
    customers,
    tokenOf: requiredToken(tokens),
    isRevoked: revocations.isRevoked,
    organisationOf: ownerOf,
    wrongNames: createWrongNames(steadyClock(clock)),
    publishKeys,
    wrongKeys: createWrongKeys(steadyClock(clock)),
    playTokenLack: playToken(tokens),
    ...(deps.otherNodes ?? plays ?? NO_OTHER_NODES),
    resolve,
    metrics,
    refusals,
    figuresOf: recorder.figuresOf,
    publishStarts: captures.publishStarts,
    publishDenied: captures.publishDenied,
    settings: {
      deadlineMs: config.webhook.deadlineMs,
      updateSeconds: config.webhook.updateS,
      webhookCa: config.webhook.ca,
      dev,
      upstreamPush: config.upstream.push,
      playAllow: config.play.allow,
      maxBitrateKbps: config.whip.maxBitrateKbps,
      organisationLimits: config.capacity.organisation,
      ...config.publish,
    },
  });
  const publishing = recorder.watching(decided);
  revocations.listen(publishing.endRevoked);
  const findingsOf = (clientId: number) => measurements.findingsOf(clientId);
  const sessions = createLiveSessions({ publishing, media, findingsOf, dev, resolve });
  const previews = createPreviews({ publishing, media, log });
  metrics.watchPreviews(previews.running);
  const measurements = createMeasurements({ publishing, media, clock, log, seen: recorder.seen });
  watchTroubles(metrics.registry, measurements.troubles);
  const events = createEvents({ db: reads, measurements, sessions, others, clock, log });
  const deployment = createDeployment({
    ...{ db, config, publishing, media, version, clock },
    ...(storeProblem && { storeProblem }),
  });
  const alone = () => ({
    publishes: publishing.running().length,
    load: busiestOf(media().workerStatus()),
    full: full(),
  });
  const nodes = createNodeList({
    ...{ db, clock, node: { name: config.node.name, version, epoch: () => member.epoch } },
    alone: deps.member === undefined || config.databaseUrl === null ? alone : null,
  });
  const hosts = ownHosts(config);
  const whip = createWhip({
    media,
    publishing,
    dev,
    resolve,
    organisationOf: ownerOf,
    refusals,
    clock,
    ...(elsewhere && { sessionId: elsewhere.owners.sessionId }),
    ice: config.ice,
    limits: config.whip.limits,
    rules: () => ({
      ownHosts: hosts,
      rtmpPort: media().rtmpPort,
      rtmpsPort: media().rtmpTlsPort,
      otherNodes: elsewhere?.owners.rtmpHosts() ?? [],
      allow: config.upstream.allow,
    }),
  });
  const appDeps: AppDeps = {
    db,
    reads,
    secretBox: box,
    config,
    clock,
    log,
    tokens,
    revocations,
    metrics,
    publishKeys,
    secrets,
    customers,
    workbench: publishing.workbench,
    checkWebhookUrl: (url, options) => checkWebhookUrl(url, { ...options, resolve }),
    identityFetch: createGuardedFetch({ ca: config.webhook.ca, dev, resolve }),
    checkUpstreamUrl: (url, owner) => checkUpstreamUrl(url, { dev, owner, resolve }),
    streamUpstreams,
    sessions,
    previews,
    captures,
    runningPublish: publishing.find,
    measurements,
    timelines: createTimelines({ db: reads, recorder, workbench: publishing.workbench, findingsOf, clock }),
    events,
    refusesPublishes() {
      if (deps.isDraining?.() || deps.isStopping?.()) return "draining";
      return full() === null ? null : "full";
    },
    deployment,
    nodes,
    ingestPorts: () => ({ rtmp: media().rtmpPort, rtmps: media().rtmpTlsPort }),
    version,
    whip,
    refusals,
    elsewhere,
    others,
  };
  return {
    appDeps,
    app: createApp(appDeps),
    publishing,
    tokens,
    tokenKeys,
    secrets,
    customers,
    streamUpstreams,
    sessions,
    measurements,
    events,
    metrics,
    previews,
    full,
    epoch: () => member.epoch,
    flushTimelines: recorder.flush,
    startMeasuring: () => capacity?.start(),
    async stop() {
      capacity?.stop();
      events.stop();
      measurements.stop();
      await publishing.stop();
      await refusals.stop();
      await recorder.stop();
      revocations.stop();
    },
  };
}
