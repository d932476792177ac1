// Every setting (docs/settings.md), a row each: file, environment, flags, `--help` and `config print` read this table.
import { availableParallelism, hostname } from "node:os";
import { CAPACITY_SETTINGS } from "./capacity/settings.ts";
import { CAPTURE_SETTINGS } from "./publish/capture/settings.ts";
import { STREAM_NAME_SETTINGS } from "./publish/stream-name.ts";
import {
  addresses,
  apiKey,
  argumentName,
  headerNames,
  hosts,
  iceServers,
  integer,
  type Kind,
  networks,
  oneOf,
  onOff,
  optionalText,
  password,
  perSecond,
  port,
  portOrOff,
  rtmpUrls,
  text,
  webUrl,
} from "./setting-kinds.ts";
import { TOKEN_SETTINGS } from "./token/settings.ts";

export interface Setting<T> extends Kind<T> {
  /** Name of the environment variable. */
  readonly env: string;
  readonly fallback: T;
  readonly meaning: string;
  /** Never printed, never a flag; may also be given as the path of a file, under the name with `_file`. */
  readonly secret?: true;
  /** Its values may contain secrets: they are not printed. */
  readonly hidden?: true;
  /** SIGHUP applies a changed value to the running service; other settings need a restart. */
  readonly reloads?: true;
}

const kept = (kind: string, days: number, what: string) => ({
  ...integer(0, 36_500, "days from 0 to 36500 (0: forever)"),
  env: `HEADGATE_RETENTION_${kind}_DAYS`,
  fallback: days,
  meaning: `days that ${what} are kept; 0: forever`,
  reloads: true as const,
});

export const SETTINGS = {
  data_dir: { ...text, env: "HEADGATE_DATA_DIR", fallback: "./data", meaning: "embedded store and keys; created 0700" },
  database_url: {
    ...optionalText,
    env: "HEADGATE_DATABASE_URL",
    fallback: null,
    meaning: "postgres://…, one server or several, instead of the embedded store",
    secret: true,
  },
  "http.host": { ...text, env: "HEADGATE_HTTP_HOST", fallback: "0.0.0.0", meaning: "management API and tokens" },
  "http.port": { ...port, env: "HEADGATE_HTTP_PORT", fallback: 8080, meaning: "its port" },
  "http.public_url": {
    ...webUrl,
    env: "HEADGATE_PUBLIC_URL",
    fallback: null,
    meaning: "base of the URLs in records; default: from the Host header",
  },
  "http.tls_cert": {
    ...optionalText,
    env: "HEADGATE_HTTP_TLS_CERT",
    fallback: null,
    meaning: "file with the certificate chain for HTTPS (PEM); RTMPS uses it too",
    reloads: true,
  },
  "http.tls_key": {
    ...optionalText,
    env: "HEADGATE_HTTP_TLS_KEY",
    fallback: null,
    meaning: "file with its private key (PEM)",
    reloads: true,
  },
  "http.trusted_proxies": {
    ...networks,
    env: "HEADGATE_TRUSTED_PROXIES",
    fallback: [],
    meaning: "addresses and networks whose X-Forwarded-For header is trusted",
  },
  "http.api_key_headers": {
    ...headerNames,
    env: "HEADGATE_HTTP_API_KEY_HEADERS",
    fallback: [],
    meaning: "additional headers that may carry an API key, besides x-service-apikey",
  },
  "ice.servers": {
    ...iceServers,
    env: "HEADGATE_ICE_SERVERS",
    fallback: [],
    meaning: "STUN and TURN servers for WebRTC clients",
  },
  "ice.turn_secret": {
    ...optionalText,
    env: "HEADGATE_ICE_TURN_SECRET",
    fallback: null,
    meaning: "shared secret of the TURN servers, from which credentials valid for 1 h are derived",
    secret: true,
  },
  "whip.lenient_patch": {
    ...onOff,
    env: "HEADGATE_WHIP_LENIENT_PATCH",
    fallback: false,
    meaning: "accept a WHIP PATCH without If-Match",
  },
  "limits.whip_requests_per_second": {
    ...perSecond,
    env: "HEADGATE_LIMITS_WHIP_REQUESTS_PER_SECOND",
    fallback: 50,
    meaning: "WHIP offers from one address, and as many requests to sessions; bursts of three seconds' worth",
  },
  "limits.whip_offers_per_second": {
    ...perSecond,
    env: "HEADGATE_LIMITS_WHIP_OFFERS_PER_SECOND",
    fallback: 200,
    meaning: "WHIP offers from all addresses; bursts of three seconds' worth",
  },
  "limits.whip_half_open_per_address": {
    ...perSecond,
    env: "HEADGATE_LIMITS_WHIP_HALF_OPEN_PER_ADDRESS",
    fallback: 60,
    meaning: "WHIP sessions from one address that are not connected yet",
  },
  "limits.whip_half_open": {
    ...perSecond,
    env: "HEADGATE_LIMITS_WHIP_HALF_OPEN",
    fallback: 2_000,
    meaning: "WHIP sessions from all addresses that are not connected yet",
  },
  "limits.whip_max_bitrate_kbps": {
    ...perSecond,
    env: "HEADGATE_LIMITS_WHIP_MAX_BITRATE_KBPS",
    fallback: 6_000,
    meaning: "maximum bitrate signalled to a WebRTC sender, kbit/s",
  },
  "limits.whip_trial_max_bitrate_kbps": {
    ...perSecond,
    env: "HEADGATE_LIMITS_WHIP_TRIAL_MAX_BITRATE_KBPS",
    fallback: 0,
    meaning: "the same for organisations on trial, kbit/s",
  },
  "limits.rtmp_connections": {
    ...integer(0, 1_000_000, "a number from 0 to 1000000 (0: as many as the process may open)"),
    env: "HEADGATE_LIMITS_RTMP_CONNECTIONS",
    fallback: 0,
    meaning: "RTMP connections with players and upstreams; 0: all file descriptors but a share for HTTP and the store",
  },
  "limits.rtmp_connections_per_address": {
    ...integer(0, 1_000_000, "a number from 0 to 1000000 (0: no limit)"),
    env: "HEADGATE_LIMITS_RTMP_CONNECTIONS_PER_ADDRESS",
    fallback: 1_000,
    meaning: "RTMP connections from one address; 0: no limit",
  },
  ...CAPACITY_SETTINGS,
  ...CAPTURE_SETTINGS,
  ...STREAM_NAME_SETTINGS,
  "rtmp.host": { ...text, env: "HEADGATE_RTMP_HOST", fallback: "0.0.0.0", meaning: "ingest and play" },
  "rtmp.port": { ...portOrOff, env: "HEADGATE_RTMP_PORT", fallback: 1935, meaning: "off: RTMPS only" },
  "rtmp.trusted_proxies": {
    ...networks,
    env: "HEADGATE_RTMP_TRUSTED_PROXIES",
    fallback: [],
    meaning: "addresses and networks of load balancers that send a PROXY protocol header (v1, v2) on the RTMP ports",
  },
  "rtmp.tls_cert": {
    ...optionalText,
    env: "HEADGATE_RTMP_TLS_CERT",
    fallback: null,
    meaning: "file with a separate certificate chain for RTMPS (PEM)",
    reloads: true,
  },
  "rtmp.tls_key": {
    ...optionalText,
    env: "HEADGATE_RTMP_TLS_KEY",
    fallback: null,
    meaning: "file with its private key (PEM)",
    reloads: true,
  },
  "rtmp.tls_port": { ...port, env: "HEADGATE_RTMP_TLS_PORT", fallback: 1936, meaning: "RTMPS, with a certificate" },
  "media.host": { ...text, env: "HEADGATE_MEDIA_HOST", fallback: "0.0.0.0", meaning: "WebRTC media (UDP)" },
  "media.port": {
    ...port,
    env: "HEADGATE_MEDIA_PORT",
    fallback: 8189,
    meaning: "first UDP port, one per media worker",
  },
  "media.public_addresses": {
    ...addresses,
    env: "HEADGATE_PUBLIC_ADDRESSES",
    fallback: [],
    meaning: "IP addresses in WebRTC answers; default: the interfaces'",
  },
  "media.audio_workers": {
    ...integer(1, 1024, "a number of threads from 1 to 1024"),
    env: "HEADGATE_MEDIA_AUDIO_WORKERS",
    fallback: availableParallelism(),
    meaning: "threads that transcode Opus to AAC; default: cores",
  },
  "media.workers": {
    ...integer(1, 1024, "a number of threads from 1 to 1024"),
    env: "HEADGATE_MEDIA_WORKERS",
    fallback: availableParallelism(),
    meaning: "media threads; default: cores",
  },
  "media.gop_cache": {
    ...onOff,
    env: "HEADGATE_MEDIA_GOP_CACHE",
    fallback: true,
    meaning: "start players and pushes with the last keyframe at once",
  },
  "media.push_silence": {
    ...oneOf("auto", "off"),
    env: "HEADGATE_MEDIA_PUSH_SILENCE",
    fallback: "auto",
    meaning: "silent audio for upstreams whose stream has no audio: auto or off",
  },
  "play.allow": {
    ...networks,
    env: "HEADGATE_PLAY_ALLOW",
    fallback: [],
    meaning: "addresses and networks that may play RTMP; default: all",
  },
  "publish.duplicate": {
    ...oneOf("reject_if_active", "replace"),
    env: "HEADGATE_PUBLISH_DUPLICATE",
    fallback: "reject_if_active",
    meaning: "what happens to a publish of a name that is live: reject_if_active or replace",
  },
  "publish.backup_argument": {
    ...argumentName,
    env: "HEADGATE_PUBLISH_BACKUP_ARGUMENT",
    fallback: "backup",
    meaning: "custom argument that, with the value 1, makes a publish the backup of its stream; off: none does",
  },
  "publish.hold_s": {
    ...integer(0, 60, "seconds from 0 to 60"),
    env: "HEADGATE_PUBLISH_HOLD_S",
    fallback: 10,
    meaning: "how long upstreams and players of a lost publish are held for its successor; 0: not at all",
  },
  ...TOKEN_SETTINGS,
  "retention.publishes_days": kept("PUBLISHES", 90, "ended publishes"),
  "retention.denied_days": kept("DENIED", 7, "addresses and custom arguments of denied publishes"),
  "retention.deliveries_days": kept("DELIVERIES", 30, "webhook calls with their bodies"),
  "retention.audit_days": kept("AUDIT", 400, "entries of the audit log"),
  "limits.api_requests_per_second": {
    ...integer(0, 100_000, "requests per second from 0 to 100000 (0: no limit)"),
    env: "HEADGATE_LIMITS_API_REQUESTS_PER_SECOND",
    fallback: 20,
    meaning: "requests that one API key may make; 0: no limit",
  },
  "limits.api_burst": {
    ...integer(1, 1_000_000, "requests from 1 to 1000000"),
    env: "HEADGATE_LIMITS_API_BURST",
    fallback: 60,
    meaning: "requests that one API key may make at once after a pause",
  },
  "node.name": {
    ...text,
    env: "HEADGATE_NODE_NAME",
    fallback: hostname(),
    meaning: "name of this node, unique among those on one database_url; default: the machine's name",
  },
  "node.host": { ...text, env: "HEADGATE_NODE_HOST", fallback: "0.0.0.0", meaning: "where other nodes reach this one" },
  "node.port": { ...port, env: "HEADGATE_NODE_PORT", fallback: 8091, meaning: "the same; only with a database_url" },
  "node.address": {
    ...webUrl,
    env: "HEADGATE_NODE_ADDRESS",
    fallback: null,
    meaning: "URL by which other nodes reach this one; default: its first address and node.port",
  },
  drain_s: {
    ...integer(0, 86_400, "seconds from 0 to 86400"),
    env: "HEADGATE_DRAIN_S",
    fallback: 300,
    meaning: "how long running publishes may go on after SIGTERM",
    reloads: true,
  },
  upgrade_s: {
    ...integer(1, 3_600, "seconds from 1 to 3600"),
    env: "HEADGATE_UPGRADE_S",
    fallback: 60,
    meaning: "how long the new process of an upgrade may take to start, apart from migrations, before it is ended",
    reloads: true,
  },
  "metrics.host": {
    ...text,
    env: "HEADGATE_METRICS_HOST",
    fallback: "127.0.0.1",
    meaning: "/metrics, /healthz, /readyz",
  },
  "metrics.port": { ...port, env: "HEADGATE_METRICS_PORT", fallback: 9464, meaning: "its port" },
  "ingest.hosts": {
    ...hosts,
    env: "HEADGATE_INGEST_HOSTS",
    fallback: [],
    meaning: "our own ingest hosts; the first one is shown in records",
  },
  "upstream.allow": {
    ...hosts,
    env: "HEADGATE_UPSTREAM_ALLOW",
    fallback: [],
    meaning: "other host[:port] allowed in stream_url",
  },
  "upstream.push": {
    ...rtmpUrls,
    env: "HEADGATE_UPSTREAM_PUSH",
    fallback: [],
    meaning: "RTMP URLs that every stream is pushed to; {name} and {args} are replaced",
    hidden: true,
  },
  "webhook.deadline_ms": {
    ...integer(500, 10_000, "milliseconds from 500 to 10000"),
    env: "HEADGATE_WEBHOOK_DEADLINE_MS",
    fallback: 5_000,
    meaning: "how long a webhook may take to respond",
  },
  "webhook.update_s": {
    ...integer(5, 3_600, "seconds from 5 to 3600"),
    env: "HEADGATE_WEBHOOK_UPDATE_S",
    fallback: 30,
    meaning: "interval between two update_publish calls",
  },
  "webhook.ca": {
    ...optionalText,
    env: "HEADGATE_WEBHOOK_CA",
    fallback: null,
    meaning: "file with additional certificate authorities (PEM)",
  },
  "bootstrap.api_key": {
    ...apiKey,
    env: "HEADGATE_BOOTSTRAP_API_KEY",
    fallback: null,
    meaning: "first administrator key; default: generated, printed once",
    secret: true,
  },
  "bootstrap.admin_password": {
    ...password,
    env: "HEADGATE_BOOTSTRAP_ADMIN_PASSWORD",
    fallback: null,
    meaning: "password of the first user, admin; default: generated, printed once",
    secret: true,
  },
  "bootstrap.show": {
    ...oneOf("auto", "stderr", "file"),
    env: "HEADGATE_BOOTSTRAP_SHOW",
    fallback: "auto",
    meaning:
      "where generated ones are shown: stderr, or the file first-start.txt; auto: the file where stderr is a log",
  },
  dev: { ...onOff, env: "HEADGATE_DEV", fallback: false, meaning: "allow http and private addresses for webhooks" },
  "log.level": {
    ...oneOf("trace", "debug", "info", "warn", "error", "fatal", "silent"),
    env: "HEADGATE_LOG_LEVEL",
    fallback: "info",
    meaning: "trace, debug, info, warn, error, fatal or silent",
    reloads: true,
  },
  "log.format": {
    ...oneOf("auto", "pretty", "json"),
    env: "HEADGATE_LOG_FORMAT",
    fallback: "auto",
    meaning: "pretty or json; auto: pretty on a terminal",
  },
} as const satisfies Record<string, Setting<unknown>>;

export type SettingKey = keyof typeof SETTINGS;
export type SettingValue<K extends SettingKey> = (typeof SETTINGS)[K] extends Kind<infer T> ? T : never;

export const SETTING_KEYS = Object.keys(SETTINGS) as readonly SettingKey[];

/** The row of `key`, typed as any setting. */
export function settingOf(key: SettingKey): Setting<unknown> {
  return SETTINGS[key];
}

/** Name as a flag without the dashes: `http.port` → `http-port`. */
export function flagOf(key: SettingKey): string {
  return key.replace(/[._]/g, "-");
}
