// The single entry point that decides publish requests of every protocol. It knows streams, organisations and the
// customer's answer; it knows no protocol, and it starts no media.
import type { Kysely } from "kysely";
import type { Logger } from "pino";
import { type Capacity, NO_PLACE, type Place, type Refused } from "../capacity/capacity.ts";
import type { Membership } from "../cluster/membership.ts";
import type { Rival, Rivals } from "../cluster/rivals.ts";
import { StoreFailed } from "../errors.ts";
import { SILENCE_MS } from "../media/hold.ts";
import type { Media, Upstream } from "../media.ts";
import { withoutMapping } from "../network.ts";
import type { Customer, Customers } from "../organisation/customers.ts";
import { measuring, step } from "../step-times.ts";
import { isEnabled } from "../store/enabled.ts";
import type { Schema } from "../store/schema.ts";
import type { TokenClaims } from "../token/tokens.ts";
import { newTrace, type Trace } from "../tracing/trace.ts";
import type { Allow, Allowed } from "./allowed.ts";
import { readBackupArgument } from "./backup/argument.ts";
import { type BitrateLimits, bitrateLimitOf } from "./bitrate-limit.ts";
import type { ClientIds } from "./client-ids.ts";
import { createDenialRecords } from "./denial-records.ts";
import { type DenialContext, type Denied, denied } from "./denials.ts";
import { sessionHash } from "./ending/ended-sessions.ts";
import type { RecordedEndReason } from "./ending/recorded-end-reason.ts";
import { refusalOfStream } from "./ending/refused-streams.ts";
import type { Ends } from "./ends.ts";
import { type CredentialsDeps, checkCredentials } from "./key/credentials.ts";
import { withoutKeyArgument } from "./key/key-argument.ts";
import { findNamed, findStream } from "./limits/named-stream.ts";
import type { OrganisationLimiter } from "./limits/organisation-limiter.ts";
import type { WrongNames } from "./limits/wrong-names.ts";
import type { PublishEvents } from "./publish-events.ts";
import type { Publishes } from "./publishes.ts";
import { type Intent, isNameLive, recordIntent, recordLive } from "./record.ts";
import { alsoReservedField, checkStreamName } from "./stream-name.ts";
import { type StoredUpstream, writeUpstreams } from "./upstreams/deployment-upstreams.ts";
import type { WebhookAnswer } from "./webhook/answer.ts";
import { publishBody } from "./webhook/body.ts";
import type { Webhook } from "./webhook/call.ts";
import type { Outbox } from "./webhook/outbox.ts";
import { newWebhookId } from "./webhook/signature.ts";

/** A running publish that has been silent this long is replaced by a new one of the same name (W20), ms. */
const SILENT_FOR_REPLACEMENT_MS = 5_000;
/** How long a replaced publish may take to end before its successor starts anyway, ms. */
const REPLACEMENT_LIMIT_MS = 1_000;

/** A publish and its backup share connections, which no other server can take over. */
const APART = {
  publish: "The backup of this stream is live on another server of the service: publish there",
  backup: "This stream is live on another server of the service: publish its backup there",
};

export interface PublishRequest {
  readonly protocol: Intent["protocol"];
  readonly app: string;
  /** Stream name as sent, without arguments. */
  readonly name: Uint8Array;
  /** Bytes after the first `?`; null when there was none. */
  readonly arguments: Uint8Array | null;
  /** IP address of the broadcaster. */
  readonly address: string;
  /** Claims of the web token that came with the request; absent or null when there was none. */
  readonly claims?: TokenClaims | null;
  /** The trace the request belongs to; a new trace begins here when it is absent. */
  readonly trace?: Trace;
  /** The SDP offer of a WHIP client. */
  readonly offered?: string;
  /** The id that its WHIP session will have. */
  readonly session?: string;
  /** The signalling a WHIP publish came by; absent: WHIP. */
  readonly via?: "v5";
  /** As of `RefusedPublish`. */
  readonly mayMove?: boolean;
}

export interface AdmissionDeps extends CredentialsDeps {
  readonly allow: Allow;
  readonly events: Pick<PublishEvents, "emit">;
  /** Whether this node has room; absent where capacity is not measured. */
  readonly room?: Pick<Capacity, "take" | "refusal"> | null;
  /** Limits on what one organisation may start; absent: no limits. */
  readonly organisationLimits?: OrganisationLimiter;
  /** Slows those who guess names; absent: they are not. */
  readonly wrongNames?: WrongNames;
  readonly db: Kysely<Schema>;
  /** Why the store cannot be written; null while it can. Absent: unknown until a write is tried. */
  readonly storeProblem?: () => string | null;
  readonly member: Pick<Membership, "epoch">;
  /** Whether this node accepts no new publishes for now; absent: it accepts them. */
  readonly isDraining?: () => boolean;
  /** Where other nodes take publishes by RTMP(S); absent: there are none. */
  readonly rtmpElsewhere?: () => readonly string[];
  /** Publishes of other nodes; null or absent where there are none. */
  readonly rivals?: Rivals | null;
  /** Records what the store could not take. */
  readonly ends: Pick<Ends, "record" | "retry">;
  readonly ids: ClientIds;
  readonly publishes: Publishes;
  readonly webhook: Webhook;
  readonly customers: Pick<Customers, "of">;
  readonly outbox: Outbox;
  readonly media: () => Media;
  /** The upstreams that a stream is pushed to. */
  readonly streamUpstreams: (streamId: string) => Promise<readonly StoredUpstream[]>;
  readonly clock: { now(): number };
  readonly log: Logger;
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
  const { db, publishes, clock, log, settings, events } = deps;
  const measure = log.isLevelEnabled("debug") ? measuring : <T>(work: () => T) => work();
  const denials = createDenialRecords({ db, clock, log });

  return {
    async settled() {
      await Promise.all([denials.settled(), deps.ends.retry()]);
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

  function isDraining(): boolean {
    return deps.isDraining?.() ?? false;
  }

  function drainingRefusal(): Denied {
    return sentOn(denied("stopping", "This server is not accepting new publishes; publish again"));
  }

  function fullOf({ retryAfterS }: Refused): Denied {
    return { ...sentOn(denied("full")), retryAfterS };
  }

  /** Adds the servers that take the publish instead. */
  function sentOn(refusal: Denied): Denied {
    return { ...refusal, elsewhere: deps.rtmpElsewhere?.() ?? [] };
  }

  async function decide(
    request: PublishRequest & Pick<Intent, "trace">,
    about: DenialContext,
    place: Place,
  ): Promise<Allowed | Denied> {
    const requestedAt = clock.now();
    if (isDraining()) return drainingRefusal();
    const check = checkStreamName(request.name, request.arguments);
    if (check.outcome === "refused") return denied(check.cause, check.description);
    const { isBackup: backup, others: otherArguments } = readBackupArgument(request.arguments, settings.backupArgument);
    const slot = { name: check.name, backup };
    // Publish and backup are one broadcast, so both are pushed to the same addresses.
    const configured = writeUpstreams(settings.upstreamPush, check.name, otherArguments);
    if (configured === null) return denied("malformed_name", "Custom arguments are not UTF-8");
    const found = await findNamed(deps, request.address, check.name);
    if ("outcome" in found) return found;
    about.organisation = found.organisation_id;
    about.stream = found.id;
    const notNow = refusalOfStream(found, clock.now());
    if (notNow !== null) return notNow;
    if (!isEnabled(found, clock.now())) return denied("organisation_disabled");
    events.emit({ kind: "found", organisationId: found.organisation_id });
    const customer = await step("settings", () => deps.customers.of(found.organisation_id));
    const field = alsoReservedField(request.arguments, customer.settings);
    if (field !== null) return denied("reserved_field", `Custom arguments must not contain ${field}`);

    const { claims: given = null, address } = request;
    const asked = { address, arguments: request.arguments, claims: given, settings: customer.settings };
    const authorised = await checkCredentials(deps, { ...asked, stream: { ...found, name: check.name } });
    if ("outcome" in authorised) return authorised;
    const { claims, hasKeyArgument } = authorised;

    const limit = customer.settings.max_bitrate_kbps;
    const maxBitrateKbps = bitrateLimitOf(settings.maxBitrateKbps, found.plan, limit);
    const holdMs = (found.hold_s ?? customer.settings.hold_s ?? settings.holdSeconds) * 1_000;
    const limitMs = customer.settings.silence_s * 1_000;
    const silenceMs = limitMs === SILENCE_MS ? null : limitMs;
    // A customer that is asked relies on receiving the end event, and without a store that event could not be kept.
    if ((deps.storeProblem?.() ?? null) !== null) return denied("store_unavailable");

    const { rival = null, otherAt = null } = (await deps.rivals?.find(slot)) ?? {};
    if (otherAt !== null)
      return { ...denied("already_live", APART[backup ? "backup" : "publish"]), elsewhere: otherAt };
    if (rival !== null && !givesWay(rival)) return denied("already_live");
    const overLimit = (await deps.organisationLimits?.(found, check.name)) ?? (() => null);
    // Nothing is awaited from here to the reservation: of two simultaneous requests exactly one gets the name.
    const running = publishes.live(slot);
    if (running !== null) {
      const { silentMs = null } = deps.media().snapshot(running) ?? {};
      if (!givesWay({ silentMs, isEnding: publishes.isEnding(running) })) return denied("already_live");
    }
    const refusal = overLimit();
    if (refusal !== null) return refusal;
    const reservation = publishes.reserve(slot, found.organisation_id);
    if (reservation === null) return denied("already_live");
    let allowed: Allowed | null = null;
    try {
      const intent: Intent = {
        arguments: request.arguments,
        name: check.name,
        app: request.app,
        protocol: request.protocol,
        address: withoutMapping(request.address),
        clientId: await deps.ids.next(),
        organisationId: found.organisation_id,
        streamId: found.id,
        webhook: found.webhook,
        epoch: deps.member.epoch,
        trace: request.trace,
        backup,
        // A renewed key, or a token in its place, is still the same broadcast.
        otherArguments: hasKeyArgument ? withoutKeyArgument(otherArguments) : otherArguments,
        requestedAt,
        sessionHash: request.session === undefined ? null : sessionHash(request.session),
      };
      about.clientId = intent.clientId;
      reservation.ask({ intent, claims });
      place.pause();
      const accepted = await accept(intent, customer, { about, rival, place });
      if (accepted.outcome === "denied") return accepted;
      const upstreams: readonly Upstream[] = [
        ...configured.map((url, at) => ({ id: `deployment-${at + 1}`, url, source: "deployment" as const })),
        ...accepted.upstreams.map(({ id, url }) => ({ id, url, source: "stream" as const })),
      ];
      const { clientId } = intent;
      const upstreamLabels = new Map(accepted.upstreams.map(({ id, label }) => [id, label]));
      const terms = { upstreams, upstreamLabels, maxBitrateKbps, holdMs, silenceMs, place, acceptedAt: clock.now() };
      const { protocol, session = null, offered = null } = request;
      allowed = deps.allow({ clientId, intent, claims, protocol, session, ...terms }, offered);
      return allowed;
    } finally {
      if (allowed === null) reservation.release();
      else reservation.settle();
    }
  }

  /** Whether the publish that holds the name may be replaced; `silentMs` is null when it is not known. */
  function givesWay({ silentMs, isEnding }: Pick<Rival, "silentMs" | "isEnding">): boolean {
    if (settings.duplicate === "replace" || isEnding) return true;
    return silentMs !== null && silentMs >= SILENT_FOR_REPLACEMENT_MS;
  }

  /** Live: the customer answered 200, the intent is on disk (W17a), the name is free. Includes the stream's own
   *  upstreams. */
  async function accept(
    intent: Intent,
    customer: Customer,
    {
      about,
      rival,
      place,
    }: { readonly about: DenialContext; readonly rival: Rival | null; readonly place: Pick<Place, "turn"> },
  ): Promise<{ readonly outcome: "live"; readonly upstreams: readonly StoredUpstream[] } | Denied> {
    const refusal = await ask(intent, customer, about);
    if (refusal !== null) return refusal;
    try {
      await replaceRunning(intent);
      await rival?.replace();
      await publishes.recorded(intent);
      await deps.ends.retry();
      await place.turn(true);
      if (await recordLive(db, intent, clock.now())) {
        // Read last, so that none is missed: upstreams stored from here on are added to the running publish.
        return { outcome: "live", upstreams: await step("upstreams", () => deps.streamUpstreams(intent.streamId)) };
      }
    } catch (err) {
      // The customer answered 200, yet there will be no media: accepted and ended immediately, so
      // publish_done follows.
      await withdraw(intent, "internal_error");
      throw err;
    }
    if (await isNameLive(db, intent.name)) {
      await withdraw(intent, "replaced");
      return denied("already_live");
    }
    // The stream was ended, locked or deleted, or its organisation disabled, while the customer was asked.
    await withdraw(intent, "stream_withdrawn");
    const stream = await findStream(db, intent.name);
    return (stream && refusalOfStream(stream, clock.now())) ?? denied("locked_stream");
  }

  /** Asks the customer and writes the intent at the same time. */
  async function ask(intent: Intent, customer: Customer, about: DenialContext): Promise<Denied | null> {
    const { clientId } = intent;
    let recorded: Promise<boolean> | null = null;
    const record = () => {
      recorded ??= recordIntent(db, intent, clock.now()).catch((err: unknown) => {
        log.error({ err, clientId }, "publish intent could not be recorded");
        return false;
      });
      return recorded;
    };
    const answer = intent.webhook === null ? null : await askCustomer(intent, intent.webhook, customer, record);
    const refusal = answer === null ? null : refusalOf(answer, customer.settings);
    if (answer?.outcome === "answered") about.status = answer.status;
    if (answer?.outcome === "unreachable") Object.assign(about, { unreachable: answer.cause, detail: answer.detail });
    if (refusal === null) {
      if (await record()) return null;
      await withdraw(intent, "internal_error");
      return denied("store_unavailable");
    }
    if (recorded === null) return refusal;
    denials.add({ ...refusal, clientId, status: about.status ?? null }, recorded);
    return { ...refusal, isRecorded: true };
  }

  /** Ends the publish if the store has its intent; publish_done then follows. */
  async function withdraw({ clientId, organisationId, epoch }: Intent, reason: RecordedEndReason): Promise<void> {
    await deps.ends.record({ clientId, organisationId, epoch, reason, ending: null, counters: null }).done;
  }

  async function askCustomer(
    intent: Intent,
    url: string,
    { keys }: Customer,
    begun: () => void,
  ): Promise<WebhookAnswer> {
    return await deps.webhook.post({
      organisationId: intent.organisationId,
      url,
      id: newWebhookId(),
      body: publishBody(intent),
      keys,
      deadlineMs: settings.deadlineMs,
      retryConnection: true,
      begun,
      trace: intent.trace,
      event: { call: "publish", clientId: intent.clientId, name: intent.name, attempt: 1 },
    });
  }

  async function replaceRunning(slot: Pick<Intent, "name" | "backup">): Promise<void> {
    const running = publishes.live(slot);
    if (running === null) return;
    if (!publishes.isEnding(running))
      deps.media().end(running, "replaced", "Replaced by a new publish of the same name");
    await publishes.ended(slot, REPLACEMENT_LIMIT_MS);
  }
}

/** Exactly 200 allows (W10); without a usable answer the request is denied unless the organisation chose otherwise
 *  (W12). */
function refusalOf(answer: WebhookAnswer, settings: Customer["settings"]): Denied | null {
  if (answer.outcome === "unreachable") {
    return settings.publish_on_hook_unreachable === "allow" ? null : denied("customer_unreachable");
  }
  if (answer.status === 200) return null;
  return denied("rejected_by_customer", settings.reason_to_broadcaster ? answer.reason : null);
}
