// Event streams over real connections: what is kept for a client that does not read, and how they end.
import { once } from "node:events";
import type { Server } from "node:http";
import { type AddressInfo, connect, type Socket } from "node:net";
import { createAdaptorServer } from "@hono/node-server";
import { afterEach, beforeEach, expect, test } from "vitest";
import { listen } from "../../ts/listen/http-port.ts";
import { addApiKey } from "../../ts/organisation/api-keys.ts";
import { until } from "../support/child.ts";
import { openStage, STREAM, type Stage } from "../support/publishing.ts";

/** More than an event, far less than all events sent meanwhile, bytes. */
const KEPT_LIMIT_BYTES = 2_500_000;
const EVENT_BYTES = 1_000_000;

let stage: Stage;
let key: string;
let client: Socket | null = null;

beforeEach(async () => {
  stage = await openStage({ webhook: null, ca: null });
  key = (await addApiKey(stage.db, { organisationId: "org1", role: "readonly", now: stage.clock.ms })).key;
});

afterEach(async () => {
  client?.destroy();
  await stage.close();
});

/** Requests events and returns everything received since the latest `forget`. */
function read(port: number): { text(): string; forget(): void; readonly socket: Socket } {
  let text = "";
  const socket = connect(port, "127.0.0.1");
  socket.on("data", (data) => {
    text = (text + data.toString("latin1")).slice(-4 * EVENT_BYTES);
  });
  socket.write(`GET /organisation/events HTTP/1.1\r\nhost: gateway.example\r\nx-service-apikey: ${key}\r\n\r\n`);
  client = socket;
  const forget = () => {
    text = "";
  };
  return { text: () => text, forget, socket };
}

/** One poll that sends an event of a megabyte. */
async function tellMuch(clientId: number, mark: number): Promise<void> {
  const video = { codec: `${"x".repeat(EVENT_BYTES)} ${mark}.`, width: null, height: null };
  stage.media.measure(clientId, { tracks: { video, audio: null } });
  stage.clock.ms += 1_000;
  await stage.service.events.poll();
  // The event reaches the socket in the next turns.
  for (let turn = 0; turn < 10; turn += 1) await new Promise((resolve) => setImmediate(resolve));
}

test("at most one event is kept for a client that stops reading, which then gets the complete current state", async () => {
  const sockets: Socket[] = [];
  const server = createAdaptorServer({ fetch: stage.service.app.fetch }) as Server;
  server.on("connection", (socket) => sockets.push(socket));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const clientId = await stage.allowed(STREAM);
  const { text, forget, socket } = read((server.address() as AddressInfo).port);
  await until("events", () => text().includes("event: sessions"));
  socket.pause();
  forget();
  const kept = () => Math.max(...sockets.map(({ writableLength }) => writableLength));
  let mark = 0;
  // The kernel's buffers grow, and take what is kept for a moment only.
  const isStuck = async () => {
    let checks = 0;
    await until("it is known", () => kept() === 0 || ++checks === 5, 30_000, 50);
    return kept() > 0;
  };
  while (!(await isStuck()) && mark < 100) await tellMuch(clientId, mark++);
  expect(kept()).toBeGreaterThan(0);
  for (const last = mark + 20; mark < last; ) await tellMuch(clientId, mark++);
  expect(kept()).toBeLessThan(KEPT_LIMIT_BYTES);
  socket.resume();
  await until("the latest", () => text().includes(` ${mark - 1}.`));
  // Changes may follow, if the kernel took some of what was kept in between.
  expect(text()).toContain("event: sessions\n");
  socket.destroy();
  server.closeAllConnections();
  server.close();
});

test("a client that disconnects leaves nothing behind", async () => {
  const port = await listen(stage.service.app.fetch, { host: "127.0.0.1", port: 0, name: "http.port" });
  const { text, socket } = read(port.port);
  await until("events", () => text().includes("event: sessions"));
  expect(stage.service.events.readers()).toBe(1);
  socket.destroy();
  await until("nobody reads", () => stage.service.events.readers() === 0);
  await port.stop();
});

test("the end of a stream closes its connection, and a port that stops waits for none", async () => {
  const port = await listen(stage.service.app.fetch, { host: "127.0.0.1", port: 0, name: "http.port" });
  const { text, socket } = read(port.port);
  await until("events", () => text().includes("event: sessions"));
  expect(text()).toMatch(/^HTTP\/1\.1 200 OK\r\n/);
  expect(text().toLowerCase()).toContain("connection: close");
  const closed = once(socket, "close");
  stage.service.events.stop();
  await closed;
  // The chunk that ends a complete response: nothing was cut off.
  expect(text()).toMatch(/0\r\n\r\n$/);
  await port.stop();
});
