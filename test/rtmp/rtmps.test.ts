// RTMP over TLS with real programs: ffmpeg publishes and plays, an upstream is pushed to, a wrong certificate
// is refused with a reason, a renewed one is used without a restart.
import { copyFileSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect } from "node:tls";
import { afterAll, beforeAll, expect, test } from "vitest";
import { until } from "../support/child.ts";
import { testCertificates } from "../support/customer.ts";
import { encoderOf } from "../support/drop-outs.ts";
import { broadcast, packetsOf } from "../support/ffmpeg.ts";
import { type Headgate, startHeadgate } from "../support/headgate.ts";
import { content, isMonotonic, ofTrack } from "../support/judge.ts";
import { inWholeRun, isWholeRun } from "../support/whole-run.ts";

const folder = mkdtempSync(join(tmpdir(), "headgate-rtmps-"));
const file = (name: string) => join(folder, name);

/** One after the other; there are two media workers. */
const SUCCESSORS = isWholeRun ? [1, 2, 3, 4] : [1, 2];

/** Accepts streams by RTMPS; it has no upstream of its own. */
let upstream: Headgate;
/** Pushes to `upstream` by RTMPS and trusts its CA; in the whole run only. */
let trusting: Headgate;
/** The same, but trusts only the system's CAs, and accepts streams by RTMPS only. */
let distrusting: Headgate;

beforeAll(async () => {
  const { ca, cert, key } = testCertificates();
  writeFileSync(file("cert.pem"), cert);
  writeFileSync(file("key.pem"), key);
  writeFileSync(file("ca.pem"), ca);
  const tls = {
    HEADGATE_RTMP_TLS_CERT: file("cert.pem"),
    HEADGATE_RTMP_TLS_KEY: file("key.pem"),
    HEADGATE_RTMP_TLS_PORT: "0",
  };
  upstream = await startHeadgate({ env: { ...tls, HEADGATE_PUBLISH_HOLD_S: "20" } });
  const push = { HEADGATE_UPSTREAM_PUSH: `${upstream.rtmps}/${await upstream.newStream()}` };
  if (isWholeRun) trusting = await startHeadgate({ env: { ...push, HEADGATE_WEBHOOK_CA: file("ca.pem") } });
  distrusting = await startHeadgate({ env: { ...push, ...tls, HEADGATE_RTMP_PORT: "off" } });
});
afterAll(async () => {
  await Promise.all([upstream?.stop(), trusting?.stop(), distrusting?.stop()]);
  rmSync(folder, { recursive: true, force: true });
});

const certificateSeen = async (): Promise<string> =>
  await new Promise((resolve, reject) => {
    const { hostname, port } = new URL(String(upstream.rtmps));
    const socket = connect({ host: hostname, port: Number(port), rejectUnauthorized: false }, () => {
      resolve(socket.getPeerCertificate().fingerprint256);
      socket.destroy();
    });
    socket.once("error", reject);
  });

test("an encoder publishes by RTMPS and a player plays by it, every frame", async () => {
  const name = await upstream.newStream();
  const encoder = broadcast(`${upstream.rtmps}/${name}`, { seconds: 4, gop: 1_000, keepsCopy: true });
  const played = await until("the stream is live", async () => {
    const packets = await packetsOf(`${upstream.rtmps}/${name}`).catch(() => null);
    return packets !== null && packets.length > 0 ? packets : null;
  });
  expect(await encoder.exit, encoder.stderr()).toBe(0);
  expect(content(played)).toEqual(content(await encoder.sent()));
});

test("encoders by RTMPS that are killed are continued by others, whichever media worker has accepted them", async () => {
  const name = await upstream.newStream();
  const publish = () => broadcast(`${upstream.rtmps}/${name}`, { seconds: 60, gop: 25 });
  let running = await encoderOf(upstream, name, { publish });
  const played = packetsOf(`${upstream.rtmps}/${name}`);
  await until("the player reads it", async () => {
    const sessions = (await upstream.call("GET", "/session")) as unknown as {
      streamname: string;
      subscribers: number;
    }[];
    return sessions.some(({ streamname, subscribers }) => streamname === name && subscribers > 0);
  });
  // Connections are distributed to the workers in turn: some of these begin on another one than that of the stream.
  for (const n of SUCCESSORS) {
    running.encoder.kill("SIGKILL");
    const next = await encoderOf(upstream, name, { before: running.session.client_id, publish });
    expect(next.session.continues, `successor ${n}`).toBe(running.session.client_id);
    running = next;
  }
  running.encoder.kill("SIGTERM");
  const packets = await played;
  expect(isMonotonic(ofTrack(packets, "video")) && isMonotonic(ofTrack(packets, "audio"))).toBe(true);
  expect(ofTrack(packets, "video").filter(({ isKey }) => isKey).length).toBeGreaterThanOrEqual(SUCCESSORS.length);
});

inWholeRun("a push by RTMPS reaches an upstream with a trusted certificate", async () => {
  const name = await trusting.newStream();
  const encoder = broadcast(`${trusting.rtmp}/${name}`, { seconds: 3 });
  await until("the upstream has it", () => /"msg":"upstream sending"/.test(trusting.process.stderr()));
  expect(await encoder.exit).toBe(0);
  await until("the upstream's end of the publish", () => /"msg":"publish ended"/.test(upstream.process.stderr()));
});

test("an upstream with a certificate from an unknown CA is refused, and the log says why", async () => {
  const name = await distrusting.newStream();
  const encoder = broadcast(`${distrusting.rtmps}/${name}`, { seconds: 3 });
  const refused = () => /"detail":"TLS: invalid peer certificate: UnknownIssuer"/.test(distrusting.process.stderr());
  await until("the refusal", refused);
  expect(await encoder.exit).toBe(0);
});

test("without rtmp.port only RTMPS is served", async () => {
  expect(distrusting.rtmp).toBeNull();
  const stream = (await distrusting.call("POST", "/stream")) as {
    ingest: { rtmp: { url: string; streamname: string } };
  };
  expect(stream.ingest.rtmp.url).toMatch(/^rtmps:/);
  const encoder = broadcast(`${distrusting.rtmps}/${stream.ingest.rtmp.streamname}`, { seconds: 2 });
  expect(await encoder.exit, encoder.stderr()).toBe(0);
}, 60_000);

test("a client that does not speak TLS is disconnected and does not affect others", async () => {
  const { hostname, port } = new URL(String(upstream.rtmps));
  const encoder = broadcast(`rtmp://${hostname}:${port}/live/nobody`, { seconds: 2 });
  expect(await encoder.exit).not.toBe(0);
  expect(await certificateSeen()).toMatch(/^[0-9A-F:]+$/);
});

test("a renewed certificate is used from the next connection on, and a broken one changes nothing", async () => {
  const before = await certificateSeen();
  const { renewed } = testCertificates();
  writeFileSync(file("new.pem"), "no certificate");
  copyFileSync(file("new.pem"), file("cert.pem"));
  await until("the refusal of the broken one", () => /the old one stays/.test(upstream.process.stderr()));
  expect(await certificateSeen()).toBe(before);
  writeFileSync(file("cert.pem"), renewed);
  await until("the new certificate", async () => (await certificateSeen()) !== before);
});
