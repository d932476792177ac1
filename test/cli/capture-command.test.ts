// `headgate capture` when the path is taken, or the service is interrupted: a service in memory, since the real one cannot be
// made to break off at a certain byte.
import { once } from "node:events";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { start, until } from "../support/child.ts";

const BYTES = Buffer.alloc(300_000, "c");
const capture = (state: string) =>
  JSON.stringify({
    id: "one",
    client_id: 7,
    state,
    reason: "publish_ended",
    bytes: BYTES.length,
    frames: 3,
    denied: null,
  });

let folder: string;
let service: Server;
let requests: string[];
let answers: Record<string, (response: ServerResponse) => void>;

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "headgate-capture-"));
  requests = [];
  answers = {
    "POST /capture": (response) => response.end(capture("running")),
    "GET /capture/one": (response) => response.end(capture("ended")),
    "GET /capture/one/file": (response) => response.end(BYTES),
  };
  service = createServer((request, response) => {
    const asked = `${request.method} ${request.url}`;
    requests.push(asked);
    answers[asked]?.(response);
  }).listen(0, "127.0.0.1");
  await once(service, "listening");
});
afterEach(() => {
  service.closeAllConnections();
  service.close();
  rmSync(folder, { recursive: true, force: true });
});

function startCapture(file: string) {
  const url = `http://127.0.0.1:${(service.address() as AddressInfo).port}`;
  return start(process.execPath, ["scripts/headgate.mjs", "capture", "7", file, "--url", url], {
    env: { PATH: process.env.PATH, HEADGATE_API_KEY: "key" },
  });
}

async function captureTo(file: string) {
  const child = startCapture(file);
  return { code: await child.exit, said: child.stderr() };
}

test("a file that exists is kept, and nothing is captured", async () => {
  const file = join(folder, "taken.capture");
  writeFileSync(file, "yesterday's");
  const { code, said } = await captureTo(file);
  expect([code, requests, readFileSync(file, "utf8")]).toStrictEqual([2, [], "yesterday's"]);
  expect(said).toContain(`${file} cannot be created`);
});

test("a service that does not answer for a moment while it captures is asked again", async () => {
  const file = join(folder, "fault.capture");
  const ended = answers["GET /capture/one"];
  const failures = [
    (response: ServerResponse) => response.destroy(),
    (response: ServerResponse) => response.writeHead(503).end(),
  ];
  answers["GET /capture/one"] = (response) => (failures.shift() ?? ended)?.(response);
  expect(await captureTo(file)).toStrictEqual({ code: 0, said: "" });
  expect(readFileSync(file).equals(BYTES)).toBe(true);
});

test("a download that breaks off leaves no file, and names the capture", async () => {
  const file = join(folder, "fault.capture");
  answers["GET /capture/one/file"] = (response) => {
    response
      .writeHead(200, { "content-length": BYTES.length })
      .write(BYTES.subarray(0, 1_000), () => response.destroy());
  };
  const { code, said } = await captureTo(file);
  expect([code, existsSync(file)]).toStrictEqual([1, false]);
  expect(said).toContain("GET /capture/one/file");
  expect(said).not.toContain("    at ");
});

test("^C ends it although the service does not answer, leaves no file, and names the capture", async () => {
  const file = join(folder, "fault.capture");
  answers["GET /capture/one"] = (response) => response.writeHead(503).end();
  answers["DELETE /capture/one"] = (response) => response.writeHead(503).end();
  const child = startCapture(file);
  await until("a poll", () => requests.includes("GET /capture/one"));
  child.kill("SIGINT");
  expect([await child.exit, existsSync(file)]).toStrictEqual([1, false]);
  expect(child.stderr()).toContain("The capture is one");
  expect(requests).toContain("DELETE /capture/one");
});
