// Guessing stream names: by RTMP, by WHIP and as a player. Whoever guesses is slowed; nobody else is, not even behind
// the same address with a name that has been used before.
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { createWrongNames } from "../../ts/publish/limits/wrong-names.ts";
import { openStage, STREAM, type Stage, until } from "../support/publishing.ts";

const MINUTE_MS = 60_000;

describe("names from an address", () => {
  let ms = 0;
  const names = () => createWrongNames({ now: () => ms });
  const guess = (of: ReturnType<typeof names>, address: string, count: number, from = 0) => {
    for (let n = from; n < from + count; n += 1) of.wrong(address, `wrong ${n}`);
  };

  test("are refused after twenty wrong ones in a minute, until the first of those is a minute old", () => {
    const of = names();
    guess(of, "192.0.2.1", 19);
    expect(of.waitS("192.0.2.1", "next")).toBeNull();
    ms += 10_000;
    guess(of, "192.0.2.1", 1, 19);
    expect(of.waitS("192.0.2.1", "next")).toBe(50);
    ms += 49_999;
    expect(of.waitS("192.0.2.1", "next")).toBe(1);
    ms += 1;
    expect(of.waitS("192.0.2.1", "next")).toBeNull();
  });

  test.each([
    ["192.0.2.1", "192.0.2.1", true],
    ["192.0.2.1", "192.0.2.2", false],
    ["2001:db8::1", "2001:db8::ffff:1:2:3", true],
    ["2001:db8::1", "2001:DB8:0:0:1::1", true],
    ["2001:db8::1", "2001:db8:0:1::1", false],
  ])("of %s slow %s: %s", (guesser, other, isSlowed) => {
    const of = names();
    guess(of, guesser, 20);
    expect(of.waitS(other, "next") !== null).toBe(isSlowed);
  });

  test("that are repeated, or were right, are not slowed", () => {
    const of = names();
    for (let n = 0; n < 100; n += 1) of.wrong("192.0.2.1", "the one wrong key of an encoder");
    expect(of.waitS("192.0.2.1", "next")).toBeNull();
    of.right("192.0.2.1", "studio");
    guess(of, "192.0.2.1", 20);
    expect(of.waitS("192.0.2.1", "studio")).toBeNull();
    expect(of.waitS("192.0.2.1", "wrong 19")).toBeNull();
    expect(of.waitS("192.0.2.1", "next")).not.toBeNull();
    for (const created of ["wrong 3", "wrong 4"]) of.right("192.0.2.1", created);
    expect(of.waitS("192.0.2.1", "next")).toBeNull();
  });

  test("are remembered for so many addresses that nobody forces them out cheaply, and for no more", () => {
    const of = createWrongNames({ now: () => ms }, 100);
    guess(of, "192.0.2.1", 20);
    const others = (count: number) => {
      for (let n = 0; n < count; n += 1) of.wrong(`2001:db8:${n.toString(16)}::1`, "x");
    };
    others(99);
    expect(of.waitS("192.0.2.1", "next")).not.toBeNull();
    others(100);
    expect(of.waitS("192.0.2.1", "next")).toBeNull();
  });

  test("may be a hundred at once, and all of them delay the next one if they were wrong", () => {
    const of = names();
    const waits = Array.from({ length: 101 }, (_, n) => of.waitS("192.0.2.1", `studio ${n}`));
    expect(waits.slice(0, 100).filter((wait) => wait !== null)).toEqual([]);
    expect(waits[100]).toBe(60);
    for (let n = 0; n < 50; n += 1) of.right("192.0.2.1", `studio ${n}`);
    expect(of.waitS("192.0.2.1", "studio 101")).toBeNull();
    ms += 30_000;
    for (let n = 50; n < 100; n += 1) of.wrong("192.0.2.1", `studio ${n}`);
    ms += 59_999;
    expect(of.waitS("192.0.2.1", "next")).toBe(1);
  });
});

describe("ten thousand guesses", () => {
  let stage: Stage;
  beforeEach(async () => {
    stage = await openStage({ webhook: null, ca: null });
  });
  afterEach(() => stage.close());

  /** Counts the store's look-ups of streams from here on. */
  function lookUps(): () => number {
    let count = 0;
    const { selectFrom } = stage.db;
    Object.assign(stage.db, {
      selectFrom(table: never) {
        if (table === "stream") count += 1;
        return selectFrom.call(stage.db, table);
      },
    });
    return () => count;
  }

  const metric = async (cause: string, request: string) => {
    const text = await stage.metrics.registry.metrics();
    const line = text
      .split("\n")
      .find((of) => of.startsWith(`headgate_refused_total{request="${request}",cause="${cause}"}`));
    return Number(line?.split(" ").at(-1) ?? 0);
  };

  const play = async (request: number, name: string, address = "203.0.113.7") => {
    const [clientId, bytes] = [null, Buffer.from(name)];
    stage.publishing.handle({ kind: "play_requested", request, name: bytes, clientId, arguments: null, address });
    return await stage.answered(request);
  };

  test("of publishes by RTMP, all at once, ask the store a hundred times a minute, and others publish", async () => {
    const count = lookUps();
    for (let n = 0; n < 10_000; n += 1) stage.ask(`Ab1Cd-${n}`);
    await until(() => stage.media.commands.length === 10_000);
    const refused = stage.media.commands.filter((answer) => answer.command === "deny" && answer.code === "denied");
    expect([count(), refused.length]).toEqual([100, 9_900]);
    stage.media.commands.length = 0;
    expect(await metric("unknown_stream", "publish")).toBe(100);
    expect(await metric("too_many_names", "publish")).toBe(9_900);
    // A right name is refused like a wrong one: it must not stand out.
    expect(await stage.request(STREAM)).toMatchObject({
      code: "denied",
      description: "Too many unknown stream names came from this address; try again in a minute",
    });
    expect(await stage.request(STREAM, { address: "203.0.113.8" })).toMatchObject({ command: "allow" });
    stage.clock.ms += MINUTE_MS;
    expect(await stage.request("Ab1Cd-99999")).toMatchObject({ code: "bad_name" });
  });

  test("as a player count like those of publishes, and neither a live name nor one that is not live yet is slowed", async () => {
    expect(await play(100_001, STREAM)).toMatchObject({ code: "bad_name", description: "No such stream" });
    for (let n = 0; n < 20; n += 1) expect(await play(150_000 + n, `Ab1Cd-${n}`)).toMatchObject({ code: "bad_name" });
    expect(await play(200_001, "Ab1Cd-next0")).toMatchObject({ code: "denied" });
    expect(await metric("too_many_names", "play")).toBe(1);
    expect(await play(200_002, STREAM)).toMatchObject({ code: "bad_name" });
    const clientId = await stage.allowed(STREAM);
    const name = Buffer.from(STREAM);
    const player = { kind: "play_requested", name, clientId, arguments: null } as const;
    stage.publishing.handle({ ...player, request: 300_001, address: "203.0.113.7" });
    expect(await stage.answered(300_001)).toMatchObject({ command: "allow_play" });
    expect(await stage.request("Ab1Cd-other")).toMatchObject({ code: "denied" });
  });
});
