// The life of every publish, from the media core's question to the delivered publish_done. Each part has its own file.
import type { Kysely } from "kysely";
import type { Logger } from "pino";
import type { Membership } from "../cluster/membership.ts";
import { inTime } from "../in-time.ts";
import type { MediaEvent, PublishEnded } from "../media/events.ts";
import type { Media } from "../media.ts";
import type { PublishingMetrics } from "../metrics.ts";
import { EVERYTHING, type Share } from "../node-share.ts";
import type { Customers } from "../organisation/customers.ts";
import type { Schema } from "../store/schema.ts";
import type { PlayTokenLack } from "../token/play-token.ts";
import type { TokenClaims } from "../token/tokens.ts";
import type { Resolve } from "./addresses/resolver.ts";
import { createRequests, type Requests } from "./admission/requests.ts";
import { type AdmissionDeps, createAdmission } from "./admission.ts";
import { createAllow } from "./allowed.ts";
import { createOnAir, type OnAir } from "./backup/on-air.ts";
import { createPulledBytes } from "./bytes/pulled-bytes.ts";
import { createCalls } from "./calls.ts";
import { type ClientIds, createClientIds } from "./client-ids.ts";
import { endingOf } from "./ending/ending.ts";
import { createEndings, type Endings } from "./ending/endings.ts";
import { createEnds } from "./ends.ts";
import type { CredentialsDeps } from "./key/credentials.ts";
import { createOrganisationLimiter } from "./limits/organisation-limiter.ts";
import { adoptEvents } from "./orphans.ts";
import { Players, type PlayersDeps } from "./players.ts";
import type { PublishEvents } from "./publish-events.ts";
import { type AskedPublish, createPublishes, type Publishes, type RunningPublish } from "./publishes.ts";
import type { PublishingSettings } from "./publishing-settings.ts";
import type { Refusals } from "./refusals/refusals.ts";
import { createRefusedConnections } from "./refused-connections.ts";
import { endPublish } from "./running/ended.ts";
import { liveNumbers } from "./running/live-numbers.ts";
import { mediaEvents } from "./running/media-events.ts";
import { createStops, type Stops } from "./running/stops.ts";
import { createUpdating } from "./running/updating.ts";
import { createUpkeep } from "./running/upkeep.ts";
import type { StartingUpstreams } from "./upstreams/deployment-upstreams.ts";
import { createHolds } from "./upstreams/holds.ts";
import { createUpstreamEvents } from "./upstreams/upstream-events.ts";
import { createUpstreamTests, type UpstreamTests } from "./upstreams/upstream-tests.ts";
import type { Workbench } from "./webhook/workbench.ts";

/** How often running publishes are looked after (upkeep.ts), ms. */
const UPKEEP_INTERVAL_MS = 10_000;
/** How long `stop` waits for work under way, and then again for the outbox, ms. */
const STOP_LIMIT_MS = 5_000;

export interface PublishingDeps
  extends Pick<AdmissionDeps, "isDraining" | "rtmpElsewhere" | "rivals" | "room" | "wrongNames">,
    CredentialsDeps,
    Pick<PlayersDeps, "elsewhere" | "isNode" | "organisationOf"> {
  readonly db: Kysely<Schema>;
  readonly reads: Kysely<Schema>;
  /** Why the store cannot be written; null while it can, or until a write is tried. */
  readonly storeProblem: () => string | null;
  /** The node whose publishes these are. */
  readonly member: Membership;
  /** Called at each use: the media core may start after this object. */
  readonly media: () => Media;
  readonly streamUpstreams: StartingUpstreams;
  /** Epoch ms. */
  readonly clock: { now(): number };
  readonly log: Logger;
  /** Webhook keys and settings of the organisations. */
  readonly customers: Pick<Customers, "of">;
  /** Whether a web token has been revoked. */
  readonly isRevoked: (claims: TokenClaims) => boolean;
  /** Whether a player presents the token that the organisation may require. */
  readonly playTokenLack: PlayTokenLack;
  /** Resolves the names that customers supply. */
  readonly resolve: Resolve;
  /** Of players, upstreams and events; those of publishes listen to `events`. */
  readonly metrics: PublishingMetrics;
  readonly refusals: Pick<Refusals, "note">;
  /** For those who observe publishes. */
  readonly events: PublishEvents;
  readonly settings: PublishingSettings;
  /** What a running publish sends at present, kbit/s; null while it is not known. */
  readonly ingestKbpsOf: (clientId: number) => number | null;
}

export interface Publishing
  extends Pick<Publishes, "running" | "find" | "isEnding" | "ofSession" | "ofStream" | "onEnded">,
    Pick<OnAir, "switchTarget" | "switchTo">,
    Pick<Requests, "admit" | "closed">,
    Stops {
  /** Webhook tools for the customer's developers. */
  readonly workbench: Workbench;
  readonly upstreamTests: Pick<UpstreamTests, "run">;
  /** Takes an event of the media core. Never throws; every request is answered. */
  handle(event: MediaEvent): void;
  /** Why WHIP sessions are over, here and on other nodes. */
  readonly endings: Pick<Endings, "recent" | "find">;
  /** Ends every publish whose web token was revoked. Call it after a revocation. */
  endRevoked(): void;
  /** Ends the publishes that departed nodes left open, or a share of them, and delivers their pending events. Call it
   *  before the first event, for what the previous process left, and when a node is gone. Rejects when some could not be
   *  ended: call it again. */
  takeOver(reason: "gateway_restarted" | "node_lost", share?: Share): Promise<void>;
  /** The other nodes have declared this node dead: every publish here ends, since it no longer belongs to this node. */
  abandon(): void;
  /** Records what players here received of publishes on other nodes (W8), for their publish_done. Call it often. */
  keepPulledBytes(): Promise<void>;
  /** Denies every request from here on; resolves when no publish runs any more, or after `limitMs`. */
  drain(limitMs: number): Promise<void>;
  /** Finishes ends in progress and tries the outbox once more, within 10 s. Call after `Media.stop`, when every end is
   *  known. A publish that is still running is ended by the next `takeOver`. */
  stop(): Promise<void>;
}

export function createPublishing(deps: PublishingDeps): Publishing {
  const { db, reads, member, media, clock, log, settings, customers, metrics, events, resolve } = deps;
  const { deadlineMs } = settings;
  const publishes = createPublishes();
  const { running, find, isEnding, ofSession, ofStream, onEnded } = publishes;
  const calls = createCalls({ db, reads, member, clock, log, settings, customers, metrics, events, resolve });
  const { deliveries, webhook, outbox } = calls;
  const ends = createEnds({ db, outbox, clock, log });
  metrics.watchPublishing({
    load: webhook.load,
    outbox: calls.depth,
    live: () => liveNumbers(running(), media),
  });
  const endings = createEndings({ db, media, clock });
  const underWay = new Set<Promise<void>>();
  const holds = createHolds<RunningPublish>({ db, media, log });
  const intervalMs = settings.updateSeconds * 1_000;
  const updating = createUpdating({
    publishes,
    endings,
    media,
    member,
    webhook,
    customers,
    log,
    deadlineMs,
    intervalMs,
  });
  let stopping = false;
  const isStopping = () => stopping;
  const end = (event: PublishEnded) =>
    endPublish({ publishes, ends, endings, holds, updating, events, media, member, isStopping }, event);
  const isRevoked = ({ claims }: AskedPublish) => claims !== null && deps.isRevoked(claims);
  const startUpdates = updating.start;
  const allow = createAllow({ publishes, ends, holds, events, log, isRevoked, startUpdates, end });
  const ids = createClientIds(db);
  const { rivals, ingestKbpsOf } = deps;
  const limited = { db, member, publishes, clock, settings, rivals, ingestKbpsOf };
  const organisationLimits = createOrganisationLimiter(limited);
  const admission = createAdmission({ ...deps, ids, publishes, webhook, ends, organisationLimits, allow });
  const { admit, answer, closed } = createRequests({
    admission,
    events,
    media,
    rtmpElsewhere: deps.rtmpElsewhere,
    isStopping,
  });
  const { kick, endWhip } = createStops({ publishes, endings, holds });
  const onAir = createOnAir({ publishes, media, metrics, log });
  const intents = () => [...running(), ...holds.all()].map(({ intent }) => intent);
  const upkeep = createUpkeep({ db, media, clock, log, intents, kick });
  const upkeeping = setInterval(() => track(upkeep()), UPKEEP_INTERVAL_MS);
  const publishOf = (clientId: number) => (find(clientId) ?? holds.find(clientId))?.intent ?? null;
  const { pulledBytes, players, upstreamTests, upstreams } = createOutputs(deps, { ids, publishOf });
  const refusedConnections = createRefusedConnections({ clock, log });

  return {
    workbench: calls.workbench,
    upstreamTests,
    handle: mediaEvents({
      track,
      answer,
      end,
      holds,
      find,
      onAir,
      players,
      refusedConnections,
      upstreams,
      upstreamTests,
      events,
    }),
    admit,
    running,
    find,
    isEnding,
    ofSession,
    ofStream,
    onEnded,
    closed,
    switchTarget: onAir.switchTarget,
    switchTo: onAir.switchTo,
    kick,
    endings,
    endRevoked() {
      kick(isRevoked, endingOf("token_revoked"));
    },
    endWhip,
    async takeOver(reason, share = EVERYTHING) {
      try {
        await ends.recordOrphans(reason, member.epoch, share);
      } finally {
        await adoptEvents(db, member.epoch, share);
        outbox.wake();
      }
      track(deliveries.prune());
    },
    abandon() {
      kick(() => true, endingOf("service_stopped", "This node lost contact with the service; publish again"));
    },
    keepPulledBytes: pulledBytes.record,
    async drain(limitMs) {
      stopping = true;
      holds.release(() => true);
      await inTime(limitMs, publishes.empty(), undefined);
    },
    async stop() {
      stopping = true;
      clearInterval(upkeeping);
      await inTime(STOP_LIMIT_MS, Promise.all([...updating.stopAll(), ...underWay, admission.settled()]), null);
      await calls.stop(STOP_LIMIT_MS);
    },
  };

  /** Keeps the promise so that `stop` can wait for it; a failure is logged, never thrown. */
  function track(work: Promise<void>): void {
    const settled = work
      .catch((err: unknown) => log.error({ err }, "publish event failed"))
      .finally(() => underWay.delete(settled));
    underWay.add(settled);
  }
}

/** What leaves the service: players, and pushes to upstreams. */
function createOutputs(
  deps: PublishingDeps,
  { ids, publishOf }: { readonly ids: ClientIds; readonly publishOf: PlayersDeps["publishOf"] },
) {
  const { db, media, clock, log, settings, customers, metrics, resolve, wrongNames, room } = deps;
  const pulledBytes = createPulledBytes({ db, media, clock });
  const upstreamTests = createUpstreamTests({ ids, media, log });
  const { testedBy } = upstreamTests;
  const upstreams = createUpstreamEvents({ media, publishOf, testedBy, metrics, log, resolve, settings });
  const players = new Players({
    media,
    publishOf,
    customers,
    playTokenLack: deps.playTokenLack,
    playAllow: settings.playAllow,
    clock,
    log,
    metrics,
    refusals: deps.refusals,
    organisationOf: deps.organisationOf,
    wrongNames,
    pulledBytes,
    room,
    elsewhere: deps.elsewhere,
    isNode: deps.isNode,
  });
  return { pulledBytes, players, upstreamTests, upstreams };
}
