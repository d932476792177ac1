// What signals do to a running service: none that operators, terminals or kernels send ends it without a drain, SIGHUP
// reloads, and SIGUSR1 opens no debugger.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect } from "node:tls";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { changesBetween } from "../../ts/cli/serve/reload.ts";
import { SIGNALS } from "../../ts/cli/serve/signals.ts";
import { loadConfig } from "../../ts/config.ts";
import { SETTING_KEYS, settingOf } from "../../ts/settings.ts";
import { until } from "../support/child.ts";
import { testCertificates } from "../support/customer.ts";
import { type Broadcast, broadcast } from "../support/ffmpeg.ts";
import { type Headgate, startHeadgate } from "../support/headgate.ts";
import { pause } from "../support/pause.ts";
import { casesOfRun, inWholeRun } from "../support/whole-run.ts";

const LONG_MS = 120_000;
const IGNORED = Object.entries(SIGNALS).flatMap(([name, effect]) => (effect === "ignore" ? [name] : []));

let folder: string;
let headgate: Headgate | null = null;
let encoder: Broadcast | null = null;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "headgate-signals-"));
});
afterEach(async () => {
  encoder?.kill("SIGKILL");
  headgate?.process.kill("SIGKILL");
  await headgate?.process.exit;
  [headgate, encoder] = [null, null];
  rmSync(folder, { recursive: true, force: true });
});

const settings = (text: string) => writeFileSync(join(folder, "headgate.toml"), text);
const dataDir = () => ({ HEADGATE_DATA_DIR: folder });

async function serving(env: Readonly<Record<string, string>> = {}): Promise<Headgate> {
  headgate = await startHeadgate({ env: { ...dataDir(), HEADGATE_DRAIN_S: "60", ...env } });
  return headgate;
}

async function publishing(service: Headgate, seconds: number): Promise<Broadcast> {
  encoder = broadcast(`${service.rtmp}/${await service.newStream()}`, { seconds, size: "160x90" });
  await until("the publish runs", () => service.process.stderr().includes("publish started"));
  return encoder;
}

/** The lines of the log with this message, as records. */
const lines = (service: Headgate, message: string) =>
  service.process
    .stderr()
    .split("\n")
    .filter((line) => line.includes(message))
    .map((line) => JSON.parse(line) as Record<string, unknown>);
const line = (service: Headgate, message: string, count = 1) =>
  until(message, () => lines(service, message)[count - 1]);

test(
  "signals without a meaning, and one for a reload, end neither the service nor its publish, and open no debugger",
  async () => {
    const service = await serving();
    const publish = await publishing(service, 6);
    const others = ["SIGHUP", "SIGPIPE", "SIGWINCH", "SIGXFSZ", "SIGCONT", "SIGURG"];
    for (const signal of [...IGNORED, ...others]) service.process.kill(signal as NodeJS.Signals);
    service.process.kill("SIGUSR1");
    for (const signal of IGNORED)
      await until(signal, () => lines(service, "no meaning here").some((each) => each.signal === signal));
    await line(service, "reload: certificates are read again");
    expect(await publish.exit, publish.stderr()).toBe(0);
    expect(lines(service, "no meaning here")).toHaveLength(IGNORED.length);
    expect(service.process.stderr()).not.toContain("Debugger listening");
    expect((await service.call("GET", "/organisation")).id).toBeDefined();
  },
  LONG_MS,
);

test.each(casesOfRun(["SIGXCPU", "SIGQUIT", "SIGPWR"] as const, 3))(
  "%s lets the running publish end",
  async (signal) => {
    const service = await serving();
    const publish = await publishing(service, 5);
    service.process.kill(signal);
    await line(service, "draining: no new publish");
    // The kernel repeats that of the limit every second.
    if (signal === "SIGXCPU") {
      await pause(1_200); // after the second in which signals count once
      service.process.kill(signal);
    }
    expect(await publish.exit, publish.stderr()).toBe(0);
    // Nobody asked for the end when a limit is reached: the service manager starts the service again.
    expect(await service.process.exit).toBe(signal === "SIGXCPU" ? 1 : 0);
    expect(lines(service, "told to stop")[0]).toMatchObject({ signal });
  },
  LONG_MS,
);

test(
  "SIGHUP applies what can change, says what else has changed, and an invalid file changes nothing",
  async () => {
    settings('drain_s = 50\n[log]\nlevel = "warn"\n');
    const service = await serving({ HEADGATE_DRAIN_S: "" });
    await service.call("GET", "/organisation");
    settings('drain_s = 40\n[log]\nlevel = "debug"\n[play]\nallow = ["127.0.0.1"]\n[token]\nissuer = "other"\n');
    service.process.kill("SIGHUP");
    expect(await line(service, "reload: settings have changed")).toMatchObject({
      changed: { drain_s: 40, "log.level": "debug" },
      needRestart: ["play.allow", "token.issuer"],
      msg: "reload: settings have changed; others that have changed need a restart",
    });
    expect((await service.call("GET", "/deployment")).limits).toMatchObject({ drain_s: 40 });
    await line(service, "request answered");
    expect(lines(service, "request answered")).toHaveLength(1);

    settings("drain_s = 30\nno sense\n");
    service.process.kill("SIGHUP");
    const { reason } = await line(service, "reload: the settings cannot be used, and nothing has changed");
    expect(reason).toMatch(/headgate\.toml: line 2: /);
    settings('drain_s = 40\n[log]\nlevel = "debug"\n[token]\nissuer = "other"\n');
    service.process.kill("SIGHUP");
    expect(await line(service, "reload: certificates are read again")).toMatchObject({ needRestart: ["token.issuer"] });
    service.process.kill("SIGTERM");
    expect(await line(service, "draining: no new publish")).toMatchObject({ limitS: 40 });
    expect(await service.process.exit).toBe(0);
  },
  LONG_MS,
);

inWholeRun(
  "SIGHUP uses another certificate at once, also from another file, on both ports",
  async () => {
    const { cert, key, renewed } = testCertificates();
    const write = (name: string, chain: string) => {
      writeFileSync(join(folder, `${name}.pem`), chain);
      writeFileSync(join(folder, `${name}.key`), key);
      settings(`[http]\ntls_cert = "${join(folder, `${name}.pem`)}"\ntls_key = "${join(folder, `${name}.key`)}"\n`);
    };
    write("first", cert);
    const service = await serving({ HEADGATE_RTMP_TLS_PORT: "0" });
    const fingerprint = (url: string | null) =>
      new Promise<string>((resolve, reject) => {
        const port = Number(new URL(url ?? "").port);
        const socket = connect({ host: "127.0.0.1", port, rejectUnauthorized: false }, () => {
          resolve(socket.getPeerCertificate().fingerprint256);
          socket.destroy();
        }).once("error", reject);
      });
    const before = await fingerprint(service.http);
    write("second", renewed);
    service.process.kill("SIGHUP");
    await line(service, "certificate reloaded", 2);
    const after = await fingerprint(service.http);
    expect(after).not.toBe(before);
    expect(await fingerprint(service.rtmps)).toBe(after);
    expect(lines(service, "reload: settings have changed")[0]).toMatchObject({
      changed: { "http.tls_cert": join(folder, "second.pem"), "http.tls_key": join(folder, "second.key") },
      needRestart: [],
    });
    writeFileSync(join(folder, "second.pem"), "nonsense");
    service.process.kill("SIGHUP");
    await line(service, "reload: the settings cannot be used");
    expect(await fingerprint(service.http)).toBe(after);
  },
  LONG_MS,
);

describe("changes of settings", () => {
  const loaded = (toml: string, env: Readonly<Record<string, string>> = {}) => {
    settings(toml);
    return loadConfig({ env: { ...dataDir(), ...env } });
  };
  const files = '[http]\ntls_cert = "/a"\ntls_key = "/b"\n';

  test("none", () => {
    expect(changesBetween(loaded(""), loaded(""))).toEqual({ reloaded: [], needRestart: [] });
  });

  test("the first certificate, and none any more, need a restart; another one does not", () => {
    const [none, one] = [loaded(""), loaded(files)];
    const keys = ["http.tls_cert", "http.tls_key"];
    expect(changesBetween(none, one)).toEqual({ reloaded: [], needRestart: keys });
    expect(changesBetween(one, none)).toEqual({ reloaded: [], needRestart: keys });
    const other = loaded(files.replace("/a", "/c"));
    expect(changesBetween(one, other)).toEqual({ reloaded: ["http.tls_cert"], needRestart: [] });
  });

  test("what the environment sets does not change", () => {
    const env = { HEADGATE_LOG_LEVEL: "warn" };
    const file = (level: string) => `[log]\nlevel = "${level}"`;
    expect(changesBetween(loaded(file("info"), env), loaded(file("debug"), env)).reloaded).toEqual([]);
  });
});

test("the documents list every signal with its effect, and every setting that a reload applies", () => {
  const operating = readFileSync("docs/operating.md", "utf8");
  for (const name of Object.keys(SIGNALS)) expect(operating).toContain(name);
  const documented = readFileSync("docs/settings.md", "utf8");
  for (const key of SETTING_KEYS.filter((each) => settingOf(each).reloads === true)) expect(documented).toContain(key);
});
