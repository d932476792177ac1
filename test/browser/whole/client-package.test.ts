// The client as users get it: packed, installed without a registry into an empty folder, type-checked there
// and run.
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { packClient } from "../../../scripts/client-package.mjs";
import { installPackage } from "../../../tools/release/install.mjs";
import { faultsOfNames } from "../../../tools/release/names.mjs";
import { startHeadgate } from "../../support/headgate.ts";

const WEBHOOK = "https://customer.example/publish";
/** The test vector of the decisions, and its secret. */
const SECRET = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
const MAIN = `
import { run } from "./program.js";
import { TOLERANCE_S, verify, type WebhookEvent } from "headgate-client/webhook";

const [url = "", key = ""] = process.argv.slice(2);
const { stream, webhook, token, sessions, refusal } = await run(url, key, "${WEBHOOK}");
const body = "passcode=s3cret&call=publish&name=Ab1Cd-9XyZ0&app=live&addr=203.0.113.7&clientid=100482";
const headers = new Headers({
  "webhook-id": "msg_01J9Z6Q3V5T0K8M2",
  "webhook-timestamp": "1767225600",
  "webhook-signature": "v1,+Dzci4NBue+wjFHJO1ejAZyTgjO3qW4Ejifz5my/BrI=",
});
const event: WebhookEvent = await verify(headers, new TextEncoder().encode(body), "${SECRET}", {
  now: (1767225600 + TOLERANCE_S) * 1000,
});
const told = { tags: stream.tags, webhook, parts: token.split(".").length, sessions, refusal: refusal.code };
console.log(JSON.stringify({ ...told, call: event.call, passcode: event.arguments.get("passcode") }));
`;

test("a program installs the packed client, is type-checked against it and works", async () => {
  const folder = mkdtempSync(join(tmpdir(), "headgate-consumer-"));
  const tarball = packClient(folder);
  expect(await faultsOfNames(join(folder, "headgate-client"))).toEqual([]);
  writeFileSync(join(folder, "package.json"), JSON.stringify({ name: "consumer", private: true, type: "module" }));
  const { code, said, asked } = installPackage({ archive: tarball, tree: folder, scratch: join(folder, "npm") });
  expect([code, asked], said).toEqual([0, []]);

  const program = readFileSync(new URL("../../support/client-program.ts", import.meta.url), "utf8");
  writeFileSync(join(folder, "program.ts"), program.replace("../../ts/client/index.ts", "headgate-client"));
  writeFileSync(join(folder, "main.ts"), MAIN);
  // Declarations are checked too: nothing is skipped.
  const words = ["--strict", "--target", "es2022", "--module", "nodenext", "--lib", "es2023,dom,dom.iterable"];
  const types = ["--types", "node", "--typeRoots", join(process.cwd(), "node_modules", "@types")];
  const tsc = join(process.cwd(), "node_modules", "ts7", "bin", "tsc");
  execFileSync(process.execPath, [tsc, ...words, ...types, "main.ts"], { cwd: folder });

  const headgate = await startHeadgate();
  const output = execFileSync(process.execPath, ["main.js", headgate.http, headgate.apiKey], { cwd: folder });
  expect(JSON.parse(output.toString())).toEqual({
    tags: ["studio-1"],
    webhook: WEBHOOK,
    parts: 3,
    sessions: [],
    refusal: 3001,
    call: "publish",
    passcode: "s3cret",
  });
  expect(await headgate.stop()).toBe(0);
}, 300_000);
