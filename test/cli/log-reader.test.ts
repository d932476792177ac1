// Standard error that nobody reads, and a disk that is full of logs: lines are lost, but nothing else waits
// for them.
import { closeSync, constants, mkdtempSync, openSync, readSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect, test } from "vitest";
import { run, start, until } from "../support/child.ts";
import { startHeadgate } from "../support/headgate.ts";

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

/** A pipe that is open at its other end, and not read yet. */
async function unreadPipe(): Promise<{ path: string; read(): string }> {
  const folder = mkdtempSync(join(tmpdir(), "headgate-log-"));
  cleanups.push(() => rmSync(folder, { recursive: true }));
  const path = join(folder, "pipe");
  await run("mkfifo", [path]);
  const file = openSync(path, constants.O_RDWR | constants.O_NONBLOCK);
  cleanups.push(() => closeSync(file));
  const room = Buffer.alloc(1 << 16);
  const read = () => {
    try {
      return room.toString("utf8", 0, readSync(file, room));
    } catch {
      return ""; // EAGAIN
    }
  };
  return { path, read };
}

/** A program that logs `count` lines of 130 bytes. At most a megabyte of them is buffered. */
const flood = (count: number, more: string) => `
  import { createLog } from "./dist/log.js";
  const log = await createLog({ format: "json", level: "info" }, false);
  for (let n = 0; n < ${count}; n++) log.info({ n, text: "x".repeat(60) }, "line");
  ${more}`;

/** Starts a program whose standard error is a file or pipe. */
const startInto = (path: string, program: string) =>
  start("sh", ["-c", `exec "$0" --input-type=module -e "$1" 2>${path}`, process.execPath, program]);

/** It prints when it has logged everything, and runs until SIGTERM. */
const STAYS = `
  const wait = setInterval(() => {}, 1_000);
  process.on("SIGTERM", () => clearInterval(wait));
  console.log("flooded");`;

test("requests are answered while nobody reads the log", async () => {
  const pipe = await unreadPipe();
  const within = ["sh", "-c", `exec "$@" 2>${pipe.path}`, "sh"] as const;
  // The text of a first start would wait for its reader.
  const env = {
    HEADGATE_BOOTSTRAP_ADMIN_PASSWORD: "correct horse battery",
    HEADGATE_LIMITS_API_REQUESTS_PER_SECOND: "0",
  };
  const headgate = await startHeadgate({ env, within });
  cleanups.push(() => headgate.process.kill("SIGKILL"));
  // A pipe holds 64 kB: some two hundred lines of requests.
  for (let n = 0; n < 400; n++) await headgate.call("GET", "/stream");
  expect(await headgate.stop()).toBe(0);
}, 60_000);

test("buffered lines are written once somebody reads, with the number of lost ones", async () => {
  const pipe = await unreadPipe();
  const child = startInto(pipe.path, flood(20_000, STAYS));
  cleanups.push(() => child.kill("SIGKILL"));
  await until("the flood", () => child.stdout().includes("flooded"));
  let text = "";
  await until("the number of lost lines", () => {
    text += pipe.read();
    return text.includes("lines of the log were lost");
  });
  child.kill("SIGTERM");
  expect(await child.exit).toBe(0);
  const lines = text
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line));
  const kept = lines.filter(({ msg }) => msg === "line").map(({ n }) => n);
  expect(kept).toEqual(kept.map((_, n) => n));
  expect(kept.length + lines.at(-1).lost).toBe(20_000);
}, 60_000);

test("a full disk blocks nothing", async () => {
  expect(await startInto("/dev/full", flood(20_000, "")).exit).toBe(0);
}, 60_000);

test("a slow reader loses nothing of a megabyte", async () => {
  const child = start(process.execPath, ["--input-type=module", "-e", flood(6_000, STAYS)]);
  cleanups.push(() => child.kill("SIGKILL"));
  await until("all lines", () => child.stderr().split("\n").length > 6_000);
  await until("the flood", () => child.stdout().includes("flooded"));
  child.kill("SIGTERM");
  expect(await child.exit).toBe(0);
}, 60_000);
