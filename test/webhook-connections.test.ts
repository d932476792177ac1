// How connections to customers are opened: a few in each turn of the event loop, and a failure to open one is
// an error of its call.
import { setImmediate as turn } from "node:timers/promises";
import { afterEach, expect, test } from "vitest";
import type { Resolve } from "../ts/publish/addresses/resolver.ts";
import { createConnections, NotConnected } from "../ts/publish/webhook/connections.ts";

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
