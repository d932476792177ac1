// The store's primary dies under load and its standby is promoted, with streams live: they lose nothing, new
// publishes are refused until it is over, no end is lost or delivered twice, and acknowledged data is there.
// FAILOVER_ROUNDS=5 is the long form. Each round prints how long new publishes were refused.
import { Client } from "pg";
import { expect, onTestFinished, test } from "vitest";
import { type Child, until } from "../../support/child.ts";
import { startCustomer } from "../../support/customer.ts";
import { gap } from "../../support/drop-outs.ts";
import { faultsOfEvents, startFailoverLoad } from "../../support/failover-load.ts";
import { type Broadcast, broadcast, type Packet, packetsOf } from "../../support/ffmpeg.ts";
import { startHeadgate } from "../../support/headgate.ts";
import { content } from "../../support/judge.ts";
import { asked } from "../../support/postgres.ts";
import { startPostgresPair } from "../../support/postgres-pair.ts";

const ROUNDS = Number(process.env.FAILOVER_ROUNDS ?? 1);
/** Longest duration of a live stream, seconds: it is ended when the failover is over. */
const LIVE_LIMIT_S = 150;
const LIVE_STREAMS = 2;
/** Between the primary's end and the promotion, ms: time for clients to notice. */
const OUTAGE_MS = 1_500;
/** Allowed publishes that count as load. */
const ENOUGH = 20;
const WAIT_MS = 60_000;

const rounds = Array.from({ length: ROUNDS }, (_, round) =>
  round % 2 === 0 ? ("SIGKILL" as const) : ("SIGQUIT" as const),
);

test.each(rounds)(
  "a failover of the store after %s (round %#)",
  async (signal) => {
    const cleanups: (() => unknown)[] = [];
    onTestFinished(async () => {
      for (const cleanup of cleanups.reverse()) await cleanup();
    }, WAIT_MS);
    const pair = await startPostgresPair();
    cleanups.push(() => pair.close());
    const customer = await startCustomer();
    cleanups.push(() => customer.close());
    const databaseUrl = await pair.newDatabase();
    const headgate = await startHeadgate({
      customer,
      env: {
        HEADGATE_DATABASE_URL: databaseUrl,
        HEADGATE_LIMITS_API_REQUESTS_PER_SECOND: "0",
        HEADGATE_LIMITS_WHIP_REQUESTS_PER_SECOND: "0",
        HEADGATE_LIMITS_WHIP_OFFERS_PER_SECOND: "0",
      },
    });
    cleanups.push(() => headgate.process.kill("SIGKILL"));

    const live: { readonly encoder: Broadcast; readonly played: Promise<readonly Packet[]> }[] = [];
    for (let at = 0; at < LIVE_STREAMS; at += 1) {
      const url = `${headgate.rtmp}/${await headgate.newStream()}`;
      const encoder = broadcast(`${url}?n=live-${at}`, { seconds: LIVE_LIMIT_S, gop: 1_000, keepsCopy: true });
      live.push({ encoder, played: playedWhole(url, encoder) });
    }
    const load = await startFailoverLoad(headgate);
    const allowed = (since = 0) =>
      load.attempts.filter(({ status, answeredAt }) => status === 201 && answeredAt >= since);
    const refused = (since: number) =>
      load.attempts.filter(({ status, answeredAt }) => status === 503 && answeredAt >= since);
    const started = () => [...headgate.process.stderr().matchAll(/"protocol":"rtmp"[^\n]*publish started/g)].length;
    await until("the streams are live", () => started() === LIVE_STREAMS, WAIT_MS);
    await until("there is load", () => allowed().length >= ENOUGH, WAIT_MS);
    const spare = await headgate.newStream();

    const crashed = performance.now();
    await pair.primary.crash(signal);
    await until("publishes are refused", () => refused(crashed).length > 0, WAIT_MS);
    const refusal = broadcast(`${headgate.rtmp}/${spare}`, { seconds: 30 });
    expect(await refusal.exit).not.toBe(0);
    expect(refusal.stderr()).toContain("Temporarily unavailable");
    await gap(crashed + OUTAGE_MS - performance.now());
    const promoted = performance.now();
    await pair.standby.promote();
    const first = await until("a publish is allowed", () => allowed(promoted)[0], WAIT_MS);
    // The old primary comes back as it was, and would accept writes.
    await pair.primary.start();
    await asked(pair.primary.url, "alter system reset synchronous_standby_names");
    await asked(pair.primary.url, "select pg_reload_conf()");
    const back = performance.now();
    await until("there is load again", () => allowed(back).length >= ENOUGH, WAIT_MS);
    // Only the live streams are published by RTMP.
    expect(headgate.process.stderr()).not.toMatch(/"protocol":"rtmp"[^\n]*publish ended/);
    await load.stop();

    for (const { encoder } of live) encoder.kill("SIGTERM");
    for (const { encoder, played } of live) {
      const got = content(await played);
      await encoder.exit;
      expect(got).toEqual(content(await encoder.sent()));
      expect(got.video.length).toBeGreaterThan(0);
    }
    const acknowledged = allowed().map(({ n }) => n);
    await until("every end has come", () => faultsOfEvents(customer, acknowledged).length === 0, WAIT_MS).catch(
      () => {},
    );
    expect(faultsOfEvents(customer, acknowledged)).toEqual([]);
    expect(load.attempts.filter(({ status }) => status !== 201 && status !== 503)).toEqual([]);

    expect(await headgate.stop()).toBe(0);
    const [now, before] = await Promise.all([
      storedAt(databaseUrl, pair.standby.folder),
      storedAt(databaseUrl, pair.primary.folder),
    ]);
    expect(load.made.filter((name) => !now.streams.has(name))).toEqual([]);
    expect(acknowledged.filter((n) => !now.ended.has(`n=${n}`))).toEqual([]);
    expect(now.open).toBe(0);
    const afterwards = allowed(promoted).map(({ n }) => `n=${n}`);
    expect(afterwards.filter((n) => before.ended.has(n))).toEqual([]);

    const firstAfter = Math.round(first.answeredAt - promoted);
    const events = customer.calls("publish_done").length;
    console.log(
      `  ${signal}: ${acknowledged.length} publishes allowed, ${refused(crashed).length} refused, ${events} publish_done delivered;` +
        ` first publish ${firstAfter} ms after the promotion began, refused for ${Math.round(first.answeredAt - crashed)} ms`,
    );
  },
  180_000,
);

/** A player that retries until the stream is live, then reads to its end. */
async function playedWhole(url: string, encoder: Child): Promise<readonly Packet[]> {
  let hasEnded = false;
  void encoder.exit.then(() => {
    hasEnded = true;
  });
  return await until("the stream is live", async () => {
    const packets = await packetsOf(url).catch(() => null);
    if (packets === null && hasEnded) throw new Error(`it ended: ${encoder.stderr()}`);
    return packets;
  });
}

/** The data of one server: acknowledged names, and the number of open publishes. */
async function storedAt(databaseUrl: string, folder: string) {
  const url = new URL(databaseUrl);
  url.searchParams.set("host", folder);
  const client = new Client({ connectionString: url.href });
  await client.connect();
  try {
    const streams = await client.query<{ name: string }>("select name from stream");
    const publishes = await client.query<{ arguments: string; state: string }>("select arguments, state from publish");
    return {
      streams: new Set(streams.rows.map(({ name }) => name)),
      ended: new Set(publishes.rows.filter(({ state }) => state === "ended").map((row) => row.arguments)),
      open: publishes.rows.filter(({ state }) => ["asking", "live"].includes(state)).length,
    };
  } finally {
    await client.end();
  }
}
