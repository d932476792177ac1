// Runs `headgate doctor` on stores of the test's own.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect } from "vitest";
import { openStore, type Store } from "../../ts/store/open.ts";
import { start } from "./child.ts";
import { command } from "./command.ts";

/** Of one run of the command, ms. */
export const LIMIT_MS = 120_000;

interface Finding {
  readonly what: string;
  readonly state: "good" | "warning" | "bad";
  readonly detail: string;
  readonly why?: string;
  readonly remedy?: string;
}

export let folder: string;
export let empty: string;

/** For each file that uses it: makes the folder and an empty store before its tests, and removes them afterwards. */
export function doctorStores(): void {
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), "headgate-doctor-"));
    empty = await newStore();
  }, LIMIT_MS);
  afterAll(() => rmSync(folder, { recursive: true, force: true }));
}

export async function headgate(words: readonly string[], env: Readonly<Record<string, string>>, limits = "") {
  if (limits === "") return await command(words, { PATH: process.env.PATH, ...env });
  const limited = `${limits} exec "$0" scripts/headgate.mjs "$@"`;
  const child = start("bash", ["--norc", "-c", limited, process.execPath, ...words], {
    env: { PATH: process.env.PATH, ...env },
  });
  const code = await child.exit;
  return { code, out: child.stdout(), err: child.stderr() };
}

/** The finding whose `what` begins like this, and the exit code. */
export async function finding(begins: string, env: Readonly<Record<string, string>>, limits = "") {
  const ports = {
    HEADGATE_HTTP_PORT: "0",
    HEADGATE_RTMP_PORT: "0",
    HEADGATE_METRICS_PORT: "0",
    HEADGATE_MEDIA_PORT: "0",
    HEADGATE_NODE_PORT: "0",
  };
  const { code, out, err } = await headgate(
    ["doctor", "--json"],
    { HEADGATE_DATA_DIR: empty, ...ports, ...env },
    limits,
  );
  expect(err).not.toContain("    at ");
  const findings = JSON.parse(out) as Finding[];
  for (const each of findings) {
    const needs = each.state === "good" ? [undefined, undefined] : [expect.any(String), expect.any(String)];
    expect([each.what, each.why, each.remedy]).toEqual([each.what, ...needs]);
  }
  const found = findings.find(({ what }) => what.startsWith(begins));
  expect(found, `${begins} in ${out}`).toBeDefined();
  return { code, ...(found as Finding) };
}

export async function newStore(): Promise<string> {
  const dataDir = mkdtempSync(join(folder, "data-"));
  expect((await headgate(["init"], { HEADGATE_DATA_DIR: dataDir })).code).toBe(0);
  return dataDir;
}

export async function changed(dataDir: string, act: (db: Store["db"]) => Promise<unknown>): Promise<void> {
  const { db, close } = await openStore({ dataDir, databaseUrl: null });
  await act(db);
  await close();
}
