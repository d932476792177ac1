// A release as its users get it: packed here with the media core that this machine built, installed by npm without a
// network, and run by the user nobody where only the data directory is writable. `npm run release -- --try` does the
// same for every platform. What is in the package of the service: package-contents.test.ts.
import { execFileSync } from "node:child_process";
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { faultsOfAddon } from "../../../tools/release/addon.mjs";
import { faultsOfContents } from "../../../tools/release/contents.mjs";
import { INSTALL, installPackage } from "../../../tools/release/install.mjs";
import { asNobody, NOBODY } from "../../../tools/release/nobody.mjs";
import { CORE } from "../../../tools/release/packages.mjs";
import { archiveOf, ownTarget, TARGETS } from "../../../tools/release/targets.mjs";
import { release } from "../../../tools/release.mjs";
import { verbs } from "../../../ts/cli/verbs.ts";
import { start, until } from "../../support/child.ts";
import { commandsOf } from "../../support/every-command.ts";
import { broadcast, packetsOf } from "../../support/ffmpeg.ts";

const LIMIT_MS = 600_000;
/** An installation that asks a network for something waits for minutes; without, a busy machine needs seconds. */
const INSTALL_LIMIT_MS = 60_000;
const READY_LIMIT_MS = 60_000;
const API_KEY = "test-of-the-packages-0123456789";
const VERSION = (JSON.parse(readFileSync("package.json", "utf8")) as { version: string }).version;

let folder: string;
let packed: string;
let archive: string;
let tree: string;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "headgate-release-"));
  chmodSync(folder, 0o755);
  packed = join(folder, "release");
  tree = join(folder, "tree");
  await release({ into: packed, targets: "own", built: true });
  archive = join(packed, archiveOf(ownTarget(), VERSION));
}, LIMIT_MS);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** As the document says. Throws unless npm succeeds, and asks the network for nothing. */
function install(path: string, to: string, ...more: readonly string[]): void {
  const { code, said, asked, tookMs } = installPackage({ archive: path, tree: to, scratch: `${to}-npm`, more });
  expect([code, asked], said).toEqual([0, []]);
  expect(tookMs).toBeLessThan(INSTALL_LIMIT_MS);
}

/** The package of the service, changed and packed again. */
function variant(name: string, changed: object): string {
  const at = join(folder, name);
  mkdirSync(at);
  execFileSync("tar", ["-xzf", archive, "-C", at]);
  const path = join(at, "package/package.json");
  writeFileSync(path, JSON.stringify({ ...JSON.parse(readFileSync(path, "utf8")), ...changed }));
  execFileSync("tar", ["-czf", join(folder, `${name}.tgz`), "-C", at, "package"]);
  rmSync(at, { recursive: true });
  return join(folder, `${name}.tgz`);
}

const installed = (name: string, at = tree) => join(at, "node_modules", name);
const versionAt = (at: string) =>
  execFileSync(join(at, "node_modules/.bin/headgate"), ["--version"], { encoding: "utf8" }).split(" ")[0];

/** A command of the installed package, as the user nobody, with a data directory of its own. */
function headgate(words: readonly string[], dataDir = newDataDir(), before: readonly string[] = []) {
  const ports = ["HTTP", "RTMP", "MEDIA", "METRICS", "NODE"].map((name) => [`HEADGATE_${name}_PORT`, "0"]);
  const [program = "", ...args] = [...before, ...asNobody([installed(".bin/headgate"), ...words], dataDir)];
  return start(program, args, {
    cwd: tree,
    env: {
      PATH: process.env.PATH,
      TMPDIR: dataDir,
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
    const archives = ["", "-client", "-webcaster"].map((of) => `headgate${of}-${VERSION}.tgz`);
    archives[0] = archiveOf(ownTarget(), VERSION);
    const others = ["CHANGELOG.md", "LICENSE", "SHA256SUMS", "licences.txt", "sbom.cdx.json"];
    expect(readdirSync(packed).sort()).toEqual([...others, ...archives].sort());
    execFileSync("sha256sum", ["--check", "--strict", "--quiet", "SHA256SUMS"], { cwd: packed });
    expect(readFileSync(join(packed, "SHA256SUMS"), "utf8").trim().split("\n")).toHaveLength(7);
    const { dependencies: ours } = JSON.parse(readFileSync("package.json", "utf8"));
    const [licences, bill] = ["licences.txt", "sbom.cdx.json"].map((name) => readFileSync(join(packed, name), "utf8"));
    for (const name of Object.keys(ours)) {
      expect(licences).toContain(`\n${name} ${ours[name]} (`);
      expect(bill).toContain(`"pkg:npm/${name.replace("@", "%40")}@${ours[name]}"`);
    }
  });

  test("is searched: paths of this machine, sources and secrets are found", async () => {
    const odd = join(folder, "odd");
    mkdirSync(join(odd, "test"), { recursive: true });
    writeFileSync(join(odd, "a.js"), `import("${process.cwd()}/dist/main.js")`);
    writeFileSync(join(odd, "b.ts"), "const a = 1;");
    writeFileSync(join(odd, "test/c.js"), "");
    writeFileSync(join(odd, "d.txt"), `hg_${"Ab1".repeat(12)}`);
    expect([...(await faultsOfContents(odd))].sort()).toEqual([
      `a.js: names ${process.cwd()}`,
      "b.ts: is a source that was not compiled",
      "d.txt: holds a secret",
      "test/c.js: does not belong in a package",
    ]);
    const strange = TARGETS.find(({ cpu }) => cpu !== ownTarget().cpu);
    if (strange === undefined) throw new Error("every target is for this processor");
    expect(faultsOfAddon(CORE, strange, true).join()).toMatch(/^is for the processor/);
    expect(faultsOfAddon(join(odd, "a.js"), strange)).toEqual(["is not an ELF file"]);
  });
});

describe("npm, without a network", () => {
  test(
    "installs the package of the service from its file alone, and nothing besides",
    () => {
      install(archive, tree);
      expect(readdirSync(installed("")).sort()).toEqual([".bin", ".package-lock.json", "headgate"]);
      const lock = JSON.parse(readFileSync(join(tree, "package-lock.json"), "utf8")) as { packages: object };
      expect(Object.keys(lock.packages)).toEqual(["", "node_modules/headgate"]);
      expect(faultsOfAddon(installed(`headgate/${CORE}`), ownTarget(), true)).toEqual([]);
      expect(versionAt(tree)).toBe(VERSION);
    },
    LIMIT_MS,
  );

  test(
    "installs a newer version over a former one, the former one again, and other contents of the same version",
    () => {
      const at = join(folder, "over");
      install(archive, at);
      install(variant("newer", { version: "99.0.0" }), at);
      expect(versionAt(at)).toBe("99.0.0");
      install(variant("newer-again", { version: "99.0.0", description: "packed again" }), at);
      expect(readFileSync(installed("headgate/package.json", at), "utf8")).toContain("packed again");
      install(archive, at);
      expect(versionAt(at)).toBe(VERSION);
      expect(readdirSync(installed("", at)).sort()).toEqual([".bin", ".package-lock.json", "headgate"]);
    },
    LIMIT_MS,
  );

  test(
    "installs it over one whose packages were several and optional",
    () => {
      const at = join(folder, "several");
      const others = { [`headgate-${ownTarget().name}`]: "0.0.1", "headgate-linux-other": "0.0.1" };
      install(variant("former", { version: "0.0.1", optionalDependencies: others }), at, "--omit=optional");
      install(archive, at);
      expect(versionAt(at)).toBe(VERSION);
    },
    LIMIT_MS,
  );

  test(
    "installs it for all users",
    () => {
      const at = join(folder, "global");
      install(archive, at, "--global", "--prefix", at);
      const said = execFileSync(join(at, "bin/headgate"), ["--version"], { encoding: "utf8" });
      expect(said).toContain(VERSION);
    },
    LIMIT_MS,
  );

  test.each([
    ["processor", { cpu: [ownTarget().cpu === "x64" ? "arm64" : "x64"] }],
    ["C library", { libc: [ownTarget().libc === "musl" ? "glibc" : "musl"] }],
  ])(
    "rejects the package for another %s, and installs nothing",
    (what, changed) => {
      const at = join(folder, `other-${what.length}`);
      const other = variant(`strange-${what.length}`, changed);
      const { code, said, asked } = installPackage({ archive: other, tree: at, scratch: `${at}-npm` });
      expect([code, asked]).toEqual([1, []]);
      expect(said).toContain(`Unsupported platform for headgate@${VERSION}`);
      expect(existsSync(installed("headgate", at))).toBe(false);
    },
    LIMIT_MS,
  );

  test.each(["client", "webcaster"])(
    "installs the package headgate-%s",
    (name) => {
      const at = join(folder, name);
      install(join(packed, `headgate-${name}-${VERSION}.tgz`), at);
      expect(readdirSync(installed("", at)).sort()).toEqual([".package-lock.json", `headgate-${name}`]);
    },
    LIMIT_MS,
  );

  test("is run as the document says, with the files that a release has", () => {
    const text = readFileSync("docs/installation.md", "utf8");
    const archives = [...text.matchAll(/headgate-\d\S*?\.tgz/g)].map(([name]) => name);
    const known = TARGETS.map((target) => archiveOf(target, VERSION));
    expect(archives.length).toBeGreaterThan(0);
    expect(known).toEqual(expect.arrayContaining([...new Set(archives)]));
    expect(text).toContain(`\n${INSTALL.join(" ")} `);
  });
});

describe("an installed release, run by the user nobody", () => {
  test("prints its version and commit", async () => {
    const child = headgate(["--version"]);
    expect(await child.exit).toBe(0);
    const commit = execFileSync("git", ["rev-parse", "HEAD"], { encoding: "utf8" }).slice(0, 12);
    expect(child.stdout()).toBe(`${VERSION} (commit ${commit})\n`);
  });

  test.runIf(process.getuid?.() === 0)(
    "becomes ready where there is no network either",
    async () => {
      const service = headgate(["serve"], newDataDir(), ["unshare", "--net"]);
      await until("ready", () => /^\{"ready":true.*\}$/m.exec(service.stdout())?.[0], READY_LIMIT_MS);
      service.kill("SIGTERM");
      expect(await service.exit).toBe(0);
    },
    LIMIT_MS,
  );

  test(
    "serves: it becomes ready, accepts a stream and plays it, and serves its pages",
    async () => {
      const dataDir = newDataDir();
      const service = headgate(["serve"], dataDir);
      const line = await until("ready", () => /^\{"ready":true.*\}$/m.exec(service.stdout())?.[0], READY_LIMIT_MS);
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
    },
    LIMIT_MS,
  );

  test(
    "has every command",
    async () => {
      const dataDir = newDataDir();
      const service = headgate(["serve"], dataDir);
      const line = await until("ready", () => /^\{"ready":true.*\}$/m.exec(service.stdout())?.[0], READY_LIMIT_MS);
      const commands = commandsOf(dataDir, (JSON.parse(line) as { http: string }).http);
      expect(Object.keys(commands).sort()).toEqual(Object.keys(verbs()).sort());
      for (const [verb, [words, code, said]] of Object.entries(commands)) {
        const child = headgate([verb, ...words], dataDir);
        expect([verb, await child.exit, child.stderr()]).toEqual([verb, code, expect.any(String)]);
        expect(child.stdout() + child.stderr(), verb).toContain(said);
      }
      service.kill("SIGTERM");
      expect(await service.exit).toBe(0);
    },
    LIMIT_MS,
  );

  test("has a doctor that works without the media core, and says what is missing", async () => {
    rmSync(installed(`headgate/${CORE}`));
    const child = headgate(["doctor", "--verbose"]);
    expect(await child.exit).toBe(1);
    expect(child.stdout()).toContain("headgate.node is missing: install the package again");
    expect(child.stdout()).toMatch(/^ok {3}http\.port/m);
  });
});
