// The command line when the library of the media core does not load: a copy of the built gateway with an
// invalid file in its place.
import { copyFileSync, cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { start } from "../support/child.ts";
import { inWholeRun } from "../support/whole-run.ts";

let folder: string;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "headgate-no-core-"));
  cpSync("dist", join(folder, "dist"), { recursive: true });
  mkdirSync(join(folder, "ts/native"), { recursive: true });
  copyFileSync("package.json", join(folder, "package.json"));
  copyFileSync("ts/native/index.js", join(folder, "ts/native/index.js"));
  writeFileSync(join(folder, "ts/native/headgate.node"), "no library");
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

async function headgate(...words: readonly string[]) {
  const program = 'import("./dist/cli/main.js").then(({ run }) => run(process.argv.slice(1)))';
  const ports = ["HTTP", "RTMP", "MEDIA", "METRICS"].map((name) => [`HEADGATE_${name}_PORT`, "0"]);
  const child = start(process.execPath, ["-e", program, "--", ...words], {
    cwd: folder,
    env: { ...process.env, HEADGATE_DATA_DIR: join(folder, "data"), ...Object.fromEntries(ports) },
  });
  const code = await child.exit;
  return { code, out: child.stdout(), err: child.stderr() };
}

test("doctor checks everything else and says why the core does not load", async () => {
  const { code, out } = await headgate("doctor", "--verbose");
  expect(out).toMatch(/^BAD {2}media core \(RTMP, WebRTC, Opus, AAC\): .*headgate\.node/m);
  expect(out).toMatch(/^ok {3}http\.port/m);
  expect(code).toBe(1);
});

inWholeRun("doctor names missing files of pages", async () => {
  rmSync(join(folder, "dist/dashboard/page.html"));
  const { out } = await headgate("doctor");
  expect(out).toMatch(/^BAD {2}pages: missing in .*dist\/: dashboard\/page\.html\n +why: people who open these pages/m);
});

test("the service does not start, and says so in one line", async () => {
  const { code, err } = await headgate("serve");
  expect(err).toMatch(/^headgate: the media core does not load: .*headgate\.node/m);
  expect(err).not.toContain("    at ");
  expect(code).toBe(1);
});

test("commands that only use the store work", async () => {
  const { code, err } = await headgate("init");
  expect([code, err]).toEqual([0, ""]);
});

inWholeRun("a missing library is named, with what to do", async () => {
  rmSync(join(folder, "ts/native/headgate.node"));
  const { code, err } = await headgate("serve");
  expect(err).toMatch(
    /^headgate: the media core does not load: \S+headgate\.node is missing: install the package again/m,
  );
  expect(code).toBe(1);
});
