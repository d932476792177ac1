// The tables of the store, one Kysely schema for libsql and PostgreSQL: text, integer and bigint only,
// times as epoch milliseconds, JSON as text, booleans as 0 and 1.
import type { Generated } from "kysely";

/** Of keys and people, the one that may do most first. */
export const ROLES = ["administrator", "user", "readonly"] as const;
export type Role = (typeof ROLES)[number];
export type StreamState = "created" | "live" | "ended" | "locked" | "deleted";

export interface OrganisationTable {
  id: string;
  /** Five characters of [A-Za-z0-9]; the first part of every stream name of the organisation. Unique. */
  hash: string;
  name: string;
  plan: "trial" | "paid";
  /** When a trial ends; null for a trial without an end and for paid ones. */
  trial_ends_at: number | null;
  enabled: number;
  /** What the organisation may have of its own, 0 for no limit; null: as the service has it (0018). */
  max_streams: number | null;
  max_ingest_kbps: number | null;
  max_setups_per_second: number | null;
  webhook: string | null;
  created_at: number;
  updated_at: number;
}

export interface ApiKeyTable {
  id: string;
  organisation_id: string;
  role: Role;
  /** SHA-256 of the whole key, lower-case hex. */
  hash: string;
  /** What people call it; null for none. */
  label: string | null;
  /** The key sees and creates only streams with this tag; null: the whole organisation. */
  scope_tag: string | null;
  created_at: number;
  expires_at: number | null;
  last_used_at: number | null;
  /** A revoked key opens nothing; its row stays for the audit log. */
  revoked_at: number | null;
}

export interface StreamTable {
  id: string;
  organisation_id: string;
  /** Stream name, unique over the deployment and never reused. */
  name: string;
  state: StreamState;
  /** The state that unlock gives back; null unless locked. */
  state_before_lock: "created" | "ended" | null;
  /** JSON array of strings. */
  tags: string;
  /** How long upstreams and players of a lost publish are held, seconds; null: as the organisation has it. */
  hold_s: number | null;
  created_at: number;
  updated_at: number;
}

/** One row per publish request that the customer was asked about: the intent row of W17a, written while
 *  the webhook is asked. `asking` → `denied`, or `asking` → `live` → `ended`. What came with 0013 is null in older rows. */
export interface PublishTable {
  /** The wire's clientid. */
  client_id: number;
  organisation_id: string;
  stream_id: string;
  name: string;
  app: string;
  /** Custom arguments, one character per byte (latin1); null when there were none. */
  arguments: string | null;
  address: string;
  protocol: "rtmp" | "whip" | null;
  /** The webhook URL at the time of asking; null when the organisation had none. */
  webhook: string | null;
  state: "asking" | "denied" | "live" | "ended";
  asked_at: number;
  accepted_at: number | null;
  ended_at: number | null;
  end_reason: string | null;
  /** Why it was denied, by the names of publish/denials.ts, and what the broadcaster was told. */
  denial_cause: string | null;
  denial_reason: string | null;
  bytes_in: number;
  bytes_out: number;
  /** What other nodes handed to their players, beside `bytes_out`. */
  bytes_elsewhere: Generated<number>;
  /** What it carried when that was last written, JSON objects as in `PublishTracks`. */
  video: string | null;
  audio: string | null;
  /** What its readers had lost by then. */
  dropped_frames: number | null;
  /** Of the node whose publish it is; null in rows from before 0014. */
  epoch: number | null;
  /** The trace that it belongs to, a JSON object of W3C headers; null in rows from before 0016. */
  trace: string | null;
  /** The lost publish whose upstreams and players it went on with; null for none. */
  continues: number | null;
  /** 1: it came as the backup of its stream. */
  backup: Generated<number>;
}

/** Events that must arrive at the customer; written in the transaction that ends the publish. */
export interface OutboxTable {
  /** The webhook-id, the same over all attempts. */
  id: string;
  organisation_id: string;
  client_id: number;
  url: string;
  /** The exact body, one character per byte (latin1). */
  body: string;
  attempts: Generated<number>;
  next_attempt_at: number;
  created_at: number;
  delivered_at: number | null;
  given_up_at: number | null;
  /** Last HTTP status, or null when there was no answer yet. */
  last_status: number | null;
  /** Of the node that delivers it; null in rows from before 0014. */
  epoch: number | null;
  /** As the publish has it. */
  trace: string | null;
}

/** What happened to a publish while it ran, beside its row. It goes with that row. */
export interface PublishTimelineTable {
  client_id: number;
  /** JSON object as publish/timeline/kept-timelines.ts writes it. */
  kept: string;
}

/** The end of a publish that its node is to bring about. */
export interface KeptEndTable {
  client_id: number;
  /** Of that node. */
  epoch: number;
}

/** One start of a service on this store. */
export interface NodeTable {
  /** Never given twice: a node that starts anew has another one. */
  epoch: number;
  name: string;
  /** `lost`: others took it for dead, and have ended its publishes. */
  state: "up" | "draining" | "stopped" | "lost";
  /** Grows with each sign of life. */
  beats: number;
  /** Of the last one, by the store's clock. */
  beat_at: number;
  started_at: number;
  version: string;
  /** JSON object: addresses, capacity and load, as cluster/nodes.ts writes it. */
  status: string;
}

/** Blocks of numbers: `next` is the first number not handed out. */
export interface SequenceTable {
  name: string;
  next: number;
}

export interface TokenKeyTable {
  kid: string;
  alg: string;
  /** Public key as JWK JSON. */
  public_jwk: string;
  /** Private key as JWK JSON, encrypted with the key file of the data directory (AES-256-GCM, base64url). */
  private_key: string;
  state: "next" | "active" | "retired";
  created_at: number;
  activated_at: number | null;
  retired_at: number | null;
}

/** Web tokens that hold no more (T7): one by its jti, or those of a stream that carry an older revision. */
export interface TokenRevocationTable {
  kind: "jti" | "stream";
  /** The jti, or the stream name without arguments. */
  value: string;
  /** Of a stream: grows whenever its tokens are revoked; tokens with a lower number hold no more. */
  revision: number;
  updated_at: number;
  /** Grows with every revocation, whoever made it and whatever the clock said. */
  sequence: number;
  /** From then on the tokens have expired anyway. */
  expires_at: number;
}

/** A person of one organisation. */
export interface PersonTable {
  id: string;
  organisation_id: string;
  /** Lower case, unique over the deployment. The first person of a new store is called `admin`. */
  email: string;
  role: Role;
  /** Argon2id in PHC form. */
  password_hash: string;
  created_at: number;
  updated_at: number;
  last_login_at: number | null;
}

/** A person who has signed in. */
export interface PersonSessionTable {
  /** SHA-256 of the id in the cookie, lower-case hex. */
  hash: string;
  person_id: string;
  created_at: number;
  last_seen_at: number;
}

/** Every change: who, what, when. Rows are only ever added. */
export interface AuditTable {
  /** Ascends with time. */
  id: string;
  organisation_id: string;
  at: number;
  who_kind: "key" | "user" | "operator";
  /** Id of the key or person; null for the operator. */
  who_id: string | null;
  /** `stream.create`, `webhook.set`, … */
  action: string;
  /** Id of what was changed. */
  subject: string;
  /** JSON object with what changed; never a secret. */
  detail: string;
  /** The x-request-id; null for the operator. */
  request_id: string | null;
}

/** Bytes of a stream on one day (UTC). */
export interface UsageTable {
  stream_id: string;
  /** `2026-01-31` */
  day: string;
  organisation_id: string;
  bytes_in: number;
  bytes_out: number;
}

/** Where a stream is always pushed to. */
export interface StreamUpstreamTable {
  id: string;
  stream_id: string;
  /** A complete RTMP URL, encrypted with the key file of the data directory (AES-256-GCM, base64url). */
  url: string;
  /** What the customer calls it; null for none. */
  label: string | null;
  created_at: number;
}

/** What webhook calls are signed with (W9). */
export interface WebhookSecretTable {
  id: string;
  organisation_id: string;
  /** The text `whsec_…`, encrypted with the key file of the data directory. */
  sealed: string;
  created_at: number;
  /** null for the current one; a former one signs along until then. */
  expires_at: number | null;
}

/** The switches of an organisation (M7); without a row all of them have their defaults. */
export interface OrganisationSettingTable {
  organisation_id: string;
  /** JSON object with what differs from the defaults. */
  settings: string;
  updated_at: number;
}

/** One row per event that a customer was sent, whatever came of it. */
export interface DeliveryTable {
  /** The webhook-id. */
  id: string;
  organisation_id: string;
  /** 0 for a test. */
  client_id: number;
  call: "publish" | "update_publish" | "publish_done";
  /** Stream name. */
  name: string;
  url: string;
  /** The exact body, one character per byte (latin1). */
  body: string;
  /** `answered`, or why there was no answer. */
  outcome: string;
  status: number | null;
  reason: string | null;
  /** Of the last attempt. */
  latency_ms: number;
  attempts: number;
  first_at: number;
  last_at: number;
  /** About what the row takes, for the limit of the log; never changes. */
  bytes: number;
}

/** One row: the sum of `bytes` over the delivery log, which the store keeps itself (delivery-size.ts). */
export interface DeliverySizeTable {
  readonly bytes: number;
}

/** What was answered to a request with an Idempotency-Key (M17). */
export interface KeptAnswerTable {
  /** SHA-256 of organisation, caller and key, lower-case hex. */
  id: string;
  organisation_id: string;
  /** The answer and what it was for, encrypted with the key file of the data directory; null while the request runs. */
  sealed: string | null;
  begun_at: number;
}

export interface Schema {
  organisation: OrganisationTable;
  api_key: ApiKeyTable;
  stream: StreamTable;
  stream_upstream: StreamUpstreamTable;
  publish: PublishTable;
  publish_timeline: PublishTimelineTable;
  outbox: OutboxTable;
  sequence: SequenceTable;
  token_key: TokenKeyTable;
  token_revocation: TokenRevocationTable;
  person: PersonTable;
  person_session: PersonSessionTable;
  audit: AuditTable;
  usage: UsageTable;
  webhook_secret: WebhookSecretTable;
  organisation_setting: OrganisationSettingTable;
  delivery: DeliveryTable;
  delivery_size: DeliverySizeTable;
  kept_answer: KeptAnswerTable;
  node: NodeTable;
  kept_end: KeptEndTable;
}
