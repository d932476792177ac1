// /organisation/events: what runs, as it changes. Looks are the test's: it moves the clock and says when.
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { PublishSnapshot } from "../ts/media.ts";
import { addApiKey } from "../ts/organisation/api-keys.ts";
import { addOrganisation } from "../ts/organisation/organisations.ts";
import { hashPassword } from "../ts/organisation/passwords.ts";
import { addPerson } from "../ts/organisation/people.ts";
import { type EventReader, readEvents } from "./support/event-reader.ts";
import { addStream, openStage, STREAM, type Stage, until } from "./support/publishing.ts";

const VIDEO = { codec: "H264", width: 1_280, height: 720 };
const AUDIO = { codec: "Opus", sampleRate: 48_000, channels: 2 };
const PASSWORD = "correct horse battery";
const ID = `stream ${STREAM}`;

let stage: Stage;
let key: string;
let readers: EventReader[];

beforeEach(async () => {
  readers = [];
  stage = await openStage({ webhook: null, ca: null, env: { HEADGATE_LIMITS_API_REQUESTS_PER_SECOND: "0" } });
  key = await keyOf("org1");
});

afterEach(async () => {
  for (const reader of readers) await reader.close();
  await stage.close();
});

async function keyOf(organisationId: string, scopeTag: string | null = null): Promise<string> {
  const { db, clock } = stage;
  return (await addApiKey(db, { organisationId, role: "readonly", now: clock.ms, scopeTag })).key;
}

async function ask(query = "", headers: Readonly<Record<string, string>> = { "x-service-apikey": key }) {
  return await stage.service.app.request(`/organisation/events${query}`, { headers });
}

async function open(
  query = "",
  headers?: Readonly<Record<string, string>>,
  pace?: "quick" | "slow",
): Promise<EventReader> {
  const reader = readEvents(await ask(query, headers), pace);
  expect(reader.response.status).toBe(200);
  readers.push(reader);
  return reader;
}

/** Moves the clock a second and looks. */
async function second(): Promise<void> {
  stage.clock.ms += 1_000;
  await stage.service.events.look();
}

/** So many that whether each reader may read has been asked again: well within ten seconds. */
async function tenSeconds(): Promise<void> {
  for (let looks = 0; looks < 9; looks += 1) await stage.service.events.look();
}

async function live(name: string, counters: Partial<PublishSnapshot> = {}): Promise<number> {
  const clientId = await stage.allowed(name);
  stage.media.measure(clientId, { tracks: { video: VIDEO, audio: AUDIO }, ...counters });
  return clientId;
}

async function ended(clientId: number): Promise<void> {
  const { db } = stage;
  const state = () => db.selectFrom("publish").select("state").where("client_id", "=", clientId).executeTakeFirst();
  await until(async () => (await state())?.state === "ended");
}

describe("the sessions of an organisation", () => {
  test("come whole at first, and then only what has changed", async () => {
    const clientId = await live(STREAM, {
      bytesIn: 1_000,
      videoFrames: 10,
      subscribers: 2,
      rttMs: 20.4,
      lossPercent: 0,
    });
    const reader = await open();
    const row = {
      client_id: clientId,
      stream: ID,
      streamname: STREAM,
      protocol: "rtmp",
      accepted_at: new Date(stage.clock.ms).toISOString(),
      bitrate_kbps: null,
      fps: null,
      video: VIDEO,
      audio: { codec: "Opus", sample_rate: 48_000, channels: 2 },
      players: 2,
      upstreams: { connected: 0, failing: 0 },
      loss_percent: 0,
      rtt_ms: 20,
      condition: "good",
    };
    const counts = { created: 0, live: 1, ended: 0, locked: 0 };
    expect(await reader.next()).toEqual({ event: "sessions", data: { at: stage.clock.ms, counts, sessions: [row] } });

    stage.media.measure(clientId, { bytesIn: 251_000, videoFrames: 40 });
    await second();
    const told = { at: stage.clock.ms, gone: [], streams: expect.any(Array) };
    const rates = { client_id: clientId, bitrate_kbps: 2_000, fps: 30 };
    expect(await reader.next()).toEqual({ event: "changes", data: { ...told, changed: [rates] } });

    stage.media.measure(clientId, { bytesIn: 501_000, videoFrames: 70, lossPercent: 12 });
    await second();
    const worse = { client_id: clientId, loss_percent: 12, condition: "bad" };
    expect(await reader.next()).toEqual({
      event: "changes",
      data: { at: stage.clock.ms, changed: [worse], gone: [], streams: [] },
    });
  });

  test("tell new ones whole, those that are gone, counts, and streams whose state changed", async () => {
    await addStream(stage.db, "Ab1Cd-other", "created");
    const first = await live(STREAM);
    const reader = await open();
    await reader.next();
    const other = await live("Ab1Cd-other");
    await second();
    const opened = (await reader.next())?.data;
    expect(opened.counts).toEqual({ created: 0, live: 2, ended: 0, locked: 0 });
    expect(opened.changed).toContainEqual(expect.objectContaining({ client_id: other, streamname: "Ab1Cd-other" }));
    expect(opened.streams).toContainEqual({ id: "stream Ab1Cd-other", state: "live" });
    stage.end(first);
    await ended(first);
    await second();
    const closed = (await reader.next())?.data;
    expect(closed).toMatchObject({
      gone: [first],
      counts: { live: 1, ended: 1 },
      streams: [{ id: ID, state: "ended" }],
    });
  });

  test("nothing is told while nothing changes, and a comment keeps the connection", async () => {
    await live(STREAM);
    const reader = await open();
    await reader.next();
    for (let looks = 0; looks < 3; looks += 1) await second();
    const next = reader.piece();
    for (let looks = 0; looks < 15; looks += 1) await second();
    expect(await next).toMatch(/^event: changes\n|^: still here\n\n$/);
  });

  test("of another organisation never appear", async () => {
    const { id } = await addOrganisation(stage.db, "Second", stage.clock.ms);
    await addStream(stage.db, "Zz9Zz-theirs", "created", id);
    const theirs = await live("Zz9Zz-theirs");
    const ours = await live(STREAM);
    const reader = await open();
    const whole = await reader.piece();
    expect(whole).toContain(`"client_id":${ours}`);
    expect(whole).not.toContain("theirs");
    stage.media.measure(theirs, { bytesIn: 5_000 });
    stage.media.measure(ours, { bytesIn: 5_000 });
    await second();
    const changes = (await reader.next())?.data;
    expect(changes.changed.map(({ client_id }: { client_id: number }) => client_id)).toEqual([ours]);
    expect(JSON.stringify(changes)).not.toContain("theirs");
    const foreign = await open("", { "x-service-apikey": await keyOf(id) });
    expect((await foreign.next())?.data).toMatchObject({ counts: { live: 1 }, sessions: [{ client_id: theirs }] });
  });

  test("are those of the key's tag, as the tags are now", async () => {
    const { db, clock } = stage;
    await addStream(db, "Ab1Cd-tagged", "created");
    await db.updateTable("stream").set({ tags: '["studio"]' }).where("name", "=", "Ab1Cd-tagged").execute();
    await live(STREAM);
    const tagged = await live("Ab1Cd-tagged");
    const reader = await open("", { "x-service-apikey": await keyOf("org1", "studio") });
    const whole = (await reader.next())?.data;
    expect(whole).toMatchObject({ counts: { created: 0, live: 1, ended: 0, locked: 0 } });
    expect(whole.sessions.map(({ client_id }: { client_id: number }) => client_id)).toEqual([tagged]);
    clock.ms += 1_000;
    await db
      .updateTable("stream")
      .set({ tags: "[]", updated_at: clock.ms })
      .where("name", "=", "Ab1Cd-tagged")
      .execute();
    await second();
    expect((await reader.next())?.data).toMatchObject({ counts: { live: 0 }, gone: [tagged], streams: [] });
  });

  test("are text that is made for JSON, whatever a stream is called", async () => {
    const name = "Ab1Cd-</script>\n\nevent: forged";
    await addStream(stage.db, "Ab1Cd-plain", "created");
    const clientId = await live("Ab1Cd-plain");
    const [running] = stage.publishing.running();
    Object.assign(running?.intent ?? {}, { name });
    const reader = await open();
    const { event, data } = (await reader.next()) ?? {};
    expect(event).toBe("sessions");
    expect(data.sessions).toMatchObject([{ client_id: clientId, streamname: name }]);
  });
});

describe("the page of one stream", () => {
  test("begins with its state and the publish as GET /session tells it", async () => {
    const idle = await open(`?stream=${ID}`);
    expect(await idle.next()).toEqual({
      event: "stream",
      data: { at: stage.clock.ms, state: "created", session: null },
    });
    const clientId = await live(STREAM, { bytesIn: 7 });
    await second();
    const { event, data } = (await idle.next()) ?? {};
    const shown = await stage.service.app.request(`/session/${clientId}`, { headers: { "x-service-apikey": key } });
    expect({ event, data }).toEqual({
      event: "stream",
      data: { at: stage.clock.ms, state: "live", session: await shown.json() },
    });
    expect(data.session.numbers).toMatchObject({ bitrate_kbps: null, gop_ms: null });
  });

  test("tells the numbers each second, and upstreams when more than their bytes changed", async () => {
    const upstream = { id: "1", url: "rtmp://up.example/live", source: "session", state: "sending", since: 1 } as const;
    const counted = { lastError: null, bytesOut: 5, droppedFrames: 0, reconnects: 0 };
    const clientId = await live(STREAM, { subscribers: 3, upstreams: [{ ...upstream, ...counted }] });
    const reader = await open(`?stream=${ID}`);
    await reader.next();
    await second();
    expect((await reader.next())?.data.upstreams).toHaveLength(1);
    stage.media.measure(clientId, { bytesIn: 125_000, bytesOut: 9, gopMs: 2_000.2, skewMs: -12.6 });
    stage.media.measure(clientId, { upstreams: [{ ...upstream, ...counted, bytesOut: 900 }] });
    await second();
    expect(await reader.next()).toEqual({
      event: "numbers",
      data: {
        at: stage.clock.ms,
        client_id: clientId,
        numbers: { bitrate_kbps: 1_000, fps: 0, gop_ms: 2_000, loss_percent: null, rtt_ms: null, skew_ms: -13 },
        bytes_in: 125_000,
        bytes_out: 9,
        players: 2,
      },
    });
    const failed = { ...upstream, ...counted, state: "waiting", lastError: "<i>refused</i>" } as const;
    stage.media.measure(clientId, { upstreams: [failed] });
    await second();
    const { data } = (await reader.next()) ?? {};
    expect(data).toMatchObject({ players: 3, upstreams: [{ state: "waiting", last_error: "<i>refused</i>" }] });
  });

  test("tells an end with its reason, and then the state", async () => {
    const clientId = await live(STREAM);
    const reader = await open(`?stream=${ID}`);
    await reader.next();
    stage.end(clientId, "broadcaster_left");
    await ended(clientId);
    await second();
    const at = stage.clock.ms;
    expect(await reader.next()).toEqual({
      event: "ended",
      data: { at, client_id: clientId, reason: "broadcaster_left" },
    });
    expect(await reader.next()).toEqual({ event: "stream", data: { at, state: "ended", session: null } });
  });

  test("ends with the stream", async () => {
    const reader = await open(`?stream=${ID}`);
    await reader.next();
    stage.clock.ms += 1_000;
    const change = { state: "deleted", updated_at: stage.clock.ms } as const;
    await stage.db.updateTable("stream").set(change).where("id", "=", ID).execute();
    await second();
    expect((await reader.next())?.data).toMatchObject({ state: "deleted" });
    expect(await reader.next()).toBeNull();
  });

  test("of another organisation's stream, of one outside the key's tag, and of none is unknown", async () => {
    const { id } = await addOrganisation(stage.db, "Second", stage.clock.ms);
    await addStream(stage.db, "Zz9Zz-theirs", "live", id);
    const scoped = { "x-service-apikey": await keyOf("org1", "studio") };
    const answers = [
      await ask("?stream=stream%20Zz9Zz-theirs"),
      await ask("?stream=none"),
      await ask(`?stream=${ID}`, scoped),
    ];
    const bodies = await Promise.all(answers.map((answer) => answer.json()));
    expect(answers.map(({ status }) => status)).toEqual([404, 404, 404]);
    expect(bodies).toEqual(bodies.map(() => ({ error: { code: 3001, message: "Unknown stream", userinfo: {} } })));
    expect(stage.service.events.readers()).toBe(0);
  });
});

describe("a person who may only look", () => {
  let person: string;
  let headers: Record<string, string>;

  beforeEach(async () => {
    const { db, clock, service } = stage;
    const of = { organisation_id: "org1", password_hash: await hashPassword(PASSWORD) };
    await addPerson(db, { ...of, email: "admin@customer.example", role: "administrator" }, clock.ms);
    person = (await addPerson(db, { ...of, email: "ada@customer.example", role: "readonly" }, clock.ms)).id;
    const login = await service.app.request("/login", {
      method: "POST",
      body: JSON.stringify({ email: "ada@customer.example", password: PASSWORD }),
    });
    const { csrf_token } = (await login.json()) as { csrf_token: string };
    const cookie = login.headers.get("set-cookie")?.split(";")[0] ?? "";
    headers = { cookie, "x-csrf-token": csrf_token };
  });

  test("reads, with the cookie alone", async () => {
    const reader = await open("", { cookie: headers["cookie"] ?? "" });
    expect((await reader.next())?.event).toBe("sessions");
    await tenSeconds();
    expect(stage.service.events.readers()).toBe(1);
  });

  test.each([
    ["signed out", () => stage.service.app.request("/logout", { method: "POST", headers })],
    [
      "given another role",
      () => stage.db.updateTable("person").set({ role: "user" }).where("id", "=", person).execute(),
    ],
    [
      "removed",
      async () => {
        await stage.db.deleteFrom("person_session").where("person_id", "=", person).execute();
        await stage.db.deleteFrom("person").where("id", "=", person).execute();
      },
    ],
    [
      "of an organisation that is disabled",
      () => stage.db.updateTable("organisation").set({ enabled: 0 }).where("id", "=", "org1").execute(),
    ],
  ])("reads no more within ten seconds when %s, slowly or not", async (_, happens) => {
    const [list, page, slow] = [
      await open("", headers),
      await open(`?stream=${ID}`, headers),
      await open("", headers, "slow"),
    ];
    for (const reader of [list, page]) await reader.next();
    await happens();
    await tenSeconds();
    expect(stage.service.events.readers()).toBe(0);
    expect([await list.next(), await page.next(), await slow.next()]).toEqual([null, null, null]);
  });
});

test("a key that is revoked reads no more within ten seconds", async () => {
  const reader = await open();
  await reader.next();
  await stage.db.updateTable("api_key").set({ revoked_at: 1 }).execute();
  await tenSeconds();
  expect(await reader.next()).toBeNull();
});

test("a slow reader has no queue: it gets the whole when it reads again, and changes after that", async () => {
  const clientId = await live(STREAM);
  const [quick, slow] = [await open(), await open("", undefined, "slow")];
  for (const reader of [quick, slow]) await reader.next();
  const taken = slow.piece();
  for (let looks = 1; looks <= 50; looks += 1) {
    stage.media.measure(clientId, { bytesIn: looks * 1_000 * looks });
    await second();
    expect((await quick.next())?.event).toBe("changes");
  }
  // What it had asked for before it was slow, and then nothing of the 49 between.
  expect(await taken).toMatch(/^event: changes\n/);
  const whole = await slow.piece();
  expect(whole?.match(/^event: .*/gm)).toEqual(["event: sessions"]);
  expect(whole).toContain(`"at":${stage.clock.ms}`);
  const next = slow.next();
  stage.media.measure(clientId, { bytesIn: 1 });
  await second();
  expect(await next).toMatchObject({ event: "changes", data: { changed: [{ client_id: clientId, bitrate_kbps: 0 }] } });
});

test("a reader that takes nothing for a minute is cut off, and its place is free again", async () => {
  await open("", undefined, "slow");
  for (let looks = 0; looks < 59; looks += 1) await stage.service.events.look();
  expect(stage.service.events.readers()).toBe(1);
  await stage.service.events.look();
  expect(stage.service.events.readers()).toBe(0);
});

test("one more than 100 of an organisation is refused with 503 until one leaves; others have places of their own", async () => {
  for (let count = 0; count < 100; count += 1) await open();
  const refused = await ask();
  expect([refused.status, Number(refused.headers.get("retry-after")) > 0]).toEqual([503, true]);
  const error = { code: 9440, message: "Too many event streams are open", userinfo: {} };
  expect(await refused.json()).toEqual({ error });
  const { id } = await addOrganisation(stage.db, "Second", stage.clock.ms);
  await open("", { "x-service-apikey": await keyOf(id) });
  await readers[0]?.close();
  await open();
});

test("nothing on the way may keep it, compress it or hold it back, and it asks browsers to come again soon", async () => {
  const reader = await open("", { "x-service-apikey": key, "accept-encoding": "gzip, br" });
  const { headers } = reader.response;
  expect(headers.get("content-type")).toBe("text/event-stream; charset=utf-8");
  expect(headers.get("cache-control")).toBe("no-store, no-transform");
  expect([headers.get("x-accel-buffering"), headers.get("connection")]).toEqual(["no", "close"]);
  expect([headers.get("content-encoding"), headers.get("content-length")]).toEqual([null, null]);
  expect(await reader.piece()).toMatch(/^retry: 2000\n\nevent: sessions\ndata: /);
});

test("HEAD opens none", async () => {
  const { service } = stage;
  const answer = await service.app.request("/organisation/events", {
    method: "HEAD",
    headers: { "x-service-apikey": key },
  });
  expect([answer.status, answer.body, service.events.readers()]).toEqual([200, null, 0]);
});

test("while nobody reads nothing is measured, and once for all who do", async () => {
  await live(STREAM);
  let snapshots = 0;
  const { media } = stage;
  const snapshot = media.snapshot.bind(media);
  media.snapshot = (clientId) => {
    snapshots += 1;
    return snapshot(clientId);
  };
  await second();
  expect(snapshots).toBe(0);
  for (let count = 0; count < 5; count += 1) await (await open()).next();
  snapshots = 0;
  await second();
  expect(snapshots).toBe(1);
  for (const reader of readers.splice(0)) await reader.close();
  await second();
  expect(snapshots).toBe(1);
});

test("when the service stops all end, and no more are taken", async () => {
  const [list, page] = [await open(), await open(`?stream=${ID}`)];
  for (const reader of [list, page]) await reader.next();
  stage.service.events.stop();
  expect([await list.next(), await page.next()]).toEqual([null, null]);
  expect((await ask()).status).toBe(503);
});

test("what the store does not answer stops no numbers", async () => {
  const clientId = await live(STREAM);
  const reader = await open();
  await reader.next();
  await stage.db.schema.alterTable("stream").renameTo("stream_away").execute();
  stage.media.measure(clientId, { bytesIn: 125_000 });
  await second();
  expect((await reader.next())?.data).toMatchObject({ changed: [{ client_id: clientId, bitrate_kbps: 1_000 }] });
  await stage.db.schema
    .alterTable("stream_away" as "stream")
    .renameTo("stream")
    .execute();
});
