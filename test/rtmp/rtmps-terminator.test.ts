// A push by RTMPS to nginx, which terminates TLS in front of nginx-rtmp: everything arrives if its
// certificate is trusted; otherwise nothing is sent and the log says why.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { until } from "../support/child.ts";
import { testCertificates } from "../support/customer.ts";
import { broadcast, packetsOf } from "../support/ffmpeg.ts";
import { startHeadgate } from "../support/headgate.ts";
import { content } from "../support/judge.ts";
import { type NginxRtmp, startNginxRtmp } from "../support/nginx-rtmp.ts";
import { inWholeRun } from "../support/whole-run.ts";

const folder = mkdtempSync(join(tmpdir(), "headgate-terminator-"));
const file = (name: string) => join(folder, name);
let terminator: NginxRtmp;

beforeAll(async () => {
  const { ca, cert, key } = testCertificates();
  writeFileSync(file("ca.pem"), ca);
  writeFileSync(file("cert.pem"), cert);
  writeFileSync(file("key.pem"), key);
  terminator = await startNginxRtmp({ certificate: { cert: file("cert.pem"), key: file("key.pem") } });
});
afterAll(async () => {
  await terminator?.stop();
  rmSync(folder, { recursive: true, force: true });
});

test("every frame passes the terminator", async () => {
  const env = { HEADGATE_UPSTREAM_PUSH: `${terminator.urlTls}/{name}`, HEADGATE_WEBHOOK_CA: file("ca.pem") };
  const headgate = await startHeadgate({ env });
  try {
    const name = await headgate.newStream();
    const encoder = broadcast(`${headgate.rtmp}/${name}`, { seconds: 3, keepsCopy: true });
    expect(await encoder.exit, encoder.stderr()).toBe(0);
    await until("the end of the push", () => terminator.hasEnded(name));
    const recorded = await packetsOf(terminator.recording(name) ?? "");
    expect(content(recorded)).toEqual(content(await encoder.sent()));
  } finally {
    await headgate.stop();
  }
});

inWholeRun("a terminator whose certificate is from an unknown CA receives nothing", async () => {
  const headgate = await startHeadgate({ env: { HEADGATE_UPSTREAM_PUSH: `${terminator.urlTls}/{name}` } });
  try {
    const name = await headgate.newStream();
    const encoder = broadcast(`${headgate.rtmp}/${name}`, { seconds: 2 });
    const refused = () => /"detail":"TLS: invalid peer certificate: UnknownIssuer"/.test(headgate.process.stderr());
    await until("the refusal", refused);
    expect(await encoder.exit).toBe(0);
    expect(terminator.recording(name)).toBeNull();
  } finally {
    await headgate.stop();
  }
});
