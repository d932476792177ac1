// Resolving customers' names without one delaying another: turns by organisation, a cache, the machine's
// files.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { resolveUpstream } from "../../ts/publish/addresses/address-guard.ts";
import { createHostFiles } from "../../ts/publish/addresses/host-files.ts";
import { createTurns } from "../../ts/publish/addresses/look-up-turns.ts";
import { createResolver, type Resolve } from "../../ts/publish/addresses/resolver.ts";
import { until } from "../support/child.ts";
import { type NameServer, type QueryType, type Said, startNameServer } from "../support/name-server.ts";
import { pause } from "../support/pause.ts";

/** Far less than a silent server's time-out. */
const SOON_MS = 2_000;

let folder: string;
let server: NameServer;
let say: (name: string, type: QueryType) => Said | Promise<Said>;
let now: number;
let resolve: Resolve;

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "headgate-resolver-"));
  say = (name) => (name.startsWith("silent") ? "silent" : name.startsWith("missing") ? "missing" : ["192.0.2.7"]);
  server = await startNameServer((name, type) => say(name, type));
  now = 1_000_000;
  const files = createHostFiles(() => now, { hosts: join(folder, "hosts"), resolvConf: join(folder, "resolv.conf") });
  resolve = createResolver({ servers: [server.address], files, now: () => now });
});
afterEach(async () => {
  await server.close();
  rmSync(folder, { recursive: true });
});

const codeOf = (looking: Promise<unknown>) =>
  looking.then(
    () => "resolved",
    ({ code }) => code,
  );

test("an address resolves to itself, and an unknown name is an error that contains it", async () => {
  expect(await resolve("192.0.2.1")).toEqual(["192.0.2.1"]);
  expect(await resolve("2001:db8::1")).toEqual(["2001:db8::1"]);
  expect(server.asked).toEqual([]);
  await expect(resolve("missing.example")).rejects.toMatchObject({ code: "ENOTFOUND", hostname: "missing.example" });
});

test("many names of one organisation are resolved one after the other, and cached", async () => {
  const names = Array.from({ length: 40 }, (_, at) => `customer-${at}.example`);
  for (const name of names) await resolve(name, "customer");
  for (const name of names) expect(await resolve(name, "customer")).toEqual(["192.0.2.7"]);
  expect(server.asked).toHaveLength(names.length);
});

describe("a name whose server does not answer", () => {
  test("delays only the organisation that uses it", async () => {
    const silent = Array.from({ length: 36 }, (_, n) => codeOf(resolve(`silent${n}.example`, "attacker")));
    expect(await codeOf(resolve("silent99.example", "attacker"))).toBe("ETOOMANYLOOKUPS");
    const started = performance.now();
    expect(await resolve("honest.example", "other")).toEqual(["192.0.2.7"]);
    expect(performance.now() - started).toBeLessThan(SOON_MS);
    // Four concurrently.
    expect(new Set(server.asked.filter((name) => name.startsWith("silent"))).size).toBe(4);
    // Not awaited; the look-ups end with the file's process.
    for (const looking of silent) looking.catch(() => {});
  }, 20_000);

  test("times out, whatever the number of search domains", async () => {
    const domains = Array.from({ length: 6 }, (_, n) => `silent${n}.internal`).join(" ");
    writeFileSync(join(folder, "resolv.conf"), `search ${domains}\n`);
    say = () => "silent";
    const started = performance.now();
    expect(await codeOf(resolve("silent"))).toBe("ETIMEOUT");
    expect(performance.now() - started).toBeLessThan(8_000);
  }, 15_000);
});

describe("a name with one address family that does not answer", () => {
  test.each([
    ["AAAA", "192.0.2.7"],
    ["A", "2001:db8::7"],
  ])("resolves to the other's addresses without waiting for %s", async (dropped, address) => {
    say = (_, type) => (type === dropped ? "silent" : ["192.0.2.7", "2001:db8::7"]);
    const started = performance.now();
    expect(await resolve("a.example")).toEqual([address]);
    expect(performance.now() - started).toBeLessThan(SOON_MS);
    expect(await resolve("a.example")).toEqual([address]);
  });

  test("resolves to both families once the late one has answered, without another query", async () => {
    const late = laterAnswer();
    say = (_, type) => (type === "AAAA" ? late.said : ["192.0.2.7"]);
    expect(await resolve("a.example")).toEqual(["192.0.2.7"]);
    late.give(["2001:db8::7"]);
    await until("it is added", async () => (await resolve("a.example")).length === 2);
    expect(await resolve("a.example")).toEqual(["192.0.2.7", "2001:db8::7"]);
    expect(server.asked).toEqual(["a.example"]);
  });

  test("is refused to an upstream when the late one has an internal address", async () => {
    const late = laterAnswer();
    say = (_, type) => (type === "AAAA" ? late.said : ["93.184.216.34"]);
    const dialled = () => resolveUpstream("a.example", { exempt: false, owner: "org1", resolve });
    expect(await dialled()).toEqual(["93.184.216.34"]);
    late.give(["fd00::7"]);
    await until("it is added", async () => (await resolve("a.example")).length === 2);
    expect(await dialled()).toBeNull();
  });

  test("is waited for when the other one has no addresses", async () => {
    say = async (_, type) => {
      if (type === "A") return [];
      await pause(400); // longer than the other is waited for
      return ["2001:db8::7"];
    };
    expect(await resolve("a.example")).toEqual(["2001:db8::7"]);
  });
});

/** An answer that the server sends when `give` is called. */
function laterAnswer(): { readonly said: Promise<Said>; give(said: Said): void } {
  let give: (said: Said) => void = () => {};
  const said = new Promise<Said>((resolve) => {
    give = resolve;
  });
  return { said, give };
}

describe("an answer", () => {
  test("is cached for its time to live and then requested again", async () => {
    await resolve("a.example");
    now += 59_000;
    await resolve("A.example");
    expect(server.asked).toEqual(["a.example"]);
    now += 2_000;
    await resolve("a.example");
    expect(server.asked).toHaveLength(2);
  });

  test("is shared by everyone who asks for the same name meanwhile", async () => {
    const all = await Promise.all(Array.from({ length: 200 }, (_, n) => resolve("a.example", `org${n % 2}`)));
    expect(all.every(([address]) => address === "192.0.2.7")).toBe(true);
    expect(server.asked).toHaveLength(1);
  });

  test("is used beyond its time to live while the servers fail, but not when the name is gone", async () => {
    await resolve("a.example");
    now += 600_000;
    say = () => "failing";
    expect(await resolve("a.example")).toEqual(["192.0.2.7"]);
    say = () => "missing";
    expect(await resolve("a.example")).toEqual(["192.0.2.7"]); // no query for five seconds after one that failed
    now += 5_000;
    expect(await codeOf(resolve("a.example"))).toBe("ENOTFOUND");
    say = () => "failing";
    now += 3_600_000;
    expect(await codeOf(resolve("a.example"))).toBe("ESERVFAIL");
  }, 20_000);

  test("is used beyond its time to live after half a second while the servers hang, and the query goes on", async () => {
    await resolve("a.example");
    now += 600_000;
    const late = laterAnswer();
    say = () => late.said;
    expect(await resolve("a.example")).toEqual(["192.0.2.7"]);
    late.give(["192.0.2.8"]);
    await until("the answer is there", async () => (await resolve("a.example"))[0] === "192.0.2.8");
  }, 20_000);

  test("is used beyond its time to live when its owner, or everybody, has reached a limit", async () => {
    await resolve("a.example", "customer");
    now += 600_000;
    const silent = Array.from({ length: 36 }, (_, n) => codeOf(resolve(`silent${n}.example`, "customer")));
    expect(await resolve("a.example", "customer")).toEqual(["192.0.2.7"]);
    const crowd = Array.from({ length: 1_100 }, (_, n) => codeOf(resolve(`silent-${n}.example`)));
    expect(await resolve("a.example", "other")).toEqual(["192.0.2.7"]);
    for (const looking of [...silent, ...crowd]) looking.catch(() => {});
  }, 20_000);

  test("is there for others although a thousand names hang", async () => {
    const crowd: Promise<string>[] = [];
    // In groups that fit into the socket of the server: a query it loses would be the honest one's next try.
    while (crowd.length < 1_000) {
      const group = Array.from({ length: 25 }, (_, n) => codeOf(resolve(`silent${crowd.length + n}.example`)));
      crowd.push(...group);
      await until("the group's queries are read", () => server.asked.length >= crowd.length);
    }
    const started = performance.now();
    expect(await codeOf(resolve("honest.example", "other"))).toBe("resolved");
    expect(performance.now() - started).toBeLessThan(3_000);
    for (const looking of crowd) looking.catch(() => {});
  }, 20_000);

  test("counts as slow after half a second, so that more than the limit of prompt ones may hang", async () => {
    const turns = createTurns();
    const hanging = new Promise<string>(() => {});
    for (let n = 0; n < 1_100; n++) void turns.take(`owner ${n}`, () => hanging);
    expect(await turns.take("other", async () => "its turn")).toBe("its turn");
  });

  test("that a name does not exist is cached for two seconds", async () => {
    expect(await codeOf(resolve("missing.example"))).toBe("ENOTFOUND");
    expect(await codeOf(resolve("missing.example"))).toBe("ENOTFOUND");
    expect(server.asked).toHaveLength(1);
    now += 2_001;
    say = () => ["192.0.2.8"];
    expect(await resolve("missing.example")).toEqual(["192.0.2.8"]);
  });
});

describe("the machine's files", () => {
  test("take precedence over servers, also after a change", async () => {
    writeFileSync(join(folder, "hosts"), "# own\n::2 up  \n192.0.2.1 Up.internal up # both\n");
    expect(await resolve("up.internal")).toEqual(["192.0.2.1"]);
    expect(await resolve("up")).toEqual(["192.0.2.1", "::2"]);
    writeFileSync(join(folder, "hosts"), "192.0.2.22 up.internal\n");
    now += 6_000;
    expect(await resolve("up.internal")).toEqual(["192.0.2.22"]);
    expect(server.asked).toEqual([]);
  });

  test("need not contain localhost", async () => {
    expect(await resolve("localhost")).toEqual(["127.0.0.1", "::1"]);
    expect(server.asked).toEqual([]);
  });

  test("set the search domains", async () => {
    writeFileSync(
      join(folder, "resolv.conf"),
      "nameserver 192.0.2.53\nsearch missing.internal svc.internal.\noptions ndots:2\n",
    );
    say = (name) => (name.endsWith("svc.internal") ? ["192.0.2.9"] : "missing");
    expect(await resolve("up")).toEqual(["192.0.2.9"]);
    expect(server.asked).toEqual(["up.missing.internal", "up.svc.internal"]);
    say = (name) => (name === "a.b.example" ? ["192.0.2.10"] : "missing");
    expect(await resolve("a.b.example")).toEqual(["192.0.2.10"]);
    expect(server.asked.slice(2)).toEqual(["a.b.example"]);
    expect(await codeOf(resolve("up.example."))).toBe("ENOTFOUND");
    expect(server.asked.slice(3)).toEqual(["up.example"]);
  });

  test("a search domain whose server fails outweighs others where the name does not exist", async () => {
    writeFileSync(join(folder, "resolv.conf"), "search failing.internal\n");
    say = (name) => (name.endsWith("failing.internal") ? "failing" : "missing");
    expect(await codeOf(resolve("up"))).toBe("ESERVFAIL");
  });
});
