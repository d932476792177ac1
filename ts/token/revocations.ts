// Revoked web tokens that have not expired (T7). The store holds them; a service keeps them in memory, because every
// verification needs them, and polls the store for those that a command or another node added.
import type { Kysely } from "kysely";
import type { Logger } from "pino";
import type { Schema, TokenRevocationTable } from "../store/schema.ts";

/** How often the store is polled for new revocations, ms. */
const LOOK_EVERY_MS = 1_000;
/** Name of the sequence that numbers revocations in the store. */
const SEQUENCE = "token_revocation";
/** No token lives longer than this after it was issued: the limit of T1 plus a day, ms. */
const TOKEN_LIFE_LIMIT_MS = 366 * 86_400_000;

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
  /** How many single tokens an organisation has revoked that have not expired. */
  countOf(organisationHash: string): number;
  /** Calls `heard` after every further revocation, made on any node. */
  listen(heard: () => void): void;
  /** Reads revocations added by others. */
  look(): Promise<void>;
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

/** Reads all revocations and polls for more until `stop`. */
export async function openRevocations(deps: {
  readonly db: Kysely<Schema>;
  readonly clock: { now(): number };
  readonly log: Logger;
}): Promise<Revocations> {
  const { db, clock, log } = deps;
  const tokens = new Map<string, number>();
  /** Stream name → its revision, and when that may be forgotten. */
  const streams = new Map<string, { readonly revision: number; readonly expiresAt: number }>();
  /** Organisation's hash → how many of `tokens` are its own. */
  const counts = new Map<string, number>();
  const listeners: (() => void)[] = [];
  let newest = 0;
  let timer: NodeJS.Timeout | undefined;
  let stopped = false;

  /** Returns whether it was not known. */
  function take({ kind, value, revision, sequence, expires_at }: TokenRevocationTable): boolean {
    newest = Math.max(newest, Number(sequence));
    const isNew = kind === "jti" ? !tokens.has(value) : (streams.get(value)?.revision ?? 0) < revision;
    if (!isNew) return false;
    if (kind === "jti") {
      tokens.set(value, expires_at);
      counts.set(organisationIn(value), (counts.get(organisationIn(value)) ?? 0) + 1);
    } else streams.set(value, { revision, expiresAt: expires_at });
    return true;
  }

  async function look(): Promise<void> {
    const rows = await db.selectFrom("token_revocation").selectAll().where("sequence", ">=", newest).execute();
    const hasNew = rows.map(take).includes(true);
    if (hasNew) for (const heard of listeners) heard();
  }

  function forget(jti: string): void {
    tokens.delete(jti);
    const organisation = organisationIn(jti);
    const left = (counts.get(organisation) ?? 1) - 1;
    if (left > 0) counts.set(organisation, left);
    else counts.delete(organisation);
  }

  async function forgetExpired(now: number): Promise<void> {
    const before = tokens.size + streams.size;
    for (const [jti, expiresAt] of tokens) if (expiresAt <= now) forget(jti);
    for (const [name, { expiresAt }] of streams) if (expiresAt <= now) streams.delete(name);
    if (tokens.size + streams.size < before) {
      await db.deleteFrom("token_revocation").where("expires_at", "<=", now).execute();
    }
  }

  async function watch(): Promise<void> {
    try {
      await look();
      await forgetExpired(clock.now());
    } catch (err) {
      log.warn({ err }, "revocations of web tokens could not be read; the known ones stay in force");
    }
    if (!stopped) timer = setTimeout(() => void watch(), LOOK_EVERY_MS).unref();
  }

  await look();
  timer = setTimeout(() => void watch(), LOOK_EVERY_MS).unref();
  return {
    isRevoked({ jti, streamname, revision }) {
      const [hash = ""] = streamname.split("-", 1);
      if (tokens.has(jti) || tokens.has(jtiWithin(hash, jti))) return true;
      return streams.size > 0 && revision < (streams.get(withoutArguments(streamname))?.revision ?? 0);
    },
    revisionOf: (streamname) => streams.get(withoutArguments(streamname))?.revision ?? 0,
    countOf: (organisationHash) => counts.get(organisationHash) ?? 0,
    listen: (heard) => void listeners.push(heard),
    look,
    stop() {
      stopped = true;
      clearTimeout(timer);
    },
  };
}
