// Revoked web tokens that have not expired (T7). The store holds them; a service keeps them in memory, because every
// verification needs them, and polls the store for those that a command or another node added.
import type { Kysely } from "kysely";
import type { Logger } from "pino";
import { untilTick } from "../in-time.ts";
import { repeatedWarning } from "../limits/repeated-warning.ts";
import type { Schema, TokenRevocationTable } from "../store/schema.ts";

/** How often the store is polled for new revocations, ms. */
const REFRESH_EVERY_MS = 1_000;
/** Name of the sequence that numbers revocations in the store. */
const SEQUENCE = "token_revocation";
/** No token lives longer than this after it was issued: the limit of T1 plus a day, ms. */
const TOKEN_LIFE_LIMIT_MS = 366 * 86_400_000;
/** What has expired is forgotten this often, and only if the clock said so all the time since: one that is set forward by
 *  mistake, and back, makes no revoked token valid again. By the monotonic clock, ms. */
const FORGET_EVERY_MS = 3_600_000;
/** How long the row of a deleted stream remains, so that every node reads that it is over, ms. */
const FORGETTING_MS = 60_000;

/** The claims that revocations refer to. */
export interface RevocableClaims {
  readonly jti: string;
  readonly streamname: string;
  /** How often the stream's tokens had been revoked when this one was issued. */
  readonly revision: number;
}

export interface Revocations {
  isRevoked(claims: RevocableClaims): boolean;
  /** The revision to put into a token issued for this stream name (with or without arguments). */
  revisionOf(streamname: string): number;
  /** How many single tokens an organisation has revoked that have not expired, or of how many of its streams it has
   *  revoked the tokens. */
  countOf(organisationHash: string, kind: TokenRevocationTable["kind"]): number;
  /** Calls `heard` after every further revocation, made on any node. */
  listen(heard: () => void): void;
  /** Reads revocations added by others. */
  refresh(): Promise<void>;
  stop(): void;
}

/** A stream name as revocations use it: without custom arguments. */
export function withoutArguments(streamname: string): string {
  return streamname.split("?", 1)[0] ?? "";
}

/** The store's name for a token revoked by an organisation, which affects only tokens for its own streams. */
export function jtiWithin(organisationHash: string, jti: string): string {
  return `${organisationHash}/${jti}`;
}

/** The organisation's hash in such a name; empty for a token that the operator has revoked. */
const organisationIn = (jti: string) => jti.slice(0, Math.max(0, jti.indexOf("/")));

/** The organisation's hash in a stream name. */
const organisationOf = (streamname: string) => streamname.split("-", 1)[0] ?? "";

/** Revokes one token permanently: a jti, or one named by `jtiWithin`. `exp`: when it expires, Unix seconds; null when
 *  unknown. */
export async function revokeToken(db: Kysely<Schema>, jti: string, exp: number | null, now: number): Promise<void> {
  const expires_at = exp === null ? now + TOKEN_LIFE_LIMIT_MS : exp * 1000;
  await inOrder(db, async (trx, sequence) => {
    await trx
      .insertInto("token_revocation")
      .values({ kind: "jti", value: jti, revision: 1, updated_at: now, sequence, expires_at })
      .onConflict((conflict) => conflict.columns(["kind", "value"]).doUpdateSet({ updated_at: now, sequence }))
      .execute();
  });
}

/** Revokes every existing token for a stream; tokens issued later are valid. The first revision is the sequence number, which no
 *  earlier revision exceeds: tokens issued after a revocation that has since been forgotten may still be alive. */
export async function revokeStream(db: Kysely<Schema>, streamName: string, now: number): Promise<void> {
  const times = { updated_at: now, expires_at: now + TOKEN_LIFE_LIMIT_MS };
  await inOrder(db, async (trx, sequence) => {
    await trx
      .insertInto("token_revocation")
      .values({ kind: "stream", value: streamName, revision: sequence, ...times, sequence })
      .onConflict((conflict) =>
        conflict
          .columns(["kind", "value"])
          .doUpdateSet((eb) => ({ ...times, sequence, revision: eb("token_revocation.revision", "+", 1) })),
      )
      .execute();
  });
}

/** Drops the revocation of a stream that is being deleted: nobody can publish or play it, whatever tokens exist, and its
 *  name is never used again. */
export async function forgetStream(db: Kysely<Schema>, streamName: string, now: number): Promise<void> {
  const revocation = db
    .selectFrom("token_revocation")
    .select("revision")
    .where("kind", "=", "stream")
    .where("value", "=", streamName);
  if ((await revocation.executeTakeFirst()) === undefined) return;
  await inOrder(db, async (trx, sequence) => {
    await trx
      .updateTable("token_revocation")
      .set({ revision: 0, updated_at: now, sequence, expires_at: now + FORGETTING_MS })
      .where("kind", "=", "stream")
      .where("value", "=", streamName)
      .execute();
  });
}

/** Runs `write` with the next number. In one transaction: the counter's row stays locked until the numbered row is
 *  visible, so that a reader who sees a number has not missed a lower one. */
async function inOrder(
  db: Kysely<Schema>,
  write: (trx: Kysely<Schema>, sequence: number) => Promise<void>,
): Promise<void> {
  if (!db.isTransaction) return await db.transaction().execute((trx) => inOrder(trx, write));
  const { next } = await db
    .insertInto("sequence")
    .values({ name: SEQUENCE, next: 1 })
    .onConflict((conflict) => conflict.column("name").doUpdateSet((eb) => ({ next: eb("sequence.next", "+", 1) })))
    .returning("next")
    .executeTakeFirstOrThrow();
  await write(db, Number(next));
}

/** The tokens of a stream as its row says. */
interface StreamRevocation {
  /** 0: the stream was deleted. */
  readonly revision: number;
  readonly expiresAt: number;
  readonly sequence: number;
}

/** Reads all revocations and polls for more until `stop`. */
export async function openRevocations(deps: {
  readonly db: Kysely<Schema>;
  readonly clock: { now(): number };
  readonly log: Logger;
  readonly forgetEveryMs?: number;
}): Promise<Revocations> {
  const { db, clock, log, forgetEveryMs = FORGET_EVERY_MS } = deps;
  const tokens = new Map<string, { readonly expiresAt: number; isCounted: boolean }>();
  /** By stream name. */
  const streams = new Map<string, StreamRevocation>();
  /** Organisation's hash → how many of `tokens`, and of `streams` that were not deleted, are its own. */
  const counts = { jti: new Map<string, number>(), stream: new Map<string, number>() };
  const listeners: (() => void)[] = [];
  const warning = repeatedWarning(log, "revocations of web tokens could not be read; the known ones stay in force");
  let newest = 0;
  /** The earliest time that the clock has shown since the last forgetting, and when that was. */
  let earliest = clock.now();
  let forgotAt = performance.now();
  let timer: NodeJS.Timeout | undefined;
  let stopped = false;

  /** Returns whether it was not known. */
  function take({ kind, value, revision, sequence, expires_at: expiresAt }: TokenRevocationTable): boolean {
    newest = Math.max(newest, Number(sequence));
    if (kind === "jti") {
      if (tokens.has(value)) return false;
      tokens.set(value, { expiresAt, isCounted: true });
      count(kind, organisationIn(value), 1);
      return true;
    }
    const known = streams.get(value);
    // Two reads at the same time may end in either order.
    if (known !== undefined && known.sequence > sequence) return false;
    const before = known?.revision ?? 0;
    streams.set(value, { revision, expiresAt, sequence });
    count(kind, organisationOf(value), Number(revision > 0) - Number(before > 0));
    return revision > before;
  }

  function count(kind: TokenRevocationTable["kind"], organisation: string, change: number): void {
    const sum = (counts[kind].get(organisation) ?? 0) + change;
    if (sum > 0) counts[kind].set(organisation, sum);
    else counts[kind].delete(organisation);
  }

  async function refresh(): Promise<void> {
    const rows = await db.selectFrom("token_revocation").selectAll().where("sequence", ">=", newest).execute();
    const hasNew = rows.map(take).includes(true);
    if (hasNew) for (const heard of listeners) heard();
  }

  function uncountExpired(now: number): void {
    for (const [jti, token] of tokens) {
      if (token.expiresAt > now || !token.isCounted) continue;
      token.isCounted = false;
      count("jti", organisationIn(jti), -1);
    }
  }

  async function forgetExpired(now: number): Promise<void> {
    for (const [jti, { expiresAt }] of tokens) if (expiresAt <= now) tokens.delete(jti);
    for (const [name, { revision, expiresAt }] of streams) {
      if (expiresAt > now) continue;
      streams.delete(name);
      if (revision > 0) count("stream", organisationOf(name), -1);
    }
    await db.deleteFrom("token_revocation").where("expires_at", "<=", now).execute();
  }

  async function watch(): Promise<void> {
    await warning.around(async () => {
      await refresh();
      const now = clock.now();
      uncountExpired(now);
      earliest = Math.min(earliest, now);
      if (performance.now() - forgotAt < forgetEveryMs) return;
      await forgetExpired(earliest);
      [earliest, forgotAt] = [now, performance.now()];
    });
    if (!stopped) timer = setTimeout(() => void watch(), untilTick(REFRESH_EVERY_MS)).unref();
  }

  await refresh();
  timer = setTimeout(() => void watch(), untilTick(REFRESH_EVERY_MS)).unref();
  return {
    isRevoked({ jti, streamname, revision }) {
      if (tokens.has(jti) || tokens.has(jtiWithin(organisationOf(streamname), jti))) return true;
      return streams.size > 0 && revision < (streams.get(withoutArguments(streamname))?.revision ?? 0);
    },
    revisionOf: (streamname) => streams.get(withoutArguments(streamname))?.revision ?? 0,
    countOf: (organisationHash, kind) => counts[kind].get(organisationHash) ?? 0,
    listen: (heard) => void listeners.push(heard),
    refresh,
    stop() {
      stopped = true;
      clearTimeout(timer);
    },
  };
}
