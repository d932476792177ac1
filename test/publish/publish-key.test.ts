// The publish key (M12a): what counts as the key, who needs it, and who guesses it.
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { readKeyArgument, withoutKeyArgument } from "../../ts/publish/key/key-argument.ts";
import { createPublishKeys, needsKey } from "../../ts/publish/key/publish-key.ts";
import { createWrongKeys } from "../../ts/publish/key/wrong-keys.ts";
import { type Customer, startCustomer } from "../support/customer.ts";
import { openStage, STREAM, type Stage, until } from "../support/publishing.ts";

const K = "Ab3dEf6hIj9kLm2n";
const bytes = (text: string) => Buffer.from(text, "latin1");

describe("the key in custom arguments", () => {
  test.each([
    [`key=${K}`, K],
    [`a=1&key=${K}&b=2`, K],
    [`a=1;key=${K}`, K],
    [`key=${K}&key=${K}`, K],
    [`key=${K}?key=${K}`, K],
    [`passcode=x?key=${K}`, K],
    [`key=${K} `, K],
    [`key="${K}"`, K],
    [`key=${K}/`, K],
    [`key=%41b3dEf6hIj9kLm2n`, K],
    [`k%65y=${K}`, K],
    [`key=%20${K}%0A`, K],
    [`key=&key=${K}`, K],
    ["key=", null],
    ["key", null],
    ["keys=a&monkey=b&Key=c&KEY=d", null],
    ["", null],
    ["&;?&", null],
    ["key=a&key=b", "a&b"],
    ["key=%zz", "%zz"],
  ])("%s is %s", (given, key) => {
    expect(readKeyArgument(bytes(given))).toBe(key);
  });

  test("that are absent contain none", () => {
    expect(readKeyArgument(null)).toBeNull();
    expect(withoutKeyArgument(null)).toBeNull();
  });

  test.each([
    [`key=${K}`, null],
    [`a=%31&key=${K}&b=2`, "a=%31&b=2"],
    ["a=1;b=2", "a=1&b=2"],
    ["k%65y=x&a=\u00ff", "a=\u00ff"],
  ])("%s is, without it, %s", (given, rest) => {
    expect(withoutKeyArgument(bytes(given))?.toString() ?? null).toBe(rest === null ? null : bytes(rest).toString());
  });
});

describe("publish keys", () => {
  const box = (byte: number) => ({ keyFor: (purpose: string) => Buffer.from(`${byte} ${purpose}`.padEnd(32)) });
  const stream = { id: "0d5c1f6e-4f0c-4b1e-9a57-2f3a3b6f2c11", key_salt: null };

  test("carry at least 80 bits, in letters and digits, and are the same on every node", () => {
    const key = createPublishKeys(box(1)).of(stream);
    expect(key).toMatch(/^[A-Za-z0-9]{16}$/);
    expect(16 * Math.log2(62)).toBeGreaterThan(80);
    expect(createPublishKeys(box(1)).of({ ...stream })).toBe(key);
  });

  test("differ by stream, by renewal and by key file", () => {
    const keys = createPublishKeys(box(1));
    const all = [
      keys.of(stream),
      keys.of({ ...stream, id: "another" }),
      keys.of({ ...stream, key_salt: "a" }),
      keys.of({ ...stream, key_salt: "b" }),
      createPublishKeys(box(2)).of(stream),
    ];
    expect(new Set(all).size).toBe(5);
    expect(new Set(Array.from({ length: 2_000 }, (_, n) => keys.of({ id: `${n}`, key_salt: null }))).size).toBe(2_000);
  });

  test("are right only as a whole", () => {
    const keys = createPublishKeys(box(1));
    const key = keys.of(stream);
    expect(keys.isRight(key, stream)).toBe(true);
    for (const wrong of ["", key.slice(1), key.slice(0, -1), `${key}A`, key.toLowerCase(), `${key}&${key}`, "ä"])
      expect(keys.isRight(wrong, stream)).toBe(false);
  });

  test.each([
    [null, false, false],
    [null, true, true],
    [0, true, false],
    [1, false, true],
  ])("of a stream with %s are needed where the organisation says %s: %s", (publish_key, setting, isNeeded) => {
    expect(needsKey({ publish_key }, { publish_key: setting })).toBe(isNeeded);
  });
});

describe("wrong keys from an address", () => {
  let ms = 0;
  const wrongKeys = (limit?: number) => createWrongKeys({ now: () => ms }, limit);
  const at = "192.0.2.1";
  const guess = (of: ReturnType<typeof wrongKeys>, count: number, stream = "s", address = at) => {
    for (let n = 0; n < count; n += 1) of.wrong(address, stream, `wrong ${n}`);
  };

  test("are refused after twenty different ones for a stream, and the first, which may be a mistake", () => {
    const of = wrongKeys();
    guess(of, 20);
    expect(of.waitS(at, "s", "next")).toBeNull();
    guess(of, 21);
    expect(of.waitS(at, "s", "next")).toBe(60);
    ms += 60_000;
    expect(of.waitS(at, "s", "next")).toBeNull();
  });

  test("count together for all streams and for a /64, whatever the stream", () => {
    const of = wrongKeys();
    for (let n = 0; n < 7; n += 1) guess(of, 4, `s${n}`, `2001:db8::${n}`);
    for (const [address, isSlowed] of [
      ["2001:db8::ffff", true],
      ["2001:db8:0:1::1", false],
    ] as const)
      expect(of.waitS(address, "s0", "next") !== null).toBe(isSlowed);
  });

  test("that are each an encoder's own mistake slow nobody, however many encoders there are", () => {
    const of = wrongKeys();
    for (let turn = 0; turn < 5; turn += 1) {
      for (let n = 0; n < 200; n += 1) {
        expect(of.waitS(at, `s${n}`, `outdated ${n}`)).toBeNull();
        of.wrong(at, `s${n}`, `outdated ${n}`);
      }
    }
    expect(of.waitS(at, "s7", "the new one")).toBeNull();
  });

  test("do not slow who has used the right one before", () => {
    const of = wrongKeys();
    of.right(at, "s", "right");
    guess(of, 30);
    expect([of.waitS(at, "s", "right"), of.waitS(at, "s", "next") !== null]).toEqual([null, true]);
  });

  test("take bounded memory", () => {
    const of = wrongKeys(10);
    guess(of, 30);
    for (let n = 0; n < 10; n += 1) of.wrong(at, `other ${n}`, "x");
    expect(of.waitS(at, "s", "next")).toBeNull();
  });
});

describe("a stream that needs its key", () => {
  let stage: Stage;
  let customer: Customer;
  beforeEach(async () => {
    customer = await startCustomer();
    stage = await openStage({ webhook: customer.url, ca: customer.ca });
    await stage.change({ publish_key: true });
  });
  afterEach(async () => {
    await stage.close();
    await customer.close();
  });

  const keyOf = async (name = STREAM) => {
    const row = await stage.db.selectFrom("stream").selectAll().where("name", "=", name).executeTakeFirstOrThrow();
    return stage.service.appDeps.publishKeys.of(row);
  };
  const metric = async (cause: string) => {
    const text = await stage.metrics.registry.metrics();
    const name = `headgate_refused_total{request="publish",cause="${cause}"}`;
    return Number(
      text
        .split("\n")
        .find((line) => line.startsWith(name))
        ?.split(" ")
        .at(-1) ?? 0,
    );
  };

  test("is refused without the key and with a wrong one before the webhook is asked, in words that say what to do", async () => {
    expect(await stage.request(STREAM)).toMatchObject({
      code: "denied",
      description: "The publish key is missing: copy the whole stream key or WHIP address again, with key=... in it",
    });
    expect(await stage.request(STREAM, { arguments: "key=wrong" })).toMatchObject({
      code: "denied",
      description: "The publish key is wrong, or was renewed: copy the whole stream key or WHIP address again",
    });
    expect([customer.requests.length, await metric("key_missing"), await metric("key_wrong")]).toEqual([0, 1, 1]);
  });

  test("is published with the key, which the webhook gets as it was given, and the log never has", async () => {
    const given = `passcode=a%20b&key=${await keyOf()}`;
    await stage.allowed(STREAM, { arguments: given });
    expect(customer.requests[0]?.body).toMatch(new RegExp(`^${given}&call=publish&`));
    stage.ask(STREAM, { arguments: `key=${await keyOf()}x` });
    await until(async () => (await metric("key_wrong")) === 1);
    expect(stage.log()).not.toContain(await keyOf());
  });

  test("needs none where its own setting says so, and the other way round", async () => {
    await stage.db.updateTable("stream").set({ publish_key: 0 }).execute();
    const clientId = await stage.allowed(STREAM, { arguments: "key=mine" });
    stage.end(clientId);
    await stage.change({ publish_key: false });
    await stage.db.updateTable("stream").set({ publish_key: 1 }).execute();
    expect(await stage.request(STREAM, { arguments: "key=mine" })).toMatchObject({ command: "deny" });
  });

  test("keeps its publish when the setting is turned on or the key is renewed", async () => {
    await stage.change({ publish_key: false });
    await stage.allowed(STREAM);
    await stage.change({ publish_key: true });
    await stage.db.updateTable("stream").set({ key_salt: "renewed" }).execute();
    expect(stage.publishing.running().length).toBe(1);
    expect(stage.media.commands.filter(({ command }) => command === "end")).toEqual([]);
  });

  test("accepts the former key no more once it is renewed", async () => {
    const former = await keyOf();
    stage.end(await stage.allowed(STREAM, { arguments: `key=${former}` }));
    await stage.db.updateTable("stream").set({ key_salt: "renewed" }).execute();
    expect(await stage.request(STREAM, { arguments: `key=${former}` })).toMatchObject({ command: "deny" });
    await stage.allowed(STREAM, { arguments: `key=${await keyOf()}` });
  });

  test("accepts a web token of the stream instead, also beside a wrong key, and none of another stream", async () => {
    const token = async (streamname: string) => {
      const to = { streamname, ingesturl: "rtmp://in.example/live", exp: null, nbf: null, org: "Ab1Cd" };
      return `token=${await stage.tokens.issue(to)}`;
    };
    expect(await stage.request(STREAM, { arguments: await token("Ab1Cd-other") })).toMatchObject({ command: "deny" });
    stage.end(await stage.allowed(STREAM, { arguments: await token(STREAM) }));
    await stage.allowed(STREAM, { arguments: `key=wrong&${await token(STREAM)}` });
    expect([await metric("key_missing"), await metric("key_wrong")]).toEqual([1, 0]);
  });

  test("is live for nobody who has not the key: the state of the stream is not told", async () => {
    await stage.allowed(STREAM, { arguments: `key=${await keyOf()}` });
    expect(await stage.request(STREAM)).toMatchObject({ description: expect.stringContaining("key is missing") });
    expect(await stage.request(STREAM, { arguments: `key=${await keyOf()}` })).toMatchObject({
      description: "Stream is already live",
    });
  });

  test("is slowed for those who guess the key: of two thousand guesses twenty-one are compared", async () => {
    const key = await keyOf();
    for (let n = 0; n < 2_000; n += 1) stage.ask(STREAM, { arguments: `key=guess${n}` });
    await until(() => stage.media.commands.length === 2_000);
    expect(await metric("key_wrong")).toBe(21);
    expect(await metric("too_many_names")).toBe(1_979);
    expect(await stage.request(STREAM, { arguments: `key=${key}` })).toMatchObject({
      description: "Too many wrong publish keys came from this address; try again in a minute",
    });
    const other = { arguments: `key=${key}`, address: "203.0.113.8" };
    expect(await stage.request(STREAM, other)).toMatchObject({ command: "allow" });
    expect(customer.requests.length).toBe(1);
  });
});

test("an organisation that needs no key has key= as an argument of its own", async () => {
  const customer = await startCustomer();
  const stage = await openStage({ webhook: customer.url, ca: customer.ca });
  await stage.allowed(STREAM, { arguments: "key=mine&key=yours" });
  expect(customer.requests[0]?.body).toMatch(/^key=mine&key=yours&call=publish&/);
  await stage.close();
  await customer.close();
});
