// What is in the package of the service, without packing it: everything that runs, for one platform, and no name by
// which an installer or Node would look elsewhere. Its installation by npm is in release-packages.test.ts.
import { execFileSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { provideAddons } from "../../tools/release/addons.mjs";
import { contentsOf, faultsOfContents, PACKAGE_LIMIT_BYTES } from "../../tools/release/contents.mjs";
import { faultsOfNames } from "../../tools/release/names.mjs";
import { CORE, makeService } from "../../tools/release/packages.mjs";
import { archiveOf, ownTarget } from "../../tools/release/targets.mjs";
import { start } from "../support/child.ts";
import { inWholeRun } from "../support/whole-run.ts";

const LIMIT_MS = 120_000;
const VERSION = (JSON.parse(readFileSync("package.json", "utf8")) as { version: string }).version;

let folder: string;
let service: string;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "headgate-contents-"));
  service = join(folder, "service");
  if (!existsSync("dist/licences.txt")) execFileSync(process.execPath, ["tools/licences.mjs"], { stdio: "ignore" });
  const target = ownTarget();
  makeService(service, { target, core: CORE, addons: provideAddons(target), commit: null });
}, LIMIT_MS);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const manifest = () => JSON.parse(readFileSync(join(service, "package.json"), "utf8")) as Record<string, unknown>;

/** A command of the package, with nothing of this checkout above it. */
async function headgate(words: readonly string[], at = service, before: readonly string[] = []) {
  const env = { PATH: process.env.PATH, HEADGATE_DATA_DIR: join(folder, "data") };
  const child = start(process.execPath, [...before, join(at, "deploy/headgate.mjs"), ...words], { cwd: folder, env });
  return { code: await child.exit, out: child.stdout(), err: child.stderr() };
}

describe("the package of the service", () => {
  inWholeRun(
    "has no fault: it is small, and names nothing outside itself",
    async () => {
      expect(await faultsOfContents(service, [CORE])).toEqual([]);
      const bytes = contentsOf(service).reduce((sum, each) => sum + each.bytes, 0);
      expect(bytes).toBeLessThan(PACKAGE_LIMIT_BYTES);
    },
    LIMIT_MS,
  );

  test("has one addon of each kind, all for its platform", () => {
    const addons = contentsOf(service).flatMap(({ name }) => (name.endsWith(".node") ? [name] : []));
    expect(addons).toEqual(["dist/libraries/argon2.node", "dist/libraries/libsql.node", CORE]);
    for (const name of addons) {
      const head = readFileSync(join(service, name)).subarray(0, 20);
      expect([name, head.toString("latin1", 1, 4), head.readUInt16LE(18)]).toEqual([name, "ELF", ownTarget().machine]);
    }
  });

  test("states its platform, its Node and its command, and nothing that an installer would act on further", () => {
    const { os, cpu, libc, engines, bin } = manifest();
    expect({ os, cpu, libc }).toEqual({ os: ["linux"], cpu: [ownTarget().cpu], libc: [ownTarget().libc] });
    expect([engines, bin]).toEqual([{ node: ">=20.19" }, { headgate: "deploy/headgate.mjs" }]);
    const fields = ["bin", "cpu", "description", "engines", "imports", "libc", "license", "name", "os", "private"];
    expect(Object.keys(manifest()).sort()).toEqual([...fields, "type", "version"]);
  });

  test("holds the licences of everything in it, and the files of every page", () => {
    const { dependencies } = JSON.parse(readFileSync("package.json", "utf8")) as { dependencies: object };
    const licences = readFileSync(join(service, "licences.txt"), "utf8");
    for (const [name, version] of Object.entries(dependencies)) expect(licences).toContain(`\n${name} ${version} (`);
    const pages = ["dashboard/page.html", "broadcast/page.html", "sdk/webcaster.mjs", "swagger-ui/swagger-ui.css"];
    pages.push("guide/pages.json");
    for (const name of pages) expect(existsSync(join(service, "dist", name)), name).toBe(true);
  });

  inWholeRun("runs where no package is installed: the store and passwords too", async () => {
    expect(await headgate(["--version"])).toEqual({ code: 0, out: `${VERSION}\n`, err: "" });
    expect(await headgate(["init"])).toMatchObject({ code: 0, err: "" });
    expect((await headgate(["user", "ls"])).out).toContain("admin");
  });
});

describe("an installation that does not fit says so in one line", () => {
  const strange = (name: string, changed: object) => {
    const at = join(folder, name);
    for (const part of ["deploy", "dist/cli", "ts/native/index.js"])
      cpSync(join(service, part), join(at, part), { recursive: true });
    writeFileSync(join(at, "package.json"), JSON.stringify({ ...manifest(), ...changed }));
    return at;
  };
  const otherCpu = ownTarget().cpu === "x64" ? "arm64" : "x64";
  const otherLibc = ownTarget().libc === "musl" ? "glibc" : "musl";

  test.each([
    ["another processor", { cpu: [otherCpu] }, `${otherCpu} with ${ownTarget().libc}`],
    ["another C library", { libc: [otherLibc] }, `${ownTarget().cpu} with ${otherLibc}`],
    ["both", { cpu: [otherCpu], libc: [otherLibc] }, `${otherCpu} with ${otherLibc}`],
  ])("for %s", async (name, changed, its) => {
    const own = `${ownTarget().cpu} with ${ownTarget().libc}`;
    const { code, err } = await headgate(["serve"], strange(name, changed));
    const remedy = `install ${archiveOf(ownTarget(), VERSION)}`;
    expect(err).toBe(`headgate: this package is for linux on ${its}, and this is linux on ${own}: ${remedy}\n`);
    expect(code).toBe(1);
  });

  test.each(["18.20.4", "20.18.3"])("under Node %s", async (version) => {
    const text = `Object.defineProperty(process, "versions", { value: { ...process.versions, node: "${version}" } })`;
    const older = ["--import", `data:text/javascript,${encodeURIComponent(text)}`];
    const { code, err } = await headgate(["serve"], service, older);
    expect(err).toBe(`headgate: Node ${version} is too old: 20.19 or newer is needed\n`);
    expect(code).toBe(1);
  });

  test.each(["20.19.0", "22.1.0"])("and under Node %s it fits", async (version) => {
    const text = `Object.defineProperty(process, "versions", { value: { ...process.versions, node: "${version}" } })`;
    const other = ["--import", `data:text/javascript,${encodeURIComponent(text)}`];
    expect((await headgate(["--version"], service, other)).code).toBe(0);
  });
});

describe("the search for names finds", () => {
  test.each([
    ["package.json", '{"optionalDependencies":{"a":"1"}}', "has optionalDependencies"],
    ["package.json", '{"dependencies":{}}', "has dependencies"],
    ["dist/a/package.json", '{"peerDependencies":{"a":"*"}}', "has peerDependencies"],
    ["package.json", '{"bundleDependencies":["a"]}', "has bundleDependencies"],
    ["package.json", '{"scripts":{"postinstall":"a"}}', "has scripts"],
    [".npmrc", "registry=http://a.invalid", "tells an installer more than package.json"],
    ["npm-shrinkwrap.json", "{}", "tells an installer more than package.json"],
    ["binding.gyp", "{}", "tells an installer more than package.json"],
    ["dist/a.js", 'import "a";', "loads a"],
    ["dist/a.js", 'export { b } from "@a/b/c";', "loads @a/b/c"],
    ["dist/a.js", 'export * from "a";', "loads a"],
    ["dist/a.mjs", 'const a = () => import("a");', "loads a"],
    ["dist/a.js", 'try { require("a"); } catch {}', "loads a"],
    ["dist/a.js", 'import("node:fs"); __require("a");', "loads a"],
    ["dist/a.js", 'require.resolve("a/b");', "loads a/b"],
    ["ts/native/index.js", 'createRequire(import.meta.url)("headgate-linux-x64-gnu");', "loads headgate-linux-x64-gnu"],
  ])("in %s: %s", async (path, text, fault) => {
    const odd = mkdtempSync(join(folder, "odd-"));
    mkdirSync(dirname(join(odd, path)), { recursive: true });
    writeFileSync(join(odd, path), text);
    expect(await faultsOfNames(odd)).toEqual([`${path}: ${fault}`]);
  });

  test("and accepts what belongs to the package, or to Node", async () => {
    const own = mkdtempSync(join(folder, "own-"));
    const text = 'import "./b.js"; import "#native"; import "node:fs"; require("events"); import("../a.js");';
    writeFileSync(join(own, "a.js"), text);
    expect(await faultsOfNames(own)).toEqual([]);
    expect(readdirSync(own)).toEqual(["a.js"]);
  });
});
