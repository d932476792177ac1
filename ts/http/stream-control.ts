// /stream/{id}/stop, /lock, /unlock and DELETE /stream/{id} (M10, M11): end the running publish, and decide about the next.
import type { Context } from "hono";
import type { Kysely } from "kysely";
import { type Actor, changed } from "../organisation/audit.ts";
import type { Caller } from "../organisation/callers.ts";
import {
  deleteStream,
  findStream,
  lockStream,
  refusalFor,
  refuseStream,
  unlockStream,
} from "../organisation/streams.ts";
import { type Ending, endingBy, endingOf } from "../publish/ending/ending.ts";
import type { LiveSessions } from "../publish/live-sessions.ts";
import type { Schema, StreamTable } from "../store/schema.ts";
import { forgetStream } from "../token/revocations.ts";
import { type Declarations, newRoutes, type RouteDeps, type Routes } from "./openapi.ts";
import { Stream } from "./records/stream.ts";
import { EndRequest } from "./request/end-request.ts";
import { type RecordDeps, recordOf } from "./request/stream-record.ts";

/** The reason sent to the broadcaster of a stream that is stopped without one. */
const STOPPED = "Stream was stopped";

interface ControlDeps extends RouteDeps, RecordDeps {
  readonly sessions: Pick<LiveSessions, "kick">;
}

interface Move {
  readonly action: string;
  readonly detail?: object;
  readonly move: (trx: Kysely<Schema>, stream: StreamTable, now: number) => Promise<StreamTable>;
  /** Null when no publish ends. */
  readonly ending: Ending | null;
}

const LOCKS = "The running publish ends, and publishes are refused until unlock. The state becomes locked.";
const UNLOCKS =
  "Restores the state before the lock, and ends a refusal that a stop or kick has asked for. A stream that is neither " +
  "locked nor refused is not changed.";
const DELETES = "The running publish ends. From then on the stream is unknown, and its name is never reused.";
const described = (summary: string, description: string) => {
  const declared = { tag: "Streams", summary, description, answer: Stream, errors: [404] } as const;
  return declared;
};

export const STREAM_CONTROL_ROUTES = {
  "PUT /stream/{id}/stop": {
    about: "stream",
    ends: true,
    tag: "Streams",
    summary: "Stop a stream",
    description:
      "With `reason` or `refuse_s` the running publish ends, its broadcaster is told the reason, and new publishes are " +
      "refused for `refuse_s`; the state does not become locked, and the last stop decides. Without either, as with " +
      "lock, publishes are refused until unlock, and the state becomes locked.",
    body: EndRequest,
    answer: Stream,
    errors: [404],
  },
  "PUT /stream/{id}/lock": { ...described("Lock a stream", LOCKS), about: "stream", ends: true },
  "PUT /stream/{id}/unlock": described("Unlock a stream", UNLOCKS),
  "DELETE /stream/{id}": { ...described("Delete a stream", DELETES), about: "stream", ends: true },
} satisfies Declarations;

export function streamControlRoutes(deps: ControlDeps): Routes["hono"] {
  const { db, clock, sessions } = deps;
  const routes = newRoutes(deps, STREAM_CONTROL_ROUTES);

  routes.guarded("PUT /stream/{id}/stop", async (c, caller, { body }) => {
    const reason = body.reason || null;
    const isLock = (body.reason ?? null) === null && (body.refuse_s ?? null) === null;
    if (isLock) return c.json(await moved(c, caller, locking("stream.stop", caller, STOPPED)));
    const seconds = body.refuse_s ?? 0;
    const ending = endingBy(caller.who, reason ?? STOPPED);
    return c.json(
      await moved(c, caller, {
        action: "stream.stop",
        detail: { reason, refuse_s: seconds },
        move: (trx, stream, now) => refuseStream(trx, stream, refusalFor(seconds, ending.reason, now), now),
        ending,
      }),
    );
  });

  routes.guarded("PUT /stream/{id}/lock", async (c, caller) =>
    c.json(await moved(c, caller, locking("stream.lock", caller, null))),
  );
  routes.guarded("PUT /stream/{id}/unlock", async (c, caller) =>
    c.json(await moved(c, caller, { action: "stream.unlock", move: unlockStream, ending: null })),
  );
  routes.guarded("DELETE /stream/{id}", async (c, caller) =>
    c.json(
      await moved(c, caller, {
        action: "stream.delete",
        async move(trx, stream, now) {
          await forgetStream(trx, stream.name, now);
          return await deleteStream(trx, stream, now);
        },
        ending: endingOf("stream_deleted", null, caller.who),
      }),
    ),
  );

  return routes.hono;

  async function moved(c: Context, caller: Caller & Actor, { action, detail = {}, move, ending }: Move) {
    const now = clock.now();
    const change = ({ stream }: { readonly stream: StreamTable }) => ({
      action,
      subject: stream.id,
      detail: { from: stream.state, ...detail },
    });
    const { stream, after } = await changed(db, caller, now, change, async (trx) => {
      // As it is when it changes: another request, or a publish, may come first.
      const found = await findStream(trx, caller.organisation.id, c.req.param("id") ?? "", caller.scopeTag);
      return { stream: found, after: await move(trx, found, now) };
    });
    // After the store has it: a publish that reconnects meets the lock.
    if (ending !== null) {
      c.set("ending", ending);
      sessions.kick(caller.organisation.id, { streamId: stream.id }, ending);
    }
    return await recordOf(c, caller, after, deps);
  }
}

function locking(action: string, { who }: Caller, reason: string | null): Move {
  return { action, move: lockStream, ending: endingOf("stream_locked", reason, who) };
}
