// A kept connection that the customer's server closes costs no call: it is repeated once on a new connection, if not one
// byte of a response arrived.
import { createServer, type Server, type Socket } from "node:net";
import { setImmediate as turn } from "node:timers/promises";
import { pino } from "pino";
import { afterEach, expect, test } from "vitest";
import { createWebhook, type Webhook } from "../../ts/publish/webhook/call.ts";
import { until } from "../support/child.ts";
import { pause } from "../support/pause.ts";

const OK = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
let server: Server;
let webhook: Webhook;
const sockets = new Set<Socket>();

afterEach(async () => {
  await webhook.close();
  for (const socket of sockets) socket.destroy();
  server.close();
});

interface Asked {
  readonly connection: number;
  /** Number of the request on its connection, from 1. */
  readonly request: number;
  readonly id: string;
}

/** A server that lets `respond` answer each complete request. */
async function serve(respond: (socket: Socket, asked: Asked) => void): Promise<{ url: string; asked: Asked[] }> {
  const asked: Asked[] = [];
  let connections = 0;
  server = createServer((socket) => {
    sockets.add(socket);
    connections += 1;
    const connection = connections;
    let [request, text] = [0, ""];
    socket.on("error", () => {});
    socket.on("data", (chunk: Buffer) => {
      text += chunk.toString("latin1");
      if (!/\r\n\r\na=b$/.test(text)) return;
      request += 1;
      const one = { connection, request, id: /webhook-id: (.*)\r/i.exec(text)?.[1] ?? "" };
      text = "";
      asked.push(one);
      respond(socket, one);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as { readonly port: number };
  webhook = createWebhook({ webhookCa: null, dev: true, log: pino({ level: "silent" }), clock: { now: Date.now } });
  return { url: `http://127.0.0.1:${port}/`, asked };
}

let calls = 0;
async function post(url: string, call: "publish" | "update_publish" | "publish_done" = "publish", deadlineMs = 3_000) {
  calls += 1;
  await turn(); // the former call releases its connection
  return await webhook.post({
    ...{ organisationId: "one", url, id: `msg_${calls}`, body: Buffer.from("a=b"), keys: [Buffer.alloc(32, 1)] },
    ...{ deadlineMs, retryConnection: call === "publish" },
    event: { call, clientId: 1, name: "cam", attempt: 1 },
  });
}

const first = ({ connection, request }: Asked) => connection === 1 && request === 1;

test.each(["publish", "update_publish", "publish_done"] as const)(
  "a %s on a kept connection that closes or breaks after the request is repeated on a new one",
  async (call) => {
    for (const end of ["end", "resetAndDestroy"] as const) {
      const { url, asked } = await serve((socket, one) =>
        first(one) || one.connection > 1 ? socket.write(OK) : socket[end](),
      );
      expect(await post(url)).toMatchObject({ outcome: "answered", status: 200 });
      expect(await post(url, call)).toMatchObject({ outcome: "answered", status: 200 });
      expect(asked.map(({ connection, request }) => [connection, request])).toEqual([
        [1, 1],
        [1, 2],
        [2, 1],
      ]);
      expect(asked[2]?.id).toBe(asked[1]?.id);
      await webhook.close();
    }
  },
);

test("the next kept connection may be closed as well: the repetition uses none of them", async () => {
  let waiting: Socket[] = [];
  const { url, asked } = await serve((socket, { request, connection }) => {
    if (connection > 3) socket.write(OK);
    else if (request > 1) socket.end();
    else if (waiting.push(socket) === 3) for (const one of waiting.splice(0)) one.write(OK);
  });
  await Promise.all([post(url), post(url), post(url)]);
  const answers = await Promise.all([post(url), post(url), post(url)]);
  expect(answers.map((answer) => answer.outcome)).toEqual(["answered", "answered", "answered"]);
  expect(asked).toHaveLength(9);
  waiting = [];
});

test("a connection that closes while idle costs nothing", async () => {
  let closed = 0;
  const { url, asked } = await serve((socket) => {
    socket.write(OK);
    socket.on("close", () => {
      closed += 1;
    });
  });
  for (let at = 1; at <= 5; at += 1) {
    expect(await post(url)).toMatchObject({ status: 200 });
    for (const socket of sockets) socket.end();
    await until("it is closed", () => closed === at);
  }
  expect(asked.map(({ connection }) => connection)).toEqual([1, 2, 3, 4, 5]);
});

test.each(["H", "HTTP/1.1 2", "HTTP/1.1 200 OK\r\nContent-Le", "HTTP/1.1 100 Continue\r\n\r\n"])(
  "a connection that ends after %j is not repeated",
  async (begun) => {
    const { url, asked } = await serve((socket, one) => {
      if (first(one)) socket.write(OK);
      else socket.end(begun);
    });
    await post(url);
    expect(await post(url)).toMatchObject({ outcome: "unreachable", cause: "connection" });
    expect(asked).toHaveLength(2);
  },
);

test("a fresh connection that ends without a response is not repeated", async () => {
  const { url, asked } = await serve((socket) => socket.end());
  expect(await post(url)).toMatchObject({ outcome: "unreachable", cause: "connection" });
  expect(asked).toHaveLength(1);
});

test("the repetition is not repeated, and it has no more time than the call", async () => {
  const { url, asked } = await serve((socket, one) => {
    if (first(one)) socket.write(OK);
    else if (one.connection === 1 || asked.length < 4) socket.end();
  });
  await post(url);
  expect(await post(url)).toMatchObject({ outcome: "unreachable", cause: "connection" });
  expect(asked).toHaveLength(3);
  expect(await post(url, "publish", 500)).toMatchObject({ outcome: "unreachable", cause: "deadline" });
});

test("an idle connection is kept for as long as the server says, less a second, and for 4 s otherwise", async () => {
  const { url, asked } = await serve((socket, { connection }) => {
    const keeps = connection === 1 ? "Keep-Alive: timeout=1\r\n" : "";
    socket.write(`HTTP/1.1 200 OK\r\n${keeps}Content-Length: 0\r\n\r\n`);
  });
  await post(url);
  for (const restMs of [0, 2_500, 5_500]) {
    await pause(restMs); // less than the 4 s, and more
    await post(url);
  }
  expect(asked.map(({ connection }) => connection)).toEqual([1, 2, 2, 3]);
}, 20_000);
