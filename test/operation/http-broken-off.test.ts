// HTTP clients that disconnect during a request: nothing of it remains, and it is not logged as an error of
// the service.
import { readFileSync } from "node:fs";
import { connect } from "node:net";
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
