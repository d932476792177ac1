// The keys web tokens are signed with: kept in the store, private parts sealed, imported once (T4). The active one
// signs, all of them verify and are published. Their succession is in rotation.ts.
import { type CryptoKey, importJWK, type JWK } from "jose";
import type { Kysely } from "kysely";
import type { Logger } from "pino";
import { repeatedWarning } from "../limits/repeated-warning.ts";
import type { Schema, TokenKeyTable } from "../store/schema.ts";
import type { SecretBox } from "../store/secret-box.ts";
import { TOKEN_ALGORITHMS, type TokenAlgorithm } from "./algorithms.ts";
import { purposeOf, type RotationRequest, rotateTokenKeys } from "./rotation.ts";

export interface TokenKeys {
  readonly active: { readonly kid: string; readonly alg: TokenAlgorithm; readonly privateKey: CryptoKey };
  /** The public key with id `kid` when it is one for `alg`, else null. */
  find(kid: string | undefined, alg: string): CryptoKey | null;
  /** The public keys as JWK (RFC 7517), newest first. */
  readonly published: readonly JWK[];
  /** Replaces keys that are due (`now`: epoch ms), and reloads changes of other processes. */
  upkeep(now: number): Promise<void>;
  /** Reloads changes of other processes. */
  reload(): Promise<void>;
  /** Like `reload`, at most once a second, started after the call in any case: for a caller that has met an unknown
   *  key. */
  reloadSoon(): Promise<void>;
  /** Like `reload`, one at a time, started after the call in any case: for a caller that publishes all keys. */
  reloadNow(): Promise<void>;
}

/** Least time between two reads of the store caused by unknown keys, which anybody can send, ms. */
const RELOAD_PAUSE_MS = 1_000;

/** Reads the keys of the store; creates missing ones, by default for `alg`: if nodes are configured differently, the
 *  one that started last decides. Throws `StoreUnavailable` when the key file does not open them. */
export async function loadTokenKeys(
  db: Kysely<Schema>,
  box: SecretBox,
  options: Pick<RotationRequest, "alg" | "now" | "algorithm"> & { readonly rotateDays?: number },
): Promise<TokenKeys> {
  const { alg, now, algorithm = "configured", rotateDays = 0 } = options;
  const read = async () => await keySet(await readRows(db), box);
  await rotateTokenKeys(db, box, { alg, now, rotateDays, algorithm });
  let keys = await read();
  const reload = async (): Promise<void> => {
    const states = (rows: readonly Pick<TokenKeyTable, "kid" | "state">[]) =>
      rows.map(({ kid, state }) => `${kid} ${state}`).join();
    const rows = await readRows(db);
    if (states(rows) !== states(keys.rows)) keys = await keySet(rows, box);
  };
  return {
    get active() {
      return keys.active;
    },
    get published() {
      return keys.published;
    },
    find: (kid, wanted) => keys.find(kid, wanted),
    reload,
    reloadSoon: paced(reload, RELOAD_PAUSE_MS),
    reloadNow: paced(reload, 0),
    async upkeep(now) {
      await rotateTokenKeys(db, box, { alg, now, rotateDays, algorithm: "active" });
      await reload();
    },
  };
}

/** Runs `read` at most once in `everyMs`, and one at a time: all who call meanwhile share the next run. */
function paced(read: () => Promise<void>, everyMs: number): () => Promise<void> {
  let pause: Promise<unknown> = Promise.resolve();
  let next: Promise<void> | null = null;
  return () => {
    next ??= pause.then(() => {
      next = null;
      const reading = read();
      const waiting = everyMs === 0 ? null : new Promise((resolve) => void setTimeout(resolve, everyMs).unref());
      pause = Promise.all([reading.catch(() => {}), waiting]);
      return reading;
    });
    return next;
  };
}

/** How often changes of other processes are reloaded, and how often keys are checked for their age, ms. */
const RELOAD_EVERY_MS = 5_000;
const UPKEEP_EVERY_MS = 3_600_000;

/** Keeps the keys of a running service current; the returned function stops it. */
export function keepTokenKeys(
  keys: TokenKeys,
  deps: { readonly clock: { now(): number }; readonly log: Logger },
): () => Promise<void> {
  const warning = repeatedWarning(deps.log, "token keys could not be read; the known ones stay in use");
  const reload = setInterval(() => void warning.around(() => keys.reload()), RELOAD_EVERY_MS).unref();
  const upkeep = setInterval(() => void warning.around(() => keys.upkeep(deps.clock.now())), UPKEEP_EVERY_MS).unref();
  return async () => {
    clearInterval(reload);
    clearInterval(upkeep);
  };
}

async function keySet(rows: readonly TokenKeyTable[], box: SecretBox) {
  const publicKeys = new Map<string, { readonly alg: string; readonly key: CryptoKey }>();
  for (const { kid, alg, public_jwk } of rows) publicKeys.set(kid, { alg, key: await imported(public_jwk, alg) });
  const row = rows.find(({ state }) => state === "active");
  const alg = TOKEN_ALGORITHMS.find((known) => known === row?.alg);
  if (row === undefined || alg === undefined) throw new Error("no active token key after one was made");
  const privateKey = await imported(box.open(row.private_key, purposeOf(row.kid)), row.alg);
  return {
    rows,
    active: { kid: row.kid, alg, privateKey },
    find(kid: string | undefined, wanted: string) {
      const known = kid === undefined ? undefined : publicKeys.get(kid);
      return known?.alg === wanted ? known.key : null;
    },
    published: rows.map((each) => ({ ...JSON.parse(each.public_jwk), kid: each.kid, alg: each.alg, use: "sig" })),
  };
}

async function readRows(db: Kysely<Schema>): Promise<TokenKeyTable[]> {
  return await db.selectFrom("token_key").selectAll().orderBy("created_at", "desc").orderBy("kid").execute();
}

async function imported(jwk: string, alg: string): Promise<CryptoKey> {
  const key = await importJWK(JSON.parse(jwk), alg);
  if (key instanceof Uint8Array) throw new Error("a token key is no secret key");
  return key;
}
