// A stream's past publishes in the API: protocol, tracks, and why they ended or were denied. On both stores
// (vitest.config.ts).
import { afterEach, beforeEach, expect, test } from "vitest";
import { addApiKey } from "../../../ts/organisation/api-keys.ts";
import { recordBytes } from "../../../ts/publish/record.ts";
import { startCustomer } from "../../support/customer.ts";
import { addStream, openStage, STREAM, type Stage, until } from "../../support/publishing.ts";

const TRACKS = {
  video: { codec: "H264", width: 1_280, height: 720 },
  audio: { codec: "AAC", sampleRate: 48_000, channels: 2 },
};

let stage: Stage;
let key: string;

async function open(webhook: string | null, ca: string | null = null): Promise<void> {
  stage = await openStage({ webhook, ca, env: { HEADGATE_LIMITS_API_REQUESTS_PER_SECOND: "0" } });
  key = (await addApiKey(stage.db, { organisationId: "org1", role: "readonly", now: stage.clock.ms })).key;
}

beforeEach(() => open(null));
afterEach(() => stage.close());

async function history(query = "", stream = STREAM) {
  const path = `/stream/${encodeURIComponent(`stream ${stream}`)}/publish${query}`;
  const answer = await stage.service.app.request(path, { headers: { "x-service-apikey": key } });
  return { status: answer.status, headers: answer.headers, body: (await answer.json()) as Record<string, unknown>[] };
}

/** Resolves when the end of a publish is in the store. */
async function ended(clientId: number): Promise<void> {
  await until(async () => {
    const row = await stage.db
      .selectFrom("publish")
      .select("state")
      .where("client_id", "=", clientId)
      .executeTakeFirst();
    return row?.state === "ended" || row?.state === "denied";
  });
}

test("a publish has its protocol, its tracks, and the reason of its end in words", async () => {
  const clientId = await stage.allowed(STREAM);
  const asked_at = new Date(stage.clock.ms).toISOString();
  stage.media.measure(clientId, { bytesIn: 900, droppedFrames: 3, tracks: TRACKS });
  await recordBytes(stage.db, [...stage.media.snapshots.values()], stage.clock.ms);
  stage.media.measure(clientId, { tracks: { video: null, audio: null } });
  await recordBytes(stage.db, [...stage.media.snapshots.values()], stage.clock.ms);
  const live = { state: "live", ended_at: null, end_reason: null, end_words: null, denial: null };
  expect((await history()).body).toMatchObject([live]);
  stage.clock.ms += 60_000;
  stage.end(clientId, "broadcaster_left", { bytesIn: 1_000, bytesOut: 500, droppedFrames: 5 });
  await ended(clientId);
  expect((await history()).body).toEqual([
    {
      client_id: clientId,
      state: "ended",
      protocol: "rtmp",
      address: "203.0.113.7",
      asked_at,
      accepted_at: asked_at,
      ended_at: new Date(stage.clock.ms).toISOString(),
      continues: null,
      end_reason: "broadcaster_left",
      end_words: "The connection to the broadcaster was lost.",
      end: null,
      denial: null,
      bytes_in: 1_000,
      bytes_out: 500,
      video: TRACKS.video,
      audio: { codec: "AAC", sample_rate: 48_000, channels: 2 },
      dropped_frames: 5,
    },
  ]);
});

test("a WHIP publish has the protocol whip", async () => {
  const request = {
    app: "live",
    name: Buffer.from(STREAM),
    arguments: null,
    address: "203.0.113.8",
    session: "session",
  };
  await stage.publishing.openWhip(request, () => "v=0\r\n");
  expect((await history()).body).toMatchObject([{ protocol: "whip", address: "203.0.113.8", video: null }]);
});

test("denied ones have the cause and what the broadcaster was told, each its own", async () => {
  const customer = await startCustomer();
  await stage.close();
  await open(customer.url, customer.ca);
  await addStream(stage.db, "Ab1Cd-other", "created");
  const headers = { "content-type": "text/plain" };
  customer.answer(({ body }) => ({ status: 403, headers, body: `No entry for ${/passcode=(\w*)/.exec(body)?.[1]}` }));
  const passcodes = ["one", "two", "three"];
  for (const passcode of passcodes) await stage.request(STREAM, { arguments: `passcode=${passcode}` });
  await stage.request("Ab1Cd-other", { arguments: "passcode=elsewhere" });
  await until(async () => (await history()).body.every(({ state }) => state === "denied"));
  const { body } = await history();
  expect(body.map(({ state, denial, end_reason }) => ({ state, denial, end_reason }))).toEqual(
    ["three", "two", "one"].map((passcode) => ({
      state: "denied",
      denial: {
        cause: "rejected_by_customer",
        reason: `No entry for ${passcode}`,
        webhook_status: 403,
        words: "Your webhook denied it (status 403).",
      },
      end_reason: null,
    })),
  );
  await customer.close();
});

test("they are listed newest first, page by page, and only those of the stream", async () => {
  await addStream(stage.db, "Ab1Cd-other", "created");
  const ids: number[] = [];
  for (let count = 0; count < 3; count += 1) {
    const clientId = await stage.allowed(STREAM);
    stage.end(clientId);
    await ended(clientId);
    ids.unshift(clientId);
  }
  await stage.allowed("Ab1Cd-other");
  const first = await history("?quantity=2");
  expect(first.body.map(({ client_id }) => client_id)).toEqual(ids.slice(0, 2));
  const rest = await history(`?quantity=2&cursor=${first.headers.get("x-next-cursor")}`);
  expect(rest.body.map(({ client_id }) => client_id)).toEqual(ids.slice(2));
  expect(rest.headers.get("x-next-cursor")).toBeNull();
});

test("those of several nodes, whose client ids do not ascend with time, are listed newest first, too", async () => {
  const row = { organisation_id: "org1", stream_id: `stream ${STREAM}`, name: STREAM, app: "live", address: "" };
  const ends = { state: "ended" as const, bytes_in: 0, bytes_out: 0 };
  const asked = new Map([
    [1_500, 1_000],
    [12, 2_000],
    [1_501, 2_000],
    [13, 3_000],
  ]);
  const rows = [...asked].map(([client_id, asked_at]) => ({ client_id, asked_at, ...row, ...ends }));
  await stage.db.insertInto("publish").values(rows).execute();
  const found: unknown[] = [];
  for (let cursor: string | null = ""; cursor !== null; ) {
    const { body, headers } = await history(`?quantity=1${cursor === "" ? "" : `&cursor=${cursor}`}`);
    found.push(...body.map(({ client_id }) => client_id));
    cursor = headers.get("x-next-cursor");
  }
  expect(found).toEqual([13, 1_501, 12, 1_500]);
});

test("an unknown stream is a 404", async () => {
  expect((await history("", "none")).status).toBe(404);
});
