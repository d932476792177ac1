// Responses that other HTTP clients accept, one by one and cut at every byte, and those that nobody can read.
import { createServer, type Server } from "node:net";
import { pino } from "pino";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createWebhook, type Webhook } from "../../ts/publish/webhook/call.ts";
import { ResponseHead } from "../../ts/publish/webhook/response-head.ts";

let server: Server;
let webhook: Webhook;
let url: string;
let response: { readonly text: string; readonly closes: boolean };

beforeAll(async () => {
  server = createServer((socket) => {
    socket.on("error", () => {});
    socket.on("data", () => {
      socket.write(Buffer.from(response.text, "latin1"));
      if (response.closes) socket.end();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  url = `http://127.0.0.1:${(server.address() as { readonly port: number }).port}/`;
  webhook = createWebhook({ webhookCa: null, dev: true, log: pino({ level: "silent" }), clock: { now: Date.now } });
});
afterAll(async () => {
  await webhook.close();
  server.close();
});

function answerTo(text: string, closes = true) {
  response = { text, closes };
  return webhook.post({
    ...{ organisationId: "one", url, id: "msg_1", body: Buffer.from("a=b"), keys: [Buffer.alloc(32, 1)] },
    ...{ deadlineMs: 2_000, retryConnection: false },
    event: { call: "publish", clientId: 1, name: "cam", attempt: 1 },
  });
}

const plain = "Content-Type: text/plain\r\nContent-Length: 2\r\n\r\nno";

test.each([
  ["100 Continue unasked", `HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 403 No\r\n${plain}`],
  [
    "103, 102 and 100 before it",
    `HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 102 P\r\n\r\nHTTP/1.1 100\r\n\r\nHTTP/1.1 403 No\r\n${plain}`,
  ],
  ["line feeds alone", `HTTP/1.1 403 No\r\n${plain}`.replaceAll("\r\n", "\n")],
  ["100 Continue with line feeds alone", `HTTP/1.1 100 Continue\n\nHTTP/1.1 403 No\n${plain.replaceAll("\r\n", "\n")}`],
  ["20 kB of headers", `HTTP/1.1 403 No\r\nX: ${"a".repeat(20_000)}\r\n${plain}`],
  ["60 kB of headers", `HTTP/1.1 403 No\r\n${`X-Trace: ${"a".repeat(600)}\r\n`.repeat(98)}${plain}`],
  ["HTTP/1.0 without length", "HTTP/1.0 403 No\r\nContent-Type: text/plain\r\n\r\nno"],
  ["HTTP/1.1 without length", "HTTP/1.1 403 No\r\nContent-Type: text/plain\r\n\r\nno"],
  ["lower case", `http/1.1 403 no\r\n${plain.toLowerCase()}`],
  ["no reason phrase", `HTTP/1.1 403\r\n${plain}`],
  ["no reason phrase but a blank", `HTTP/1.1 403 \r\n${plain}`],
  ["two blanks", `HTTP/1.1  403  No\r\n${plain}`],
  ["a folded header", `HTTP/1.1 403 No\r\nX: one\r\n\ttwo\r\n three\r\n${plain}`],
  ["a folded header that begins empty", `HTTP/1.1 403 No\r\nX:\r\n two\r\n${plain}`],
  ["the same length twice", `HTTP/1.1 403 No\r\nContent-Length: 2\r\n${plain}`],
  ["the same length as a list", "HTTP/1.1 403 No\r\nContent-Type: text/plain\r\nContent-Length: 2, 2\r\n\r\nno"],
  [
    "a length beside chunks",
    "HTTP/1.1 403 No\r\nContent-Type: text/plain\r\nContent-Length: 9\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nno\r\n0\r\n\r\n",
  ],
  [
    "trailers",
    "HTTP/1.1 403 No\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n2;x=y\r\nno\r\n0\r\nA: b\r\n\r\n",
  ],
  ["blank lines first", `\r\n\nHTTP/1.1 403 No\r\n${plain}`],
  ["a blank before the colon", `HTTP/1.1 403 No\r\nX : y\r\n${plain}`],
  ["a line that is no header", `HTTP/1.1 403 No\r\nWarning: x\r\nPHP Notice\r\nX Y: z\r\n${plain}`],
  ["control characters", `HTTP/1.1 403 N\x07o\r\nX: a\x01b\r\n${plain}`],
  ["HTTP/1.2", `HTTP/1.2 403 No\r\n${plain}`],
  ["HTTP/2.0 in the form of HTTP/1.1", `HTTP/2.0 403 No\r\n${plain}`],
  ["two carriage returns", `HTTP/1.1 403 No\r\r\n${plain}`],
  ["an offer to upgrade", `HTTP/1.1 403 No\r\nUpgrade: h2\r\nConnection: Upgrade\r\n${plain}`],
])("%s is read", async (_, text) => {
  expect(await answerTo(text)).toEqual({ outcome: "answered", status: 403, reason: "no", retryAfter: null });
});

test.each([
  [
    "lengths that contradict each other",
    "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nok",
    "Content-Length",
  ],
  [
    "70 kB of headers",
    `HTTP/1.1 200 OK\r\n${`X-Trace: ${"a".repeat(600)}\r\n`.repeat(120)}Content-Length: 0\r\n\r\n`,
    "64 KiB of headers",
  ],
  [
    "another protocol",
    "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n",
    "another protocol (101)",
  ],
  ["HTML alone", "<html>fine</html>", "not HTTP/1.1"],
  ["HTTP/3", "HTTP/3.0 200 OK\r\n\r\n", "not HTTP/1.1"],
  ["nothing", "", "closed before a complete response"],
])("%s is not read, in words", async (_, text, words) => {
  expect(await answerTo(text)).toEqual({
    ...{ outcome: "unreachable", cause: "connection" },
    detail: expect.stringContaining(words),
  });
});

test("a head is read the same however it arrives", () => {
  const text = "HTTP/1.1 100 Continue\n\nhttp/1.1 403\nX: one\n two\nContent-Length: 2\n\nno";
  for (let size = 1; size < text.length; size += 1) {
    const head = new ResponseHead();
    head.expect();
    let read = "";
    for (let at = 0; at < text.length; at += size) read += head.take(Buffer.from(text.slice(at, at + size))).toString();
    expect(read).toBe("HTTP/1.1 403 \r\nX: one two\r\ncontent-length: 2\r\n\r\nno");
  }
});
