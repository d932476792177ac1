// A row for each web token and play token that is created (T8), with who created it and when, so that an administrator
// finds and revokes them. Rows are written many at a time, a moment after their tokens were given away; while they cannot be
// written no token is given away, since one that no list shows would stay in the hands of somebody whose links an
// administrator believes to have revoked.

import type { CompiledQuery, Kysely, Selectable } from "kysely";
import type { Logger } from "pino";
import { RecentMap } from "../limits/recent-map.ts";
import { inPortions, PORTION, untaken } from "../store/portions.ts";
import type { Schema } from "../store/schema.ts";
import { LastUses } from "../store/statements/last-uses.ts";
import type { TokenTable } from "../store/tables/token-tables.ts";
import { withoutArguments } from "./revocations.ts";
import type { IssuedToken } from "./tokens.ts";

/** Rows of one organisation; beyond, those that expire first are removed. Their tokens remain valid, and can be revoked
 *  by their jti, or with all tokens of their stream. */
export const ROWS_LIMIT = 50_000;
/** How many rows are added before that is checked again. */
const CHECK_AFTER = 500;
/** Organisations whose added rows are counted, and tokens whose last use is known; the one noted first is evicted. */
const REMEMBERED_LIMIT = 10_000;
/** Rows in one statement, and how long the first of them waits, ms. */
const ROWS_PER_STATEMENT = 100;
const WRITTEN_AFTER_MS = 100;
/** Rows that wait for a store that takes long; a further token waits for them. */
const WAITING_LIMIT = 10_000;
/** Longest name in a row, characters: a token may be for any name, and those of streams are shorter. */
const NAME_LIMIT = 200;

/** Who created a token, for whom. */
export interface TokenMaker {
  readonly organisationId: string;
  readonly who: { readonly kind: TokenTable["made_by_kind"]; readonly id: string | null };
}

export interface TokenRecords {
  /** Resolves when the token may be given away: at once, or once rows can be written again. Rejects with `StoreFailed`; the
   *  token must not be given away then. */
  add(token: IssuedToken, kind: TokenTable["kind"], maker: TokenMaker): Promise<void>;
  /** Writes what waits, so that a list is complete. */
  flush(): Promise<void>;
  /** Records in the background that a publish or play was allowed with the token, at most once a minute. */
  used(jti: string): void;
  stop(): Promise<void>;
}

/** Writes the row of one token. */
export async function recordToken(
  db: Kysely<Schema>,
  token: IssuedToken,
  kind: TokenTable["kind"],
  maker: TokenMaker,
  now: number,
): Promise<void> {
  await db
    .insertInto("token")
    .values(rowOf(token, kind, maker, now))
    .execute();
}

function rowOf(
  { jti, streamname, revision, exp }: IssuedToken,
  kind: TokenTable["kind"],
  { organisationId, who }: TokenMaker,
  now: number,
): TokenTable {
  return {
    id: jti,
    organisation_id: organisationId,
    kind,
    revision,
    name: [...withoutArguments(streamname)].slice(0, NAME_LIMIT).join(""),
    made_by_kind: who.kind,
    made_by: who.id ?? "",
    made_at: now,
    expires_at: exp * 1000,
    last_used_at: null,
    revoked_at: null,
  };
}

export function createTokenRecords(deps: {
  readonly db: Kysely<Schema>;
  readonly clock: { now(): number };
  readonly log: Logger;
  /** For tests; the limit above otherwise. */
  readonly rowsLimit?: number;
}): TokenRecords {
  const { db, clock, log, rowsLimit = ROWS_LIMIT } = deps;
  /** By organisation: rows added since its limit was checked. */
  const added = new RecentMap<string, number>(REMEMBERED_LIMIT);
  const uses = new LastUses();
  let stopped = false;
  let removing: Promise<void> = Promise.resolve();
  /** The rows of the next statement. */
  let waiting: TokenTable[] = [];
  let timer: NodeJS.Timeout | null = null;
  let writing: Promise<void> = Promise.resolve();
  /** The statement of a full portion. */
  let ofPortion: CompiledQuery | null = null;
  /** The last statement failed. */
  let isFailing = false;

  return {
    async add(token, kind, maker) {
      if (isFailing || waiting.length >= WAITING_LIMIT) await write();
      waiting.push(rowOf(token, kind, maker, clock.now()));
      if (waiting.length % ROWS_PER_STATEMENT === 0) writeLater();
      else timer ??= setTimeout(writeLater, WRITTEN_AFTER_MS);
      const { organisationId } = maker;
      // An organisation not counted yet may have too many from before.
      const count = (added.get(organisationId) ?? CHECK_AFTER - 1) + 1;
      added.set(organisationId, count >= CHECK_AFTER ? 0 : count);
      if (count < CHECK_AFTER) return;
      removing = removing
        .then(write)
        .then(() => makeRoom(organisationId))
        .catch((err: unknown) => log.warn({ err }, "records of tokens beyond the limit could not be removed"));
    },
    used(jti) {
      const now = clock.now();
      if (stopped || !uses.take(jti, now)) return;
      const isWritten = waiting.length > 0 ? write() : Promise.resolve();
      isWritten
        .then(() => db.updateTable("token").set({ last_used_at: now }).where("id", "=", jti).execute())
        .catch((err: unknown) => log.warn({ err, jti }, "last use of a token not recorded"));
    },
    flush: write,
    async stop() {
      stopped = true;
      await write().catch((err: unknown) => log.error({ err }, "records of tokens were lost"));
      await removing;
    },
  };

  /** Building the statement of a full portion costs more than carrying it out, so its text is made once. */
  function insertOf(rows: readonly TokenTable[]): CompiledQuery {
    const isFull = rows.length === ROWS_PER_STATEMENT;
    // All rows have their members in the same order (`rowOf`).
    if (isFull && ofPortion !== null) return { ...ofPortion, parameters: rows.flatMap((row) => Object.values(row)) };
    const insert = db.insertInto("token").values(rows);
    // A statement whose answer was lost may have been carried out.
    const compiled = insert.onConflict((conflict) => conflict.column("id").doNothing()).compile();
    if (isFull) ofPortion = compiled;
    return compiled;
  }

  function writeLater(): void {
    write().catch((err: unknown) => log.warn({ err }, "tokens cannot be recorded: none is created until they can"));
  }

  /** Writes all that waits, one statement at a time. What could not be written waits on. */
  function write(): Promise<void> {
    if (timer !== null) clearTimeout(timer);
    timer = null;
    const written = writing.then(async () => {
      while (waiting.length > 0) {
        const rows = waiting.slice(0, ROWS_PER_STATEMENT);
        await db.executeQuery(insertOf(rows));
        waiting = waiting.slice(rows.length);
      }
    });
    written.then(
      () => (isFailing = false),
      () => (isFailing = true),
    );
    writing = written.catch(() => {});
    return written;
  }

  async function makeRoom(organisation: string): Promise<void> {
    const ofIt = db.selectFrom("token").where("organisation_id", "=", organisation);
    const last = await ofIt
      .select("expires_at")
      .orderBy("expires_at", "desc")
      .offset(rowsLimit)
      .limit(1)
      .executeTakeFirst();
    if (last === undefined) return;
    const first = ofIt.select("id").where("expires_at", "<=", last.expires_at).orderBy("expires_at").limit(PORTION);
    await inPortions(
      async () => {
        const { numDeletedRows } = await db
          .deleteFrom("token")
          .where("id", "in", untaken(db, first))
          .executeTakeFirst();
        return Number(numDeletedRows);
      },
      () => stopped,
    );
  }
}

/** The row of a token of the organisation; undefined when it has none. */
export async function findToken(
  db: Kysely<Schema>,
  organisationId: string,
  id: string,
): Promise<Selectable<TokenTable> | undefined> {
  return await db
    .selectFrom("token")
    .selectAll()
    .where("id", "=", id)
    .where("organisation_id", "=", organisationId)
    .executeTakeFirst();
}

/** Notes in its row that a token was revoked. `organisationId` null: whoever's it is. */
export async function noteRevoked(
  db: Kysely<Schema>,
  organisationId: string | null,
  id: string,
  now: number,
): Promise<void> {
  let update = db.updateTable("token").set({ revoked_at: now }).where("id", "=", id).where("revoked_at", "is", null);
  if (organisationId !== null) update = update.where("organisation_id", "=", organisationId);
  await update.execute();
}
