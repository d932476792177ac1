// The life of every publish, from the media core's question to the delivered publish_done. Each part has its own file.
import type { Kysely } from "kysely";
import type { Logger } from "pino";
import type { Membership } from "../cluster/membership.ts";
import { inTime } from "../in-time.ts";
import type { MediaEvent, PublishEnded, PublishRequested } from "../media/events.ts";
import type { Media } from "../media.ts";
import type { PublishingMetrics } from "../metrics.ts";
import { EVERYTHING, type Share } from "../node-share.ts";
import type { Customers } from "../organisation/customers.ts";
import type { Schema } from "../store/schema.ts";
import type { PlayTokenLack } from "../token/play-token.ts";
import type { TokenClaims } from "../token/tokens.ts";
import type { Resolve } from "./addresses/resolver.ts";
import { type AdmissionDeps, createAdmission, type PublishRequest } from "./admission.ts";
import { type Allowed, createAllow } from "./allowed.ts";
import { createOnAir, type OnAir } from "./backup/on-air.ts";
import { createPulledBytes } from "./bytes/pulled-bytes.ts";
import { createClientIds } from "./client-ids.ts";
import { type Denied, denied, isOfNode } from "./denials.ts";
import { type Ending, endingOf } from "./ending/ending.ts";
import { createEndings, type Endings } from "./ending/endings.ts";
import { createEnds } from "./ends.ts";
import type { CredentialsDeps } from "./key/credentials.ts";
import { createOrganisationLimiter } from "./limits/organisation-limiter.ts";
import { adoptEvents } from "./orphans.ts";
import { createPlayers, type PlayersDeps } from "./players.ts";
import type { PublishEvents } from "./publish-events.ts";
import {
  type AllowedPublish,
  type AskedPublish,
  createPublishes,
  type Publishes,
  type RunningPublish,
} from "./publishes.ts";
import type { PublishingSettings } from "./publishing-settings.ts";
import type { Refusals, RefusedPublish } from "./refusals/refusals.ts";
import { createRefusedConnections } from "./refused-connections.ts";
import { liveNumbers } from "./running/live-numbers.ts";
import { createUpkeep } from "./running/upkeep.ts";
import { createUpdate, startUpdates, type Updates } from "./updates.ts";
import type { StoredUpstream } from "./upstreams/deployment-upstreams.ts";
import { createHolds } from "./upstreams/holds.ts";
import { createUpstreamEvents } from "./upstreams/upstream-events.ts";
import { createWebhook } from "./webhook/call.ts";
import { createDeliveryLog } from "./webhook/delivery-log.ts";
import { createOutbox } from "./webhook/outbox.ts";
import { createWorkbench, type Workbench } from "./webhook/workbench.ts";

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
  /** Why the store cannot be written; null while it can. Absent: unknown until a write is tried. */
  readonly storeProblem?: () => string | null;
  /** The node whose publishes these are. */
  readonly member: Membership;
  /** Called at each use: the media core may start after this object. */
  readonly media: () => Media;
  /** The upstreams that a stream is pushed to. */
  readonly streamUpstreams: (streamId: string) => Promise<readonly StoredUpstream[]>;
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
  readonly events: Pick<PublishEvents, "emit">;
  readonly settings: PublishingSettings;
  /** What a running publish sends at present, kbit/s; null while it is not known. Absent: not measured. */
  readonly ingestKbpsOf?: (clientId: number) => number | null;
}

export interface Publishing
  extends Pick<Publishes, "running" | "find" | "isEnding" | "ofSession" | "ofStream" | "onEnded">,
    Pick<OnAir, "switchTarget" | "switchTo"> {
  /** Webhook tools for the customer's developers. */
  readonly workbench: Workbench;
  /** Why this node accepts no WHIP publish at all for now; null while it accepts some. A refusal is counted
   *  and logged. */
  closed(request: RefusedPublish): Denied | null;
  /** Takes an event of the media core. Never throws; every request is answered. */
  handle(event: MediaEvent): void;
  /** Decides a publish request. Never rejects. An allowed one is started or dropped at once. */
  admit(request: PublishRequest): Promise<Allowed | Denied>;
  /** Ends every matching publish, including one still being admitted, which never goes live. Held upstreams and players
   *  of a lost match end, too. False when nothing matched. */
  kick(isMeant: (publish: AskedPublish) => boolean, ending: Ending): boolean;
  /** Why WHIP sessions are over, here and on other nodes. */
  readonly endings: Pick<Endings, "recent" | "find">;
  /** Ends every publish whose web token was revoked. Call it after a revocation. */
  endRevoked(): void;
  /** The broadcaster ends its WHIP session, which may be held; `isLeft`: it disconnected without ending the publish,
   *  which is then treated as lost. False when there is no such session (any more). */
  endWhip(session: string, isLeft?: boolean): boolean;
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
  const { db, clock, log, settings, customers, metrics, events } = deps;
  const { deadlineMs } = settings;
  const publishes = createPublishes();
  const { running, find, isEnding, ofSession, ofStream, onEnded } = publishes;
  const deliveries = createDeliveryLog({ db, clock, log });
  const webhook = createWebhook({
    webhookCa: settings.webhookCa,
    dev: settings.dev,
    resolve: deps.resolve,
    log,
    clock,
    observe(call, answer, tookMs, response) {
      deliveries.note(call, answer, tookMs, response);
      events.emit({ kind: "asked", call: call.event.call, answer, tookMs });
    },
  });
  const outbox = createOutbox({ ...deps, webhook, deadlineMs });
  const ids = createClientIds(db);
  const ends = createEnds({ db, outbox, clock, log });
  const organisationLimits = createOrganisationLimiter({ ...deps, publishes });
  /** By client id. */
  const updates = new Map<number, Updates>();
  metrics.watchPublishing({
    load: webhook.load,
    outbox: outbox.depth,
    live: () => liveNumbers(running(), deps.media),
  });
  const endings = createEndings(deps);
  const underWay = new Set<Promise<void>>();
  const holds = createHolds<RunningPublish>(deps);
  const allow = createAllow({ publishes, ends, holds, events, log, isRevoked, startUpdates: startUpdatesOf, end });
  const admission = createAdmission({ ...deps, ids, publishes, webhook, outbox, ends, organisationLimits, allow });
  const onAir = createOnAir({ ...deps, publishes });
  const upkeep = createUpkeep({
    ...deps,
    intents: () => [...running(), ...holds.all()].map(({ intent }) => intent),
    kick,
  });
  const upkeeping = setInterval(() => track(upkeep()), UPKEEP_INTERVAL_MS);
  const publishOf = (clientId: number) => (find(clientId) ?? holds.find(clientId))?.intent ?? null;
  const pulledBytes = createPulledBytes(deps);
  const players = createPlayers({ pulledBytes, ...deps, ...settings, publishOf });
  const upstreams = createUpstreamEvents({ ...deps, publishOf });
  const refusedConnections = createRefusedConnections(deps);
  let stopping = false;

  return {
    workbench: createWorkbench({ db, reads: deps.reads, webhook, deliveries, customers, clock, deadlineMs }),
    handle(event) {
      switch (event.kind) {
        case "publish_requested":
          return track(decide(event));
        case "publish_ended":
          return track(end(event));
        case "hold_ended":
          return track(holds.end(event, find(event.successor ?? 0)));
        case "on_air_changed":
          onAir.note(event);
          return events.emit(event);
        case "play_requested":
        case "play_ended":
        case "source_wanted":
        case "pull_ended":
          return track(players.handle(event));
        case "connection_refused":
          refusedConnections.note(event);
          return events.emit(event);
        case "address_wanted":
          return track(upstreams.answer(event));
        case "upstream_changed":
          upstreams.note(event);
          return events.emit(event);
      }
    },
    admit,
    running,
    find,
    isEnding,
    ofSession,
    ofStream,
    onEnded,
    closed(request) {
      const refusal = stopping ? null : admission.closed();
      if (refusal !== null) reportDenied(refusal, request);
      return refusal;
    },
    switchTarget: onAir.switchTarget,
    switchTo: onAir.switchTo,
    kick,
    endings,
    endRevoked() {
      kick(isRevoked, endingOf("token_revoked"));
    },
    endWhip(session, isLeft = false) {
      const publish = publishes.closeSession(session);
      if (publish !== undefined) {
        endings.close(publish, isLeft);
        return true;
      }
      // Some clients close their connection before they send the DELETE that ends the session deliberately.
      const isHeld = (of: AskedPublish & Pick<RunningPublish, "session">) => of.session === session;
      if (isLeft) return holds.all().some(isHeld);
      endings.settle(
        ({ intent }) => holds.find(intent.clientId)?.session === session,
        endingOf("ended_by_broadcaster"),
      );
      return holds.release(isHeld);
    },
    async takeOver(reason, share = EVERYTHING) {
      try {
        await ends.recordOrphans(reason, deps.member.epoch, share);
      } finally {
        await adoptEvents(db, deps.member.epoch, share);
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
      const stopped = [...updates.values()].map((each) => each.stop());
      await inTime(STOP_LIMIT_MS, Promise.all([...stopped, ...underWay, admission.settled()]), null);
      await outbox.stop(STOP_LIMIT_MS);
      await webhook.close();
      await deliveries.stop();
    },
  };

  function kick(isMeant: (publish: AskedPublish) => boolean, ending: Ending): boolean {
    const stopped = publishes.stop(isMeant, ending);
    for (const publish of stopped.running) endings.end(publish, "kicked", ending);
    endings.settle(isMeant, ending);
    const isHeld = holds.release(isMeant);
    return isHeld || stopped.count > 0;
  }

  function isRevoked({ claims }: AskedPublish): boolean {
    return claims !== null && deps.isRevoked(claims);
  }

  /** Keeps the promise so that `stop` can wait for it; a failure is logged, never thrown. */
  function track(work: Promise<void>): void {
    const settled = work
      .catch((err: unknown) => log.error({ err }, "publish event failed"))
      .finally(() => underWay.delete(settled));
    underWay.add(settled);
  }

  async function admit(request: PublishRequest): Promise<Allowed | Denied> {
    const decision = stopping ? denied("stopping") : await admission.admit(request);
    if (decision.outcome === "denied")
      reportDenied(decision, { ...request, protocol: request.via ?? request.protocol });
    return decision;
  }

  async function decide(event: PublishRequested): Promise<void> {
    const media = deps.media();
    const elsewhere = stopping ? { elsewhere: deps.rtmpElsewhere?.() ?? [] } : {};
    const decision = await admit({ ...event, protocol: "rtmp" });
    if (decision.outcome === "denied") return media.deny(event.request, { ...decision, ...elsewhere });
    const { clientId, upstreams } = decision.publish;
    const started = await decision.start((hold) => {
      media.allow(event.request, { clientId, upstreams, hold });
      return null;
    });
    if (started.outcome === "denied") media.deny(event.request, started);
  }

  function reportDenied(refusal: Denied, request: RefusedPublish): void {
    if (!(request.mayMove && isOfNode(refusal))) events.emit({ kind: "denied", refusal, request });
  }

  function startUpdatesOf({ intent, acceptedAt }: AllowedPublish): void {
    if (intent.webhook === null) return;
    const publish = { ...intent, url: intent.webhook, acceptedAt };
    const { clientId } = intent;
    const end = (ending: Ending) => {
      const running = find(clientId);
      if (running !== undefined) endings.end(running, "rejected_by_customer", ending);
    };
    const update = createUpdate(publish, { ...deps, end, webhook, customers, clock, log, deadlineMs });
    updates.set(clientId, startUpdates(settings.updateSeconds * 1_000, update));
  }

  async function end(event: PublishEnded): Promise<void> {
    if (ends.has(event.clientId)) return;
    const { clientId, bytesIn, bytesOut, droppedFrames } = event;
    const { reason, ending } = endings.take(event, find(clientId));
    const publish = publishes.end(clientId);
    const lastUpdate = updates.get(clientId)?.stop();
    updates.delete(clientId);
    const { organisationId, epoch = deps.member.epoch } = publish?.intent ?? {};
    const counters = { bytesIn, bytesOut, droppedFrames };
    const recording = ends.record({ clientId, reason, ending, counters, organisationId, epoch }, lastUpdate);
    if (publish !== undefined) publishes.freeName(publish, recording.tried);
    if (event.held && publish !== undefined) holds.add(publish);
    events.emit({ kind: "ended", publish: publish ?? null, counters: event, reason, ending });
    if (event.held && stopping) deps.media().release(clientId);
    await recording.done;
  }
}
