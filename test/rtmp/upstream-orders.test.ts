// What a person does to one upstream: a test before the show, pause and resume while live, and retry at once. Headgate as a
// process, ffmpeg broadcasts, nginx-rtmp is the upstream; each cause comes from an upstream that really fails so.

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { until } from "../support/child.ts";
import { testCertificates } from "../support/customer.ts";
import { broadcast, decodeComplaints, packetsOf } from "../support/ffmpeg.ts";
import { freePort } from "../support/free-port.ts";
import { type Headgate, startHeadgate } from "../support/headgate.ts";
import { ofTrack } from "../support/judge.ts";
import { type NginxRtmp, startNginxRtmp } from "../support/nginx-rtmp.ts";

interface Upstream {
  readonly id: string;
  readonly state: string | null;
  readonly paused: boolean;
  readonly last_cause: string | null;
}
interface Tested {
  readonly outcome: string;
  readonly steps: readonly { readonly step: string; readonly ms: number; readonly outcome: string }[];
  readonly cause: string | null;
  readonly detail: string | null;
}

let upstream: NginxRtmp;
let headgate: Headgate;
const folder = mkdtempSync(join(tmpdir(), "headgate-upstream-orders-"));

beforeAll(async () => {
  const { cert, key } = testCertificates();
  const certificate = { cert: join(folder, "cert.pem"), key: join(folder, "key.pem") };
  writeFileSync(certificate.cert, cert);
  writeFileSync(certificate.key, key);
  upstream = await startNginxRtmp({ certificate });
  headgate = await startHeadgate();
});
afterAll(async () => {
  await headgate?.stop();
  await upstream?.stop();
  rmSync(folder, { recursive: true, force: true });
});

async function streamTo(url: string): Promise<{ readonly id: string; readonly name: string; readonly path: string }> {
  const { id, ingest } = (await headgate.call("POST", "/stream")) as {
    id: string;
    ingest: { rtmp: { streamname: string } };
  };
  const added = (await headgate.call("POST", `/stream/${id}/upstream`, { url })) as unknown as Upstream;
  return { id, name: ingest.rtmp.streamname, path: `/stream/${id}/upstream/${added.id}` };
}

const tested = async (url: string) =>
  (await headgate.call("POST", `${(await streamTo(url)).path}/test`)) as unknown as Tested;

async function post(method: string, path: string): Promise<{ readonly status: number; readonly text: string }> {
  const response = await fetch(headgate.http + path, { method, headers: { "x-service-apikey": headgate.apiKey } });
  return { status: response.status, text: await response.text() };
}

test("a test publishes two seconds of picture and silence, and reports each step with its time", async () => {
  const result = await tested(`${upstream.url}/rehearsal`);
  expect(result).toMatchObject({ outcome: "ok", cause: null, detail: null });
  expect(result.steps.map(({ step, outcome }) => `${step} ${outcome}`)).toEqual(
    ["dns", "tcp", "handshake", "connect", "publish", "media"].map((step) => `${step} ok`),
  );
  expect(result.steps.at(-1)?.ms).toBeGreaterThanOrEqual(2_000);
  await until("the upstream has everything", () => upstream.hasEnded("rehearsal"));
  const file = upstream.recording("rehearsal") ?? "";
  const packets = await packetsOf(file);
  expect(ofTrack(packets, "video")).toHaveLength(50);
  expect(ofTrack(packets, "audio").length).toBeGreaterThan(90);
  expect(await decodeComplaints(file)).toBe("");
  const audit = JSON.stringify(await headgate.call("GET", "/organisation/audit"));
  expect(audit).toContain("stream.upstream.test");
  expect(audit).not.toContain("rehearsal");
});

test("a test of an upstream that fails says at which step, and why by name", async () => {
  const closed = await freePort();
  const refusing = await startNginxRtmp({ refuses: true });
  const silent = createServer(() => {});
  await new Promise<void>((resolve) => silent.listen(0, "127.0.0.1", resolve));
  const { port } = silent.address() as { port: number };
  const http = createServer((socket) => socket.end("HTTP/1.1 400 Bad Request\r\n\r\n".padEnd(4_000)));
  await new Promise<void>((resolve) => http.listen(0, "127.0.0.1", resolve));
  const { port: other } = http.address() as { port: number };
  const encoder = broadcast(`${upstream.url}/taken`, { seconds: 60, gop: 25 });
  await until("the name is taken", () => upstream.recording("taken"));
  try {
    const cases = [
      ["rtmp://no-such-host.invalid/live/key", "dns", "dns"],
      [`rtmp://127.0.0.1:${closed}/live/key`, "tcp", "connection_refused"],
      [`${upstream.urlTls}/key`, "tls", "tls"],
      [`rtmps://127.0.0.1:${other}/live/key`, "tls", "tls"],
      [`rtmp://127.0.0.1:${port}/live/key`, "handshake", "timed_out"],
      [`rtmp://127.0.0.1:${other}/live/key`, "handshake", "protocol"],
      // It may have accepted for a moment.
      [`${refusing.url}/key`, expect.stringMatching(/^(publish|media)$/) as string, "closed"],
      [`${upstream.url}/taken`, "publish", "rejected"],
    ] as const;
    const results = await Promise.all(cases.slice(0, 4).map(([url]) => tested(url)));
    results.push(...(await Promise.all(cases.slice(4).map(([url]) => tested(url)))));
    expect(results.map(({ steps, cause }) => [steps.at(-1), cause])).toEqual(
      cases.map(([, step, cause]) => [{ step, ms: expect.any(Number), outcome: "failed" }, cause]),
    );
    for (const { steps } of results) expect(steps.slice(0, -1).every(({ outcome }) => outcome === "ok")).toBe(true);
    expect(results[2]?.detail).toContain("certificate");
    expect(results[7]?.detail).toMatch(/^NetStream\.Publish\.\w+: \w/);
  } finally {
    encoder.kill("SIGTERM");
    await encoder.exit;
    silent.close();
    http.close();
    await refusing.stop();
  }
});

test("a live upstream is not tested, pauses at once, and resumes when told, while the others go on", async () => {
  const { id, name, path } = await streamTo(`${upstream.url}/paused`);
  await headgate.call("POST", `/stream/${id}/upstream`, { url: `${upstream.url}/beside` });
  const encoder = broadcast(`${headgate.rtmp}/${name}`, { seconds: 120, gop: 25 });
  const listed = async () => (await headgate.call("GET", `/stream/${id}/upstream`)) as unknown as readonly Upstream[];
  const isState = (state: string) => async () => (await listed())[0]?.state === state;
  await until("it sends", isState("sending"));
  const refused = await post("POST", `${path}/test`);
  expect(refused).toMatchObject({ status: 409, text: expect.stringContaining("pause the upstream to test it") });
  expect(await headgate.call("PUT", `${path}/pause`)).toMatchObject({ paused: true, state: "paused" });
  await until("the upstream sees its end", () => upstream.hasEnded("paused"));
  const sessions = (await headgate.call("GET", "/session")) as unknown as readonly {
    readonly stream: string;
    readonly upstreams: readonly Upstream[];
  }[];
  expect(sessions.find(({ stream }) => stream === id)?.upstreams.map(({ state }) => state)).toEqual([
    "paused",
    "sending",
  ]);
  expect(await headgate.call("POST", `${path}/test`)).toMatchObject({ outcome: "ok" });
  expect(await headgate.call("PUT", `${path}/resume`)).toMatchObject({ paused: false });
  await until("it sends again", isState("sending"));
  expect(upstream.hasEnded("beside")).toBe(false);
  expect(await post("POST", `${path}/retry`)).toMatchObject({ status: 409, text: expect.stringContaining("sending") });
  encoder.kill("SIGTERM");
  await encoder.exit;
});

test("a paused upstream gets nothing of the next publish either, until it is resumed", async () => {
  const { id, name, path } = await streamTo(`${upstream.url}/later`);
  expect(await headgate.call("PUT", `${path}/pause`)).toMatchObject({ paused: true, state: null });
  const encoder = broadcast(`${headgate.rtmp}/${name}`, { seconds: 120, gop: 25 });
  await until("it is live and paused", async () => {
    const [one] = (await headgate.call("GET", `/stream/${id}/upstream`)) as unknown as readonly Upstream[];
    return one?.state === "paused";
  });
  expect(upstream.recording("later")).toBe(null);
  await headgate.call("PUT", `${path}/resume`);
  await until("it arrives", () => upstream.recording("later"));
  encoder.kill("SIGTERM");
  await encoder.exit;
});

test("an upstream that waits for its next attempt tries at once when told", async () => {
  const port = await freePort();
  const { id, name, path } = await streamTo(`rtmp://127.0.0.1:${port}/live/retried`);
  const encoder = broadcast(`${headgate.rtmp}/${name}`, { seconds: 120, gop: 25 });
  const one = async () => ((await headgate.call("GET", `/stream/${id}/upstream`)) as unknown as readonly Upstream[])[0];
  await until("it waits", async () => (await one())?.state === "waiting");
  expect(await one()).toMatchObject({ last_cause: "connection_refused" });
  const late = await startNginxRtmp({ port });
  try {
    // Pressed again and again it tries no more often than every two seconds: 429.
    const answers: number[] = [];
    const tried = async () => {
      answers.push((await post("POST", `${path}/retry`)).status);
      return (await one())?.state === "sending";
    };
    await until("it sends", tried, 30_000, 100); // within the rate of the key
    expect(answers.every((status) => [200, 409, 429].includes(status))).toBe(true);
  } finally {
    encoder.kill("SIGTERM");
    await encoder.exit;
    await late.stop();
  }
});
