// Why a customer was not reached, by name and with the platform's message: what the customer needs to fix it.
import { createServer as createTcpServer, type Server, type Socket } from "node:net";
import { pino } from "pino";
import { afterEach, expect, test } from "vitest";
import { NotResolved } from "../../ts/publish/addresses/resolver.ts";
import { createWebhook } from "../../ts/publish/webhook/call.ts";
import { type Customer, startCustomer } from "../support/customer.ts";

const open: { close(): unknown }[] = [];
afterEach(async () => {
  for (const each of open.splice(0)) await each.close();
});

async function customer(): Promise<Customer> {
  const started = await startCustomer();
  open.push(started);
  return started;
}

/** A server that sends bytes, and its port. */
async function serverOf(serve: (socket: Socket) => void): Promise<number> {
  const server: Server = createTcpServer((socket) => {
    socket.on("error", () => {});
    serve(socket);
  });
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  open.push(server);
  return (server.address() as { port: number }).port;
}

async function answerOf(url: string, options: { ca?: string; dev?: boolean; resolve?: () => Promise<string[]> } = {}) {
  const { ca = null, dev = true, resolve } = options;
  const log = pino({ level: "silent" });
  const webhook = createWebhook({
    webhookCa: ca,
    dev,
    log,
    clock: { now: () => 0 },
    ...(resolve === undefined ? {} : { resolve }),
  });
  open.push(webhook);
  const body = Buffer.from("call=publish");
  const event = { call: "publish", clientId: 1, name: "Ab1Cd-x", attempt: 1 } as const;
  const call = { organisationId: "org1", url, id: "msg_1", body, keys: [Buffer.alloc(32)], event };
  return await webhook.post({ ...call, deadlineMs: 1_000, retryConnection: false });
}

const unreachable = (cause: string, detail: RegExp) => ({
  outcome: "unreachable",
  cause,
  detail: expect.stringMatching(detail),
});

test("a name that does not resolve is reported with the servers' answer", async () => {
  const resolve = () => Promise.reject(new NotResolved("hook.example", "ENOTFOUND"));
  const answer = await answerOf("https://hook.example/", { resolve });
  expect(answer).toEqual(unreachable("name_not_resolved", /^ENOTFOUND hook\.example$/));
});

test("a port where nothing listens", async () => {
  const port = await serverOf(() => {});
  await new Promise((closed) => (open.pop() as Server).close(closed));
  expect(await answerOf(`https://127.0.0.1:${port}/`)).toEqual(
    unreachable("connection_refused", /ECONNREFUSED.*127\.0\.0\.1/),
  );
});

test("an address that is not public", async () => {
  const resolve = async () => ["10.0.0.1"];
  const answer = await answerOf("https://hook.example/", { dev: false, resolve });
  expect(answer).toEqual(unreachable("address_refused", /private/));
});

test("a certificate from an unknown CA", async () => {
  const { url } = await customer();
  expect(await answerOf(url)).toEqual(unreachable("certificate", /certificate/i));
});

test("a certificate for another name", async () => {
  const { url, ca } = await customer();
  const { port } = new URL(url);
  const resolve = async () => ["127.0.0.1"];
  const answer = await answerOf(`https://other.example:${port}/`, { ca, resolve });
  expect(answer).toEqual(unreachable("certificate", /other\.example/));
});

test("a server that does not speak TLS", async () => {
  const port = await serverOf((socket) => void socket.end("HTTP/1.1 400 Bad Request\r\n\r\n"));
  expect(await answerOf(`https://127.0.0.1:${port}/`)).toEqual(unreachable("tls", /./));
});

test("a server that disconnects before TLS is established", async () => {
  const port = await serverOf((socket) => void socket.on("data", () => socket.destroy()));
  expect(await answerOf(`https://127.0.0.1:${port}/`)).toEqual(unreachable("tls", /./));
});

test("a server that disconnects instead of answering", async () => {
  const { url, ca, answer } = await customer();
  answer("reset");
  expect(await answerOf(url, { ca })).toEqual(unreachable("connection", /./));
});

test("a server that never accepts the connection, and one that never answers", async () => {
  const port = await serverOf(() => {});
  expect(await answerOf(`https://127.0.0.1:${port}/`)).toEqual(unreachable("deadline", /no connection in time/));
  const { url, ca, answer } = await customer();
  answer("hang");
  expect(await answerOf(url, { ca })).toEqual(unreachable("deadline", /connected, but no answer in time/));
});
