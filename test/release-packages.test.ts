// A release as its users get it: packed here with the media core that this machine built, installed by npm
// into an empty folder, and run by the user nobody where only the data directory is writable. `npm run
// release -- --try` does the same for every platform.
import { execFileSync } from "node:child_process";
import { chmodSync, chownSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { INSTALLED_LIBRARIES } from "../scripts/installed-libraries.mjs";
import { faultsOfAddon } from "../scripts/release/addon.mjs";
import { faultsOfContents } from "../scripts/release/contents.mjs";
import { installRelease } from "../scripts/release/install.mjs";
import { asNobody, NOBODY } from "../scripts/release/nobody.mjs";
import { ownTarget, packageOf, TARGETS } from "../scripts/release/targets.mjs";
import { release } from "../scripts/release.mjs";
import { verbs } from "../ts/cli/verbs.ts";
import { start, until } from "./support/child.ts";
import { commandsOf } from "./support/every-command.ts";
import { broadcast, packetsOf } from "./support/ffmpeg.ts";

const LIMIT_MS = 600_000;
const API_KEY = "test-of-the-packages-0123456789";
const VERSION = (JSON.parse(readFileSync("package.json", "utf8")) as { version: string }).version;

let folder: string;
let packed: string;
let tree: string;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "headgate-release-"));
  chmodSync(folder, 0o755);
  packed = join(folder, "release");
  tree = join(folder, "tree");
  await release({ into: packed, targets: "own", built: true });
  await installRelease({ release: packed, tree, scratch: folder, target: ownTarget() });
}, LIMIT_MS);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const installed = (name: string) => join(tree, "node_modules", name);

/** A command of the installed package, as the user nobody, with a data directory of its own. */
function headgate(words: readonly string[], dataDir = newDataDir()) {
  const ports = ["HTTP", "RTMP", "MEDIA", "METRICS", "NODE"].map((name) => [`HEADGATE_${name}_PORT`, "0"]);
  const [program, ...args] = asNobody([join(tree, "node_modules/.bin/headgate"), ...words], dataDir);
  return start(program, args, {
    cwd: tree,
    env: {
      PATH: process.env.PATH,
      HEADGATE_DATA_DIR: dataDir,
      HEADGATE_DRAIN_S: "0",
      HEADGATE_HTTP_HOST: "127.0.0.1",
      HEADGATE_BOOTSTRAP_API_KEY: API_KEY,
      HEADGATE_API_KEY: API_KEY,
      ...Object.fromEntries(ports),
    },
  });
}

function newDataDir(): string {
  const path = mkdtempSync(join(folder, "data-"));
  if (process.getuid?.() === 0) chownSync(path, NOBODY, NOBODY);
  return path;
}

describe("a release", () => {
  test("contains the packages, licences, bill of materials and changes, and checksums of all of them", () => {
    const archives = ["", "-client", `-${ownTarget().name}`, "-webcaster"].map((of) => `headgate${of}-${VERSION}.tgz`);
    const others = ["CHANGELOG.md", "LICENSE", "SHA256SUMS", "licences.txt", "sbom.cdx.json"];
    expect(readdirSync(packed).sort()).toEqual([...others, ...archives].sort());
    execFileSync("sha256sum", ["--check", "--strict", "--quiet", "SHA256SUMS"], { cwd: packed });
    expect(readFileSync(join(packed, "SHA256SUMS"), "utf8").trim().split("\n")).toHaveLength(8);
  });

  test("has packages that contain what is needed at run time, and no development files", () => {
    expect(faultsOfContents(installed("headgate"))).toEqual([]);
    const top = readdirSync(installed("headgate")).sort();
    expect(top.filter((name) => !/\.(md|txt|json)$/.test(name))).toEqual(["LICENSE", "deploy", "dist", "docs", "ts"]);
    const core = installed(packageOf(ownTarget()));
    expect(readdirSync(core).sort()).toEqual(["LICENSE", "README.md", "headgate.node", "licences.txt", "package.json"]);
    expect(faultsOfAddon(join(core, "headgate.node"), ownTarget(), true)).toEqual([]);
    const { optionalDependencies } = JSON.parse(readFileSync(join(installed("headgate"), "package.json"), "utf8"));
    expect(optionalDependencies).toEqual(Object.fromEntries(TARGETS.map((each) => [packageOf(each), VERSION])));
  });

  test("depends on the libraries that it imports at run time, and on none that it contains", () => {
    const { dependencies } = JSON.parse(readFileSync(join(installed("headgate"), "package.json"), "utf8"));
    const { dependencies: ours } = JSON.parse(readFileSync("package.json", "utf8"));
    expect(dependencies).toEqual(Object.fromEntries(INSTALLED_LIBRARIES.map((name) => [name, ours[name]])));
    const brought = Object.keys(ours).filter((name) => !INSTALLED_LIBRARIES.includes(name));
    expect(brought.filter((name) => existsSync(installed(name)))).toEqual([]);
    const [licences, bill] = ["licences.txt", "sbom.cdx.json"].map((name) => readFileSync(join(packed, name), "utf8"));
    for (const name of brought) {
      expect(licences).toContain(`\n${name} ${ours[name]} (`);
      expect(bill).toContain(`"pkg:npm/${name.replace("@", "%40")}@${ours[name]}"`);
    }
  });

  test("is searched: paths of this machine, sources and secrets are found", () => {
    const odd = join(folder, "odd");
    mkdirSync(join(odd, "test"), { recursive: true });
    const write = (name: string, text: string) => execFileSync("tee", [join(odd, name)], { input: text });
    write("a.js", `import("${process.cwd()}/dist/main.js")`);
    write("b.ts", "const a = 1;");
    write("test/c.js", "");
    write("d.txt", `hg_${"Ab1".repeat(12)}`);
    expect([...faultsOfContents(odd)].sort()).toEqual([
      `a.js: names ${process.cwd()}`,
      "b.ts: is a source that was not compiled",
      "d.txt: holds a secret",
      "test/c.js: does not belong in a package",
    ]);
    const strange = TARGETS.find(({ cpu }) => cpu !== ownTarget().cpu);
    if (strange === undefined) throw new Error("every target is for this processor");
    const core = join(installed(packageOf(ownTarget())), "headgate.node");
    expect(faultsOfAddon(core, strange, true).join()).toMatch(/^is for the processor/);
    expect(faultsOfAddon(join(odd, "a.js"), strange)).toEqual(["is not an ELF file"]);
  });
});

describe("an installed release, run by the user nobody", () => {
  test("prints its version and commit", async () => {
    const child = headgate(["--version"]);
    expect(await child.exit).toBe(0);
    const commit = execFileSync("git", ["rev-parse", "HEAD"], { encoding: "utf8" }).slice(0, 12);
    expect(child.stdout()).toBe(`${VERSION} (commit ${commit})\n`);
  });

  test("serves: it becomes ready, accepts a stream and plays it, and serves its pages", async () => {
    const dataDir = newDataDir();
    const service = headgate(["serve"], dataDir);
    const line = await until("ready", () => /^\{"ready":true.*\}$/m.exec(service.stdout())?.[0]);
    const { http, rtmp, metrics } = JSON.parse(line) as Record<"http" | "rtmp" | "metrics", string>;
    expect((await fetch(`${metrics}/readyz`)).status).toBe(200);
    const headers = { "x-service-apikey": API_KEY };
    const made = (await (await fetch(`${http}/stream`, { method: "POST", headers })).json()) as {
      ingest: { rtmp: { streamname: string } };
    };
    const name = made.ingest.rtmp.streamname;
    const address = rtmp.replace("0.0.0.0", "127.0.0.1");
    const encoder = broadcast(`${address}/${name}`, { seconds: 6 });
    await until("the publish runs", () => service.stderr().includes("publish started"));
    const packets = await packetsOf(`${address}/${name}`);
    expect(await encoder.exit).toBe(0);
    for (const track of ["video", "audio"])
      expect(packets.filter((each) => each.track === track).length, track).toBeGreaterThan(50);
    const pages = ["/dashboard/", "/broadcast", "/sdk/webcaster.mjs", "/docs", "/docs/swagger-ui-bundle.js"];
    for (const path of [...pages, "/docs/guide", "/openapi.json"])
      expect([path, (await fetch(`${http}${path}`)).status]).toEqual([path, 200]);
    service.kill("SIGTERM");
    expect(await service.exit).toBe(0);
    expect(existsSync(join(dataDir, "headgate.db"))).toBe(true);
  }, 120_000);

  test("has every command", async () => {
    const dataDir = newDataDir();
    const service = headgate(["serve"], dataDir);
    const line = await until("ready", () => /^\{"ready":true.*\}$/m.exec(service.stdout())?.[0]);
    const commands = commandsOf(dataDir, (JSON.parse(line) as { http: string }).http);
    expect(Object.keys(commands).sort()).toEqual(Object.keys(verbs()).sort());
    for (const [verb, [words, code, said]] of Object.entries(commands)) {
      const child = headgate([verb, ...words], dataDir);
      expect([verb, await child.exit, child.stderr()]).toEqual([verb, code, expect.any(String)]);
      expect(child.stdout() + child.stderr(), verb).toContain(said);
    }
    service.kill("SIGTERM");
    expect(await service.exit).toBe(0);
  }, 120_000);

  test("has a doctor that works without the media core, and names the missing package", async () => {
    rmSync(installed(packageOf(ownTarget())), { recursive: true });
    const child = headgate(["doctor"]);
    expect(await child.exit).toBe(1);
    const missing = `headgate-linux-${process.arch}-gnu (or -musl) is not installed: install without --omit=optional`;
    expect(child.stdout()).toContain(missing);
    expect(child.stdout()).toMatch(/^ok {3}http\.port/m);
  });
});
