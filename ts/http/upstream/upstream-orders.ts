// /stream/{id}/upstream/{upstream_id}/pause, /resume, /retry and /test: what a person does to one upstream, before a
// broadcast and while it runs.
import type { Context } from "hono";
import type { Kysely } from "kysely";
import { TooManyRequests, WrongUpstreamState } from "../../errors.ts";
import { PUSH_STEPS } from "../../media/codes.ts";
import { type Actor, changed, recordChange } from "../../organisation/audit.ts";
import type { Caller } from "../../organisation/callers.ts";
import { createRequestRate } from "../../organisation/request-rate.ts";
import { findStream } from "../../organisation/streams.ts";
import type { StreamUpstreams } from "../../organisation/upstreams.ts";
import type { LiveSessions } from "../../publish/live-sessions.ts";
import { TEST_LIMIT_MS, type UpstreamTest, type UpstreamTests } from "../../publish/upstreams/upstream-tests.ts";
import type { Schema } from "../../store/schema.ts";
import { type Declarations, newRoutes, type RouteDeps, type Routes, z } from "../openapi.ts";
import { SessionUpstream, upstreamRecord } from "../records/session.ts";
import { changeOf, Upstream, UpstreamCause, upstreamOf } from "../records/upstream.ts";

interface OrderDeps extends RouteDeps {
  readonly db: Kysely<Schema>;
  readonly clock: { now(): number };
  readonly streamUpstreams: StreamUpstreams;
  readonly upstreamTests: Pick<UpstreamTests, "run">;
  readonly sessions: Pick<LiveSessions, "followStream" | "retryUpstream" | "upstreamsOf">;
}

const TestedUpstream = z
  .object({
    outcome: z.enum(["ok", "failed"]),
    steps: z.array(
      z.object({
        step: z.enum(PUSH_STEPS).openapi({
          description: "`tls` for rtmps alone; `media`: two seconds of H.264 and AAC",
        }),
        ms: z.int().openapi({ description: "How long it took, or until it failed" }),
        outcome: z.enum(["ok", "failed"]),
      }),
    ),
    cause: UpstreamCause.nullable().openapi({ description: "Why the last step failed; null when none did" }),
    detail: z.string().nullable().openapi({
      description: "The same in words; of a server that rejected, its code and its words",
      example: "NetStream.Publish.BadName: Stream already publishing",
    }),
  })
  .openapi("TestedUpstream");

/** Tests of one organisation on a node: those of all upstreams of a stream in a row, then one every ten seconds. */
const TEST_RATE = { perSecond: 0.1, burst: 16 };
/** The way to another node and back, ms. */
const WAY_MS = 2_000;
const described = (summary: string, description: string) => {
  const declared = { tag: "Streams", about: "stream", summary, description, errors: [404] } as const;
  return declared;
};

export const UPSTREAM_ORDER_ROUTES = {
  "PUT /stream/{id}/upstream/{upstream_id}/pause": {
    ...described(
      "Pause an upstream",
      "Nothing is pushed there until it is resumed; it keeps its place. The push of a running publish ends at once.",
    ),
    changesUpstreams: true,
    answer: Upstream,
  },
  "PUT /stream/{id}/upstream/{upstream_id}/resume": {
    ...described("Resume an upstream", "A running publish is pushed there again at once."),
    changesUpstreams: true,
    answer: Upstream,
  },
  "POST /stream/{id}/upstream/{upstream_id}/retry": {
    ...described(
      "Try an upstream again at once",
      "For an upstream of the running publish, also one added for it alone, that waits for its next attempt: 409 for any " +
        "other, and 429 within two seconds of its latest attempt.",
    ),
    answer: SessionUpstream,
    errors: [404, 409],
  },
  "POST /stream/{id}/upstream/{upstream_id}/test": {
    ...described(
      "Test an upstream",
      "Connects as a push does and publishes a test picture and silence for two seconds: what is live there shows it. " +
        "Takes 15 s at most. 409 while a publish is pushed there. An organisation can run four tests at a time, and " +
        "one every ten seconds after the first sixteen.",
    ),
    answersWithinMs: TEST_LIMIT_MS + WAY_MS,
    answer: TestedUpstream,
    errors: [404, 409],
  },
} satisfies Declarations;

export function upstreamOrderRoutes(deps: OrderDeps): Routes["hono"] {
  const { db, clock, streamUpstreams, upstreamTests, sessions } = deps;
  const routes = newRoutes(deps, UPSTREAM_ORDER_ROUTES);
  const testRate = createRequestRate(TEST_RATE, clock);

  routes.guarded("PUT /stream/{id}/upstream/{upstream_id}/pause", async (c, caller) =>
    c.json(await setPaused(c, caller, true)),
  );
  routes.guarded("PUT /stream/{id}/upstream/{upstream_id}/resume", async (c, caller) =>
    c.json(await setPaused(c, caller, false)),
  );

  routes.guarded("POST /stream/{id}/upstream/{upstream_id}/retry", async (c, caller) => {
    const { organisation } = caller;
    const { id } = await find(c, caller);
    const upstream = sessions.retryUpstream(organisation.id, id, c.req.param("upstream_id"));
    const detail = { id: upstream.id, url: upstream.url };
    await recordChange(db, caller, clock.now(), { action: "stream.upstream.retry", subject: id, detail });
    return c.json(upstreamRecord(upstream));
  });

  routes.guarded("POST /stream/{id}/upstream/{upstream_id}/test", async (c, caller) => {
    const { organisation } = caller;
    const { id } = await find(c, caller);
    const upstream = await streamUpstreams.find(organisation.id, id, c.req.param("upstream_id"));
    const live = sessions.upstreamsOf(organisation.id, id).find((of) => of.id === upstream.id);
    if (live !== undefined && live.state !== "paused")
      throw new WrongUpstreamState("The stream is live and pushed there: pause the upstream to test it");
    const { allowed, retryAfterS } = testRate.take(organisation.id);
    if (!allowed) throw new TooManyRequests(retryAfterS);
    const result = await upstreamTests.run(organisation.id, upstream);
    const { outcome, cause } = testRecord(result);
    const change = changeOf("stream.upstream.test", id, { outcome, ...(cause !== null && { cause }) });
    await recordChange(db, caller, clock.now(), change(upstream));
    return c.json(testRecord(result));
  });

  return routes.hono;

  async function find(c: Context, { organisation, scopeTag }: Caller) {
    return await findStream(db, organisation.id, c.req.param("id") ?? "", scopeTag);
  }

  async function setPaused(c: Context, caller: Caller & Actor, paused: boolean) {
    const { organisation } = caller;
    const { id } = await find(c, caller);
    const now = clock.now();
    const wanted = { id: c.req.param("upstream_id") ?? "", paused };
    const change = changeOf(paused ? "stream.upstream.pause" : "stream.upstream.resume", id);
    const upstream = await changed(db, caller, now, change, (trx) =>
      streamUpstreams.setPaused(trx, organisation.id, id, wanted, now),
    );
    sessions.followStream(organisation.id, id, paused ? { paused: upstream.id } : { resumed: upstream.id });
    return upstreamOf(upstream, sessions.upstreamsOf(organisation.id, id));
  }
}

function testRecord({ steps, cause, detail }: UpstreamTest): z.infer<typeof TestedUpstream> {
  return {
    outcome: cause === null ? "ok" : "failed",
    steps: steps.map(({ step, ms }, at) => ({
      step,
      ms,
      outcome: cause !== null && at === steps.length - 1 ? "failed" : "ok",
    })),
    cause,
    detail: cause === null ? null : detail,
  };
}
