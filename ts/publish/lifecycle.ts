// The life of every publish, from the media core's question to the delivered publish_done. Each part has its own file.
import type { Kysely } from "kysely";
import type { Logger } from "pino";
import type { Membership } from "../cluster/membership.ts";
import { inTime } from "../in-time.ts";
import type { MediaEvent, PublishEnded, PublishRequested } from "../media/events.ts";
import type { Hold } from "../media/hold.ts";
import type { Media } from "../media.ts";
import type { PublishingMetrics } from "../metrics.ts";
import type { Customers } from "../organisation/customers.ts";
import type { Schema } from "../store/schema.ts";
import type { HoldsPlayToken } from "../token/play-token.ts";
import type { HoldsToken } from "../token/required-token.ts";
import type { Resolve } from "./addresses/resolver.ts";
import { type Admission, type AdmissionDeps, createAdmission, type PublishRequest } from "./admission.ts";
import type { BitrateLimits } from "./bitrate-limit.ts";
import { createClientIds } from "./client-ids.ts";
import { type Denied, denied } from "./denials.ts";
import { createEnds } from "./ends.ts";
import { liveNumbers } from "./live-numbers.ts";
import { NamesInUse } from "./names-in-use.ts";
import { createPlayers, type OtherNodes } from "./players.ts";
import { createPulledBytes } from "./pulled-bytes.ts";
import { adoptEvents, type Intent, identityOf, orphans, type RecordedEndReason, recordEnd } from "./record.ts";
import { createRefusedConnections } from "./refused-connections.ts";
import { createUpkeep } from "./running/upkeep.ts";
import { createUpdate, startUpdates, type Updates } from "./updates.ts";
import type { StoredUpstream, UpstreamNames } from "./upstreams/deployment-upstreams.ts";
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

export interface PublishingDeps extends OtherNodes, Pick<AdmissionDeps, "isDraining" | "rivals"> {
  readonly db: Kysely<Schema>;
  /** Why the store cannot be written; null while it can. Without: not known before it is tried. */
  readonly storeProblem?: () => string | null;
  /** Whose publishes these are. */
  readonly member: Membership;
  /** Asked at each use: the media core may start after this. */
  readonly media: () => Media;
  /** Where a stream is pushed to. */
  readonly streamUpstreams: (streamId: string) => Promise<readonly StoredUpstream[]>;
  /** Epoch ms. */
  readonly clock: { now(): number };
  readonly log: Logger;
  /** Keys and switches of the organisations. */
  readonly customers: Pick<Customers, "of">;
  /** Whether a publish brings the web token that its organisation may require. */
  readonly holdsToken: HoldsToken;
  /** Whether a player brings the token that the organisation may require. */
  readonly holdsPlayToken: HoldsPlayToken;
  /** Of the names that customers bring. */
  readonly resolve: Resolve;
  readonly metrics: PublishingMetrics;
  readonly settings: {
    /** Total deadline of one webhook call (W11), ms. */
    readonly deadlineMs: number;
    /** Between an answer and the next update_publish (W14), seconds. */
    readonly updateSeconds: number;
    /** PEM certificates trusted beside the public ones, or null. */
    readonly webhookCa: string | null;
    /** Allows http and private webhook addresses (W21). */
    readonly dev: boolean;
    /** RTMP URLs with `{name}` and `{args}` that every publish is pushed to (R4). */
    readonly upstreamPush: readonly string[];
    readonly maxBitrateKbps: BitrateLimits;
    /** Networks that may play; empty for all. */
    readonly playAllow: readonly string[];
    /** What happens to a publish of a live name (W20). */
    readonly duplicate: "reject_if_active" | "replace";
    readonly holdSeconds: AdmissionDeps["settings"]["holdSeconds"];
  };
}

export interface Publishing {
  /** What the customer's developers look at. */
  readonly workbench: Workbench;
  /** Takes an event of the media core. Never throws; every request is answered. */
  handle(event: MediaEvent): void;
  /** Decides a WHIP publish request; when it is allowed, `open` makes the media and its answer at once. */
  openWhip(
    request: Omit<PublishRequest, "protocol">,
    open: (allowed: Allowed, hold: Hold) => string,
  ): Promise<OpenedWhip | Denied>;
  /** Calls `ended` once when the publish has ended; at once when it runs no more. */
  onEnded(clientId: number, ended: () => void): void;
  /** The same when its upstreams and players have ended or go on with another one. */
  onReleased(clientId: number, released: () => void): void;
  /** Every publish that runs now, oldest first. */
  running(): readonly RunningPublish[];
  /** Ends every publish that is meant, also one that is being admitted: it never goes live. `description` is for the
   *  broadcaster. False when there is none. */
  kick(isMeant: (intent: Intent) => boolean, description: string): boolean;
  /** The broadcaster ends its WHIP publish, or leaves it as lost; also one that is held. False when there is none. */
  endWhip(clientId: number, reason: "unpublished" | "broadcaster_left"): boolean;
  /** Ends what nodes that are gone left open, and delivers what they owed. Call it before the first event, where it is
   *  what the process before this one left, and whenever a node is gone. */
  takeOver(reason: "gateway_restarted" | "node_lost"): Promise<void>;
  /** Others have taken this node for dead: whatever runs ends here, where it is not this node's any more. */
  abandon(): void;
  /** Keeps what players of this node got of publishes on other nodes (W8). Call it often: an end counts what is kept. */
  keepPulledBytes(): Promise<void>;
  /** From now on every request is denied; resolves when no publish runs any more, or `limitMs` is over. */
  drain(limitMs: number): Promise<void>;
  /** Finishes ends under way and tries the outbox once more, within 10 s. Call after `Media.stop`: then every end is
   *  known. A publish that is still running is ended by the next `takeOver`. */
  stop(): Promise<void>;
}

export type Allowed = Extract<Admission, { outcome: "allowed" }>;

export interface OpenedWhip {
  readonly outcome: "opened";
  readonly clientId: number;
  readonly answer: string;
}

/** A publish from its acceptance to its end. */
export interface RunningPublish extends Allowed {
  readonly protocol: PublishRequest["protocol"];
  /** The lost publish whose upstreams and players it went on with; null for none. */
  readonly continues: number | null;
  /** Upstreams that were added while it, or what it continues, ran: by id. */
  readonly addedUpstreams: Map<string, UpstreamNames>;
}

interface Running extends RunningPublish {
  readonly updates: Updates | null;
  /** Called when it has ended. */
  readonly ended: (() => void)[];
  continues: number | null;
}

export function createPublishing(deps: PublishingDeps): Publishing {
  const { db, clock, log, settings, customers, metrics } = deps;
  const { deadlineMs } = settings;
  const names = new NamesInUse();
  const deliveries = createDeliveryLog({ db, clock, log });
  const webhook = createWebhook({
    webhookCa: settings.webhookCa,
    dev: settings.dev,
    resolve: deps.resolve,
    log,
    clock,
    observe(call, answer, tookMs) {
      deliveries.note(call, answer, tookMs);
      metrics.observeWebhook(call.event.call, answer, tookMs);
    },
  });
  const outbox = createOutbox({ ...deps, webhook, deadlineMs });
  const ids = createClientIds(db);
  const ends = createEnds({ db, outbox, clock, log });
  const { admit, settled } = createAdmission({ ...deps, ids, names, webhook, outbox, ends });
  const running = new Map<number, Running>();
  /** From before the customer is asked until the media core has it: those that are to be stopped, with what the
   *  broadcaster is told. */
  const asking = new Map<number, { readonly intent: Intent; stopped: string | null }>();
  metrics.watchPublishing({
    load: webhook.load,
    outbox: outbox.depth,
    live: () => liveNumbers([...running.values()], deps.media),
  });
  /** Publishes that were told to end because too many updates had no answer (W16). */
  const unreachable = new Set<number>();
  const underWay = new Set<Promise<void>>();
  const holds = createHolds<Running>(deps);
  const intents = () => [...[...running.values()].map(({ intent }) => intent), ...holds.intents()];
  const upkeep = createUpkeep({ ...deps, intents, kick });
  const upkeeping = setInterval(() => track(upkeep()), UPKEEP_INTERVAL_MS);
  const publishOf = (clientId: number) => (running.get(clientId) ?? holds.find(clientId))?.intent ?? null;
  const pulledBytes = createPulledBytes(deps);
  const players = createPlayers({ pulledBytes, ...deps, ...settings, publishOf });
  const upstreams = createUpstreamEvents({ ...deps, publishOf });
  const refusedConnections = createRefusedConnections(deps);
  let stopping = false;
  /** Called when the last publish has ended. */
  let onEmpty: (() => void) | null = null;

  return {
    workbench: createWorkbench({ db, webhook, deliveries, customers, clock, deadlineMs }),
    handle(event) {
      switch (event.kind) {
        case "publish_requested":
          return track(decide(event));
        case "publish_ended":
          return track(end(event));
        case "hold_ended":
          return track(holds.end(event, running.get(event.successor ?? 0)));
        case "play_requested":
        case "play_ended":
        case "source_wanted":
        case "pull_ended":
          return track(players.handle(event));
        case "connection_refused":
          return refusedConnections.note(event);
        case "address_wanted":
          return track(upstreams.answer(event));
        case "upstream_changed":
          return upstreams.note(event);
      }
    },
    async openWhip(request, open) {
      const admission = stopping ? denied("stopping") : await admitted({ ...request, protocol: "whip" });
      if (admission.outcome === "denied") {
        tellDenied(admission, request.address, "whip");
        return admission;
      }
      const { clientId } = admission;
      let answer = "";
      const refusal = await begin(admission, "whip", (hold) => {
        answer = open(admission, hold);
      });
      return refusal ?? { outcome: "opened", clientId, answer };
    },
    onEnded(clientId, ended) {
      const publish = running.get(clientId);
      if (publish === undefined) ended();
      else publish.ended.push(ended);
    },
    onReleased: holds.onEnded,
    running: () => [...running.values()],
    kick,
    endWhip(clientId, reason) {
      const isHeld = holds.find(clientId) !== undefined;
      if (isHeld && reason === "unpublished") deps.media().release(clientId);
      if (!running.has(clientId)) return isHeld;
      deps.media().end(clientId, reason, "");
      return true;
    },
    async takeOver(reason) {
      const end = { reason, bytes: null, epoch: deps.member.epoch, whose: "orphaned" } as const;
      for (const clientId of await orphans(db)) {
        await recordEnd(db, clientId, end, clock.now());
        log.warn({ clientId, reason }, "publish ended");
      }
      await adoptEvents(db, deps.member.epoch);
      outbox.wake();
      track(deliveries.prune());
    },
    abandon() {
      kick(() => true, "This node was out of touch with the service; publish again");
    },
    keepPulledBytes: pulledBytes.record,
    async drain(limitMs) {
      stopping = true;
      holds.release(() => true);
      if (running.size === 0) return;
      const empty = new Promise<void>((resolve) => {
        onEmpty = resolve;
      });
      await inTime(limitMs, empty, undefined);
    },
    async stop() {
      stopping = true;
      clearInterval(upkeeping);
      const stopped = [...running.values()].map((publish) => publish.updates?.stop());
      await inTime(STOP_LIMIT_MS, Promise.all([...stopped, ...underWay, settled()]), null);
      await outbox.stop(STOP_LIMIT_MS);
      await webhook.close();
      await deliveries.stop();
    },
  };

  function kick(isMeant: (intent: Intent) => boolean, description: string): boolean {
    const meant = [...asking.values()].filter(({ intent }) => isMeant(intent));
    for (const publish of meant) publish.stopped = description;
    const live = [...running.values()].filter(({ intent }) => isMeant(intent));
    for (const { clientId } of live) deps.media().end(clientId, "kicked", description);
    const isHeld = holds.release(isMeant);
    return isHeld || meant.length + live.length > 0;
  }

  /** Remembers work so that `stop` can wait for it; whatever fails in it is logged, never thrown. */
  function track(work: Promise<void>): void {
    const settled = work
      .catch((err: unknown) => log.error({ err }, "publish event failed"))
      .finally(() => underWay.delete(settled));
    underWay.add(settled);
  }

  async function admitted(request: PublishRequest): Promise<Admission> {
    let told: number | null = null;
    const admission = await admit(request, (intent) => {
      told = intent.clientId;
      asking.set(intent.clientId, { intent, stopped: null });
    });
    if (admission.outcome === "denied" && told !== null) asking.delete(told);
    return admission;
  }

  async function decide(event: PublishRequested): Promise<void> {
    const media = deps.media();
    if (stopping) {
      media.deny(event.request, { code: "denied", description: "Service is stopping" });
      return;
    }
    const admission = await admitted({ ...event, protocol: "rtmp" });
    if (admission.outcome === "denied") {
      tellDenied(admission, event.address, "rtmp");
      media.deny(event.request, admission);
      return;
    }
    const refusal = await begin(admission, "rtmp", (hold) => media.allow(event.request, { ...admission, hold }));
    if (refusal !== null) media.deny(event.request, refusal);
  }

  /** The publish is live from here on; a refusal when it was stopped meanwhile or the core would not have it, and then
   *  it has ended. */
  async function begin(
    admission: Allowed,
    protocol: RunningPublish["protocol"],
    start: (hold: Hold) => void,
  ): Promise<Denied | null> {
    const { clientId, intent } = admission;
    const { stopped = null } = asking.get(clientId) ?? {};
    asking.delete(clientId);
    if (stopped !== null) {
      // Accepted and ended at once: publish_done follows.
      const recording = ends.record({ clientId, reason: "kicked", bytes: null, epoch: intent.epoch });
      names.end(intent.name, clientId, recording.tried);
      await recording.done;
      const refusal = denied("stopped", stopped);
      const about = { clientId, organisation: intent.organisationId, stream: intent.streamId };
      tellDenied({ ...refusal, about }, intent.address, protocol);
      return refusal;
    }
    // Known before the core is told: the end may come in the same turn (W12a).
    metrics.countStart(protocol);
    const lost = holds.lostBefore(intent);
    const { addedUpstreams = new Map() } = lost ?? {};
    const updates = updatesOf(admission);
    running.set(clientId, { ...admission, protocol, updates, ended: [], continues: null, addedUpstreams });
    log.info({ ...identityOf(intent), protocol, address: intent.address }, "publish started");
    try {
      start({ windowMs: admission.holdMs, continues: lost?.clientId ?? null });
      return null;
    } catch (err) {
      log.error({ err, clientId }, "media core refused an allowed publish");
      await end({ kind: "publish_ended", clientId, reason: "internal_error", bytesIn: 0, bytesOut: 0, held: false });
      return denied("internal_error");
    }
  }

  function tellDenied({ cause, about }: Denied, address: string, protocol: RunningPublish["protocol"]): void {
    log.info({ cause, ...about, protocol, address }, "publish denied");
    metrics.countDenial(cause);
  }

  function updatesOf({ intent, acceptedAt }: Allowed): Updates | null {
    if (intent.webhook === null) return null;
    const publish = { ...intent, url: intent.webhook, acceptedAt };
    const { clientId } = intent;
    const end = (reason: "rejected_by_customer" | "customer_unreachable", description: string) => {
      if (reason === "customer_unreachable") unreachable.add(clientId);
      deps.media().end(clientId, "rejected_by_customer", description);
    };
    const update = createUpdate(publish, { ...deps, end, webhook, customers, clock, log, deadlineMs });
    return startUpdates(settings.updateSeconds * 1_000, update);
  }

  async function end(event: PublishEnded): Promise<void> {
    if (ends.has(event.clientId)) return;
    const { clientId, bytesIn, bytesOut } = event;
    const publish = running.get(clientId);
    running.delete(clientId);
    if (running.size === 0) onEmpty?.();
    const reason = reasonOf(event);
    const { epoch } = publish?.intent ?? deps.member;
    const bytes = { bytesIn, bytesOut };
    const recording = ends.record({ clientId, reason, bytes, epoch }, publish?.updates?.stop());
    if (publish !== undefined) names.end(publish.intent.name, clientId, recording.tried);
    if (event.held && publish !== undefined) holds.add(publish);
    if (event.held && stopping) deps.media().release(clientId);
    for (const ended of publish?.ended ?? []) ended();
    const seconds = publish && Math.floor((clock.now() - publish.acceptedAt) / 1_000);
    const who = publish === undefined ? { clientId } : { ...identityOf(publish.intent), protocol: publish.protocol };
    log.info({ ...who, reason, seconds, bytesIn, bytesOut }, "publish ended");
    metrics.countEnd(reason, { bytesIn, bytesOut });
    await recording.done;
  }

  /** The media core knows one way in which the customer ends a publish. */
  function reasonOf({ clientId, reason }: PublishEnded): RecordedEndReason {
    const unanswered = unreachable.delete(clientId);
    return unanswered && reason === "rejected_by_customer" ? "customer_unreachable" : reason;
  }
}
