// The container image: its last stage is built and run here, on a base image of this machine's programs, with
// the output of `npm start` in place of the build stage, which runs the same.
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { start, until } from "../../support/child.ts";
import { type Buildah, buildahIn, lastStageOf, makeBaseImage } from "../../support/container.ts";
import { freePort } from "../../support/free-port.ts";

const FILE = "deploy/container/Containerfile";
const LIMIT_MS = 300_000;

let folder: string;
let buildah: Buildah;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "headgate-image-"));
  buildah = buildahIn(folder);
  const context = join(folder, "context");
  const built = join(context, "build");
  mkdirSync(built, { recursive: true });
  for (const name of ["package.json", "LICENSE", "deploy", "dist", "docs", "ts/native"]) {
    cpSync(name, join(built, name), { recursive: true });
  }
  const addons = readdirSync(built, { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith(".node"));
  expect(addons).toHaveLength(3);
  makeBaseImage(
    buildah,
    folder,
    "localhost/base",
    addons.map((name) => join(built, name)),
  );
  const file = join(folder, "Containerfile");
  writeFileSync(file, lastStageOf(FILE));
  buildah.run(
    ...[
      "build",
      "--isolation",
      "chroot",
      "--format",
      "docker",
      "--pull=never",
      "--build-arg",
      "NODE_IMAGE=localhost/base",
    ],
    ...["--build-context", `build=${context}`, "--file", file, "--tag", "headgate", folder],
  );
}, LIMIT_MS);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

test("states its user, its volume, its ports, and its health check", () => {
  const { Docker } = JSON.parse(buildah.run("inspect", "--type", "image", "headgate"));
  const { config } = Docker;
  expect(config.User).toBe("10001:10001");
  expect(Object.keys(config.Volumes)).toEqual(["/var/lib/headgate"]);
  expect(Object.keys(config.ExposedPorts).sort()).toEqual(
    ["1935/tcp", "1936/tcp", "8080/tcp", "8189/tcp", "8189/udp", "9464/tcp"].sort(),
  );
  expect(config.StopSignal).toBe("SIGTERM");
  expect(config.Healthcheck.Test.slice(0, 2)).toEqual(["CMD", "node"]);
  expect(config.Env).toContain("HEADGATE_BOOTSTRAP_SHOW=file");
  expect(config.Entrypoint).toEqual(["node", "/opt/headgate/deploy/headgate.mjs"]);
});

test(
  "serves as a user who can write only the data directory, logs no key, is healthy, and stops",
  async () => {
    const container = buildah.run("from", "--pull=never", "headgate").trim();
    const { Docker } = JSON.parse(buildah.run("inspect", "--type", "image", "headgate"));
    const metrics = await freePort();
    const env = ["HTTP", "RTMP", "MEDIA"].map((name) => `--env=HEADGATE_${name}_PORT=0`);
    const inside = (...words: readonly string[]) => [
      ...[...buildah.words, "run", "--isolation", "chroot", ...env, `--env=HEADGATE_METRICS_PORT=${metrics}`],
      ...[container, "--", ...words],
    ];
    const writes = start(
      "buildah",
      inside("sh", "-c", "id -u; touch /opt/headgate/a /etc/a /usr/a; touch /var/lib/headgate/a"),
    );
    await writes.exit;
    expect(writes.stdout()).toContain("10001");
    expect(writes.stderr().match(/cannot touch|Permission denied/g)?.length).toBeGreaterThanOrEqual(3);
    expect(writes.stderr()).not.toContain("/var/lib/headgate/a");
    const files = start("buildah", inside("ls", "/opt/headgate"));
    expect(await files.exit).toBe(0);
    expect(files.stdout().trim().split("\n")).toEqual(["LICENSE", "deploy", "dist", "docs", "package.json", "ts"]);

    const [, ...healthcheck] = Docker.config.Healthcheck.Test as string[];
    const service = start("buildah", inside(...Docker.config.Entrypoint, "serve"));
    try {
      await until("it is ready", () => service.stdout().includes('"ready":true'), 120_000).catch((error: Error) => {
        throw new Error(`${error.message}; it said ${service.stderr().slice(-2_000)}`);
      });
      expect(service.stderr()).not.toMatch(/hg_\w{10}/);
      expect(service.stderr()).toContain("/var/lib/headgate/first-start.txt");
      const healthy = start("buildah", inside(...healthcheck));
      expect(await healthy.exit).toBe(0);
      const shown = start(
        "buildah",
        inside("sh", "-c", "ls -l first-start.txt; cat first-start.txt; headgate keys ls"),
      );
      expect(await shown.exit).toBe(0);
      expect(shown.stdout()).toMatch(/^-rw------- 1 10001/);
      expect(shown.stdout()).toMatch(/hg_\w{10}.*administrator/s);
    } finally {
      service.kill("SIGTERM"); // buildah forwards it; killed, it would leave the service behind
      await service.exit;
    }
    const gone = start("buildah", inside(...healthcheck));
    await until("nothing answers any more", async () => (await gone.exit) !== 0);
  },
  LIMIT_MS,
);

test("the build stage installs what the build requires, and local build output stays out of the build context", () => {
  const text = readFileSync(FILE, "utf8");
  const build = text.split(/^(?=FROM )/m).find((stage) => stage.includes(" AS build")) ?? "";
  const programs = readFileSync("scripts/programs.mjs", "utf8").split("export const toBuild")[1]?.split("];")[0] ?? "";
  const packages = [...programs.matchAll(/package: "([^"]+)"/g)].map(([, name]) => name);
  expect(packages.length).toBeGreaterThan(2);
  for (const name of packages) expect(build).toContain(name);
  expect(build).toContain("scripts/build.mjs");
  // What the image contains names no other package.
  expect(build).toContain("npm pkg delete dependencies devDependencies overrides allowScripts scripts");
  const ignored = readFileSync(".containerignore", "utf8").split("\n");
  for (const name of [".git", "data", "dist", "node_modules", "target", "ts/native/*.node*"])
    expect(ignored).toContain(name);
  expect(readFileSync(".dockerignore", "utf8")).toBe(readFileSync(".containerignore", "utf8"));
});
