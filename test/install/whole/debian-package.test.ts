// The Debian package on this machine's system, in a layer above it: installed, run as its user, upgraded,
// purged without a trace. With lintian, and on a bare Debian: node tools/debian/trial.mjs.
import { cpSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { provideRuntime } from "../../../scripts/runtimes.mjs";
import { dependsOf, makePackage } from "../../../tools/debian.mjs";
import { faultsOfNames } from "../../../tools/release/names.mjs";
import { type Child, run, until } from "../../support/child.ts";
import { type Overlay, openOverlay } from "../../support/overlay.ts";

const LIMIT_MS = 180_000;
const SETTINGS = "/etc/headgate/headgate.toml";
const UNIT = "/lib/systemd/system/headgate.service";
/** As the unit sets them, on free ports. */
const ENVIRONMENT = [
  "HEADGATE_DATA_DIR=/var/lib/headgate",
  "HEADGATE_BOOTSTRAP_SHOW=file",
  ...["HTTP", "RTMP", "MEDIA", "METRICS", "NODE"].map((name) => `HEADGATE_${name}_PORT=0`),
];

let folder: string;
let system: Overlay;
let service: Child | null = null;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "headgate-deb-test-"));
  // Compression is not tested here, and takes most of the time.
  process.env.DPKG_DEB_COMPRESSOR_TYPE = "none";
  makePackage(".", join(folder, "headgate.deb"), provideRuntime("node-24")[0]);
  system = await openOverlay([folder]);
}, LIMIT_MS);
afterAll(async () => {
  service?.kill("SIGKILL");
  await system?.close();
  rmSync(folder, { recursive: true, force: true });
});

const install = () => system.run(`dpkg --install ${folder}/headgate.deb`);
const modeOf = async (path: string) => (await system.run(`stat --format '%a %U:%G' ${path}`)).trim();

test(
  "installs a user, a data directory that it owns, settings that it reads, and a unit that systemd accepts",
  async () => {
    await install();
    expect(await modeOf("/var/lib/headgate")).toBe("700 headgate:headgate");
    expect(await modeOf(SETTINGS)).toBe("640 root:headgate");
    expect(await modeOf("/usr/lib/headgate/dist")).toBe("755 root:root");
    expect(await system.run("ls -l /etc/systemd/system/multi-user.target.wants/headgate.service")).toContain(UNIT);
    const said = system.start(`systemd-analyze verify --man=no ${UNIT}`);
    await said.exit;
    // systemd says for every such unit what the kernel of this machine lacks.
    const isAboutUnit = (line: string) => line.includes("headgate") && !line.includes("cgroups v1");
    expect(`${said.stdout()}${said.stderr()}`.split("\n").filter(isAboutUnit)).toEqual([]);
  },
  LIMIT_MS,
);

test(
  "contains one addon of each kind, and no name of a package that is not in it",
  async () => {
    const addons = await system.run("find /usr/lib/headgate -name '*.node' | sort");
    const expected = ["dist/libraries/argon2.node", "dist/libraries/libsql.node", "ts/native/headgate.node"];
    expect(addons.trim().split("\n")).toEqual(expected.map((path) => `/usr/lib/headgate/${path}`));
    const copy = join(folder, "copy");
    await system.run(`mkdir ${copy} && cd /usr/lib/headgate && cp -r package.json deploy dist ts ${copy}`);
    expect(await faultsOfNames(copy)).toEqual([]);
  },
  LIMIT_MS,
);

test(
  "serves as its user, logs no key, and commands of root leave nothing that root owns behind",
  async () => {
    const command = /^ExecStart=(.*)$/m.exec(await system.run(`cat ${UNIT}`))?.[1];
    const asUser = "setpriv --reuid=headgate --regid=headgate --init-groups --no-new-privs --bounding-set=-all";
    service = system.start(`cd /; exec ${asUser} env ${ENVIRONMENT.join(" ")} ${command}`);
    const line = await until("it is ready", () => service?.stdout().match(/\{"ready":true.*/)?.[0], 60_000);
    const { metrics } = JSON.parse(line) as { metrics: string };
    expect((await fetch(`${metrics}/readyz`)).status).toBe(200);
    expect(await system.run(`stat --format %U /proc/${service.pid}`)).toBe("headgate\n");
    expect(service.stderr()).not.toMatch(/hg_\w{10}/);
    expect(await modeOf("/var/lib/headgate/first-start.txt")).toBe("600 headgate:headgate");
    expect(await system.run("headgate keys ls")).toContain("administrator");
    expect(await system.run("headgate config print")).toContain("/var/lib/headgate");
    expect(await system.run("find /var/lib/headgate ! -user headgate ! -type l")).toBe("");
  },
  LIMIT_MS,
);

test(
  "an installation of another version does not touch the service and the changed settings",
  async () => {
    await system.run(`echo 'drain_s = 20' >> ${SETTINGS}`);
    await install();
    expect(await system.run(`tail -n 1 ${SETTINGS}`)).toBe("drain_s = 20\n");
    expect(await modeOf(SETTINGS)).toBe("640 root:headgate");
    const settings = JSON.parse(await system.run("headgate config print --json"));
    expect(settings).toContainEqual({ key: "drain_s", source: "file", value: 20 });
    service?.kill("SIGTERM");
    expect(await service?.exit).toBe(0);
  },
  LIMIT_MS,
);

test(
  "a removal keeps the stored data, and a purge leaves nothing",
  async () => {
    await system.run("dpkg --remove headgate");
    expect(await system.run("ls /var/lib/headgate")).toContain("first-start.txt");
    await system.run("dpkg --purge headgate");
    expect(await system.run("find /etc /lib /run /usr /var -xdev -name '*headgate*'")).toBe("");
    const left = system.start("getent passwd headgate || getent group headgate || dpkg --status headgate");
    expect(await left.exit).not.toBe(0);
    expect(left.stdout()).toBe("");
  },
  LIMIT_MS,
);

test("a package for musl does not become a Debian package", () => {
  const musl = join(folder, "musl");
  for (const path of ["deploy/headgate.mjs", "dist/cli/main.js", "dist/libraries/libsql.node"])
    cpSync(path, join(musl, path));
  writeFileSync(join(musl, "package.json"), JSON.stringify({ name: "headgate", version: "1.0.0", libc: ["musl"] }));
  expect(() => makePackage(musl, join(folder, "musl.deb"), undefined)).toThrow("is for musl");
});

test("a Node for another architecture does not become part of a package", () => {
  const other = join(folder, "node");
  const elf = Buffer.alloc(64);
  elf.write("\x7fELF", "latin1");
  elf.writeUInt16LE(process.arch === "x64" ? 183 : 62, 18);
  writeFileSync(other, elf);
  expect(() => makePackage(".", join(folder, "other.deb"), other)).toThrow(/and the addons are for (amd64|arm64)/);
});

test("a package without a Node depends on a recent enough one, and every package on its glibc", async () => {
  expect(dependsOf("2.28", false)).toContain("nodejs (>= 20.19)");
  const { stdout } = await run("dpkg-deb", ["--field", join(folder, "headgate.deb"), "Depends", "Architecture"]);
  expect(stdout()).toMatch(/^Depends: libc6 \(>= 2\.\d\d\), libgcc-s1, libstdc\+\+6 /m);
  expect(stdout()).not.toContain("nodejs");
  expect(stdout()).toMatch(/^Architecture: (amd64|arm64)$/m);
});
