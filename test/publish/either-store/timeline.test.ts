// The timeline of one publish, by GET /session/{client_id}/timeline: while it runs and long afterwards, of a
// denied one, after a crash; who may read it, and without secrets. On both stores (vitest.config.ts).
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { addApiKey } from "../../../ts/organisation/api-keys.ts";
import { FINDING_CODES } from "../../../ts/publish/monitoring/health-words.ts";
import { prune } from "../../../ts/store/retention.ts";
import { type Customer, startCustomer } from "../../support/customer.ts";
import { addStream, openStage, STREAM, type Stage, until } from "../../support/publishing.ts";

interface Told {
  readonly client_id: number;
  readonly state: string;
  readonly trace_id: string;
  readonly is_watched: boolean;
  readonly moments: readonly {
    readonly at: string;
    readonly offset_ms: number;
    readonly what: string;
    readonly text: string;
    readonly figures: Readonly<Record<string, unknown>>;
  }[];
}

let customer: Customer;
let stage: Stage;
let key: string;

beforeEach(async () => {
  customer = await startCustomer();
  const env = { HEADGATE_LIMITS_API_REQUESTS_PER_SECOND: "0" };
  stage = await openStage({ webhook: customer.url, ca: customer.ca, env });
  key = (await addApiKey(stage.db, { organisationId: "org1", role: "readonly", now: stage.clock.ms })).key;
});
afterEach(async () => {
  await stage.close();
  await customer.close();
});

async function ask(clientId: number | string, by = key) {
  const path = `/session/${clientId}/timeline`;
  const answer = await stage.service.app.request(path, { headers: { "x-service-apikey": by } });
  return { status: answer.status, body: (await answer.json()) as Told & { readonly error: { readonly code: number } } };
}

const told = async (clientId: number) => (await ask(clientId)).body.moments.map(({ what }) => what);
/** Advances the clock; every step is a point of its history. */
function pass(ms: number): void {
  stage.clock.ms += ms;
  stage.service.measurements.addPoints();
}

async function ended(clientId: number): Promise<void> {
  const row = () => stage.db.selectFrom("publish").select("state").where("client_id", "=", clientId).executeTakeFirst();
  await until(async () => ["ended", "denied"].includes((await row())?.state ?? ""));
}

const TRACKS = {
  video: { codec: "H264", width: 1_280, height: 720 },
  audio: { codec: "AAC", sampleRate: 48_000, channels: 2 },
};
const UPSTREAM = "rtmp://up.example:1935/live";

/** A publish of three minutes with a lost upstream; its end is in the store. */
async function published(): Promise<number> {
  const clientId = await stage.allowed(STREAM, { arguments: "passcode=s3cret" });
  stage.clock.ms += 1_000;
  stage.media.measure(clientId, { videoFrames: 30, tracks: TRACKS, bytesIn: 1_000 });
  pass(1_000);
  const change = { kind: "upstream_changed", clientId, upstreamId: "1", upstream: UPSTREAM } as const;
  stage.publishing.handle({ ...change, sending: true, detail: "", cause: null });
  stage.clock.ms += 60_000;
  stage.publishing.handle({ ...change, sending: false, detail: "the connection was closed", cause: "closed" });
  stage.clock.ms += 12_000;
  stage.publishing.handle({ ...change, sending: true, detail: "", cause: null });
  stage.clock.ms += 118_000;
  stage.end(clientId, "broadcaster_left", {
    ...{ bytesIn: 58_200_000, bytesOut: 116_400_000, videoFrames: 4_800, droppedFrames: 3 },
  });
  await ended(clientId);
  await customer.received("publish_done");
  await until(async () => (await told(clientId)).includes("end_delivered"));
  return clientId;
}

test("an ended publish has moments from its request to the delivered end, in order and in words", async () => {
  const clientId = await published();
  const { body } = await ask(clientId);
  expect(body).toMatchObject({ client_id: clientId, state: "ended", protocol: "rtmp", is_watched: true });
  expect(body.trace_id).toMatch(/^[0-9a-f]{32}$/);
  const [, took] = /after (\d+ ms)/.exec(body.moments[1]?.text ?? "") ?? [];
  expect(body.moments.map(({ text }) => text)).toEqual([
    "A broadcaster at 203.0.113.7 asked to publish by RTMP.",
    `The webhook answered 200 after ${took}.`,
    "The publish was accepted.",
    "The first audio arrived after 2 s: AAC, 48 kHz, 2 channels.",
    "The first video arrived after 2 s: H.264, 1280×720.",
    `Upstream ${UPSTREAM} accepted the publish after 2 s.`,
    `Upstream ${UPSTREAM} was lost: the connection was closed.`,
    `Upstream ${UPSTREAM} accepted the publish again after 12 s.`,
    "Ended after 3 min 12 s, 58.2 MB in, 116.4 MB out: the connection to the broadcaster was lost.",
    "publish_done was delivered on the first attempt (200).",
  ]);
  expect(body.moments.map(({ offset_ms }) => offset_ms)).toEqual([
    0, 0, 0, 2_000, 2_000, 2_000, 62_000, 74_000, 192_000, 192_000,
  ]);
  expect(body.moments[8]?.figures).toEqual({
    reason: "broadcaster_left",
    lasted_ms: 192_000,
    bytes_in: 58_200_000,
    bytes_out: 116_400_000,
  });
});

test("it is the same after a restart, and weeks later", async () => {
  const clientId = await published();
  await until(() => kept(clientId));
  const { body: before } = await ask(clientId);
  stage = await stage.crash();
  stage.clock.ms += 21 * 86_400_000;
  expect((await ask(clientId)).body).toEqual(before);
});

test("a running publish is described with the figures of now, and not with the stored ones", async () => {
  const clientId = await stage.allowed(STREAM);
  stage.clock.ms += 16_800;
  stage.media.measure(clientId, { bytesIn: 2_100_000, bytesOut: 700_000, tracks: TRACKS });
  const { body } = await ask(clientId);
  expect(body.moments.at(-1)?.text).toBe("Running for 16.8 s: 2.1 MB in, 700.0 kB out.");
});

async function kept(clientId: number): Promise<string | undefined> {
  const row = await stage.db
    .selectFrom("publish_timeline")
    .select("kept")
    .where("client_id", "=", clientId)
    .executeTakeFirst();
  return row?.kept;
}

test("a lost publish and the one that continued it refer to each other", async () => {
  const first = await stage.allowed(STREAM);
  stage.clock.ms += 5_000;
  stage.end(first, "broadcaster_left", { bytesIn: 0, bytesOut: 0 }, true);
  await ended(first);
  stage.clock.ms += 3_200;
  const second = await stage.allowed(STREAM);
  stage.publishing.handle({ kind: "hold_ended", clientId: first, successor: second });
  await until(async () => (await told(first)).includes("continued"));
  const texts = async (clientId: number) => (await ask(clientId)).body.moments.map(({ text }) => text);
  expect(await texts(first)).toContain(`Publish ${second} took over its upstreams and players after 3.2 s.`);
  expect(await texts(second)).toContain(`It took over the upstreams and players of publish ${first}, which was lost.`);
  expect((await told(second)).slice(0, 4)).toEqual(["requested", "webhook_allowed", "accepted", "continues"]);
});

test("it is removed with its publish", async () => {
  const clientId = await published();
  await until(() => kept(clientId));
  const days = { publishes: 90, audit: 0, deliveries: 0, denied: 0 };
  await prune(stage.db, days, stage.clock.ms + 91 * 86_400_000);
  expect(await kept(clientId)).toBeUndefined();
  expect((await ask(clientId)).status).toBe(404);
});

test("a running publish has its moments so far, and one cut off by a crash those stored until then", async () => {
  const clientId = await stage.allowed(STREAM);
  stage.media.measure(clientId, { videoFrames: 30, tracks: TRACKS });
  pass(5_000);
  const before = (await ask(clientId)).body;
  expect(before).toMatchObject({ state: "live" });
  expect(before.moments.at(-1)).toMatchObject({
    what: "running",
    text: "Running for 5 s: 0 bytes in, 0 bytes out.",
  });
  await stage.service.flushTimelines();
  stage = await stage.crash();
  stage.clock.ms += 6_000;
  await stage.publishing.takeOver("gateway_restarted");
  const after = await told(clientId);
  expect(after.slice(0, 5)).toEqual(["requested", "webhook_allowed", "accepted", "first_audio", "first_video"]);
  expect(after).toContain("ended");
});

describe("a denial", () => {
  test("contains the webhook's answer and what the broadcaster was told", async () => {
    const headers = { "content-type": "text/plain" };
    customer.answer({ status: 403, body: "Unknown passcode\nand more", headers });
    await stage.request(STREAM);
    const clientId = Number(new URLSearchParams(customer.calls("publish")[0]?.body).get("clientid"));
    await ended(clientId);
    const { body } = await ask(clientId);
    expect(body).toMatchObject({ state: "denied", is_watched: false });
    expect(body.moments.map(({ text }) => text.replace(/\d+ ms/, "n ms"))).toEqual([
      "A broadcaster at 203.0.113.7 asked to publish by RTMP.",
      "Your webhook denied it (status 403, after n ms): Unknown passcode.",
      'The publish was denied (rejected by customer); the broadcaster was told "Unknown passcode".',
    ]);
  });

  test("because the webhook fails says that the webhook failed, and the broadcaster is told nothing of it", async () => {
    customer.answer({ status: 500, body: "no database", headers: { "content-type": "text/plain" } });
    await stage.request(STREAM);
    const clientId = Number(new URLSearchParams(customer.calls("publish")[0]?.body).get("clientid"));
    await ended(clientId);
    expect((await ask(clientId)).body.moments.slice(1).map(({ text }) => text.replace(/\d+ ms/, "n ms"))).toEqual([
      "Your webhook failed (status 500, after n ms).",
      'The publish was denied because your webhook failed (status 500); the broadcaster was told "Publish denied".',
    ]);
  });

  test("because the webhook does not answer says why", async () => {
    customer.answer("reset");
    await stage.request(STREAM);
    const clientId = Number(new URLSearchParams(customer.calls("publish")[0]?.body).get("clientid"));
    await ended(clientId);
    const [, webhook] = (await ask(clientId)).body.moments;
    expect(webhook).toMatchObject({ what: "webhook_unreachable", figures: { cause: "connection" } });
    expect(webhook?.text).toMatch(/^The webhook gave no answer: connection after \d+ ms/);
  });
});

test("rejected and unanswered updates are included, and an end that is not delivered", async () => {
  await stage.close();
  stage = await openStage({ webhook: customer.url, ca: customer.ca, settings: { updateSeconds: 0.1 } });
  key = (await addApiKey(stage.db, { organisationId: "org1", role: "readonly", now: stage.clock.ms })).key;
  await stage.change({ update_reject_after: 100 });
  const clientId = await stage.allowed(STREAM);
  customer.answer({ status: 500 });
  await customer.received("update_publish");
  customer.answer("reset");
  // Sent twice: the connection was a kept one (W13).
  await customer.received("update_publish", customer.calls("update_publish").length + 2);
  customer.answer({ status: 503 });
  stage.end(clientId);
  await ended(clientId);
  await customer.received("publish_done");
  const { figures, text } = await until(async () =>
    (await ask(clientId)).body.moments.find(({ what }) => what === "end_not_delivered"),
  );
  expect(figures).toEqual({ attempts: 1, cause: "503", is_given_up: false });
  expect(text).toBe(
    "publish_done was not delivered after one attempt (your webhook failed with status 503); it will be retried.",
  );
  expect(await told(clientId)).toEqual(expect.arrayContaining(["update_rejected", "update_unanswered"]));
});

test("an end that was given up is reported as such, and counted", async () => {
  const clientId = await stage.allowed(STREAM);
  customer.answer({ status: 404 });
  stage.end(clientId);
  const event = () => stage.db.selectFrom("outbox").select("last_status").executeTakeFirst();
  await until(async () => Number((await event())?.last_status) === 404);
  // For two hours by now.
  const longAgo = { refused_since: stage.clock.ms - 2 * 3_600_000, next_attempt_at: stage.clock.ms };
  await stage.db.updateTable("outbox").set(longAgo).execute();
  const givenUp = await until(async () => {
    await stage.publishing.takeOver("gateway_restarted"); // polls for what is due
    const { moments } = (await ask(clientId)).body;
    // The delivery log is written after the outbox.
    return moments.find(({ figures }) => figures.is_given_up === true && figures.attempts === 2);
  });
  expect(givenUp?.text).toBe("publish_done was not delivered after 2 attempts (404); no further attempts are made.");
  expect(await stage.metrics.registry.metrics()).toMatch(/^headgate_outbox_given_up_total 1$/m);
});

test("it is unknown to another organisation and a key of another tag, and so are ids that do not exist", async () => {
  const clientId = await published();
  const other = { id: "org2", hash: "Zz9Yy", name: "Other", plan: "paid", enabled: 1, webhook: null } as const;
  await stage.db
    .insertInto("organisation")
    .values({ ...other, created_at: 0, updated_at: 0 })
    .execute();
  await addStream(stage.db, "Zz9Yy-1", "created", "org2");
  const now = stage.clock.ms;
  const foreign = await addApiKey(stage.db, { organisationId: "org2", role: "administrator", now });
  const scoped = await addApiKey(stage.db, { organisationId: "org1", role: "administrator", now, scopeTag: "studio" });
  for (const [id, by] of [
    [clientId, foreign.key],
    [clientId, scoped.key],
    [clientId + 1, key],
    ["x", key],
  ] as const) {
    const { status, body } = await ask(id, by);
    expect([status, body.error.code]).toEqual([404, 9007]);
  }
});

test("it contains no secret, neither in answers nor in the store: arguments, stream keys, credentials, the webhook's query", async () => {
  const clientId = await published();
  await until(() => kept(clientId));
  const { body } = await ask(clientId);
  for (const text of [JSON.stringify(body), (await kept(clientId)) ?? ""]) {
    expect(text).not.toMatch(/s3cret|webhook-secret|passcode/);
    expect(text.replaceAll(`stream ${STREAM}`, "")).not.toContain(STREAM); // ids of streams differ
  }
});

test("the stored timeline of a publish is small, even when its upstream is lost again and again", async () => {
  const clientId = await stage.allowed(STREAM);
  const change = { kind: "upstream_changed", clientId, upstreamId: "1", upstream: UPSTREAM } as const;
  for (let time = 0; time < 1_000; time += 1) {
    stage.clock.ms += 1_000;
    stage.publishing.handle({ ...change, sending: time % 2 === 0, detail: "x".repeat(1_000), cause: null });
    stage.media.measure(clientId, { videoFrames: time, lossPercent: (time % 3) * 5, silentMs: (time % 2) * 9_000 });
    pass(5_000);
  }
  stage.end(clientId);
  const bytes = (await until(() => kept(clientId))).length;
  expect(bytes).toBeLessThan(20_000);
});

test("the end of a publish is one log line, with the figures of the end and not of the last reading", async () => {
  const clientId = await published();
  const lines = stage
    .log()
    .split("\n")
    .filter((line) => line.includes('"publish ended"'))
    .map((line) => JSON.parse(line));
  expect(lines).toEqual([
    {
      ...{ level: 30, time: expect.any(Number), pid: expect.any(Number), hostname: expect.any(String) },
      ...{ clientId, organisation: "org1", stream: `stream ${STREAM}`, trace_id: expect.any(String), protocol: "rtmp" },
      ...{ reason: "broadcaster_left", seconds: 192, bytesIn: 58_200_000, bytesOut: 116_400_000 },
      ...{ frames: 4_800, framesDropped: 3, packetsLost: null, upstreams: 1, upstreamLosses: 1 },
      msg: "publish ended",
    },
  ]);
});

test("conditions of running publishes are counted for the operator while they last", async () => {
  const clientId = await stage.allowed(STREAM);
  const silent = async () =>
    /headgate_publish_troubles\{trouble="silent"\} (\d)/.exec(await stage.metrics.registry.metrics())?.[1];
  stage.media.measure(clientId, { silentMs: 6_000 });
  pass(5_000);
  expect(await silent()).toBe("1");
  stage.media.measure(clientId, { silentMs: 0 });
  pass(5_000);
  expect(await silent()).toBe("0");
  const text = await stage.metrics.registry.metrics();
  for (const trouble of FINDING_CODES) expect(text).toContain(`headgate_publish_troubles{trouble="${trouble}"}`);
});
