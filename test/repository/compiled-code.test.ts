// What a start of the service caches for the next one: V8's compiled code, in its own data directory and
// nowhere else.
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { NOBODY } from "../../tools/release/nobody.mjs";
import { compiledCodeFolder } from "../../ts/cli/serve/compiled-code.ts";
import { type Headgate, startHeadgate } from "../support/headgate.ts";
import { inWholeRun } from "../support/whole-run.ts";

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "headgate-compiled-"));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const newFolder = () => mkdtempSync(join(folder, "data-"));

/** Starts and stops a service; returns what Node reports about its cache. */
async function served(runtime: string, dataDir: string, beside = async (_: Headgate) => {}): Promise<string> {
  const env = { HEADGATE_DATA_DIR: dataDir, NODE_DEBUG_NATIVE: "COMPILE_CACHE" };
  const service = await startHeadgate({ runtime, env });
  await beside(service);
  expect(await service.stop()).toBe(0);
  return service.process.stderr();
}

describe("a service", () => {
  for (const runtime of ["node-22", "node-24"]) {
    inWholeRun(`under ${runtime} uses at its second start what the first one compiled`, async () => {
      const dataDir = newFolder();
      const accepted = "/dist/main.js was accepted";
      expect(await served(runtime, dataDir)).not.toContain(accepted);
      expect(statSync(join(dataDir, "compiled")).mode & 0o777).toBe(0o700);
      const [version] = readdirSync(join(dataDir, "compiled"));
      expect(version).toContain(`v${runtime.slice(-2)}.`);
      const restored = newFolder();
      const second = await served(runtime, dataDir, async ({ command }) => {
        const [backup, key] = [join(dataDir, "backup"), join(dataDir, "backup.key")];
        await command(["backup", backup, "--key", key]);
        await command(["restore", backup, "--key", key, "--data-dir", restored]);
      });
      expect(second).toContain(accepted);
      expect(readdirSync(restored)).not.toContain("compiled");
    });
  }

  for (const runtime of ["node-20", "deno", "bun"]) {
    inWholeRun(`under ${runtime} caches nothing`, async () => {
      const dataDir = newFolder();
      await served(runtime, dataDir);
      expect(existsSync(join(dataDir, "headgate.db"))).toBe(true);
      expect(existsSync(join(dataDir, "compiled"))).toBe(false);
    });
  }
});

describe("the folder of compiled code", () => {
  test("is in the data directory, for its owner alone", () => {
    const dataDir = newFolder();
    expect(compiledCodeFolder(dataDir)).toBe(join(dataDir, "compiled"));
    expect(statSync(join(dataDir, "compiled")).mode & 0o777).toBe(0o700);
    expect(compiledCodeFolder(dataDir)).toBe(join(dataDir, "compiled"));
  });

  test("is not used without a data directory, or when nothing can be written", () => {
    expect(compiledCodeFolder(join(folder, "none"))).toBeNull();
    expect(existsSync(join(folder, "none"))).toBe(false);
    expect(compiledCodeFolder("/proc")).toBeNull();
  });

  test("is not used when other users may write there", () => {
    const open = newFolder();
    chmodSync(open, 0o770);
    expect(compiledCodeFolder(open)).toBeNull();
    const inside = newFolder();
    mkdirSync(join(inside, "compiled"));
    chmodSync(join(inside, "compiled"), 0o702);
    expect(compiledCodeFolder(inside)).toBeNull();
  });

  test.runIf(process.getuid?.() === 0)("is not used in another user's data directory", () => {
    const dataDir = newFolder();
    chownSync(dataDir, NOBODY, NOBODY);
    expect(compiledCodeFolder(dataDir)).toBeNull();
  });

  test("is not used when a link is in its place", () => {
    const dataDir = newFolder();
    symlinkSync(newFolder(), join(dataDir, "compiled"));
    expect(compiledCodeFolder(dataDir)).toBeNull();
  });

  test("is emptied when former versions have left too much in it", () => {
    const dataDir = newFolder();
    const former = join(compiledCodeFolder(dataDir) ?? "", "v22.1.0");
    mkdirSync(former);
    writeFileSync(join(former, "a"), "");
    compiledCodeFolder(dataDir);
    expect(existsSync(former)).toBe(true);
    truncateSync(join(former, "a"), 17 << 20);
    compiledCodeFolder(dataDir);
    expect(readdirSync(join(dataDir, "compiled"))).toEqual([]);
  });
});
