// Files that operators install: the systemd unit as checked by systemd itself, the required content of the
// Kubernetes manifests, and the key and password of a first start, which appear in no log.
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { parseAllDocuments } from "yaml";
import { SETTING_KEYS, settingOf } from "../../ts/settings.ts";
import { run, start, until } from "../support/child.ts";
import { startHeadgate } from "../support/headgate.ts";
import { startPostgres } from "../support/postgres.ts";
import { casesOfRun, inWholeRun } from "../support/whole-run.ts";

const UNIT = "deploy/systemd/headgate.service";
const LIMIT_MS = 180_000;
const drainS = settingOf("drain_s").fallback as number;

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "headgate-deploy-"));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe("the systemd unit", () => {
  const unit = readFileSync(UNIT, "utf8");
  const value = (key: string) => new RegExp(`^${key}=(.*)$`, "m").exec(unit)?.[1];

  test("is accepted by systemd", async () => {
    const { stdout, stderr } = await run("systemd-analyze", ["verify", "--man=no", UNIT]);
    // If the programs are not installed at their places, systemd reports that.
    const complaints = `${stdout()}${stderr()}`.split("\n").filter((line) => /headgate\.service/.test(line));
    expect(complaints.filter((line) => !/is not executable/.test(line))).toEqual([]);
  });

  test("has an exposure of at most 2.0 by systemd's measure", async () => {
    const { stdout } = await run("systemd-analyze", ["security", "--offline=true", "--no-pager", UNIT]);
    const level = Number(/Overall exposure level for \S+: ([\d.]+)/.exec(stdout())?.[1]);
    expect(level).toBeGreaterThan(0);
    expect(level).toBeLessThanOrEqual(2);
  });

  test("waits for a drain, does not restart with an unusable configuration, and names existing settings", () => {
    expect(Number(value("TimeoutStopSec"))).toBeGreaterThan(drainS);
    expect(value("KillSignal")).toBe("SIGTERM");
    expect(value("RestartPreventExitStatus")).toBe("2");
    // A reload is an upgrade, in which another process becomes the main one.
    expect(value("Type")).toBe("notify");
    expect(value("ExecReload")).toBe(value("ExecStart")?.replace(/ serve$/, " upgrade"));
    const names = SETTING_KEYS.map((key) => settingOf(key).env as string);
    for (const [, name] of unit.matchAll(/^Environment=(\w+)=/gm)) expect(names).toContain(name);
    expect(unit).toContain("Environment=HEADGATE_BOOTSTRAP_SHOW=file");
  });
});

describe("a first start", () => {
  const shown = /hg_\w{10}/;
  const serve = (dataDir: string, before: string, env: Readonly<Record<string, string>> = {}) => {
    const ports = Object.fromEntries(
      ["HTTP", "RTMP", "MEDIA", "METRICS"].map((name) => [`HEADGATE_${name}_PORT`, "0"]),
    );
    return start("bash", ["--norc", "-c", `${before} exec "$0" scripts/headgate.mjs serve`, process.execPath], {
      env: { PATH: process.env.PATH, HEADGATE_DATA_DIR: dataDir, HEADGATE_DRAIN_S: "0", ...ports, ...env },
    });
  };
  const isReady = (child: ReturnType<typeof serve>) =>
    until("it is ready", () => child.stdout().includes('"ready":true'), 120_000);

  const logged = [
    ["the journal", 'export JOURNAL_STREAM="$(stat -L -c %d:%i /dev/fd/2)";', {}],
    ["anything, when the setting says so", "", { HEADGATE_BOOTSTRAP_SHOW: "file" }],
  ] as const;

  test.each(casesOfRun(logged, 2))(
    "writes key and password to a file of the data directory when standard error is %s",
    async (_, before, env) => {
      const dataDir = join(mkdtempSync(join(folder, "first-")), "data");
      const child = serve(dataDir, before, env);
      await isReady(child);
      child.kill("SIGTERM");
      expect(await child.exit).toBe(0);
      const path = join(dataDir, "first-start.txt");
      expect(statSync(path).mode & 0o777).toBe(0o600);
      expect(readFileSync(path, "utf8")).toMatch(
        /hg_\w{10}.*The dashboard is at http.*signs in as admin.*\n {6}\w{20}/s,
      );
      expect(child.stderr()).not.toMatch(shown);
      expect(child.stderr()).not.toContain("signs in as admin");
      expect(
        child.stderr().match(/this is a new store\. Its API key and password are in .*first-start\.txt/g),
      ).toHaveLength(1);
    },
    LIMIT_MS,
  );

  inWholeRun(
    "writes them there as well when standard error is a file",
    async () => {
      const dataDir = join(mkdtempSync(join(folder, "first-")), "data");
      const log = join(folder, "log");
      const child = serve(dataDir, `exec 2>${log};`);
      await isReady(child);
      child.kill("SIGTERM");
      expect(await child.exit).toBe(0);
      expect(readFileSync(log, "utf8")).not.toMatch(shown);
      expect(readFileSync(join(dataDir, "first-start.txt"), "utf8")).toMatch(shown);
    },
    LIMIT_MS,
  );

  inWholeRun(
    "continues when that file cannot be written, and says how to make others",
    async () => {
      const dataDir = join(mkdtempSync(join(folder, "first-")), "data");
      mkdirSync(join(dataDir, "first-start.txt"), { recursive: true });
      const child = serve(dataDir, "", { HEADGATE_BOOTSTRAP_SHOW: "file" });
      await isReady(child);
      expect(child.stderr()).toMatch(
        /first-start\.txt cannot be written \(EISDIR.*headgate keys create --role administrator/,
      );
      expect(child.stderr()).not.toMatch(shown);
      child.kill("SIGTERM");
      expect(await child.exit).toBe(0);
    },
    LIMIT_MS,
  );

  test(
    "shows them when standard error is a pipe",
    async () => {
      const child = serve(join(mkdtempSync(join(folder, "first-")), "data"), "");
      await isReady(child);
      expect(child.stderr()).toMatch(/hg_\w{10}.*signs in as admin/s);
      child.kill("SIGTERM");
      expect(await child.exit).toBe(0);
    },
    LIMIT_MS,
  );
});

interface Manifest {
  readonly kind: string;
  readonly metadata: { readonly name: string };
  // biome-ignore lint/suspicious/noExplicitAny: whatever its kind has
  readonly [member: string]: any;
}

describe("the Kubernetes manifests", () => {
  const read = (path: string): readonly Manifest[] =>
    parseAllDocuments(readFileSync(path, "utf8"), { strict: true, uniqueKeys: true }).map((document) => {
      expect(document.errors).toEqual([]);
      return document.toJS() as Manifest;
    });
  const objects = read("deploy/kubernetes/headgate.yaml");
  const only = (kind: string) => objects.find((each) => each.kind === kind) as Manifest;
  const { spec } = only("StatefulSet");
  const pod = spec.template.spec;
  const [container] = pod.containers;
  const config = only("ConfigMap").data as Record<string, string>;

  test("contain the objects of a deployment, which select each other", () => {
    expect(objects.map(({ kind }) => kind)).toEqual([
      "ConfigMap",
      "Service",
      "Service",
      "PodDisruptionBudget",
      "StatefulSet",
    ]);
    const { labels } = spec.template.metadata;
    for (const selector of [spec.selector.matchLabels, only("PodDisruptionBudget").spec.selector.matchLabels]) {
      expect(labels).toMatchObject(selector);
    }
    const services = objects.filter(({ kind }) => kind === "Service");
    const names = container.ports.map(({ name }: { name: string }) => name);
    for (const service of services) {
      expect(labels).toMatchObject(service.spec.selector);
      for (const { targetPort } of service.spec.ports) expect(names).toContain(targetPort);
    }
    expect(services.map(({ metadata }) => metadata.name)).toContain(spec.serviceName);
    expect(only("PodDisruptionBudget").spec.maxUnavailable).toBe(1);
  });

  test("give each machine one node, and each media worker its ports there", () => {
    expect(pod.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].topologyKey).toBe(
      "kubernetes.io/hostname",
    );
    const first = Number(config.HEADGATE_MEDIA_PORT);
    const workers = Array.from({ length: Number(config.HEADGATE_MEDIA_WORKERS) }, (_, at) => first + at);
    const onHost = container.ports.filter(({ hostPort }: { hostPort?: number }) => hostPort !== undefined);
    const wanted = workers.flatMap((port) => ["UDP", "TCP"].map((protocol) => [port, port, protocol]));
    expect(
      onHost.map((each: { hostPort: number; containerPort: number; protocol: string }) => [
        each.hostPort,
        each.containerPort,
        each.protocol,
      ]),
    ).toEqual(wanted);
  });

  test("check health, let a drain end, and give the process nothing it does not need", () => {
    expect(container.startupProbe.httpGet).toEqual({ path: "/healthz", port: "metrics" });
    expect(container.readinessProbe.httpGet).toEqual({ path: "/readyz", port: "metrics" });
    expect(container.livenessProbe.httpGet).toEqual({ path: "/healthz", port: "metrics" });
    expect(container.lifecycle.preStop.exec.command.join(" ")).toContain("headgate nodes drain");
    expect(pod.terminationGracePeriodSeconds).toBeGreaterThan(Number(config.HEADGATE_DRAIN_S) + 30);
    expect(pod.securityContext).toMatchObject({ runAsNonRoot: true, runAsUser: 10001 });
    expect(container.securityContext).toEqual({
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ["ALL"] },
    });
  });

  test("name existing settings, and take every secret from the one that the example shows", () => {
    const names = SETTING_KEYS.flatMap((key) => {
      const { env, secret = false } = settingOf(key);
      return secret ? [env, `${env}_FILE`] : [env];
    }) as string[];
    const own = container.env.map(({ name }: { name: string }) => name).filter((name: string) => name !== "POD_IP");
    for (const name of [...Object.keys(config), ...own]) expect(names).toContain(name);
    const [secret] = read("deploy/kubernetes/secret.example.yaml");
    const held = Object.keys(secret?.stringData ?? {});
    const items = pod.volumes.flatMap((volume: Manifest) => volume.secret?.items ?? []);
    expect(items.map(({ key }: { key: string }) => key).sort()).toEqual(held.sort());
    const files = container.env.map(
      ({ value }: { value?: string }) => /^\/run\/secrets\/headgate\/(.*)$/.exec(value ?? "")?.[1],
    );
    expect(held).toEqual(expect.arrayContaining(files.filter(Boolean)));
    expect(Buffer.from(secret?.stringData["headgate.key"], "base64url")).toHaveLength(32);
  });

  test(
    "mount the data directory read-only, and a service on PostgreSQL writes nothing there",
    async () => {
      expect(container.volumeMounts[0]).toEqual({ name: "key", mountPath: "/var/lib/headgate", readOnly: true });
      const server = await startPostgres();
      const dataDir = join(mkdtempSync(join(folder, "key-")), "data");
      const env = { HEADGATE_DATA_DIR: dataDir, HEADGATE_DATABASE_URL: await server.newDatabase() };
      const headgate = await startHeadgate({
        env: { ...env, HEADGATE_BOOTSTRAP_ADMIN_PASSWORD: "a password of ours" },
      });
      await headgate.newStream();
      expect(await headgate.stop()).toBe(0);
      expect(readdirSync(dataDir)).toEqual(["headgate.key"]);
      await server.close();
    },
    LIMIT_MS,
  );
});
