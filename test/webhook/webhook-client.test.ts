// The customer's side: the receiver library, and the simulated customer, against calls of a real gateway.
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { simulate } from "../../ts/cli/webhook/simulate.ts";
import { verify, WebhookRefused } from "../../ts/client/webhook.ts";
import { doneBody, healthBody, publishBody, updateBody } from "../../ts/publish/webhook/body.ts";
import { signatureHeaders } from "../../ts/publish/webhook/signature.ts";
import { openGateway } from "../support/gateway.ts";

const SECRET = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
const OTHER = "whsec_BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwc=";
const key = Uint8Array.from({ length: 32 }, (_, index) => index);
const NOW = 1_767_225_600_000;
const id = "msg_01J9Z6Q3V5T0K8M2";
const subject = {
  arguments: Buffer.from("passcode=s3cret&call=x"),
  name: "Ab1Cd-9XyZ0",
  app: "live",
  address: "203.0.113.7",
  clientId: 100482,
};
const signed = (body: Uint8Array, at = NOW) => signatureHeaders({ id, body }, [key], at);
const read = (body: Uint8Array) => verify(signed(body), body, SECRET, { now: NOW });

describe("a received call", () => {
  test("is read as a typed event, whatever the broadcaster put in front", async () => {
    const common = { id, name: "Ab1Cd-9XyZ0", app: "live", addr: "203.0.113.7", clientid: 100482 };
    const publish = await read(publishBody(subject));
    expect(publish).toMatchObject({ call: "publish", ...common });
    expect(publish.arguments.get("passcode")).toBe("s3cret");
    const extras = [["bitrate", "2000000"]] as const;
    expect(await read(updateBody(subject, { time: 30, timestamp: 29_960, extras }))).toMatchObject({
      call: "update_publish",
      time: 30,
      timestamp: 29_960,
      extras: new Map([["bitrate", 2_000_000]]),
      ...common,
    });
    const bytes = { bytesIn: 9_007_199_254_740_991, bytesOut: 0 };
    expect(await read(doneBody(subject, bytes))).toMatchObject({ call: "publish_done", ...bytes, ...common });
  });

  test("is read as an alert, about a publish or about the webhook", async () => {
    const since = new Date(NOW).toISOString();
    const lost = { event: "upstream_lost", since: NOW, upstream: "up1", detail: "The upstream is not connected" };
    const common = { name: "Ab1Cd-9XyZ0", app: "live", addr: "203.0.113.7", clientid: 100482 };
    expect(await read(healthBody(subject, lost))).toMatchObject({ call: "health", ...lost, since, ...common });
    const failing = { event: "webhook_failing", since: NOW, upstream: null, detail: "The last 3 calls failed" };
    const nothing = { name: "", app: "", addr: "", clientid: 0 };
    expect(await read(healthBody(null, failing))).toMatchObject({ call: "health", ...failing, since, ...nothing });
  });

  test("accepts headers and bodies in every form that servers provide", async () => {
    const body = publishBody({ ...subject, arguments: null });
    const headers = signed(body);
    const text = Buffer.from(body).toString();
    for (const [given, raw] of [
      [headers, text],
      [new Headers(headers), body],
      [headers, new Uint8Array(body).buffer],
    ] as const) {
      expect(await verify(given, raw, SECRET, { now: NOW })).toMatchObject({ call: "publish" });
    }
    expect(await verify(headers, body, [OTHER, SECRET], { now: NOW })).toMatchObject({ call: "publish" });
  });

  test.each([
    ["another secret", "bad_signature", OTHER, {}, ""],
    ["another body", "bad_signature", SECRET, {}, "&bytes_in=1"],
    ["another id", "bad_signature", SECRET, { "webhook-id": "msg_x" }, ""],
    ["an unknown scheme", "bad_signature", SECRET, { "webhook-signature": "v2,AAAA v1a,!!" }, ""],
    ["no signature", "missing_header", SECRET, { "webhook-signature": "" }, ""],
    ["a time that is none", "bad_timestamp", SECRET, { "webhook-timestamp": "now" }, ""],
  ])("with %s is refused", async (_, code, secret, headers, more) => {
    const body = publishBody(subject);
    const given = { ...signed(body), ...headers };
    const refused = verify(given, Buffer.concat([body, Buffer.from(more)]), secret, { now: NOW });
    await expect(refused).rejects.toMatchObject({ name: "WebhookRefused", code });
  });

  test("that is five minutes old, or is not an event, is refused", async () => {
    const body = publishBody(subject);
    for (const at of [NOW - 301_000, NOW + 301_000]) {
      await expect(verify(signed(body, at), body, SECRET, { now: NOW })).rejects.toThrow(WebhookRefused);
    }
    for (const text of ["", "call=play&name=a&app=b&addr=c&clientid=1", "call=publish&name=a", "call=publish_done"]) {
      await expect(read(Buffer.from(text))).rejects.toMatchObject({ code: "bad_body" });
    }
  });

  test("is read without anything specific to Node", () => {
    const source = readFileSync("ts/client/webhook.ts", "utf8");
    expect(source).not.toMatch(/^import\b|require\(|process\.|\bBuffer\b|node:/m);
  });
});

test("the simulated customer has a valid certificate, checks signatures, answers as configured and prints calls", async () => {
  const folder = mkdtempSync(join(tmpdir(), "headgate-simulate-"));
  const certFile = join(folder, "customer.pem");
  const lines: string[] = [];
  const start = async (secret: string | null) =>
    await simulate({
      port: 0,
      status: 403,
      delayMs: 5,
      reason: "Not today",
      secret,
      certFile,
      clock: { now: () => Date.now() },
      print: (line) => void lines.push(line),
    });
  let customer = await start(null);
  // The gateway trusts the certificates that are in the file when it starts.
  const gateway = await openGateway({ HEADGATE_DEV: "1", HEADGATE_WEBHOOK_CA: certFile });
  gateway.clock.ms = Date.now();
  await gateway.call("PUT", "/organisation/webhook", { body: { webhook: customer.url } });
  const tell = async () => (await gateway.call("POST", "/organisation/webhook/test", { body: {} })).body;
  expect(await tell()).toMatchObject({ status: 403, reason: "Not today", allows: false });
  expect(lines[0]).toMatch(/ 403 signature not checked msg_\w+ call=publish&name=\w+-TEST0&/);
  const shown = spawnSync("openssl", ["verify", "-CAfile", certFile, "-verify_hostname", "localhost", certFile]);
  expect(String(shown.stdout)).toMatch(/: OK/);
  customer.close();
  await gateway.close();
  customer = await start(SECRET);
  const another = await openGateway({ HEADGATE_DEV: "1", HEADGATE_WEBHOOK_CA: certFile });
  another.clock.ms = Date.now();
  await another.call("PUT", "/organisation/webhook", { body: { webhook: customer.url } });
  expect((await another.call("POST", "/organisation/webhook/test", { body: {} })).body).toMatchObject({ status: 401 });
  expect(lines[1]).toContain("401 refused (bad_signature)");
  customer.close();
  await another.close();
  rmSync(folder, { recursive: true, force: true });
});
