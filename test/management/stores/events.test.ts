// /organisation/events: changes of what runs: the sessions of an organisation, and the page of one stream.
import { Kysely } from "kysely";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { StoreFailed } from "../../../ts/errors.ts";
import { addOrganisation } from "../../../ts/organisation/organisations.ts";
import { addStream, STREAM, type Stage } from "../../support/publishing.ts";
import { ID, openWatching, VIDEO, type Watching } from "../../support/watching.ts";

let watching: Watching;
let stage: Stage;
let key: string;
const open: Watching["open"] = (...of) => watching.open(...of);
const ask: Watching["ask"] = (...of) => watching.ask(...of);
const keyOf: Watching["keyOf"] = (...of) => watching.keyOf(...of);
const live: Watching["live"] = (...of) => watching.live(...of);
const second = () => watching.second();

beforeEach(async () => {
  watching = await openWatching();
  ({ stage, key } = watching);
});
afterEach(() => watching.close());

describe("the sessions of an organisation", () => {
  test("are complete at first, and then only changes follow", async () => {
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
      on_air: true,
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
      findings: [],
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
    const findings = [expect.objectContaining({ code: "packet_loss", words: "12 % of the packets are lost" })];
    const worse = { client_id: clientId, loss_percent: 12, condition: "bad", findings };
    expect(await reader.next()).toEqual({
      event: "changes",
      data: { at: stage.clock.ms, changed: [worse], gone: [], streams: [] },
    });
  });

  test("include new sessions in full, those that are gone, counts, and streams whose state changed", async () => {
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
    await watching.ended(first);
    await second();
    const closed = (await reader.next())?.data;
    expect(closed).toMatchObject({
      gone: [first],
      counts: { live: 1, ended: 1 },
      streams: [{ id: ID, state: "ended" }],
    });
  });

  test("a comment keeps the connection open while nothing changes", async () => {
    await live(STREAM);
    const reader = await open();
    await reader.next();
    for (let polls = 0; polls < 3; polls += 1) await second();
    const quarterMinute = async () => {
      const next = reader.piece();
      for (let ticks = 0; ticks < 15; ticks += 1) await second();
      return await next;
    };
    // The publish itself may still have changed, and its lack of media is reported after ten seconds.
    let piece = await quarterMinute();
    for (let quarters = 1; quarters < 3 && piece?.startsWith("event: changes\n"); quarters += 1)
      piece = await quarterMinute();
    expect(piece).toBe(": still here\n\n");
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

  test("are those of the key's tag, by the current tags", async () => {
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

  test("are JSON text, whatever the name of a stream", async () => {
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
  test("begins with its state and the publish as GET /session returns it", async () => {
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

  test("contains the numbers each second, and upstreams when more than their bytes changed", async () => {
    const upstream = { id: "1", url: "rtmp://up.example/live", source: "session", state: "sending", since: 1 } as const;
    const counted = { lastError: null, lastCause: null, bytesOut: 5, droppedFrames: 0, reconnects: 0 };
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
    const failed = {
      ...upstream,
      ...counted,
      state: "waiting",
      lastError: "<i>refused</i>",
      lastCause: "rejected",
    } as const;
    stage.media.measure(clientId, { upstreams: [failed] });
    await second();
    const { data } = (await reader.next()) ?? {};
    expect(data).toMatchObject({ players: 3, upstreams: [{ state: "waiting", last_error: "<i>refused</i>" }] });
  });

  test("contains an end with its reason, and then the state", async () => {
    const clientId = await live(STREAM);
    const reader = await open(`?stream=${ID}`);
    await reader.next();
    stage.end(clientId, "broadcaster_left");
    await watching.ended(clientId);
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

  test("of another organisation's stream, of one outside the key's tag, or of a nonexistent one is unknown", async () => {
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

test("a change during a poll in which the store failed is reported by the next one", async () => {
  const { db, reads, clock } = stage;
  const [list, page] = [await open(), await open(`?stream=${ID}`)];
  await list.next();
  await page.next();
  clock.ms += 1_000;
  await db.updateTable("stream").set({ state: "locked", updated_at: clock.ms }).where("id", "=", ID).execute();
  let asked = 0;
  const asks = vi.spyOn(reads, "selectFrom").mockImplementation((...from) => {
    asked += 1;
    // First which streams have changed, then how many there are.
    if (asked === 2) throw new StoreFailed("the disk is full");
    return Kysely.prototype.selectFrom.apply(reads, from) as never;
  });
  await second();
  asks.mockRestore();
  expect(asked).toBe(2);
  await second();
  expect((await list.next())?.data).toMatchObject({ counts: { locked: 1 }, streams: [{ id: ID, state: "locked" }] });
  expect((await page.next())?.data).toMatchObject({ state: "locked" });
});
