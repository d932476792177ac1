// The single entry point that decides publish requests of every protocol. It knows streams, organisations and the
// customer's answer; it knows no protocol, and it starts no media.
import { type Capacity, NO_PLACE, type Place, type Refused } from "../capacity/capacity.ts";
import type { Membership } from "../cluster/membership.ts";
import { StoreFailed } from "../errors.ts";
import { SILENCE_MS } from "../media/hold.ts";
import type { Media } from "../media.ts";
import { withoutMapping } from "../network.ts";
import { measuring } from "../step-times.ts";
import { newTrace } from "../tracing/trace.ts";
import { type AskingDeps, createAsking } from "./admission/asking.ts";
import { type GoingLiveDeps, goLive } from "./admission/going-live.ts";
import type { PublishRequest } from "./admission/publish-request.ts";
import {
  findRequested,
  type KnownRequest,
  type RequestedDeps,
  type RequestedName,
  readName,
} from "./admission/requested.ts";
import { type ReservingDeps, reserve } from "./admission/reserving.ts";
import type { Allow, Allowed } from "./allowed.ts";
import { type BitrateLimits, bitrateLimitOf } from "./bitrate-limit.ts";
import type { ClientIds } from "./client-ids.ts";
import { type DenialContext, type Denied, denied } from "./denials.ts";
import { sessionHash } from "./ending/ended-sessions.ts";
import { withoutKeyArgument } from "./key/key-argument.ts";
import type { AllowedPublish } from "./publishes.ts";
import type { Intent } from "./record.ts";
import { coreUpstream, type StoredUpstream } from "./upstreams/deployment-upstreams.ts";

export interface AdmissionDeps extends RequestedDeps, ReservingDeps, GoingLiveDeps, AskingDeps {
  readonly allow: Allow;
  /** Whether this node has room; null where capacity is not measured. */
  readonly room: Pick<Capacity, "take" | "refusal"> | null;
  /** Why the store cannot be written; null while it can, or until a write is tried. */
  readonly storeProblem: () => string | null;
  readonly member: Pick<Membership, "epoch">;
  /** Whether this node accepts no new publishes for now. */
  readonly isDraining: () => boolean;
  /** Where other nodes take publishes by RTMP(S). */
  readonly rtmpElsewhere: () => readonly string[];
  readonly ids: ClientIds;
  readonly media: () => Media;
  readonly settings: {
    readonly deadlineMs: number;
    readonly upstreamPush: readonly string[];
    readonly duplicate: "reject_if_active" | "replace";
    readonly maxBitrateKbps: BitrateLimits;
    /** How long upstreams and players of a lost publish are held, s; streams and organisations may override it. */
    readonly holdSeconds: number;
    /** Name of the custom argument that makes a publish the backup of its stream; "" disables backups. */
    readonly backupArgument: string;
  };
}

/** Decides publish requests. `admit` never rejects. The name of an allowed one stays reserved until
 *  `Publishes.freeName`, and the capacity until its `place` is released. */
export function createAdmission(deps: AdmissionDeps): {
  admit(request: PublishRequest): Promise<Allowed | Denied>;
  /** Why this node accepts no publish at all for now; null while it accepts some. */
  closed(): Denied | null;
  /** Resolves when all denials so far have been recorded. */
  settled(): Promise<void>;
} {
  const { clock, log, settings, events, isDraining } = deps;
  const measure = log.isLevelEnabled("debug") ? measuring : <T>(work: () => T) => work();
  const asking = createAsking(deps);

  return {
    async settled() {
      await Promise.all([asking.settled(), deps.ends.retry()]);
    },
    admit(request) {
      return measure(async () => {
        events.emit({ kind: "requested" });
        const decision = await admit({ ...request, trace: request.trace ?? newTrace() });
        const refusal = decision.outcome === "denied" ? decision : null;
        events.emit({ kind: "decided", protocol: request.protocol, refusal });
        return decision;
      });
    },
    closed() {
      if (isDraining()) return drainingRefusal();
      const refused = deps.room?.refusal() ?? null;
      return refused && fullOf(refused);
    },
  };

  async function admit(request: PublishRequest & Pick<Intent, "trace">): Promise<Allowed | Denied> {
    const about: DenialContext = { trace_id: request.trace.traceId };
    const place = isDraining() ? NO_PLACE : (deps.room?.take() ?? NO_PLACE);
    if ("retryAfterS" in place) return { ...fullOf(place), about };
    try {
      await place.turn();
      const decision = await decide(request, about, place);
      if (decision.outcome === "allowed") return decision;
      place.release();
      return { ...decision, about };
    } catch (err) {
      place.release();
      // The line of the denial is the only one.
      if (err instanceof StoreFailed)
        return { ...denied("store_unavailable"), about: { ...about, detail: err.message } };
      log.error({ err, ...about }, "publish request could not be decided");
      return { ...denied("internal_error"), about };
    }
  }

  function drainingRefusal(): Denied {
    return sentOn(denied("stopping", "This server is not accepting new publishes; publish again"));
  }

  function fullOf({ retryAfterS }: Refused): Denied {
    return { ...sentOn(denied("full")), retryAfterS };
  }

  /** Adds the servers that take the publish instead. */
  function sentOn(refusal: Denied): Denied {
    return { ...refusal, elsewhere: deps.rtmpElsewhere() };
  }

  async function decide(request: TracedRequest, about: DenialContext, place: Place): Promise<Allowed | Denied> {
    const requestedAt = clock.now();
    if (isDraining()) return drainingRefusal();
    const named = readName(request, settings);
    if (named.outcome === "denied") return named;
    const known = await findRequested(deps, request, named.slot.name, about);
    if (known.outcome === "denied") return known;
    // A customer that is asked relies on receiving the end event, and without a store that event could not be kept.
    if (deps.storeProblem() !== null) return denied("store_unavailable");
    const reserved = await reserve(deps, named.slot, known.stream);
    if (reserved.outcome === "denied") return reserved;
    const { reservation, rival } = reserved;
    let allowed: Allowed | null = null;
    try {
      const { epoch } = deps.member;
      const intent = intentOf(request, named, known, { requestedAt, epoch, clientId: await deps.ids.next() });
      about.clientId = intent.clientId;
      reservation.ask({ intent, claims: known.claims });
      place.pause();
      const refusal = await asking.ask(intent, known.customer, about);
      if (refusal !== null) return refusal;
      const live = await goLive(deps, intent, { rival, place });
      if (live.outcome === "denied") return live;
      const terms = { ...termsOf(known, settings), ...upstreamsOf(named, live.upstreams), acceptedAt: clock.now() };
      const { protocol, session = null, offer = null } = request;
      const { clientId } = intent;
      allowed = deps.allow({ clientId, intent, claims: known.claims, protocol, session, place, ...terms }, offer);
      return allowed;
    } finally {
      if (allowed === null) reservation.release();
      else reservation.settle();
    }
  }
}

type TracedRequest = PublishRequest & Pick<Intent, "trace">;

function intentOf(
  request: TracedRequest,
  { slot, otherArguments }: RequestedName,
  { stream, hasKeyArgument }: KnownRequest,
  of: Pick<Intent, "requestedAt" | "epoch" | "clientId">,
): Intent {
  return {
    arguments: request.arguments,
    name: slot.name,
    app: request.app,
    protocol: request.protocol,
    address: withoutMapping(request.address),
    clientId: of.clientId,
    organisationId: stream.organisation_id,
    streamId: stream.id,
    webhook: stream.webhook,
    epoch: of.epoch,
    trace: request.trace,
    backup: slot.backup,
    // A renewed key, or a token in its place, is still the same broadcast.
    otherArguments: hasKeyArgument ? withoutKeyArgument(otherArguments) : otherArguments,
    requestedAt: of.requestedAt,
    sessionHash: request.session === undefined ? null : sessionHash(request.session),
  };
}

/** The limits of a publish, from its stream, organisation and deployment. */
function termsOf(
  { stream, customer }: KnownRequest,
  settings: AdmissionDeps["settings"],
): Pick<AllowedPublish, "maxBitrateKbps" | "holdMs" | "silenceMs"> {
  const { max_bitrate_kbps: limit, hold_s, silence_s } = customer.settings;
  const silenceMs = silence_s * 1_000;
  return {
    maxBitrateKbps: bitrateLimitOf(settings.maxBitrateKbps, stream.plan, limit),
    holdMs: (stream.hold_s ?? hold_s ?? settings.holdSeconds) * 1_000,
    silenceMs: silenceMs === SILENCE_MS ? null : silenceMs,
  };
}

function upstreamsOf(
  { configured }: RequestedName,
  stored: readonly StoredUpstream[],
): Pick<AllowedPublish, "upstreams" | "upstreamLabels"> {
  return {
    upstreams: [
      ...configured.map((url, at) => ({ id: `deployment-${at + 1}`, url, source: "deployment" as const })),
      ...stored.map(coreUpstream),
    ],
    upstreamLabels: new Map(stored.map(({ id, label }) => [id, label])),
  };
}
