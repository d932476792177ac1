// Readers of /organisation/events: who may read and for how long, how many, how slowly, and at what cost.
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { addOrganisation } from "../../../ts/organisation/organisations.ts";
import { hashPassword } from "../../../ts/organisation/passwords.ts";
import { addPerson } from "../../../ts/organisation/people.ts";
import { STREAM, type Stage } from "../../support/publishing.ts";
import { ID, openWatching, type Watching } from "../../support/watching.ts";

const PASSWORD = "correct horse battery";

let watching: Watching;
let stage: Stage;
let key: string;
/** Timers of the service while nobody reads. */
let idleTimers: number;
const open: Watching["open"] = (...of) => watching.open(...of);
const ask: Watching["ask"] = (...of) => watching.ask(...of);
const keyOf: Watching["keyOf"] = (...of) => watching.keyOf(...of);
const live: Watching["live"] = (...of) => watching.live(...of);
const tenSeconds = () => watching.tenSeconds();
const second = () => watching.second();

beforeEach(async () => {
  watching = await openWatching();
  ({ stage, key } = watching);
  idleTimers = vi.getTimerCount();
});
afterEach(() => watching.close());

describe("a person with the role readonly", () => {
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

test("a revoked key reads no more within ten seconds", async () => {
  const reader = await open();
  await reader.next();
  await stage.db.updateTable("api_key").set({ revoked_at: 1 }).execute();
  await tenSeconds();
  expect(await reader.next()).toBeNull();
});

test("a slow reader has no queue: it gets the complete state when it reads again, and changes after that", async () => {
  const clientId = await live(STREAM);
  const [quick, slow] = [await open(), await open("", undefined, "slow")];
  for (const reader of [quick, slow]) await reader.next();
  const taken = slow.piece();
  for (let polls = 1; polls <= 50; polls += 1) {
    stage.media.measure(clientId, { bytesIn: polls * 1_000 * polls });
    await second();
    expect((await quick.next())?.event).toBe("changes");
  }
  // The piece it had requested before it was slow, and then nothing of the 49 in between.
  expect(await taken).toMatch(/^event: changes\n/);
  const whole = await slow.piece();
  expect(whole?.match(/^event: .*/gm)).toEqual(["event: sessions"]);
  expect(whole).toContain(`"at":${stage.clock.ms}`);
  const next = slow.next();
  stage.media.measure(clientId, { bytesIn: 1 });
  await second();
  expect(await next).toMatchObject({ event: "changes", data: { changed: [{ client_id: clientId, bitrate_kbps: 0 }] } });
});

test("a reader that takes nothing for a minute is disconnected, and its place is free again", async () => {
  await open("", undefined, "slow");
  for (let polls = 0; polls < 59; polls += 1) await stage.service.events.poll();
  expect(stage.service.events.readers()).toBe(1);
  await stage.service.events.poll();
  expect(stage.service.events.readers()).toBe(0);
});

test("the 101st reader of an organisation is refused with 503 until one leaves; other organisations have their own places", async () => {
  for (let count = 0; count < 100; count += 1) await open();
  const refused = await ask();
  expect([refused.status, Number(refused.headers.get("retry-after")) > 0]).toEqual([503, true]);
  const error = { code: 9440, message: "Too many event streams are open", userinfo: {} };
  expect(await refused.json()).toEqual({ error });
  const { id } = await addOrganisation(stage.db, "Second", stage.clock.ms);
  await open("", { "x-service-apikey": await keyOf(id) });
  await watching.readers[0]?.close();
  await open();
});

test("proxies must not cache, compress or buffer it, and browsers reconnect soon", async () => {
  const reader = await open("", { "x-service-apikey": key, "accept-encoding": "gzip, br" });
  const { headers } = reader.response;
  expect(headers.get("content-type")).toBe("text/event-stream; charset=utf-8");
  expect(headers.get("cache-control")).toBe("no-store, no-transform");
  expect([headers.get("x-accel-buffering"), headers.get("connection")]).toEqual(["no", "close"]);
  expect([headers.get("content-encoding"), headers.get("content-length")]).toEqual([null, null]);
  expect(await reader.piece()).toMatch(/^retry: 2000\n\nevent: sessions\ndata: /);
});

test("HEAD opens no stream", async () => {
  const { service } = stage;
  const answer = await service.app.request("/organisation/events", {
    method: "HEAD",
    headers: { "x-service-apikey": key },
  });
  expect([answer.status, answer.body, service.events.readers()]).toEqual([200, null, 0]);
});

test("a timer polls each second while somebody reads, and only then", async () => {
  expect(vi.getTimerCount()).toBe(idleTimers);
  const reader = await open();
  expect(vi.getTimerCount()).toBe(idleTimers + 1);
  await reader.next();
  const clientId = await live(STREAM);
  stage.clock.ms += 1_000;
  vi.advanceTimersByTime(1_000);
  expect((await reader.next())?.data.changed).toMatchObject([{ client_id: clientId }]);
  await reader.close();
  expect(vi.getTimerCount()).toBe(idleTimers);
});

test("nothing is measured while nobody reads, and once for all readers otherwise", async () => {
  await live(STREAM);
  // Not snapshots of the media core: the timeline and the history also take some, each at its own times.
  let measured = 0;
  const { measurements } = stage.service;
  const ofOrganisation = measurements.ofOrganisation.bind(measurements);
  Object.assign(measurements, {
    ofOrganisation: (organisationId: string) => {
      measured += 1;
      return ofOrganisation(organisationId);
    },
  });
  await second();
  expect(measured).toBe(0);
  for (let count = 0; count < 5; count += 1) await (await open()).next();
  measured = 0;
  await second();
  expect(measured).toBe(1);
  for (const reader of watching.readers.splice(0)) await reader.close();
  await second();
  expect(measured).toBe(1);
});

test("when the service stops all streams end, and new ones are refused", async () => {
  const [list, page] = [await open(), await open(`?stream=${ID}`)];
  for (const reader of [list, page]) await reader.next();
  stage.service.events.stop();
  expect([await list.next(), await page.next()]).toEqual([null, null]);
  expect((await ask()).status).toBe(503);
});

test("numbers continue while the store fails", async () => {
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
