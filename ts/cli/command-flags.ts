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
  renew: { type: Boolean, description: "key: renew it; from then on the former key is refused" },
} as const;

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
  json: { type: Boolean, description: "deliveries: print JSON, as test and replay always do" },
  arguments: { type: String, description: "test: custom arguments, as after the ? of a stream name" },
  failed: { type: Boolean, description: "deliveries: only failed ones" },
  name: { type: String, description: "deliveries: only of this stream name" },
  quantity: { type: Number, description: "deliveries: how many", default: 20 },
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
  readonly arguments?: string | undefined;
  readonly failed?: boolean | undefined;
  readonly name?: string | undefined;
  readonly quantity: number;
  readonly port: number;
  readonly status: number;
  readonly delay: number;
  readonly reason: string;
  readonly secret?: string | undefined;
  readonly certificate: string;
}
