// A store with rows in every table, thousands in those that grow: for operations that must handle every table.
import type { Insertable } from "kysely";
import type { Store } from "../../ts/store/open.ts";
import type { Schema } from "../../ts/store/schema.ts";

/** Rows per statement. */
const AT_ONCE = 500;

/** Adds to a store that a service has initialised: `count` streams with a publish, an event, a delivery, a day of
 *  usage and a timeline each, and some rows of everything else. */
export async function fillStore(db: Store["db"], count: number): Promise<void> {
  const { id: organisation } = await db.selectFrom("organisation").select("id").executeTakeFirstOrThrow();
  const each = <T>(make: (at: number) => T): T[] => Array.from({ length: count }, (_, at) => make(at));
  const add = async <T extends keyof Schema & string>(table: T, rows: readonly Insertable<Schema[T]>[]) => {
    for (let at = 0; at < rows.length; at += AT_ONCE) {
      await db
        .insertInto(table)
        .values(rows.slice(at, at + AT_ONCE) as never)
        .execute();
    }
  };
  const own = { organisation_id: organisation };
  const name = (at: number) => `Filled-${at}`;
  // Texts as people and encoders write them, and texts that are difficult to sort.
  const odd = ["é", "Z", "a", "_", "ß", "日本", "'quoted'", "\\", ""];
  const text = (at: number) => odd[at % odd.length] ?? "";

  await add(
    "stream",
    each((at) => ({
      ...{ id: `${text(at)}s${at}`, ...own, name: name(at), state: "ended" as const, state_before_lock: null },
      ...{
        tags: JSON.stringify([text(at)]),
        hold_s: at % 2 ? 10 : null,
        title: at % 2 ? text(at) : null,
        created_at: 1_700_000_000_000 + at,
        updated_at: at,
      },
    })),
  );
  await add(
    "stream_external_id",
    each((at) => ({ ...own, external_id: `${text(at)}${at}`, stream_id: `${text(at)}s${at}` })),
  );
  await add(
    "stream_text",
    each((at) => ({ ...own, word: `${text(at)}${at}`, stream_id: `${text(at)}s${at}` })),
  );
  const stream = (at: number) => `${text(at)}s${at}`;
  await add(
    "publish",
    each((at) => ({
      ...{ client_id: 9_000_000_000 + at, ...own, stream_id: stream(at), name: name(at), app: "live" },
      ...{
        arguments: text(at),
        address: "203.0.113.7",
        protocol: "rtmp" as const,
        webhook: null,
        state: "ended" as const,
      },
      ...{ asked_at: at, accepted_at: at, ended_at: at, end_reason: "disconnected", denial_cause: null },
      ...{ denial_reason: null, bytes_in: 2 ** 52 + at, bytes_out: at, bytes_elsewhere: at, video: null, audio: null },
      ...{ dropped_frames: at, epoch: null, trace: null, continues: null },
    })),
  );
  await add(
    "refusal",
    each((at) => ({
      ...{ id: `r${at}`, ...own, stream_id: null, name: text(at), request: "publish" as const, detail: null },
      ...{ protocol: "whip" as const, reason: "full", address: "203.0.113.7", count: at, first_at: at, last_at: at },
    })),
  );
  await add(
    "token",
    each((at) => ({
      ...{ id: `t${at}`, ...own, kind: "broadcast" as const, name: name(at), made_by_kind: "operator" as const },
      ...{ made_by: "", revision: at, made_at: at, expires_at: 2 ** 52 + at, last_used_at: at, revoked_at: null },
    })),
  );
  await add(
    "publish_timeline",
    each((at) => ({ client_id: 9_000_000_000 + at, kept: JSON.stringify({ at, text: text(at).repeat(50) }) })),
  );
  for (const outbox of ["outbox", "webhook_copy_outbox"] as const)
    await add(
      outbox,
      each((at) => ({
        ...{ id: `o${at}`, ...own, client_id: 9_000_000_000 + at, url: "https://customer.example/", body: text(at) },
        ...{ attempts: 1, next_attempt_at: at, created_at: at, delivered_at: at, given_up_at: null, last_status: 200 },
        ...{ epoch: null, trace: null, call: at % 2 ? ("health" as const) : null },
      })),
    );
  await add(
    "delivery",
    each((at) => ({
      ...{
        id: `d${at}`,
        ...own,
        client_id: at,
        call: "publish" as const,
        name: name(at),
        body: text(at),
        bytes: 100 + at,
      },
      ...{
        url: "https://customer.example/",
        outcome: "answered",
        status: 200,
        reason: null,
        latency_ms: 5,
        attempts: 1,
      },
      ...{ first_at: at, last_at: at },
    })),
  );
  await add(
    "usage",
    each((at) => ({ stream_id: stream(at), day: "2026-01-31", ...own, bytes_in: at, bytes_out: at })),
  );
  const few = each((at) => at).slice(0, 300);
  await add(
    "api_key",
    few.map((at) => ({
      ...{ id: `k${at}`, ...own, role: "user" as const, hash: `hash${at}`, label: text(at), scope_tag: null },
      ...{ created_at: at, expires_at: null, last_used_at: null, revoked_at: at },
    })),
  );
  const person = (at: number) => ({ id: `p${at}`, ...own, email: `p${at}@example.com`, role: "readonly" as const });
  const dates = { created_at: 1, updated_at: 1, last_login_at: null };
  await add(
    "person",
    few.map((at) => ({ ...person(at), password_hash: `$argon2id$${at}`, ...dates })),
  );
  await add(
    "person_session",
    few.map((at) => ({ hash: `session${at}`, person_id: `p${at}`, created_at: at, last_seen_at: at })),
  );
  await add(
    "person_identity",
    few.map((at) => ({
      ...own,
      issuer: "https://sso.example",
      subject: text(at) + at,
      person_id: `p${at}`,
      created_at: at,
    })),
  );
  await add("identity_provider", [
    {
      ...{ ...own, issuer: "https://sso.example", client_id: "c", sealed: null, scope: "openid", role_claim: "groups" },
      ...{ roles: "[]", created_at: 1, updated_at: 1 },
    },
  ]);
  await add(
    "token_revocation",
    few.map((at) => ({
      ...{ kind: at % 2 ? ("jti" as const) : ("stream" as const), value: `${text(at)}${at}`, revision: at },
      ...{ updated_at: at, sequence: at, expires_at: 4_000_000_000_000 },
    })),
  );
  await add("webhook_copy", [{ ...own, url: "https://staging.example/", events: "alerts", updated_at: 1 }]);
  await add("webhook_copy_secret", [{ id: "copies", ...own, sealed: "x", created_at: 1, expires_at: null }]);
  await add("organisation_logo", [{ ...own, sha256: "x", png: "", width: 1, height: 1, updated_at: 1 }]);
  await add("kept_answer", [{ id: "a1", ...own, sealed: null, begun_at: 1 }]);
  const node = {
    name: "gone",
    state: "stopped" as const,
    beats: 1,
    beat_at: 1,
    started_at: 1,
    version: "0",
    status: "{}",
  };
  await add("node", [{ epoch: 900_000_000, ...node }]);
  await add("kept_end", [{ client_id: 1, epoch: 900_000_000 }]);
  await add("sequence", [{ name: "filled", next: 7 }]);
}
