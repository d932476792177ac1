// The configuration, read once: defaults < headgate.toml < environment < flags. The only file that reads process.env.
// The settings are defined in settings.ts.
import { existsSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { parse as parseToml, TomlError } from "smol-toml";
import { refusalsOfHeaders } from "./api-key-headers.ts";
import { type CapacityConfig, capacityOf } from "./capacity/settings.ts";
import { type CertificateFiles, readAuthorities } from "./certificate.ts";
import { ConfigInvalid } from "./errors.ts";
import { keyChecksumHolds } from "./organisation/key-text.ts";
import type { AdmissionDeps } from "./publish/admission.ts";
import type { BitrateLimits } from "./publish/bitrate-limit.ts";
import type { CaptureConfig } from "./publish/capture/settings.ts";
import type { WhipLimitSettings } from "./publish/whip/whip-limits.ts";
import { reasonOf } from "./reason.ts";
import { flatten, isTable } from "./setting-kinds.ts";
import { flagOf, SETTING_KEYS, type SettingKey, type SettingValue, settingOf } from "./settings.ts";
import { faultOfDatabaseUrl } from "./store/postgres/database-url.ts";
import type { RetentionDays } from "./store/retention.ts";
import { nearest } from "./text/nearest.ts";
import type { TokenConfig } from "./token/settings.ts";

export interface Config {
  /** Absolute path. */
  readonly dataDir: string;
  readonly databaseUrl: string | null;
  readonly http: {
    readonly host: string;
    readonly port: number;
    /** Without a trailing slash; null: use the Host header. */
    readonly publicUrl: string | null;
    /** Files of HTTPS; null without a certificate. */
    readonly tls: CertificateFiles | null;
    /** Addresses and networks whose X-Forwarded-For is trusted. */
    readonly trustedProxies: readonly string[];
    /** Headers that may carry an API key in addition to x-service-apikey (M3), in lower case. */
    readonly apiKeyHeaders: readonly string[];
  };
  readonly ice: { readonly servers: readonly string[]; readonly turnSecret: string | null };
  readonly whip: {
    readonly lenientPatch: boolean;
    readonly maxBitrateKbps: BitrateLimits;
    readonly limits: WhipLimitSettings;
  };
  readonly rtmp: {
    readonly host: string;
    readonly port: number | null; // null: only RTMPS is served
    readonly trustedProxies: readonly string[]; // they must send a PROXY protocol header
    /** Files of RTMPS and its port; null without a certificate. */
    readonly tls: (CertificateFiles & { readonly port: number }) | null;
    /** 0: in total as many as the process's file descriptors allow; per address, no limit. */
    readonly limits: { readonly connections: number; readonly connectionsPerAddress: number };
  };
  readonly media: {
    readonly host: string;
    readonly port: number;
    /** Empty: those of the network interfaces. */
    readonly publicAddresses: readonly string[];
    readonly workers: number;
    readonly audioWorkers: number;
    readonly gopCache: boolean;
    readonly pushSilence: boolean;
  };
  readonly play: { readonly allow: readonly string[] }; // networks that may play RTMP; empty allows all
  readonly publish: Pick<AdmissionDeps["settings"], "duplicate" | "holdSeconds" | "backupArgument">;
  readonly token: TokenConfig;
  readonly retention: RetentionDays;
  /** Per API key (M13); 0: no limit. */
  readonly limits: { readonly apiRequestsPerSecond: number; readonly apiBurst: number };
  /** Capacity limits of this node, and of one organisation on it. */
  readonly capacity: CapacityConfig;
  readonly capture: CaptureConfig;
  readonly nameRandom: number; // random characters of a new stream's name
  /** This node among those that share a database. */
  readonly node: {
    readonly name: string;
    readonly host: string;
    readonly port: number;
    /** Without a trailing slash; null: the first address and the port. */
    readonly address: string | null;
  };
  readonly drainS: number;
  readonly upgradeS: number;
  readonly metrics: { readonly host: string; readonly port: number };
  readonly ingest: { readonly hosts: readonly string[] };
  readonly upstream: { readonly allow: readonly string[]; readonly push: readonly string[] };
  readonly webhook: {
    readonly deadlineMs: number;
    readonly updateS: number;
    /** PEM certificates trusted in addition to the public ones, or null. */
    readonly ca: string | null;
  };
  readonly bootstrap: {
    readonly apiKey: string | null;
    readonly adminPassword: string | null;
    /** Where generated credentials are shown. */
    readonly show: SettingValue<"bootstrap.show">;
  };
  readonly dev: boolean;
  readonly log: { readonly level: SettingValue<"log.level">; readonly format: SettingValue<"log.format"> };
}

/** Environment variables of the command line's client, which are not settings of the service. */
const CLIENT_NAMES = ["HEADGATE_API_KEY", "HEADGATE_API_KEY_FILE", "HEADGATE_CA"];

/** The file of authorities that client commands trust in addition to the public ones; null when not set. */
export const readCaFile = (): string | null => process.env["HEADGATE_CA"] || null;
/** Set by systemd when standard error is the journal (systemd.exec(5)); null elsewhere. */
export const readJournalStream = (): string | null => process.env["JOURNAL_STREAM"] || null;
/** For other programs: without our settings and secrets. */
export const readProgramEnvironment = (): Readonly<Record<string, string | undefined>> =>
  Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith("HEADGATE_")));

/** The API key for commands that call a running service. Throws `ConfigInvalid` when there is none. */
export function readApiKey(env: Readonly<Record<string, string | undefined>> = process.env): string {
  const { HEADGATE_API_KEY: key, HEADGATE_API_KEY_FILE: file } = env;
  if (key) return key;
  if (!file) throw new ConfigInvalid("HEADGATE_API_KEY, or HEADGATE_API_KEY_FILE with its path, must hold an API key");
  try {
    return readFileSync(file, "utf8").trim();
  } catch (cause) {
    throw new ConfigInvalid(`HEADGATE_API_KEY_FILE: cannot read ${file}: ${reasonOf(cause)}`, { cause });
  }
}

export type Source = "default" | "file" | "environment" | "flag";

export interface LoadedConfig {
  readonly config: Config;
  /** Every setting as found, secrets included, with its source. */
  readonly origin: ReadonlyMap<SettingKey, { readonly value: unknown; readonly source: Source }>;
  /** The file that was read, or null. */
  readonly file: string | null;
}

/** Variables that Kubernetes sets for a service called `headgate`; not settings of ours. */
const KUBERNETES = /^HEADGATE_(SERVICE_|PORT)/;

/** Reads the configuration. Throws `ConfigInvalid` with one line for each fault.
 *  `flags`: values by setting, as text. `file`: path of `--config`; without it headgate.toml of the data directory is
 *  read when it is there. */
export function loadConfig(options: {
  readonly flags?: ReadonlyMap<SettingKey, string>;
  readonly file?: string | null;
  readonly env?: Readonly<Record<string, string | undefined>>;
}): LoadedConfig {
  const env = options.env ?? process.env;
  const faults: string[] = [];
  const said = new Map<SettingKey, { value: unknown; source: Source }>();
  for (const key of SETTING_KEYS) said.set(key, { value: settingOf(key).fallback, source: "default" });

  const fromEnvironment = readEnvironment(env, faults);
  const fromFlags = readTexts(
    [...(options.flags ?? [])].map(([key, text]) => ({ key, text, name: `--${flagOf(key)}` })),
    faults,
  );
  const dataDir = String(
    fromFlags.get("data_dir") ?? fromEnvironment.get("data_dir") ?? settingOf("data_dir").fallback,
  );
  const file = options.file ?? join(dataDir, "headgate.toml");
  const reads = options.file != null || existsSync(file);
  const fromFile = reads ? readFile(file, faults) : new Map<SettingKey, unknown>();

  const layers = [
    { source: "file", values: fromFile },
    { source: "environment", values: fromEnvironment },
    { source: "flag", values: fromFlags },
  ] as const;
  for (const { source, values } of layers) {
    for (const [key, value] of values) said.set(key, { value, source });
  }
  const value = <K extends SettingKey>(key: K) => said.get(key)?.value as SettingValue<K>;
  const config = build(value, faults);
  if (faults.length > 0) throw new ConfigInvalid(faults.join("\n"));
  return { config, origin: said, file: reads ? file : null };
}

function build(value: <K extends SettingKey>(key: K) => SettingValue<K>, faults: string[]): Config {
  const hostAndPort = (of: "node" | "metrics") => ({ host: value(`${of}.host`), port: value(`${of}.port`) });
  const caFile = value("webhook.ca");
  const apiKey = value("bootstrap.api_key");
  const httpTls = certificateOf("http", value, faults);
  // One certificate for both unless RTMPS has its own.
  const rtmpTls = certificateOf("rtmp", value, faults) ?? httpTls;
  if (value("rtmp.port") === null && rtmpTls === null) faults.push("rtmp.port is off: RTMPS needs a certificate");
  const apiKeyHeaders = value("http.api_key_headers");
  faults.push(...refusalsOfHeaders(apiKeyHeaders));
  if (apiKey !== null && !keyChecksumHolds(apiKey)) {
    faults.push("bootstrap.api_key looks like a key of ours, but its checksum is wrong: is it complete?");
  }
  const databaseUrl = value("database_url");
  const urlFault = databaseUrl === null ? null : faultOfDatabaseUrl(databaseUrl);
  if (urlFault !== null) faults.push(`database_url ${urlFault}`);
  if (value("ice.turn_secret") === null && value("ice.servers").some((uri) => /^turns?:/i.test(uri))) {
    faults.push("ice.servers names a TURN server: it needs ice.turn_secret");
  }
  return {
    dataDir: resolve(value("data_dir")),
    databaseUrl,
    http: {
      host: value("http.host"),
      port: value("http.port"),
      publicUrl: value("http.public_url")?.replace(/\/$/, "") ?? null,
      tls: httpTls,
      trustedProxies: value("http.trusted_proxies"),
      apiKeyHeaders,
    },
    rtmp: {
      host: value("rtmp.host"),
      port: value("rtmp.port"),
      trustedProxies: value("rtmp.trusted_proxies"),
      tls: rtmpTls && { ...rtmpTls, port: value("rtmp.tls_port") },
      limits: {
        connections: value("limits.rtmp_connections"),
        connectionsPerAddress: value("limits.rtmp_connections_per_address"),
      },
    },
    ice: { servers: value("ice.servers"), turnSecret: value("ice.turn_secret") },
    whip: {
      lenientPatch: value("whip.lenient_patch"),
      maxBitrateKbps: {
        all: value("limits.whip_max_bitrate_kbps"),
        trial: value("limits.whip_trial_max_bitrate_kbps"),
      },
      limits: {
        requestsPerSecond: value("limits.whip_requests_per_second"),
        offersPerSecond: value("limits.whip_offers_per_second"),
        halfOpenPerAddress: value("limits.whip_half_open_per_address"),
        halfOpen: value("limits.whip_half_open"),
      },
    },
    media: {
      host: value("media.host"),
      port: value("media.port"),
      publicAddresses: value("media.public_addresses"),
      workers: value("media.workers"),
      audioWorkers: value("media.audio_workers"),
      gopCache: value("media.gop_cache"),
      pushSilence: value("media.push_silence") === "auto",
    },
    play: { allow: value("play.allow") },
    publish: {
      duplicate: value("publish.duplicate"),
      holdSeconds: value("publish.hold_s"),
      backupArgument: value("publish.backup_argument").replace(/^off$/, ""),
    },
    token: {
      alg: value("token.alg"),
      unknownStreams: value("token.unknown_streams"),
      issuer: value("token.issuer"),
      rotateDays: value("token.rotate_days"),
    },
    retention: {
      publishes: value("retention.publishes_days"),
      denied: value("retention.denied_days"),
      deliveries: value("retention.deliveries_days"),
      audit: value("retention.audit_days"),
    },
    limits: { apiRequestsPerSecond: value("limits.api_requests_per_second"), apiBurst: value("limits.api_burst") },
    capacity: capacityOf(value),
    nameRandom: value("stream.name_random"),
    capture: { directory: value("capture.directory"), maxMb: value("capture.max_mb"), maxS: value("capture.max_s") },
    drainS: value("drain_s"),
    upgradeS: value("upgrade_s"),
    node: { ...hostAndPort("node"), name: value("node.name"), address: value("node.address") },
    metrics: hostAndPort("metrics"),
    ingest: { hosts: value("ingest.hosts") },
    upstream: { allow: value("upstream.allow"), push: value("upstream.push") },
    webhook: {
      deadlineMs: value("webhook.deadline_ms"),
      updateS: value("webhook.update_s"),
      ca: caFile === null ? null : authoritiesOf(caFile, faults),
    },
    bootstrap: { apiKey, adminPassword: value("bootstrap.admin_password"), show: value("bootstrap.show") },
    dev: value("dev"),
    log: { level: value("log.level"), format: value("log.format") },
  };
}

function certificateOf(
  section: "http" | "rtmp",
  value: <K extends SettingKey>(key: K) => SettingValue<K>,
  faults: string[],
): CertificateFiles | null {
  const [certFile, keyFile] = [value(`${section}.tls_cert`), value(`${section}.tls_key`)];
  if (certFile === null && keyFile === null) return null;
  if (certFile === null || keyFile === null) {
    faults.push(`${section}.tls_cert and ${section}.tls_key belong together: one of them is missing`);
    return null;
  }
  return { section, certFile, keyFile };
}

function readEnvironment(
  env: Readonly<Record<string, string | undefined>>,
  faults: string[],
): Map<SettingKey, unknown> {
  const names = new Map<string, { readonly key: SettingKey; readonly isFile: boolean }>();
  for (const key of SETTING_KEYS) {
    const { env: name, secret } = settingOf(key);
    names.set(name, { key, isFile: false });
    if (secret) names.set(`${name}_FILE`, { key, isFile: true });
  }
  const texts: Text[] = [];
  for (const [name, text] of Object.entries(env)) {
    // Many tools write an empty variable for "not set".
    if (CLIENT_NAMES.includes(name) || !name.startsWith("HEADGATE_") || KUBERNETES.test(name)) continue;
    if (text === undefined || text === "") continue;
    const known = names.get(name);
    if (known === undefined)
      faults.push(`unknown environment variable ${name}; did you mean ${nearest(name, [...names.keys()])}?`);
    else if (!known.isFile) texts.push({ key: known.key, text, name });
    else if (env[settingOf(known.key).env])
      faults.push(`${name} and ${settingOf(known.key).env} are both set; keep one`);
    else texts.push(...readSecret(known.key, text, name, faults));
  }
  return readTexts(texts, faults);
}

interface Text {
  readonly key: SettingKey;
  readonly text: string;
  /** The name as the person wrote it, for the error. */
  readonly name: string;
}

function readTexts(texts: readonly Text[], faults: string[]): Map<SettingKey, unknown> {
  const values = new Map<SettingKey, unknown>();
  for (const { key, text, name } of texts) accept(values, key, settingOf(key).fromText(text), name, text, faults);
  return values;
}

function readFile(path: string, faults: string[]): Map<SettingKey, unknown> {
  const values = new Map<SettingKey, unknown>();
  let document: Record<string, unknown>;
  try {
    document = parseToml(readFileSync(path, "utf8"));
  } catch (error) {
    const reason = error instanceof TomlError ? `line ${error.line}: ${error.message.split("\n")[0]}` : reasonOf(error);
    faults.push(`cannot read ${path}: ${reason}`);
    return values;
  }
  const secretFiles = new Map<string, SettingKey>(
    SETTING_KEYS.filter((key) => settingOf(key).secret).map((key) => [`${key}_file`, key]),
  );
  const known = [...SETTING_KEYS, ...secretFiles.keys()];
  for (const [name, value] of flatten(document)) {
    if (isTable(value) && known.some((key) => key.startsWith(`${name}.`))) continue; // an empty section
    const secret = secretFiles.get(name);
    const key = SETTING_KEYS.find((each) => each === name);
    if (key !== undefined) accept(values, key, settingOf(key).fromToml(value), `${name} in ${path}`, value, faults);
    else if (secret === undefined) faults.push(`unknown key ${name} in ${path}; did you mean ${nearest(name, known)}?`);
    else if (typeof value !== "string") faults.push(`${name} in ${path} must be the path of a file`);
    else {
      for (const { text } of readSecret(secret, value, `${name} in ${path}`, faults)) {
        accept(values, secret, settingOf(secret).fromText(text), `${name} in ${path}`, text, faults);
      }
    }
  }
  return values;
}

function accept(
  values: Map<SettingKey, unknown>,
  key: SettingKey,
  value: unknown,
  name: string,
  given: unknown,
  faults: string[],
): void {
  const { wanted, secret } = settingOf(key);
  if (value !== undefined) values.set(key, value);
  else faults.push(`${name} must be ${wanted}${secret ? "" : `, not ${JSON.stringify(given)}`}`);
}

/** The text of the file, without the trailing line end that editors add; empty list when it cannot be read. */
function readSecret(key: SettingKey, path: string, name: string, faults: string[]): Text[] {
  try {
    return [{ key, text: readFileSync(path, "utf8").replace(/\r?\n$/, ""), name }];
  } catch (error) {
    faults.push(`${name}: cannot read ${path}: ${reasonOf(error)}`);
    return [];
  }
}

function authoritiesOf(path: string, faults: string[]): string | null {
  try {
    return readAuthorities(path, "webhook.ca");
  } catch (error) {
    faults.push(reasonOf(error));
    return null;
  }
}

/** Version of the running package. */
export function readVersion(): string {
  const path = new URL("../package.json", import.meta.url);
  return String((JSON.parse(readFileSync(path, "utf8")) as { version?: unknown }).version);
}
