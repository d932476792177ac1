// The refusals of an organisation or of one stream, newest first: those with rows of their own, and publishes denied by
// the customer, whose rows are in `publish`. One request looks at a bounded number of rows of each, along an index.
import { type Kysely, type Selectable, sql } from "kysely";
import type { PublishTable, Schema } from "../../store/schema.ts";
import { type NamedStream, streamNamesOf } from "../../store/statements/named-streams.ts";
import { lastInWindow } from "../../store/statements/window.ts";
import type { RefusalTable } from "../../store/tables/refusal-table.ts";
import { SHARED_MS } from "./refusal-rows.ts";

/** Rows of each kind that a request with a filter looks at. */
export const REFUSAL_WINDOW = 5_000;

/** One refusal, or equal ones as one. */
export interface PastRefusal {
  readonly id: string;
  /** Epoch ms of the first and the last one. */
  readonly firstAt: number;
  readonly lastAt: number;
  readonly count: number;
  readonly request: "publish" | "play";
  /** null in rows of old versions. */
  readonly protocol: "rtmp" | "whip" | "v5" | null;
  readonly reason: string;
  /** What the last one was told. */
  readonly detail: string | null;
  /** null: several, or erased. */
  readonly address: string | null;
  /** Its stream; null: none, not known, or several. */
  readonly stream: NamedStream | null;
  /** The name as sent, where no stream has it. */
  readonly sentName: string | null;
  /** Of a publish about which the customer was asked. */
  readonly clientId: number | null;
  /** The customer's HTTP status, if that denied it; null as well where it is not known. */
  readonly status: number | null;
}

/** The position of a refusal in the list: when the first one was, the rank of its kind, and its id. */
export type RefusalPosition = [at: number, rank: number, id: string];

export interface RefusalFilter {
  readonly organisationId: string;
  /** One of the organisation's; null for all. */
  readonly streamId: string | null;
  /** Whether those of no stream are included. */
  readonly unknown: boolean;
  readonly reason: string | null;
  readonly request: "publish" | "play" | null;
  /** Epoch ms: only refusals from this time on, and before that one. */
  readonly from: number | null;
  readonly to: number | null;
  readonly behind: RefusalPosition | null;
  readonly quantity: number;
}

/** A part of the list; `rest`: the last position it has read, when it goes on. */
interface Part {
  readonly rows: readonly Positioned[];
  readonly rest: RefusalPosition | null;
}
interface Positioned {
  readonly position: RefusalPosition;
  readonly refusal: Omit<PastRefusal, "stream"> & { readonly streamId: string | null };
}

/** `rest`: where the list continues that ended early; null when it is complete, or `refusals` are as many as requested. */
export async function listRefusals(
  db: Kysely<Schema>,
  filter: RefusalFilter,
): Promise<{
  readonly refusals: readonly (PastRefusal & { position: RefusalPosition })[];
  rest: RefusalPosition | null;
}> {
  const { streamId, unknown, request, quantity } = filter;
  const parts = await Promise.all([
    ownRefusals(db, filter, { rank: 0, organisationId: filter.organisationId }),
    ...(unknown && streamId === null ? [ownRefusals(db, filter, { rank: 1, organisationId: "" })] : []),
    ...(request === "play" ? [] : [deniedPublishes(db, filter, 2)]),
  ]);
  const rests = parts.flatMap(({ rest }) => (rest === null ? [] : [rest]));
  const [until = null] = rests.toSorted(inOrder);
  const all = parts.flatMap(({ rows }) => rows).toSorted((one, other) => inOrder(one.position, other.position));
  // Behind the position where one part stopped, that part is not known.
  const seen = until === null ? all : all.filter(({ position }) => inOrder(position, until) <= 0);
  const shown = seen.slice(0, quantity);
  const ids = shown.flatMap(({ refusal: { streamId } }) => (streamId === null ? [] : [streamId]));
  const streams = await streamNamesOf(db, filter.organisationId, ids);
  const refusals = shown.map(({ position, refusal: { streamId: id, ...refusal } }) => ({
    ...refusal,
    position,
    stream: (id !== null && streams.get(id)) || null,
  }));
  return { refusals, rest: shown.length < quantity ? until : null };
}

/** The newest first; then by kind. Within a kind the store has the order. */
function inOrder([at, rank]: RefusalPosition, [otherAt, otherRank]: RefusalPosition): number {
  return otherAt - at || rank - otherRank;
}

async function ownRefusals(
  db: Kysely<Schema>,
  { streamId, reason, request, from, to, behind, quantity }: RefusalFilter,
  { rank, organisationId }: { readonly rank: number; readonly organisationId: string },
): Promise<Part> {
  const isFiltered = reason !== null || request !== null || from !== null || streamId !== null;
  let near = db.selectFrom("refusal").selectAll();
  near =
    streamId === null ? near.where("organisation_id", "=", organisationId) : near.where("stream_id", "=", streamId);
  // A row covers what follows within the time that equal refusals share.
  if (from !== null) near = near.where("first_at", ">", from - SHARED_MS);
  if (to !== null) near = near.where("first_at", "<", to);
  if (behind !== null) {
    const [at, behindRank, id] = behind;
    if (behindRank === rank) near = near.where(sql<boolean>`(first_at, id) < (${at}, ${id})`);
    else near = near.where("first_at", behindRank < rank ? "<=" : "<", at);
  }
  near = near
    .orderBy("first_at", "desc")
    .orderBy("id", "desc")
    .limit(isFiltered ? REFUSAL_WINDOW : quantity);
  let query = db.selectFrom(near.as("near")).selectAll();
  if (reason !== null) query = query.where("reason", "=", reason);
  if (request !== null) query = query.where("request", "=", request);
  if (from !== null) query = query.where("last_at", ">=", from);
  const found = await query.orderBy("first_at", "desc").orderBy("id", "desc").limit(quantity).execute();
  const rows = found.map((row) => ({
    position: [Number(row.first_at), rank, row.id] as RefusalPosition,
    refusal: refusalOf(row),
  }));
  if (!isFiltered || rows.length >= quantity) return { rows, rest: null };
  const last = await lastInWindow(near.clearSelect().select(["first_at", "id"]), REFUSAL_WINDOW);
  return { rows, rest: last === undefined ? null : [Number(last.first_at), rank, last.id] };
}

async function deniedPublishes(db: Kysely<Schema>, filter: RefusalFilter, rank: number): Promise<Part> {
  const { organisationId, streamId, reason, from, to, behind, quantity } = filter;
  const isFiltered = reason !== null || streamId !== null;
  let near = db.selectFrom("publish").selectAll();
  near =
    streamId === null
      ? near.where("organisation_id", "=", organisationId).where(sql<boolean>`state = 'denied'`)
      : near.where("stream_id", "=", streamId);
  if (from !== null) near = near.where("asked_at", ">=", from);
  if (to !== null) near = near.where("asked_at", "<", to);
  if (behind !== null) {
    const [at, behindRank, id] = behind;
    if (behindRank === rank) near = near.where(sql<boolean>`(asked_at, client_id) < (${at}, ${Number(id)})`);
    else near = near.where("asked_at", behindRank < rank ? "<=" : "<", at);
  }
  near = near
    .orderBy("asked_at", "desc")
    .orderBy("client_id", "desc")
    .limit(isFiltered ? REFUSAL_WINDOW : quantity);
  let query = db.selectFrom(near.as("near")).selectAll();
  if (streamId !== null) query = query.where("state", "=", "denied");
  if (reason !== null) query = query.where("denial_cause", "=", reason);
  const found = await query.orderBy("asked_at", "desc").orderBy("client_id", "desc").limit(quantity).execute();
  const rows = found.map((row) => ({
    position: [Number(row.asked_at), rank, String(row.client_id)] as RefusalPosition,
    refusal: denialOf(row),
  }));
  if (!isFiltered || rows.length >= quantity) return { rows, rest: null };
  const last = await lastInWindow(near.clearSelect().select(["asked_at", "client_id"]), REFUSAL_WINDOW);
  return { rows, rest: last === undefined ? null : [Number(last.asked_at), rank, String(last.client_id)] };
}

function refusalOf(row: Selectable<RefusalTable>): Positioned["refusal"] {
  const { id, request, protocol, reason, detail, stream_id: streamId, name: sentName } = row;
  return {
    id,
    request,
    protocol,
    reason,
    detail,
    streamId,
    sentName,
    clientId: null,
    status: null,
    firstAt: Number(row.first_at),
    lastAt: Number(row.last_at),
    count: Number(row.count),
    address: row.address || null,
  };
}

function denialOf(row: Selectable<PublishTable>): Positioned["refusal"] {
  const at = Number(row.asked_at);
  const clientId = Number(row.client_id);
  return {
    id: `publish-${clientId}`,
    firstAt: at,
    lastAt: at,
    count: 1,
    clientId,
    streamId: row.stream_id,
    request: "publish",
    protocol: row.protocol,
    detail: row.denial_reason,
    sentName: null,
    // Rows from before migration 0013 do not say who denied it; there was only one.
    reason: row.denial_cause ?? "rejected_by_customer",
    status: row.denial_status === null ? null : Number(row.denial_status),
    address: row.address || null,
  };
}
