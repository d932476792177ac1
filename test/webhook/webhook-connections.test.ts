// How connections to customers are opened: a few in each turn of the event loop, and a failure to open one is
// an error of its call.
import { setImmediate as turn } from "node:timers/promises";
import { afterEach, expect, test } from "vitest";
import { createHostFiles } from "../../ts/publish/addresses/host-files.ts";
import { createResolver, type Resolve } from "../../ts/publish/addresses/resolver.ts";
import { createConnections, NotConnected } from "../../ts/publish/webhook/connections.ts";
import { until } from "../support/child.ts";
import { startNameServer } from "../support/name-server.ts";

const CALLS = 12;
/** Connections opened in one turn of the event loop. */
const IN_A_TURN = 2;

let connections: ReturnType<typeof createConnections>;
afterEach(() => connections.destroy());

const call = (host: string) =>
  connections.of("org1").request({ origin: `https://${host}`, path: "/", method: "POST", body: "" });

test("of many concurrent calls at most two open their connections in a turn of the event loop", async () => {
  let turns = 0;
  let counting = true;
  const begunIn: number[] = [];
  const resolve: Resolve = async () => {
    begunIn.push(turns);
    throw new Error("no such name");
  };
  connections = createConnections({ webhookCa: null, dev: true, resolve });
  const counter = (async () => {
    while (counting) {
      await turn();
      turns += 1;
    }
  })();
  const calls = await Promise.allSettled(Array.from({ length: CALLS }, (_, at) => call(`customer-${at}.example`)));
  counting = false;
  await counter;
  expect(begunIn).toHaveLength(CALLS);
  for (const at of new Set(begunIn)) {
    expect(begunIn.filter((each) => each === at).length).toBeLessThanOrEqual(IN_A_TURN);
  }
  for (const each of calls) expect(each).toMatchObject({ status: "rejected", reason: expect.any(NotConnected) });
});

test("a connection that cannot be opened fails its call immediately", async () => {
  const resolve: Resolve = () => {
    throw new Error("out of file descriptors");
  };
  connections = createConnections({ webhookCa: null, dev: true, resolve });
  await expect(call("customer.example")).rejects.toMatchObject({
    code: "not_connected",
    cause: { message: "out of file descriptors" },
  });
});

test("an organisation with forty names that hang delays no first look-up of another's, and has only its own limit", async () => {
  const server = await startNameServer((name) => (name.startsWith("hangs") ? "silent" : ["127.0.0.1"]));
  const now = () => performance.now();
  const files = createHostFiles(now, { hosts: "/nonexistent", resolvConf: "/nonexistent" });
  const resolve = createResolver({ servers: [server.address], files, now });
  connections = createConnections({ webhookCa: null, dev: true, resolve });
  const call = (organisation: string, host: string) =>
    connections
      .of(organisation)
      .request({ origin: `https://${host}:1`, path: "/", method: "POST", body: "" })
      .then(
        () => "answered",
        ({ cause }) => (cause as NodeJS.ErrnoException).code,
      );
  const hanging = Array.from({ length: 40 }, (_, at) => call("org1", `hangs${at}.example`));
  // Four are asked for at a time, 32 wait, and the others are refused.
  expect(await Promise.any(hanging.map(async (each) => await each))).toBe("ETOOMANYLOOKUPS");
  await until("those that may be are asked for", () => new Set(server.asked).size === 4);
  for (const organisation of ["org2", "org3", "org4"]) {
    const startedAt = now();
    expect(await call(organisation, `${organisation}.example`)).toBe("ECONNREFUSED");
    expect(now() - startedAt).toBeLessThan(1_500);
  }
  expect(server.asked.filter((name) => name.startsWith("hangs")).length).toBeLessThanOrEqual(8);
  await server.close();
  for (const each of hanging) each.catch(() => {});
}, 30_000);
