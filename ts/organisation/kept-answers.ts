// Stored responses (M17): a request repeated with its Idempotency-Key is not carried out again. A response may contain
// a secret that is shown only once, so it is sealed.
import { createHash } from "node:crypto";
import type { Kysely } from "kysely";
import type { Logger } from "pino";
import { AnswerPending, IdempotencyKeyReused } from "../errors.ts";
import { KEPT_ANSWER_DAYS } from "../store/retention.ts";
import type { Schema } from "../store/schema.ts";
import type { SecretBox } from "../store/secret-box.ts";
import { checkRoom } from "../store/table-bounds.ts";

/** How long a response is kept, ms. */
const KEPT_MS = KEPT_ANSWER_DAYS * 86_400_000;
/** A request without a response after this time was cut off, for instance by a crash, ms: the next one does the
 *  work. */
const PENDING_LIMIT_MS = 60_000;
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

  return {
    async begin(request) {
      const id = idOf(request);
      const now = clock.now();
      // Refused rather than dropping the oldest: a repetition must never be carried out because its answer is gone.
      const isKept = () => db.selectFrom("kept_answer").select("id").where("id", "=", id).executeTakeFirst();
      await checkRoom(db, request.organisationId, "kept_answer", IDEMPOTENCY_KEY).catch(async (refusal: unknown) => {
        if ((await isKept()) === undefined) throw refusal;
      });
      const fresh = { organisation_id: request.organisationId, sealed: null, begun_at: now };
      // One statement takes the key, including an expired one: of concurrent requests exactly one gets it.
      const taken = await db
        .insertInto("kept_answer")
        .values({ id, ...fresh })
        .onConflict((conflict) =>
          conflict
            .column("id")
            .doUpdateSet(fresh)
            .where((eb) =>
              eb.or([
                eb("kept_answer.begun_at", "<=", now - KEPT_MS),
                eb.and([
                  eb("kept_answer.sealed", "is", null),
                  eb("kept_answer.begun_at", "<=", now - PENDING_LIMIT_MS),
                ]),
              ]),
            ),
        )
        .returning("id")
        .executeTakeFirst();
      if (taken !== undefined) return null;
      const row = await db.selectFrom("kept_answer").select("sealed").where("id", "=", id).executeTakeFirst();
      if (row === undefined || row.sealed === null) throw new AnswerPending(PENDING_RETRY_S);
      const { content, status, body } = JSON.parse(secretBox.open(row.sealed, purposeOf(id))) as Sealed;
      if (content !== digestOf(request.content)) throw new IdempotencyKeyReused();
      return { status, body };
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
        .catch((err: unknown) => log.warn({ err }, "answer to a request with an Idempotency-Key not kept"));
    },
    async release(request) {
      await db.deleteFrom("kept_answer").where("id", "=", idOf(request)).where("sealed", "is", null).execute();
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
