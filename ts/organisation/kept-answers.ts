// Stored responses (M17): a request repeated with its Idempotency-Key is not carried out again. A response may contain
// a secret that is shown only once, so it is sealed.
import { createHash } from "node:crypto";
import type { Kysely } from "kysely";
import type { Logger } from "pino";
import { AnswerPending, IdempotencyKeyReused } from "../errors.ts";
import { KEPT_ANSWER_DAYS } from "../store/retention.ts";
import type { Schema } from "../store/schema.ts";
import type { SecretBox } from "../store/secret-box.ts";
import { fullShare, refusalOf } from "../store/table-bounds.ts";

/** How long a response is kept, ms. */
const KEPT_MS = KEPT_ANSWER_DAYS * 86_400_000;
/** A request without a response after this time was cut off, for instance by a crash, ms: the next one does the
 *  work. */
const PENDING_LIMIT_MS = 60_000;
/** More than an answer with its seal takes in the store: so much is kept free for each request under way, bytes. */
const ANSWER_ALLOWANCE = 100_000;
/** The header, for messages. */
const IDEMPOTENCY_KEY = "Idempotency-Key";
/** Retry-After for the response of a request that is still running, seconds. */
const PENDING_RETRY_S = 1;

export interface KeptAnswer {
  readonly status: number;
  /** JSON text. */
  readonly body: string;
}

/** A request with an Idempotency-Key. */
export interface Repeatable {
  readonly organisationId: string;
  /** The sender: the same key from another caller is a different key. */
  readonly holder: string;
  readonly key: string;
  /** Everything that identifies the request: method, address and body. */
  readonly content: string;
}

export interface KeptAnswers {
  /** The stored response, or null: then the caller does the work, and calls `keep` or `release`. Rejects with
   *  `IdempotencyKeyReused` when the key was used for a different request, with `AnswerPending` while that one runs. */
  begin(request: Repeatable): Promise<KeptAnswer | null>;
  /** Never rejects. */
  keep(request: Repeatable, answer: KeptAnswer): Promise<void>;
  /** Nothing was done: the key can be used again. */
  release(request: Repeatable): Promise<void>;
}

export function createKeptAnswers(deps: {
  readonly db: Kysely<Schema>;
  readonly secretBox: SecretBox;
  readonly clock: { now(): number };
  readonly log: Logger;
}): KeptAnswers {
  const { db, secretBox, clock, log } = deps;

  /** Requests under way, whose answers will be kept, by organisation: of this process, so those of other nodes may exceed
   *  the limit of bytes by their answers. */
  const underWay = new Map<string, number>();
  const addUnderWay = (organisationId: string, change: 1 | -1) => {
    const count = (underWay.get(organisationId) ?? 0) + change;
    if (count === 0) underWay.delete(organisationId);
    else underWay.set(organisationId, count);
  };

  /** Takes the key: null when the caller has it and does the work, otherwise the stored response. */
  async function take(request: Repeatable): Promise<KeptAnswer | null> {
    const { organisationId } = request;
    const id = idOf(request);
    const now = clock.now();
    const fresh = { organisation_id: organisationId, sealed: null, begun_at: now };
    const reservedBytes = (underWay.get(organisationId) ?? 0) * ANSWER_ALLOWANCE;
    // One statement takes the key, including an expired one: of concurrent requests exactly one gets it. It adds no row
    // when the table is full: refused rather than dropping the oldest, since a repetition must never be carried out because
    // its answer is gone. Those at the same moment can exceed the number of rows only by the connections to PostgreSQL
    // (store/postgres.ts), and not at all on the embedded store.
    const taken = await db
      .insertInto("kept_answer")
      .columns(["id", "organisation_id", "sealed", "begun_at"])
      .expression(
        db
          .selectNoFrom((eb) => [
            eb.val(id).as("id"),
            eb.val(organisationId).as("organisation_id"),
            eb.val(null).as("sealed"),
            eb.val(now).as("begun_at"),
          ])
          .where((eb) =>
            eb.or([
              eb.exists(db.selectFrom("kept_answer").select("id").where("id", "=", id)),
              eb.not(eb.exists(fullShare(db, organisationId, "kept_answer", reservedBytes))),
            ]),
          ),
      )
      .onConflict((conflict) =>
        conflict
          .column("id")
          .doUpdateSet(fresh)
          .where((eb) =>
            eb.or([
              eb("kept_answer.begun_at", "<=", now - KEPT_MS),
              eb.and([eb("kept_answer.sealed", "is", null), eb("kept_answer.begun_at", "<=", now - PENDING_LIMIT_MS)]),
            ]),
          ),
      )
      .returning("id")
      .executeTakeFirst();
    if (taken !== undefined) return null;
    const row = await db.selectFrom("kept_answer").select("sealed").where("id", "=", id).executeTakeFirst();
    if (row === undefined) throw refusalOf("kept_answer", IDEMPOTENCY_KEY);
    if (row.sealed === null) throw new AnswerPending(PENDING_RETRY_S);
    const { content, status, body } = JSON.parse(secretBox.open(row.sealed, purposeOf(id))) as Sealed;
    if (content !== digestOf(request.content)) throw new IdempotencyKeyReused();
    return { status, body };
  }

  return {
    async begin(request) {
      addUnderWay(request.organisationId, 1);
      let isOurs = false;
      try {
        const former = await take(request);
        isOurs = former === null;
        return former;
      } finally {
        if (!isOurs) addUnderWay(request.organisationId, -1);
      }
    },
    async keep(request, { status, body }) {
      const id = idOf(request);
      const answer: Sealed = { content: digestOf(request.content), status, body };
      const sealed = secretBox.seal(JSON.stringify(answer), purposeOf(id));
      // The work is done even if this fails: the caller gets the response.
      await db
        .updateTable("kept_answer")
        .set({ sealed })
        .where("id", "=", id)
        .execute()
        .catch((err: unknown) => log.warn({ err }, "answer to a request with an Idempotency-Key not kept"))
        .finally(() => addUnderWay(request.organisationId, -1));
    },
    async release(request) {
      await db
        .deleteFrom("kept_answer")
        .where("id", "=", idOf(request))
        .where("sealed", "is", null)
        .execute()
        .finally(() => addUnderWay(request.organisationId, -1));
    },
  };
}

/** `content`: a digest, inside the seal, since a body may contain a password. */
interface Sealed extends KeptAnswer {
  readonly content: string;
}

function idOf({ organisationId, holder, key }: Repeatable): string {
  return digestOf(JSON.stringify([organisationId, holder, key]));
}

function digestOf(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}

function purposeOf(id: string): string {
  return `kept_answer:${id}`;
}
