// The service under other runtimes than the Node that runs these tests: the functions that a broadcaster, a
// customer and an operator need. Three here; `npm run matrix -- runtimes` goes through all of them, and
// further suites.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { provideRuntime } from "../../../scripts/runtimes.mjs";
import { run, until } from "../../support/child.ts";
import { type Customer, startCustomer, testCertificates } from "../../support/customer.ts";
import { broadcast, packetsOf } from "../../support/ffmpeg.ts";
import { freePort } from "../../support/free-port.ts";
import { type Headgate, startHeadgate } from "../../support/headgate.ts";
import { content } from "../../support/judge.ts";
import { connectV5 } from "../../support/v5-client.ts";

const runtimes = process.env.RUNTIMES?.split(",") ?? ["node-24", "deno", "bun"];
const BROADCAST_S = 2;
const BENCH = `${process.env.CARGO_TARGET_DIR ?? "target"}/release/headgate-bench`;
/** A service without a publish has exited after this: a second of it is for idle connections. */
const STOP_LIMIT_MS = 5_000;

let customer: Customer;
let folder: string;
beforeAll(async () => {
  customer = await startCustomer();
  folder = mkdtempSync(join(tmpdir(), "headgate-runtimes-"));
});
afterAll(async () => {
  rmSync(folder, { recursive: true, force: true });
  await customer?.close();
});

describe.each(runtimes)("on %s", (runtime) => {
  let headgate: Headgate;
  /** The upstream that WebRTC publishers name. */
  let port: number;
  beforeAll(async () => {
    port = await freePort();
    const env = { HEADGATE_UPSTREAM_ALLOW: `127.0.0.1:${port}`, HEADGATE_DRAIN_S: "30" };
    headgate = await startHeadgate({ customer, runtime, env });
  });
  afterAll(() => headgate?.process.kill("SIGKILL"));

  test("a publish by RTMP is allowed by the customer, played frame by frame, and reported once when it has ended", async () => {
    const name = await headgate.newStream();
    const encoder = broadcast(`${headgate.rtmp}/${name}?pass=1`, { seconds: BROADCAST_S, gop: 1_000, keepsCopy: true });
    const played = await until("it is live", () => packetsOf(`${headgate.rtmp}/${name}`).catch(() => null));
    expect(await encoder.exit, encoder.stderr()).toBe(0);
    const sent = content(await encoder.sent());
    expect(sent.video).toHaveLength(25 * BROADCAST_S);
    expect(content(played)).toEqual(sent);
    const told = () => customer.requests.filter(({ body }) => body.includes(`name=${name}&`)).map(({ call }) => call);
    await until("the end is delivered", () => told().includes("publish_done"));
    expect(told()).toEqual(["publish", "publish_done"]);
  });

  test("a publish by WHIP is allowed and pushed with every frame", async () => {
    const name = await headgate.newStream();
    const where = [`127.0.0.1:${port}`, new URL(headgate.http).host, `rtmp://127.0.0.1:${port}/live`, name];
    const how = [String(BROADCAST_S), "loss=0,delay=0,reorder=0", "1", "0"];
    const outcome = JSON.parse((await run(BENCH, ["impaired", ...where, ...how])).stdout());
    expect(outcome).toMatchObject({ corrupt: 0, backwards: 0, first_picture: 0 });
    expect(outcome.pictures_sent).toBeGreaterThan(0);
    expect(outcome.pictures).toBe(outcome.pictures_sent);
    expect(customer.calls("publish").some(({ body }) => body.includes(`name=${name}&`))).toBe(true);
  });

  test("a denied broadcaster is told why", async () => {
    const denial = { status: 403, body: "not today", headers: { "content-type": "text/plain" } };
    customer.answer(({ call }) => (call === "publish" ? denial : { status: 200 }));
    const encoder = broadcast(`${headgate.rtmp}/${await headgate.newStream()}`, { seconds: 20 });
    expect(await encoder.exit.finally(() => customer.answer({ status: 200 }))).not.toBe(0);
    expect(encoder.stderr()).toContain("not today");
  });

  test("no webhook is called at a private address, or with an untrusted certificate", async () => {
    const call = async (...words: readonly string[]) => {
      const [program = "", ...before] = provideRuntime(runtime);
      return JSON.parse((await run(program, [...before, "test/fixtures/guarded-call.mjs", ...words])).stdout());
    };
    const before = customer.connections();
    const ca = join(folder, "ca.pem");
    writeFileSync(ca, testCertificates().ca);
    const url = new URL(customer.url);
    const other = `https://customer.example:${url.port}/`;
    const [refused, literal, mismatched, unknown, right] = await Promise.all([
      call(other, "127.0.0.1", "live", ca),
      call(`https://127.0.0.1:${url.port}/`, "127.0.0.1", "live", ca),
      call(other, "127.0.0.1", "dev", ca),
      call(`https://localhost:${url.port}/`, "127.0.0.1", "dev"),
      call(`https://localhost:${url.port}/`, "127.0.0.1", "dev", ca),
    ]);
    expect(refused).toEqual({ errors: ["not_connected", "address_refused"] });
    expect(literal).toEqual({ errors: ["not_connected", "address_refused"] });
    expect(mismatched).toEqual({ errors: ["not_connected", "ERR_TLS_CERT_ALTNAME_INVALID"] });
    expect(unknown.errors?.[1]).toMatch(/^(UNABLE_TO_|SELF_SIGNED_|DEPTH_ZERO_)/);
    expect(right).toEqual({ status: 200 });
    // Whether the two that fail in TLS are counted depends on the server; nobody else got a connection.
    expect(customer.connections() - before).toBeLessThanOrEqual(3);
  });

  test("the API answers only with a key, and pages are served", async () => {
    const { http, apiKey } = headgate;
    const asked = await fetch(`${http}/stream`, { headers: { "x-service-apikey": apiKey } });
    expect(asked.status).toBe(200);
    expect((await fetch(`${http}/stream`, { headers: { "x-service-apikey": "wrong" } })).status).toBe(403);
    for (const path of ["/dashboard/", "/broadcast", "/docs", "/docs/guide"]) {
      const page = await fetch(http + path);
      expect(page.status, path).toBe(200);
      expect(page.headers.get("content-type"), path).toContain("text/html");
      expect(await page.text(), path).toContain("</html>");
    }
    const metrics = await (await fetch(`${headgate.metrics}/metrics`)).text();
    expect(metrics).toMatch(/^headgate_store_up 1$/m);
  });

  test("a token is created, verified, and refused when a letter of it changes", async () => {
    const made = await headgate.call("POST", "/webcaster", { streamname: "Ab1Cd-9XyZ0", ingesturl: headgate.rtmp });
    const { token } = made.data as { token: string };
    const verify = (of: string) =>
      fetch(`${headgate.http}/webcaster/verify`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ token: of }),
      });
    expect((await verify(token)).status).toBe(200);
    const at = token.length - 10;
    expect((await verify(token.slice(0, at) + (token[at] === "A" ? "B" : "A") + token.slice(at + 1))).status).toBe(403);
  });

  // Node's releases of 11 November 2026 changed what happens to such a request (operating.md, Node).
  test("event streams and previews begin before the request's body has ended, and go on after its end", async () => {
    const made = await headgate.call("POST", "/stream", { title: "unfinished" });
    const { id, ingest } = made as { id: string; ingest: { rtmp: { streamname: string } } };
    const encoder = broadcast(`${headgate.rtmp}/${ingest.rtmp.streamname}`, { seconds: 30 });
    await until("it is live", async () => (await headgate.call("GET", `/stream/${id}`)).state === "live");
    for (const [path, beginning] of [
      ["/organisation/events", "event: sessions"],
      [`/live/${id}.flv`, "FLV"],
    ] as const) {
      const request = await unfinishedRequest(headgate, path);
      await until(`${path} begins`, () => request.received().includes(beginning));
      expect(request.received()).toMatch(/^HTTP\/1\.1 200 /);
      const before = request.received().length;
      await until(`${path} goes on`, () => request.received().length > before);
      request.finish();
      const atEnd = request.received().length;
      await until(`${path} goes on after the body`, () => request.received().length > atEnd);
      request.close();
    }
    encoder.kill("SIGKILL");
    expect((await fetch(`${headgate.metrics}/readyz`)).status).toBe(200);
  });

  test("the WebSocket answers", async () => {
    const client = await connectV5(headgate.http);
    expect(await client.signIn({ service_api_key: headgate.apiKey })).toMatch(/^.{36}$/);
    await client.close();
  });

  // Neither exposes the descriptors of its listening sockets.
  if (!runtime.startsWith("node-")) {
    test("an upgrade is refused, with the reason, and the service continues", async () => {
      await expect(headgate.command(["upgrade"])).rejects.toThrow("only under Node can a service hand over");
      expect((await fetch(`${headgate.metrics}/readyz`)).status).toBe(200);
    });
  }

  test("SIGTERM lets the running publish end, and the service exits with 0 right after it", async () => {
    const encoder = broadcast(`${headgate.rtmp}/${await headgate.newStream()}`, { seconds: BROADCAST_S });
    const { process: service } = headgate;
    const started = () => service.stderr().split("publish started").length;
    const before = started();
    await until("it runs", () => started() > before);
    service.kill("SIGTERM");
    expect(await encoder.exit, encoder.stderr()).toBe(0);
    const ended = performance.now();
    expect(await service.exit, service.stderr().slice(-2_000)).toBe(0);
    expect(performance.now() - ended).toBeLessThan(STOP_LIMIT_MS);
    expect(service.stderr()).toMatch(/"running":1,"limitS":30[^\n]*draining/);
  });
});

/** A GET whose body is announced and only begun. */
async function unfinishedRequest({ http, apiKey }: Headgate, path: string) {
  const { hostname, port } = new URL(http);
  let received = "";
  const socket = connect(Number(port), hostname);
  socket.on("data", (data) => {
    received += data.toString("latin1");
  });
  socket.on("error", () => {});
  const head = [`GET ${path} HTTP/1.1`, `host: ${hostname}`, `x-service-apikey: ${apiKey}`, "content-length: 10"];
  socket.write(`${head.join("\r\n")}\r\n\r\nabc`);
  return {
    received: () => received,
    finish: () => socket.write("defghij"),
    close: () => socket.destroy(),
  };
}
