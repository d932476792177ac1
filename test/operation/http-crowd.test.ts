// A crowd of connections that arrives while the event loop is busy is accepted many at a time, within the
// limit of the port, and a port that stops waits for them as for any.
import { createServer, type Server } from "node:http";
import { get } from "node:https";
import {
  type AddressInfo,
  connect,
  createServer as createNetServer,
  type Server as NetServer,
  type Socket,
} from "node:net";
import { afterEach, expect, test } from "vitest";
import { openAcceptors } from "../../ts/listen/acceptors.ts";
import { listen } from "../../ts/listen/http-port.ts";
import { serveOtherUpgrades } from "../../ts/listen/web-sockets.ts";
import { duplicate } from "../../ts/media/descriptors.ts";
import { until } from "../support/child.ts";
import { testCertificates } from "../support/customer.ts";

const CROWD = 160;
const TURN_MS = 5;

const open: { close(): unknown }[] = [];
afterEach(async () => {
  for (const each of open.splice(0).reverse()) await each.close();
});

/** `of`: whose port the acceptors share; by default the server's own. */
async function serverOf(maxConnections: number, of?: NetServer): Promise<{ server: Server; port: number }> {
  const server = createServer((_, response) => response.end());
  server.maxConnections = maxConnections;
  const port = await portOf(server);
  const { _handle: handle } = (of ?? server) as unknown as { readonly _handle: { readonly fd: number } };
  const acceptors = await openAcceptors(server, handle.fd, duplicate);
  open.push({ close: () => server.closeAllConnections() }, acceptors, { close: () => server.close() });
  return { server, port };
}

async function portOf(server: NetServer): Promise<number> {
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
  return (server.address() as AddressInfo).port;
}

function connected(port: number): Socket {
  const socket = connect(port, "127.0.0.1").on("error", () => {});
  open.push({ close: () => socket.destroy() });
  return socket;
}

test("more than ten connections of a crowd are accepted in a turn of the event loop", async () => {
  const { server, port } = await serverOf(1_000);
  let taken = 0;
  server.on("connection", () => (taken += 1));
  for (let at = 0; at < CROWD; at += 1) connected(port);
  const inTurns: number[] = [];
  while (taken < CROWD) {
    const before = taken;
    await new Promise((turn) => setImmediate(turn));
    for (const end = performance.now() + TURN_MS; performance.now() < end; );
    if (taken > before) inTurns.push(taken - before);
    expect(inTurns.length).toBeLessThan(CROWD);
  }
  // Without additional acceptors it is one per turn.
  expect(Math.max(...inTurns)).toBeGreaterThan(10);
});

test("no more connections are open than the port's limit, however fast they arrive", async () => {
  const { server, port } = await serverOf(20);
  const sockets = Array.from({ length: 3 * 20 }, () => connected(port));
  const count = () => new Promise<number>((counted) => server.getConnections((_, own) => counted(own)));
  await until("the others are closed", () => sockets.filter(({ destroyed }) => destroyed).length >= 40);
  expect(sockets.filter(({ destroyed }) => !destroyed)).toHaveLength(20);
  expect(await count()).toBeLessThanOrEqual(20);
  for (const socket of sockets) socket.destroy();
  // Their places are free again.
  await until("another is served", async () => {
    const answer = await fetch(`http://127.0.0.1:${port}/`).catch(() => null);
    return answer?.status === 200;
  });
});

test("the server's own handle accepts nothing while the others have taken all of the limit", async () => {
  const shared = createNetServer();
  const portOfOthers = await portOf(shared);
  const { server, port } = await serverOf(2, shared);
  shared.close(); // only the other handles accept there
  let taken = 0;
  server.on("connection", () => (taken += 1));
  const sockets = [connected(portOfOthers), connected(portOfOthers)];
  await until("both are accepted", () => taken === 2);
  await expect(fetch(`http://127.0.0.1:${port}/`)).rejects.toThrow();
  expect(taken).toBe(2);
  for (const socket of sockets) socket.destroy();
  await until("another is served", async () => {
    const answer = await fetch(`http://127.0.0.1:${port}/`).catch(() => null);
    return answer?.status === 200;
  });
});

test("a connection counts once, however many of its requests offer another protocol", async () => {
  const { server, port } = await serverOf(20);
  server.on("upgrade", () => {});
  serveOtherUpgrades(server);
  const socket = connected(port);
  let text = "";
  socket.on("data", (data) => {
    text += data;
  });
  for (let asked = 1; asked <= 25; asked += 1) {
    socket.write("GET / HTTP/1.1\r\nhost: h\r\nconnection: upgrade\r\nupgrade: h2c\r\n\r\n");
    await until("the answer", () => text.split("HTTP/1.1 200").length === asked + 1);
  }
  const answers = Array.from({ length: 15 }, async () => (await fetch(`http://127.0.0.1:${port}/`)).status);
  expect(await Promise.all(answers)).toEqual(Array(15).fill(200));
});

test("a port that stops accepts no more connections, and lets every running request finish", async () => {
  let answer: () => void = () => {};
  let asked = 0;
  const answered = new Promise<void>((resolve) => {
    answer = resolve;
  });
  const serve = async () => {
    asked += 1;
    await answered;
    return new Response("done");
  };
  const port = await listen(serve, { name: "http.port", host: "127.0.0.1", port: 0 }, { duplicate });
  const url = `http://127.0.0.1:${port.port}/`;
  const running = Array.from({ length: 40 }, async () => (await fetch(url)).status);
  await until("all requests have arrived", () => asked === 40);
  const stopped = port.stop();
  await expect(fetch(url)).rejects.toThrow();
  answer();
  expect(new Set(await Promise.all(running))).toEqual(new Set([200]));
  await stopped;
});

test("a crowd over TLS is answered as well", async () => {
  const { ca, key, cert } = testCertificates();
  const serve = () => new Response("here");
  const address = { name: "http.port", host: "127.0.0.1", port: 0 };
  const port = await listen(serve, address, { certificate: { key, cert }, duplicate });
  open.push({ close: () => port.stop() });
  const ask = () =>
    new Promise<number | undefined>((answered, failed) => {
      const request = get({ host: "127.0.0.1", port: port.port, ca, agent: false }, (answer) => {
        answer.resume().once("end", () => answered(answer.statusCode));
      });
      request.once("error", failed);
    });
  expect(new Set(await Promise.all(Array.from({ length: 60 }, ask)))).toEqual(new Set([200]));
});
