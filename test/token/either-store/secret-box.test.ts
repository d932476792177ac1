// Sealed secrets open only in their own place, with their own key file, and unaltered.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { StoreUnavailable } from "../../../ts/errors.ts";
import { openSecretBox } from "../../../ts/store/secret-box.ts";
import { type Gateway, openGateway } from "../../support/gateway.ts";

let folder: string;
let gateway: Gateway | null = null;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "headgate-secret-box-"));
});
afterEach(async () => {
  await gateway?.close();
  gateway = null;
  rmSync(folder, { recursive: true });
});

test("a secret opens for the purpose it was sealed for, and for no other", () => {
  const box = openSecretBox(folder);
  const sealed = box.seal("s3cret – ü", "webhook_secret:1");
  expect(box.open(sealed, "webhook_secret:1")).toBe("s3cret – ü");
  expect(openSecretBox(folder).open(sealed, "webhook_secret:1")).toBe("s3cret – ü");
  for (const purpose of ["webhook_secret:2", "stream_upstream:1", "webhook_secret:1 ", ""]) {
    expect(() => box.open(sealed, purpose)).toThrow(StoreUnavailable);
  }
});

test("a secret that was altered, truncated or sealed with another key does not open", () => {
  const box = openSecretBox(folder);
  const sealed = Buffer.from(box.seal("s3cret", "p"), "base64url");
  for (let at = 0; at < sealed.length; at += 1) {
    const altered = Buffer.from(sealed);
    altered[at] = (altered[at] ?? 0) ^ 1;
    expect(() => box.open(altered.toString("base64url"), "p")).toThrow(StoreUnavailable);
    expect(() => box.open(sealed.subarray(0, at).toString("base64url"), "p")).toThrow(StoreUnavailable);
  }
  const another = openSecretBox(mkdtempSync(join(folder, "another-")));
  expect(() => another.open(sealed.toString("base64url"), "p")).toThrow(StoreUnavailable);
});

test("the same secret sealed twice looks different", () => {
  const box = openSecretBox(folder);
  expect(box.seal("s3cret", "p")).not.toBe(box.seal("s3cret", "p"));
});

test("a sealed URL, secret or key that is moved to another row of its table is not used there", async () => {
  gateway = await openGateway();
  const { call, db } = gateway;
  const { id } = (await call("POST", "/stream")).body as { id: string };
  const add = (url: string) => call("POST", `/stream/${id}/upstream`, { body: { url } });
  await add("rtmp://93.184.216.34/live/one");
  await add("rtmp://93.184.216.34/live/two");
  const [one, two] = await db.selectFrom("stream_upstream").select(["id", "url"]).orderBy("id").execute();
  await db
    .updateTable("stream_upstream")
    .set({ url: one?.url ?? "" })
    .where("id", "=", two?.id ?? "")
    .execute();
  expect((await call("GET", `/stream/${id}/upstream`)).status).toBe(500);

  const body = { webhook: "https://customer.example/" };
  await call("PUT", "/organisation/webhook", { body });
  const other = await gateway.newOrganisation("Second");
  await call("PUT", "/organisation/webhook", { key: other.keys.administrator, body });
  const [first, second] = await db.selectFrom("webhook_secret").select(["id", "sealed"]).orderBy("id").execute();
  expect(first?.sealed).not.toBe(second?.sealed);
  const box = openSecretBox(gateway.dataDir);
  expect(box.open(first?.sealed ?? "", `webhook secret ${first?.id}`)).toMatch(/^whsec_/);
  expect(() => box.open(first?.sealed ?? "", `webhook secret ${second?.id}`)).toThrow(StoreUnavailable);
});
