// One publish from its request to its end, in order: what the recorder observed, what the store knows of it, and its
// webhook calls. The same for a running publish and for one of weeks ago.
import type { Kysely, Selectable } from "kysely";
import type { PublishTable, Schema } from "../../store/schema.ts";
import { settlesDone } from "../../text/webhook-words.ts";
import { withoutSecrets } from "../../text/without-secrets.ts";
import { traceFrom } from "../../tracing/trace.ts";
import { readEnding } from "../ending/ending.ts";
import type { Finding } from "../monitoring/health.ts";
import type { Delivery, Workbench } from "../webhook/workbench.ts";
import { readKept } from "./kept-timelines.ts";
import { type Moment, MomentList, moment, type What } from "./moments.ts";
import type { TimelineRecorder } from "./recorder.ts";
import { wordsOf } from "./words.ts";

/** A moment as the API returns it. */
export interface DescribedMoment {
  /** Epoch ms. */
  readonly at: number;
  /** Since the first moment, ms. */
  readonly offsetMs: number;
  /** Stable code. */
  readonly what: What;
  /** A sentence for people. */
  readonly text: string;
  readonly figures: Readonly<Record<string, string | number | boolean | null>>;
}

export interface Timeline {
  readonly clientId: number;
  readonly streamId: string;
  readonly state: PublishTable["state"];
  readonly protocol: PublishTable["protocol"];
  /** As in the log and in the webhook's `traceparent`; null for publishes recorded without one. */
  readonly traceId: string | null;
  /** Whether media was observed; otherwise there are only request, webhook and end. */
  readonly isWatched: boolean;
  /** Oldest first. */
  readonly moments: readonly DescribedMoment[];
  /** What is wrong with it now, the worst first; empty unless it runs here. */
  readonly findings: readonly Finding[];
}

export interface Timelines {
  /** Null when the organisation has no such publish, or it has been deleted. A request refused before the webhook was
   *  asked has no client id and so no timeline. */
  of(organisationId: string, clientId: number): Promise<Timeline | null>;
}

export function createTimelines(deps: {
  readonly db: Kysely<Schema>;
  readonly recorder: Pick<TimelineRecorder, "timelineOf" | "countersOf">;
  readonly workbench: Pick<Workbench, "ofPublish">;
  readonly findingsOf: (clientId: number) => readonly Finding[];
  /** Epoch ms. */
  readonly clock: { now(): number };
}): Timelines {
  const { db, recorder, workbench, findingsOf, clock } = deps;

  return {
    async of(organisationId, clientId) {
      const row = await db
        .selectFrom("publish")
        .selectAll()
        .where("client_id", "=", clientId)
        .where("organisation_id", "=", organisationId)
        .executeTakeFirst();
      if (row === undefined) return null;
      const kept = recorder.timelineOf(clientId) ?? (await readKept(db, clientId));
      const deliveries = await workbench.ofPublish(clientId);
      const all = new MomentList();
      const requestedAt = kept?.requestedAt ?? Number(row.asked_at);
      all.add(moment(requestedAt, "requested", { protocol: row.protocol, address: row.address || null }));
      for (const delivery of deliveries) for (const each of ofCall(delivery)) all.add(each);
      const moments = kept?.moments ?? [];
      // For a publish that stood by, `took_over` marks the moment, long after it was accepted.
      const hasTakenOver = moments.some(({ what }) => what === "took_over");
      const ofItsRow = ofRow(row).filter(({ what }) => what !== "continues" || !hasTakenOver);
      for (const each of [...ofItsRow, ...moments]) all.add(each);
      for (const each of await ofEnd(row, deliveries)) all.add(each);
      return {
        clientId,
        streamId: row.stream_id,
        state: row.state,
        protocol: row.protocol,
        traceId: traceFrom(row.trace)?.traceId ?? null,
        isWatched: kept !== null,
        moments: described(all.read()),
        findings: row.state === "live" ? findingsOf(clientId) : [],
      };
    },
  };

  function ofRow(row: Selectable<PublishTable>): readonly Moment[] {
    const { denial_cause: cause, denial_reason: reason, webhook } = row;
    if (row.state === "denied" && cause !== null && reason !== null) {
      const status = row.denial_status === null ? null : Number(row.denial_status);
      return [moment(Number(row.ended_at), "denied", { cause, reason, status })];
    }
    if (row.accepted_at === null) return [];
    const acceptedAt = Number(row.accepted_at);
    const accepted = moment(acceptedAt, "accepted", { has_webhook: webhook !== null });
    if (row.continues === null) return [accepted];
    return [accepted, moment(acceptedAt, "continues", { client_id: Number(row.continues) })];
  }

  /** The end, and whether its customer was notified; or which publish continues it. */
  async function ofEnd(row: Selectable<PublishTable>, deliveries: readonly Delivery[]): Promise<readonly Moment[]> {
    // While it runs, the stored ones are some seconds old.
    const now = row.state === "live" ? recorder.countersOf(Number(row.client_id)) : null;
    const { bytesIn, bytesOut } = now ?? { bytesIn: Number(row.bytes_in), bytesOut: Number(row.bytes_out) };
    const bytes = { bytes_in: bytesIn, bytes_out: bytesOut + Number(row.bytes_elsewhere) };
    const since = Number(row.accepted_at ?? row.asked_at);
    if (row.state === "live") {
      const at = clock.now();
      return [moment(at, "running", { lasted_ms: Math.max(0, at - since), ...bytes })];
    }
    if (row.state !== "ended") return [];
    const endedAt = Number(row.ended_at);
    const lasted_ms = Math.max(0, endedAt - since);
    const ending = readEnding(row);
    const by = ending && { ended_by: ending.code, detail: ending.reason };
    const end = moment(endedAt, "ended", { reason: row.end_reason ?? "internal_error", ...by, lasted_ms, ...bytes });
    const done = deliveries.findLast(({ call }) => call === "publish_done");
    const delivery = done === undefined ? [] : [await delivered(row, done)];
    return [end, ...delivery, ...(await successorOf(row, endedAt))];
  }

  /** The publish that took over the upstreams and players of a lost one. */
  async function successorOf(row: Selectable<PublishTable>, endedAt: number): Promise<readonly Moment[]> {
    const successor = await db
      .selectFrom("publish")
      .select(["client_id", "accepted_at"])
      .where("stream_id", "=", row.stream_id)
      .where("client_id", ">", row.client_id)
      .where("continues", "=", row.client_id)
      .executeTakeFirst();
    if (successor === undefined) return [];
    // One that stood by was accepted earlier.
    const at = Math.max(endedAt, Number(successor.accepted_at));
    const after_ms = Math.max(0, at - endedAt);
    return [moment(at, "continued", { client_id: Number(successor.client_id), after_ms })];
  }

  async function delivered(row: Selectable<PublishTable>, done: Delivery): Promise<Moment> {
    const { lastAt, attempts, status } = done;
    if (settlesDone(status)) return moment(lastAt, "end_delivered", { attempts, status });
    const open = await db
      .selectFrom("outbox")
      .select("id")
      .where("organisation_id", "=", row.organisation_id)
      .where("client_id", "=", row.client_id)
      .where("call", "is", null)
      .where("delivered_at", "is", null)
      .where("given_up_at", "is", null)
      .executeTakeFirst();
    const cause = status === null ? done.outcome : String(status);
    return moment(lastAt, "end_not_delivered", { attempts, cause, is_given_up: open === undefined });
  }
}

/** The moment of a webhook call, except that of the end. */
function ofCall({ call, firstAt, lastAt, outcome, status, reason, latencyMs: took_ms }: Delivery): readonly Moment[] {
  const unanswered = { cause: outcome, took_ms, detail: reason };
  switch (call) {
    case "publish":
      if (status === 200) return [moment(firstAt, "webhook_allowed", { took_ms })];
      if (status === null) return [moment(firstAt, "webhook_unreachable", unanswered)];
      return [moment(firstAt, "webhook_denied", { status, took_ms, reason })];
    case "update_publish":
      if (status === 200) return [];
      if (status === null) return [moment(lastAt, "update_unanswered", unanswered)];
      return [moment(lastAt, "update_rejected", { status, took_ms, reason })];
    case "publish_done":
    case "health":
      return [];
  }
}

function described(moments: readonly Moment[]): readonly DescribedMoment[] {
  const first = moments[0]?.at ?? 0;
  return moments.map((each) => ({
    at: each.at,
    offsetMs: Math.max(0, Math.round(each.at - first)),
    what: each.what,
    text: wordsOf(each),
    figures: shownFigures(each.figures),
  }));
}

/** The figures without secrets, like the text. */
function shownFigures(figures: object): DescribedMoment["figures"] {
  const entries: [string, string | number | boolean | null][] = Object.entries(figures);
  return Object.fromEntries(
    entries.map(([name, value]) => [name, typeof value === "string" ? withoutSecrets(value) : value]),
  );
}
