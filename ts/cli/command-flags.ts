// Flags of all commands, in cleye's format. This file imports nothing that is slow to load: help and errors
// about mistyped commands appear immediately, before the modules of the service are read.

/** Flags of every command that works on the store. */
export const storeFlags = {
  config: { type: String, description: "configuration file; default: headgate.toml in the data directory" },
  dataDir: { type: String, description: "directory of the embedded store (./data)" },
  json: { type: Boolean, description: "print JSON" },
} as const;

/** Those of commands that work in one organisation. */
export const organisationFlags = {
  ...storeFlags,
  organisation: { type: String, description: "id, hash or name; required if there are several" },
} as const;

/** URL of the service, and the trusted certificate. */
export const serviceFlags = {
  url: { type: String, description: "address of the service; default: this machine, at the configured http.port" },
  ca: { type: String, description: "PEM file of certificates to trust in addition to the public ones (HEADGATE_CA)" },
} as const;

/** Flags of every command that calls the service. */
export const askingFlags = { ...serviceFlags, config: storeFlags.config, json: storeFlags.json } as const;

/** Flags of commands that end a publish. */
export const endFlags = {
  reason: { type: String, description: "stop, kick: the reason for the broadcaster" },
  refuse: { type: Number, description: "stop, kick: for how many seconds new publishes of the stream are refused" },
} as const;

/** Flags of lists of what has happened. */
const listFlags = {
  from: { type: String, description: "only from this time on (2026-01-31T14:00:00Z)" },
  to: { type: String, description: "only before this time" },
  quantity: { type: Number, description: "how many, the newest first", default: 20 },
} as const;

const allFlag = { type: Boolean, description: "all of them, however many" } as const;

/** Flags of `headgate capture`. */
export const captureFlags = {
  ...askingFlags,
  next: {
    type: String,
    description: "capture the next publish of the stream with this id from its first byte, instead of a running one",
  },
  seconds: {
    type: Number,
    description: "length of the capture; default: as long as the service allows (capture.max_s)",
  },
  withoutMedia: { type: Boolean, description: "replace audio and video by zeros of the same length" },
} as const;

/** Flags of `headgate replay`. */
export const replayFlags = {
  json: askingFlags.json,
  flv: { type: String, description: "also write the frames to this FLV file, as they would be pushed" },
} as const;

/** The verbs of `headgate stream`. */
export const STREAM_VERBS = [
  "ls",
  "create",
  "show NAME|ID",
  "set NAME|ID",
  "publishes NAME|ID",
  "refusals NAME|ID",
  "key NAME|ID",
  "switch NAME|ID [CLIENT_ID]",
  "stop NAME|ID",
  "lock NAME|ID",
  "unlock NAME|ID",
  "rm NAME|ID",
] as const;

/** Flags of `headgate stream`. */
export const streamFlags = {
  ...organisationFlags,
  ...serviceFlags,
  tag: { type: String, description: "create: its tags, separated by commas" },
  title: { type: String, description: 'create, set: its title, for people; " " for none' },
  externalId: { type: String, description: 'create, set: your own id of it, unique in the organisation; " " for none' },
  renew: { type: Boolean, description: "key: renew it; from then on the former key is refused" },
  ...endFlags,
  reason: { type: String, description: "stop: the reason for the broadcaster; refusals: only this one" },
  from: listFlags.from,
  to: listFlags.to,
  quantity: listFlags.quantity,
} as const;

/** Flags of `headgate refusals`. */
export const refusalFlags = {
  ...organisationFlags,
  ...listFlags,
  reason: { type: String, description: "only this reason, such as locked_stream" },
  request: { type: String, description: "only publish, or only play" },
} as const;

/** The verbs of `headgate upstreams`. */
export const UPSTREAM_VERBS = [
  "ls CLIENT_ID|STREAM_ID",
  "add CLIENT_ID|STREAM_ID URL",
  "rm CLIENT_ID|STREAM_ID ID",
  "pause STREAM_ID ID",
  "resume STREAM_ID ID",
  "retry STREAM_ID ID",
  "test STREAM_ID ID",
] as const;

/** The verbs of `headgate token`. */
export const TOKEN_VERBS = ["ls", "create NAME", "verify TOKEN", "revoke JTI", "keys", "rotate", "forget KID"] as const;

/** Flags of `headgate token`. */
export const tokenFlags = {
  ...organisationFlags,
  ...listFlags,
  ingestUrl: { type: String, description: "create: the RTMP URL that the token is for" },
  stream: {
    type: String,
    description: "ls: only for this stream name; revoke: every token for this stream name instead",
  },
  who: { type: String, description: "ls: only created by this person or key" },
  atOnce: { type: Boolean, description: "rotate: even if the next key has been published only for a short time" },
} as const;

/** The verbs of `headgate settings`. */
export const SETTINGS_VERBS = ["show", "set NAME VALUE"] as const;

/** The verbs of `headgate logo`. */
export const LOGO_VERBS = ["show", "set FILE", "rm"] as const;

/** Flags of `headgate usage`. */
export const usageFlags = {
  ...askingFlags,
  from: { type: String, description: "the first day (2026-01-31); default: 30 days ago" },
  to: { type: String, description: "the last day" },
  stream: { type: String, description: "only of the stream with this id" },
  quantity: { type: Number, description: "how many rows, the oldest first (3100)" },
  all: allFlag,
} as const;

/** Flags of `headgate audit`. */
export const auditFlags = {
  ...askingFlags,
  ...listFlags,
  all: allFlag,
  action: { type: String, description: "only this action, such as stream.lock" },
  who: { type: String, description: "only changes by this person or key" },
} as const;

/** The verbs of `headgate webhook`. */
export const WEBHOOK_VERBS = [
  "show",
  "set URL",
  "rm",
  "secret",
  "test",
  "deliveries",
  "delivery ID",
  "replay ID",
  "simulate",
] as const;

/** Flags of `headgate backup` and `headgate restore`. */
export const backupFlags = {
  ...storeFlags,
  key: { type: String, description: "path of the copy of headgate.key: backup writes it, restore reads it" },
} as const;

/** Flags of `headgate store`. */
export const storeCommandFlags = {
  ...storeFlags,
  key: {
    type: String,
    description: "copy: the headgate.key of FROM, if FROM is a database (default: the one in the data directory)",
  },
} as const;

/** Flags of `headgate webhook`. */
export const webhookFlags = {
  ...askingFlags,
  json: { type: Boolean, description: "print JSON, as test, delivery and replay always do" },
  copies: {
    type: Boolean,
    description: "show, set, rm, secret, test, deliveries: of the second webhook, which gets copies",
  },
  events: { type: String, description: "set --copies: what it gets, all or alerts (default: all, or as before)" },
  arguments: { type: String, description: "test: custom arguments, as after the ? of a stream name" },
  failed: { type: Boolean, description: "deliveries: only failed ones" },
  name: { type: String, description: "deliveries: only of this stream name" },
  call: { type: String, description: "deliveries: only publish, update_publish, publish_done or health" },
  clientId: { type: String, description: "deliveries: only of the publish with this client id" },
  from: { type: String, description: "deliveries: only from this time on (2026-01-31T14:00:00Z)" },
  to: { type: String, description: "deliveries: only before this time" },
  quantity: { type: Number, description: "deliveries: how many, the newest first", default: 20 },
  all: { type: Boolean, description: "deliveries: all of them, however many" },
  port: { type: Number, description: "simulate: port to listen on", default: 8443 },
  status: { type: Number, description: "simulate: status to respond with", default: 200 },
  delay: { type: Number, description: "simulate: delay before the response, ms", default: 0 },
  reason: { type: String, description: "simulate: text of the response", default: "" },
  secret: { type: String, description: "simulate: verify signatures with this whsec_…" },
  certificate: {
    type: String,
    description: "simulate: where to write its certificate",
    default: "headgate-simulated-customer.pem",
  },
} as const;

/** Their values. */
export interface WebhookFlags {
  readonly json?: boolean | undefined;
  readonly copies?: boolean | undefined;
  readonly events?: string | undefined;
  readonly arguments?: string | undefined;
  readonly failed?: boolean | undefined;
  readonly name?: string | undefined;
  readonly call?: string | undefined;
  readonly clientId?: string | undefined;
  readonly from?: string | undefined;
  readonly to?: string | undefined;
  readonly quantity: number;
  readonly all?: boolean | undefined;
  readonly port: number;
  readonly status: number;
  readonly delay: number;
  readonly reason: string;
  readonly secret?: string | undefined;
  readonly certificate: string;
}
