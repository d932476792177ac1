// GET /live/{id}.flv: who may watch, how many at the same time, and what ends it. The media core only
// records.

import { setImmediate as turn } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { addApiKey } from "../../ts/organisation/api-keys.ts";
import { addOrganisation } from "../../ts/organisation/organisations.ts";
import { PREVIEWS_LIMIT } from "../../ts/publish/preview/previews.ts";
import type { Role } from "../../ts/store/tables/roles.ts";
import { pause } from "../support/pause.ts";
import { addStream, openStage, STREAM, type Stage, until } from "../support/publishing.ts";

/** Longer than the pause between two checks of the caller's permission, and less than the 10 s limit, ms. */
const CHECKED_MS = 9_000;
/** Longer than a viewer may take no data, with the pause between two checks, ms. */
const STALLED_MS = 36_000;
const PASSWORD = "correct horse battery";
/** Ids as `addStream` makes them. */
const idOf = (name: string) => encodeURIComponent(`stream ${name}`);
const PLACE = `/live/${idOf(STREAM)}.flv`;

let stage: Stage;
let admin: string;

beforeEach(async () => {
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
  stage = await openStage({ webhook: null, ca: null });
  admin = await keyOf("administrator");
});
afterEach(async () => {
  await stage.close();
  vi.useRealTimers();
});

async function keyOf(role: Role, options: { readonly organisationId?: string; readonly scopeTag?: string } = {}) {
  const added = await addApiKey(stage.db, { organisationId: "org1", role, now: stage.clock.ms, ...options });
  return added.key;
}

async function call(method: string, path: string, headers: Record<string, string>, body?: object): Promise<Response> {
  const type = { "content-type": "application/json" };
  const init = { method, headers: { ...type, ...headers }, ...(body && { body: JSON.stringify(body) }) };
  return await stage.service.app.request(path, init);
}
const look = (key: string, path = PLACE) => call("GET", path, { "x-service-apikey": key });

/** A signed-in person's headers. */
async function person(role: Role): Promise<{ readonly id: string; readonly headers: Record<string, string> }> {
  const email = `${role}@customer.example`;
  const added = await call(
    "POST",
    "/organisation/user",
    { "x-service-apikey": admin },
    { email, password: PASSWORD, role },
  );
  const { id } = (await added.json()) as { id: string };
  const login = await call("POST", "/login", {}, { email, password: PASSWORD });
  const cookie = (login.headers.get("set-cookie") ?? "").split(";")[0] ?? "";
  const { csrf_token } = (await login.json()) as { csrf_token: string };
  return { id, headers: { cookie, "x-csrf-token": csrf_token } };
}

/** Lets the service check its viewers' permissions, and waits until the body may have ended. */
async function isEnded(body: Promise<string>): Promise<boolean> {
  await vi.advanceTimersByTimeAsync(CHECKED_MS);
  return await Promise.race([
    body.then(() => true),
    pause(1_000).then(() => false), // absence cannot be awaited
  ]);
}

const failure = (code: number) => ({ error: { code } });
const gauge = async () => /^headgate_previews (\d+)$/m.exec(await stage.metrics.registry.metrics())?.[1];

describe("a preview", () => {
  test("is passed on as the core provides it, is not cached, and ends with the publish", async () => {
    await stage.allowed(STREAM);
    const response = await look(await keyOf("readonly"));
    expect(response.status).toBe(200);
    expect(Object.fromEntries(response.headers)).toMatchObject({
      "content-type": "video/x-flv",
      "cache-control": "no-store",
      "x-content-type-options": "nosniff",
    });
    expect(await gauge()).toBe("1");
    const [preview] = stage.media.previews;
    const text = response.text();
    preview?.give("FLV");
    await until(() => preview?.waiting === 0);
    preview?.give(" and more");
    preview?.end("publish_ended");
    expect(await text).toBe("FLV and more");
    expect(preview?.isClosed).toBe(true);
    expect(await gauge()).toBe("0");
  });

  test("is read from the core only as fast as it is read", async () => {
    await stage.allowed(STREAM);
    const reader = (await look(admin)).body?.getReader();
    const [preview] = stage.media.previews;
    for (const part of ["a", "b", "c"]) preview?.give(part);
    expect(new TextDecoder().decode((await reader?.read())?.value)).toBe("a");
    await turn();
    expect(preview?.waiting).toBe(2);
    await reader?.cancel();
    expect(preview?.isClosed).toBe(true);
    expect(await gauge()).toBe("0");
  });

  test("that is not read for 30 s ends and frees its place", async () => {
    await stage.allowed(STREAM);
    expect((await look(admin)).status).toBe(200);
    const [preview] = stage.media.previews;
    for (const part of ["a", "b", "c"]) preview?.give(part);
    await vi.advanceTimersByTimeAsync(29_000);
    expect(await gauge()).toBe("1");
    await vi.advanceTimersByTimeAsync(STALLED_MS - 29_000);
    expect(await gauge()).toBe("0");
    expect(preview?.isClosed).toBe(true);
    expect(stage.log()).toContain('"reason":"stalled"');
  });

  test("that waits for data for longer than 30 s keeps its place", async () => {
    await stage.allowed(STREAM);
    const text = (await look(admin)).text();
    const [preview] = stage.media.previews;
    preview?.give("before");
    await until(() => preview?.waiting === 0);
    await vi.advanceTimersByTimeAsync(2 * STALLED_MS);
    expect(await gauge()).toBe("1");
    preview?.give(" and after");
    preview?.end("publish_ended");
    expect(await text).toBe("before and after");
  });

  test("uses no place for a HEAD", async () => {
    await stage.allowed(STREAM);
    const response = await call("HEAD", PLACE, { "x-service-apikey": admin });
    expect([response.status, response.headers.get("content-type")]).toEqual([200, "video/x-flv"]);
    expect(await gauge()).toBe("0");
  });
});

describe("no preview is served", () => {
  test("of a stream that is not live or does not exist", async () => {
    const before = await look(admin);
    expect([before.status, await before.json()]).toMatchObject([404, failure(9007)]);
    for (const path of ["/live/never.flv", PLACE.replace(".flv", ".mp4"), PLACE.replace(".flv", "")]) {
      const response = await look(admin, path);
      expect([response.status, await response.json()]).toMatchObject([404, failure(3001)]);
    }
  });

  test("to another organisation, to a key of another tag and without a key", async () => {
    await stage.allowed(STREAM);
    const { id: organisationId } = await addOrganisation(stage.db, "Other", stage.clock.ms);
    for (const key of [
      await keyOf("administrator", { organisationId }),
      await keyOf("administrator", { scopeTag: "studio" }),
    ]) {
      const response = await look(key);
      expect([response.status, await response.json()]).toMatchObject([404, failure(3001)]);
    }
    const nobody = await call("GET", PLACE, {});
    expect([nobody.status, await nobody.json()]).toMatchObject([403, failure(2001)]);
    expect(stage.media.previews).toEqual([]);
  });

  test("beyond the limit, until a place is free again", async () => {
    await stage.allowed(STREAM);
    const bodies = await Promise.all(Array.from({ length: PREVIEWS_LIMIT }, async () => (await look(admin)).body));
    expect(await gauge()).toBe(String(PREVIEWS_LIMIT));
    const refused = await look(admin);
    expect([refused.status, await refused.json()]).toMatchObject([503, failure(9504)]);
    expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(0);
    await bodies[7]?.cancel();
    const next = await look(admin);
    expect(next.status).toBe(200);
    await next.body?.cancel();
    for (const [at, body] of bodies.entries()) if (at !== 7) await body?.cancel();
    expect(await gauge()).toBe("0");
  });
});

test("an organisation that uses all places gives one up for another", async () => {
  await stage.allowed(STREAM);
  const { id: organisationId } = await addOrganisation(stage.db, "Other", stage.clock.ms);
  const name = "other-name1";
  await addStream(stage.db, name, "created", organisationId);
  await stage.allowed(name);
  const own = await Promise.all(Array.from({ length: PREVIEWS_LIMIT }, () => look(admin)));
  const bodies = own.map((response) => response.text());
  const others = await look(await keyOf("administrator", { organisationId }), `/live/${idOf(name)}.flv`);
  expect(others.status).toBe(200);
  expect(await gauge()).toBe(String(PREVIEWS_LIMIT));
  expect((await look(admin)).status).toBe(503);
  stage.service.previews.stop();
  await Promise.all([...bodies, others.text()]);
});

describe("a preview ends within ten seconds", () => {
  test("after a sign-out, and not before", async () => {
    await stage.allowed(STREAM);
    const { headers } = await person("readonly");
    const text = (await call("GET", PLACE, headers)).text();
    expect(await isEnded(text)).toBe(false);
    expect((await call("POST", "/logout", headers)).status).toBe(200);
    expect(await isEnded(text)).toBe(true);
    expect(stage.media.previews[0]?.isClosed).toBe(true);
    expect(stage.log()).toContain('"reason":"access_ended"');
  });

  test("after a change of role", async () => {
    await stage.allowed(STREAM);
    const { id, headers } = await person("user");
    const text = (await call("GET", PLACE, headers)).text();
    const changed = await call("PUT", `/organisation/user/${id}`, { "x-service-apikey": admin }, { role: "readonly" });
    expect(changed.status).toBe(200);
    expect(await isEnded(text)).toBe(true);
  });

  test("after the stream loses the tag that the key is limited to", async () => {
    await stage.db.updateTable("stream").set({ tags: '["studio"]' }).execute();
    await stage.allowed(STREAM);
    const text = (await look(await keyOf("readonly", { scopeTag: "studio" }))).text();
    expect(await isEnded(text)).toBe(false);
    await stage.db.updateTable("stream").set({ tags: "[]" }).execute();
    expect(await isEnded(text)).toBe(true);
  });

  test("at the service's end, immediately", async () => {
    await addStream(stage.db, "Ab1Cd-Other", "created");
    await stage.allowed(STREAM);
    const text = (await look(admin)).text();
    stage.service.previews.stop();
    expect(await text).toBe("");
  });
});
