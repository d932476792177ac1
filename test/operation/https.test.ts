// HTTPS on the HTTP port, the certificate shared with RTMPS and reloaded.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { Agent, request as httpsRequest } from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect, type PeerCertificate } from "node:tls";
import { afterAll, beforeAll, expect, test } from "vitest";
import { until } from "../support/child.ts";
import { testCertificates } from "../support/customer.ts";
import { type Headgate, startHeadgate } from "../support/headgate.ts";

const folder = mkdtempSync(join(tmpdir(), "headgate-https-"));
const file = (name: string) => join(folder, name);
const first = testCertificates();
let headgate: Headgate;

beforeAll(async () => {
  writeFileSync(file("cert.pem"), first.cert);
  writeFileSync(file("key.pem"), first.key);
  headgate = await startHeadgate({
    env: {
      HEADGATE_HTTP_TLS_CERT: file("cert.pem"),
      HEADGATE_HTTP_TLS_KEY: file("key.pem"),
      HEADGATE_RTMP_TLS_PORT: "0",
    },
  });
});
afterAll(async () => {
  await headgate?.stop();
  rmSync(folder, { recursive: true, force: true });
});

/** A request that trusts the test's CA. */
function get(
  path: string,
  ca: string,
  method = "GET",
): Promise<{ readonly status: number | undefined; readonly body: string }> {
  return new Promise((resolve, reject) => {
    const { port } = new URL(headgate.http);
    const headers = { "x-service-apikey": headgate.apiKey, host: `localhost:${port}` };
    const agent = new Agent({ keepAlive: false });
    const options = { host: "127.0.0.1", port, path, ca, headers, servername: "localhost", agent, method };
    httpsRequest(options, (response) => {
      let body = "";
      response.setEncoding("utf8").on("data", (text: string) => {
        body += text;
      });
      response.once("end", () => resolve({ status: response.statusCode, body }));
    })
      .once("error", reject)
      .end();
  });
}

/** Fingerprint of the certificate on the port of `url`. */
function certificateOn(url: string): Promise<PeerCertificate["fingerprint256"]> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: "127.0.0.1", port: Number(new URL(url).port), rejectUnauthorized: false }, () => {
      resolve(socket.getPeerCertificate().fingerprint256);
      socket.destroy();
    });
    socket.once("error", reject);
  });
}

test("the API is served over HTTPS, and its URLs use https", async () => {
  expect(headgate.http).toMatch(/^https:\/\/127\.0\.0\.1:\d+$/);
  expect(headgate.rtmps).toMatch(/^rtmps:/);
  expect(await get("/organisation", first.ca)).toMatchObject({ status: 200 });
  const stream = JSON.parse((await get("/stream", first.ca, "POST")).body) as { ingest: { rtmps: { url: string } } };
  expect(stream.ingest.rtmps.url).toBe(String(headgate.rtmps).replace("127.0.0.1", "localhost"));
  const { port } = new URL(headgate.http);
  // Plain HTTP gets no answer there.
  await expect(fetch(`http://127.0.0.1:${port}/organisation`)).rejects.toThrow();
});

test("a renewed certificate is used by both ports without a restart, and a broken one changes nothing", async () => {
  const ports = [headgate.http, String(headgate.rtmps)];
  const [before] = await Promise.all(ports.map(certificateOn));
  writeFileSync(file("cert.pem"), "broken");
  await until("the complaint", () => headgate.process.stderr().includes("the old one stays"));
  expect(await Promise.all(ports.map(certificateOn))).toEqual([before, before]);
  writeFileSync(file("cert.pem"), first.renewed);
  await until("the new certificate", async () => {
    const seen = await Promise.all(ports.map(certificateOn));
    return seen.every((fingerprint) => fingerprint !== before) && seen[0] === seen[1];
  });
  expect(await get("/organisation", first.ca)).toMatchObject({ status: 200 });
});
