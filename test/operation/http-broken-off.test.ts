// HTTP clients that disconnect during a request: nothing of it remains, and it is not logged as an error of
// the service. And how slow and excessive clients are handled.
import { readFileSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { afterAll, beforeAll, expect, test } from "vitest";
import { until } from "../support/child.ts";
import { type Customer, startCustomer } from "../support/customer.ts";
import { type Headgate, startHeadgate } from "../support/headgate.ts";

const OFFER = readFileSync(new URL("../fixtures/offers/chromium-156.sdp", import.meta.url), "utf8");

let customer: Customer;
let headgate: Headgate;
beforeAll(async () => {
  customer = await startCustomer();
  headgate = await startHeadgate({ customer });
}, 60_000);
afterAll(async () => {
  await headgate?.stop();
  await customer?.close();
});

const offer = (url: string, signal?: AbortSignal) =>
  fetch(url, {
    method: "POST",
    headers: { "content-type": "application/sdp" },
    body: OFFER,
    ...(signal === undefined ? {} : { signal }),
  });

test("an offer whose client leaves while the customer is asked is accepted and ended (W12a), and its name is free", async () => {
  const leaving = new AbortController();
  customer.answer(() => {
    leaving.abort();
    return { status: 200, afterMs: 500 }; // the service sees the client leave meanwhile
  });
  const whip = headgate.whip(await headgate.newStream());
  await expect(offer(whip, leaving.signal)).rejects.toThrow("aborted");
  await customer.received("publish_done");
  customer.answer({ status: 200 });
  expect((await offer(whip)).status).toBe(201);
});

test.each(["/webcaster/verify", "/p/webrtc", "/login"])(
  "an incomplete body to %s is not an error of the service",
  async (path) => {
    const before = lines().length;
    const { hostname, port } = new URL(headgate.http);
    const socket = connect(Number(port), hostname);
    socket.write(`POST ${path} HTTP/1.1\r\nhost: ${hostname}\r\ncontent-length: 100\r\n\r\n{"a"`);
    setTimeout(() => socket.destroy(), 200);
    const answered = await until("the line of the request", () =>
      lines()
        .slice(before)
        .find(({ route }) => route === path),
    );
    expect(answered).toMatchObject({ level: 30, status: 400 });
    expect(
      lines()
        .slice(before)
        .filter(({ level }) => level >= 50),
    ).toStrictEqual([]);
  },
);

function lines(): { readonly level: number; readonly route?: string; readonly status?: number }[] {
  return headgate.process
    .stderr()
    .split("\n")
    .filter((line) => line.startsWith("{"))
    .map((line) => JSON.parse(line));
}

/** The data received before the connection is closed, and how long that took, ms. */
function heard(socket: Socket): Promise<{ readonly text: string; readonly ms: number }> {
  const began = performance.now();
  let text = "";
  socket.setEncoding("utf8").on("data", (part: string) => {
    text += part;
  });
  return new Promise((resolve) => {
    socket.on("error", () => {}).once("close", () => resolve({ text, ms: performance.now() - began }));
  });
}

test("slow and excessive clients are disconnected in time, each by its own limit", async () => {
  const port = Number(new URL(headgate.http).port);
  const open = (text: string) => {
    const socket = connect(port, "127.0.0.1");
    socket.write(text);
    return { socket, heard: heard(socket) };
  };
  const slowHeaders = open("GET /organisation HTTP/1.1\r\nhost: a\r\nx-a: ");
  const slowBody = open("POST /webcaster/verify HTTP/1.1\r\nhost: a\r\ncontent-length: 100\r\n\r\n{");
  const idle = open("GET /organisation HTTP/1.1\r\nhost: a\r\n\r\n");
  const greedy = open(`GET /organisation HTTP/1.1\r\nhost: a\r\nx-a: ${"a".repeat(17_000)}\r\n\r\n`);
  // One byte a second does not extend the limit.
  const dripping = setInterval(() => slowHeaders.socket.writable && slowHeaders.socket.write("a"), 1_000);
  const answers = await Promise.all([slowHeaders.heard, slowBody.heard, idle.heard, greedy.heard]);
  clearInterval(dripping);
  const [headers, body, idling, big] = answers;
  expect(headers.text).toMatch(/^HTTP\/1\.1 408 /);
  expect(headers.ms).toBeGreaterThan(4_500);
  expect(body.ms).toBeGreaterThan(9_500);
  expect(idling.text).toMatch(/^HTTP\/1\.1 403 /);
  expect(big.text).toMatch(/^HTTP\/1\.1 431 /);
  // Generous for a busy machine: Node's own checks would come after 30 s.
  for (const { ms } of answers) expect(ms).toBeLessThan(25_000);
}, 60_000);
