// The configuration: precedence, sources of secrets, and error messages (docs/operating.md).
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { exitCodeOf } from "../../ts/cli/exit-code.ts";
import { readFlags, settingFlags } from "../../ts/cli/flags.ts";
import { type LoadedConfig, loadConfig } from "../../ts/config.ts";
import { ConfigInvalid } from "../../ts/errors.ts";
import type { SettingKey } from "../../ts/settings.ts";

const SECRET = "a-secret-of-more-than-24-characters";
const OTHER_SECRET = "another-secret-of-more-than-24-characters";

let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "headgate-config-"));
});

afterEach(() => rmSync(folder, { recursive: true }));

interface Said {
  /** Text of the configuration file, which is headgate.toml of the data directory. */
  readonly toml?: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly flags?: Readonly<Partial<Record<SettingKey, string>>>;
  /** Path of `--config`. */
  readonly file?: string;
}

function load({ toml, env = {}, flags = {}, file }: Said): LoadedConfig {
  if (toml !== undefined) written("headgate.toml", toml);
  return loadConfig({
    env: { HEADGATE_DATA_DIR: folder, ...env },
    flags: new Map(Object.entries(flags) as [SettingKey, string][]),
    file: file ?? null,
  });
}

function written(name: string, text: string): string {
  const path = join(folder, name);
  writeFileSync(path, text);
  return path;
}

/** The message, line by line, with the test's folder as `…`. */
function faultsOf(said: Said): readonly string[] {
  try {
    load(said);
  } catch (error) {
    expect(error).toBeInstanceOf(ConfigInvalid);
    expect(exitCodeOf(error)).toBe(2);
    return (error as ConfigInvalid).message.replaceAll(folder, "…").split("\n");
  }
  return [];
}

describe("a setting", () => {
  const toml = "[http]\nport = 1001\n";
  const env = { HEADGATE_HTTP_PORT: "1002" };
  const flags = { "http.port": "1003" } as const;

  test.each<[source: string, said: Said, port: number]>([
    ["default", {}, 8080],
    ["file", { toml }, 1001],
    ["environment", { env }, 1002],
    ["environment", { toml, env }, 1002],
    ["flag", { flags }, 1003],
    ["flag", { toml, flags }, 1003],
    ["flag", { env, flags }, 1003],
    ["flag", { toml, env, flags }, 1003],
  ])("comes from the %s (case %#)", (source, said, port) => {
    const { config, origin, file } = load(said);
    expect(config.http.port).toBe(port);
    expect(origin.get("http.port")).toEqual({ value: port, source });
    expect(origin.get("rtmp.port")).toEqual({ value: 1935, source: "default" });
    expect(file).toBe(said.toml === undefined ? null : join(folder, "headgate.toml"));
  });

  test("that is an empty variable is not set, and variables of Kubernetes are ignored", () => {
    const kubernetes = {
      HEADGATE_SERVICE_HOST: "10.0.0.1",
      HEADGATE_PORT: "tcp://10.0.0.1:80",
      HEADGATE_PORT_80_TCP: "x",
    };
    const { config } = load({ toml, env: { HEADGATE_HTTP_PORT: "", HEADGATE_DEV: "", ...kubernetes } });
    expect(config).toMatchObject({ http: { port: 1001 }, dev: false });
  });

  test("that is not a secret has a flag", () => {
    const { flags, file } = readFlags({ httpPort: "0", dev: "", config: "x.toml", unknown: "y", rtmpPort: undefined });
    expect([...flags]).toEqual([
      ["http.port", "0"],
      ["dev", "on"],
    ]);
    expect(file).toBe("x.toml");
    expect(Object.keys(settingFlags())).toContain("webhookDeadlineMs");
    expect(Object.keys(settingFlags())).not.toContain("bootstrapApiKey");
  });

  test("that is a list is separated by commas in the environment", () => {
    const pushes = ["rtmp://a.example/live/{name}?{args}", "rtmps://b.example:443/x/{name}"];
    const { config } = load({ env: { HEADGATE_UPSTREAM_PUSH: ` ${pushes[0]} ,${pushes[1]},` } });
    expect(config.upstream.push).toEqual(pushes);
    expect(load({ toml: `upstream.push = ${JSON.stringify(pushes)}` }).config.upstream.push).toEqual(pushes);
  });

  test.each(["true", "on", "YES", "1"])("that is a switch is on with %s, and off with its opposite", (on) => {
    const off = { true: "false", on: "off", YES: "NO", 1: "0" }[on] ?? "";
    expect(load({ env: { HEADGATE_DEV: on } }).config.dev).toBe(true);
    expect(load({ toml: "dev = true", env: { HEADGATE_DEV: off } }).config.dev).toBe(false);
  });

  test("that is a port may be 0 everywhere, and up to 65535", () => {
    const zero = { toml: "metrics.port = 0", env: { HEADGATE_RTMP_PORT: "0" }, flags: { "http.port": "0" } };
    expect(load(zero).config).toMatchObject({ http: { port: 0 }, rtmp: { port: 0 }, metrics: { port: 0 } });
    expect(load({ flags: { "http.port": "65535" } }).config.http.port).toBe(65_535);
  });

  test("rtmp.port may be off where there is a certificate for RTMPS", () => {
    const env = { HEADGATE_RTMP_PORT: "off", HEADGATE_RTMP_TLS_CERT: "cert.pem", HEADGATE_RTMP_TLS_KEY: "key.pem" };
    expect(load({ env }).config.rtmp).toMatchObject({ port: null, tls: { port: 1936 } });
    const { HEADGATE_RTMP_PORT: _, ...withoutPort } = env;
    expect(load({ toml: 'rtmp.port = "off"', env: withoutPort }).config.rtmp.port).toBeNull();
    expect(() => load({ env: { HEADGATE_RTMP_PORT: "off" } })).toThrow("rtmp.port is off: RTMPS needs a certificate");
  });

  test("that is a public URL loses its trailing slash", () => {
    const { config } = load({ env: { HEADGATE_PUBLIC_URL: "https://in.example:8443/" } });
    expect(config.http.publicUrl).toBe("https://in.example:8443");
  });
});

describe("the file", () => {
  test("of --config is read instead of the one in the data directory", () => {
    written("headgate.toml", "http.port = 1");
    const file = written("other.toml", "rtmp.port = 2");
    expect(load({ file })).toMatchObject({ file, config: { http: { port: 8080 }, rtmp: { port: 2 } } });
  });

  test("of --config must exist", () => {
    const file = join(folder, "none.toml");
    expect(faultsOf({ file })).toEqual([
      "cannot read …/none.toml: ENOENT: no such file or directory, open '…/none.toml'",
    ]);
  });

  test("is found in the data directory of a flag before that of the environment", () => {
    written("headgate.toml", "http.port = 7");
    const flags = new Map([["data_dir", folder] as const]);
    expect(loadConfig({ flags, env: { HEADGATE_DATA_DIR: "elsewhere" } }).config).toMatchObject({
      dataDir: folder,
      http: { port: 7 },
    });
  });

  test("may have empty sections", () => {
    expect(load({ toml: "[http]\n[bootstrap]\n" }).config.http.port).toBe(8080);
  });

  test.each([
    [
      "http.port = 1 = 2",
      "line 1: Invalid TOML document: each key-value declaration must be followed by an end-of-line",
    ],
    [`\n[bootstrap]\napi_key = ${SECRET}`, "line 3: Invalid TOML document: invalid value"],
  ])("that is not TOML is refused with the line number, and without its content: %j", (toml, reason) => {
    expect(faultsOf({ toml })).toEqual([`cannot read …/headgate.toml: ${reason}`]);
  });
});

describe("a secret", () => {
  const apiKey = (said: Said) => load(said).config.bootstrap.apiKey;
  const file = (text = `${SECRET}\n`) => written("secret", text);

  test.each(["", "\n", "\r\n"])("is the content of its file, without the line end %j", (end) => {
    expect(apiKey({ env: { HEADGATE_BOOTSTRAP_API_KEY_FILE: file(SECRET + end) } })).toBe(SECRET);
    expect(apiKey({ toml: `bootstrap.api_key_file = "${file(SECRET + end)}"` })).toBe(SECRET);
  });

  test("from the environment takes precedence over the configuration file, also when one of them is a path", () => {
    const path = file();
    const plain = `bootstrap.api_key = "${OTHER_SECRET}"`;
    expect(apiKey({ toml: plain, env: { HEADGATE_BOOTSTRAP_API_KEY_FILE: path } })).toBe(SECRET);
    const env = { HEADGATE_BOOTSTRAP_API_KEY: OTHER_SECRET };
    expect(apiKey({ toml: `bootstrap.api_key_file = "${path}"`, env })).toBe(OTHER_SECRET);
  });

  test.each<[what: string, said: () => Said, fault: string]>([
    [
      "said twice",
      () => ({ env: { HEADGATE_BOOTSTRAP_API_KEY: SECRET, HEADGATE_BOOTSTRAP_API_KEY_FILE: file() } }),
      "HEADGATE_BOOTSTRAP_API_KEY_FILE and HEADGATE_BOOTSTRAP_API_KEY are both set; keep one",
    ],
    [
      "in a file that is not there",
      () => ({ env: { HEADGATE_BOOTSTRAP_API_KEY_FILE: join(folder, "no") } }),
      "HEADGATE_BOOTSTRAP_API_KEY_FILE: cannot read …/no: ENOENT: no such file or directory, open '…/no'",
    ],
    [
      "in an empty file",
      () => ({ env: { HEADGATE_BOOTSTRAP_API_KEY_FILE: file("\n") } }),
      "HEADGATE_BOOTSTRAP_API_KEY_FILE must be 24 to 128 characters that an HTTP header can carry",
    ],
    [
      "in a file without a name",
      () => ({ toml: "bootstrap.api_key_file = 1" }),
      "bootstrap.api_key_file in …/headgate.toml must be the path of a file",
    ],
    [
      "that is too short",
      () => ({ env: { HEADGATE_BOOTSTRAP_API_KEY: SECRET.slice(0, 23) } }),
      "HEADGATE_BOOTSTRAP_API_KEY must be 24 to 128 characters that an HTTP header can carry",
    ],
    [
      "of the wrong type",
      () => ({ toml: `bootstrap.api_key = ["${SECRET}"]` }),
      "bootstrap.api_key in …/headgate.toml must be 24 to 128 characters that an HTTP header can carry",
    ],
    [
      "that is a mistyped key of ours",
      () => ({ env: { HEADGATE_BOOTSTRAP_API_KEY: `hg_abcdefgh_${"a".repeat(34)}` } }),
      "bootstrap.api_key looks like a key of ours, but its checksum is wrong: is it complete?",
    ],
  ])("%s is refused and not repeated", (_, said, fault) => {
    expect(faultsOf(said())).toEqual([fault]);
    expect(fault).not.toContain(SECRET.slice(0, 23));
  });

  test("is the only kind of setting that can be read from a file of its own", () => {
    expect(faultsOf({ env: { HEADGATE_LOG_LEVEL_FILE: file() } })).toEqual([
      "unknown environment variable HEADGATE_LOG_LEVEL_FILE; did you mean HEADGATE_LOG_LEVEL?",
    ]);
  });
});

describe("a mistake", () => {
  const inFile = (toml: string, fault: string) => [{ toml }, fault] as const;
  const inEnvironment = (name: string, value: string, fault: string) => [{ env: { [name]: value } }, fault] as const;
  const PORT = "must be a port from 0 to 65535 (0: any free one), not";

  test.each([
    inFile("[htpp]\nport = 1", "unknown key htpp.port in …/headgate.toml; did you mean http.port?"),
    inFile("http.prot = 1", "unknown key http.prot in …/headgate.toml; did you mean http.port?"),
    inFile("http.port.number = 1", "unknown key http.port.number in …/headgate.toml; did you mean http.port?"),
    inFile("[webhooks]", "unknown key webhooks in …/headgate.toml; did you mean webhook.ca?"),
    inFile(
      "bootstrap.api_kee = 'x'",
      "unknown key bootstrap.api_kee in …/headgate.toml; did you mean bootstrap.api_key?",
    ),
    inFile("Dev = true", "unknown key Dev in …/headgate.toml; did you mean dev?"),
    inFile("constructor = 1", "unknown key constructor in …/headgate.toml; did you mean data_dir?"),
    inEnvironment(
      "HEADGATE_HTPP_PORT",
      "1",
      "unknown environment variable HEADGATE_HTPP_PORT; did you mean HEADGATE_HTTP_PORT?",
    ),
    inEnvironment(
      "HEADGATE_HTTP_PUBLIC_URL",
      "x",
      "unknown environment variable HEADGATE_HTTP_PUBLIC_URL; did you mean HEADGATE_PUBLIC_URL?",
    ),
    inFile("http.port = '8080'", `http.port in …/headgate.toml ${PORT} "8080"`),
    inFile("http.port = 65536", `http.port in …/headgate.toml ${PORT} 65536`),
    inFile("http.port = -1", `http.port in …/headgate.toml ${PORT} -1`),
    inFile("http.port = 80.5", `http.port in …/headgate.toml ${PORT} 80.5`),
    inFile("dev = 'true'", 'dev in …/headgate.toml must be true or false, not "true"'),
    inFile("dev = {}", "dev in …/headgate.toml must be true or false, not {}"),
    inFile("http.host = ''", 'http.host in …/headgate.toml must be text, not ""'),
    inFile("drain_s = 1979-05-27", 'drain_s in …/headgate.toml must be seconds from 0 to 86400, not "1979-05-27"'),
    inFile("ingest.hosts = 'a'", 'ingest.hosts in …/headgate.toml must be a list of host names or addresses, not "a"'),
    inFile(
      "ingest.hosts = ['a', 1]",
      'ingest.hosts in …/headgate.toml must be a list of host names or addresses, not ["a",1]',
    ),
    inEnvironment("HEADGATE_HTTP_PORT", "80x", `HEADGATE_HTTP_PORT ${PORT} "80x"`),
    inEnvironment("HEADGATE_HTTP_PORT", "0x50", `HEADGATE_HTTP_PORT ${PORT} "0x50"`),
    inEnvironment("HEADGATE_HTTP_PORT", " 80", `HEADGATE_HTTP_PORT ${PORT} " 80"`),
    inEnvironment("HEADGATE_DEV", "maybe", 'HEADGATE_DEV must be true or false, not "maybe"'),
    inEnvironment("HEADGATE_TOKEN_ALG", "none", 'HEADGATE_TOKEN_ALG must be ES256, RS256, EdDSA, Ed25519, not "none"'),
    inEnvironment(
      "HEADGATE_WEBHOOK_DEADLINE_MS",
      "499",
      'HEADGATE_WEBHOOK_DEADLINE_MS must be milliseconds from 500 to 10000, not "499"',
    ),
    inEnvironment(
      "HEADGATE_WEBHOOK_UPDATE_S",
      "3601",
      'HEADGATE_WEBHOOK_UPDATE_S must be seconds from 5 to 3600, not "3601"',
    ),
    inEnvironment(
      "HEADGATE_PUBLIC_URL",
      "https://a.example/x",
      'HEADGATE_PUBLIC_URL must be an http or https URL without path, not "https://a.example/x"',
    ),
    inEnvironment(
      "HEADGATE_UPSTREAM_PUSH",
      "http://a.example/x",
      'HEADGATE_UPSTREAM_PUSH must be a list of RTMP URLs (rtmp:// or rtmps://), not "http://a.example/x"',
    ),
    [{ flags: { "http.port": "http" } }, `--http-port ${PORT} "http"`] as const,
    [
      { flags: { "webhook.deadline_ms": "1e3" } },
      '--webhook-deadline-ms must be milliseconds from 500 to 10000, not "1e3"',
    ] as const,
  ])("in %j is named", (said: Said, fault) => {
    expect(faultsOf(said)).toEqual([fault]);
  });

  test("is reported together with all others, one per line, and not hidden by a source of higher precedence", () => {
    const said = {
      toml: "http.port = 'x'\nhtpp = 1",
      env: { HEADGATE_HTTP_PORT: "1", HEADGATE_DEVV: "1" },
      flags: { dev: "?" },
    };
    expect(faultsOf(said)).toEqual([
      "unknown environment variable HEADGATE_DEVV; did you mean HEADGATE_DEV?",
      '--dev must be true or false, not "?"',
      `http.port in …/headgate.toml ${PORT} "x"`,
      "unknown key htpp in …/headgate.toml; did you mean dev?",
    ]);
  });

  test("in the certificate files is reported when the configuration is read", () => {
    const HEADGATE_WEBHOOK_CA = written("ca.pem", "no certificate");
    expect(faultsOf({ env: { HEADGATE_WEBHOOK_CA } })).toEqual(["webhook.ca: …/ca.pem holds no PEM certificate"]);
  });
});
