// The tables of the store for libsql and PostgreSQL: text, integer and bigint; times are epoch ms, booleans 0 and 1.
import type { Generated } from "kysely";
import type { EndingColumns, RefusalColumns } from "./tables/ending-columns.ts";
import type { IdentityTables, LogoTables, UpstreamPauseColumns } from "./tables/management-tables.ts";
import type { PublishKeyColumns } from "./tables/publish-key.ts";
import type { RefusalTables } from "./tables/refusal-table.ts";
import type { Role } from "./tables/roles.ts";
import type { StreamListTables, StreamState } from "./tables/stream-lists.ts";
import type { StreamTitleColumns, StreamTitleTables } from "./tables/stream-titles.ts";
import type { TokenTable } from "./tables/token-tables.ts";
import type { WebhookCopyTables } from "./tables/webhook-tables.ts";

export type { StreamState };

export interface OrganisationTable {
  id: string;
  /** Five characters of [A-Za-z0-9]; the first part of every stream name of the organisation. Unique. */
  hash: string;
  name: string;
  plan: "trial" | "paid";
  /** When a trial ends; null for a trial without an end and for paid ones. */
  trial_ends_at: number | null;
  enabled: number;
  /** The organisation's own limits, 0 for no limit; null: those of the service apply (0018). */
  max_streams: number | null;
  max_ingest_kbps: number | null;
  max_setups_per_second: number | null;
  /** 1 for the one organisation that operates the deployment, null for the others (0023). */
  operates: number | null;
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
  /** The label people give it; null for none. */
  label: string | null;
  /** The key sees and creates only streams with this tag; null: the whole organisation. */
  scope_tag: string | null;
  created_at: number;
  expires_at: number | null;
  last_used_at: number | null;
  /** A revoked key grants nothing; its row stays for the audit log. */
  revoked_at: number | null;
}

export interface StreamTable extends RefusalColumns, PublishKeyColumns, StreamTitleColumns {
  id: string;
  organisation_id: string;
  /** Stream name, unique over the deployment and never reused. */
  name: string;
  state: StreamState;
  /** The state that unlocking restores; null unless locked. */
  state_before_lock: "created" | "ended" | null;
  /** JSON array of strings. */
  tags: string;
  /** How long upstreams and players of a lost publish are held, seconds; null: the organisation's setting applies. */
  hold_s: number | null;
  created_at: number;
  updated_at: number;
}

/** One row per publish request about which the customer was asked: the intent row of W17a, written while the webhook is
 *  called. `asking` → `denied`, or `asking` → `live` → `ended`. Columns added by 0013 are null in older rows. */
export interface PublishTable extends EndingColumns {
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
  /** The webhook URL at the time of the request; null when the organisation had none. */
  webhook: string | null;
  state: "asking" | "denied" | "live" | "ended";
  asked_at: number;
  accepted_at: number | null;
  ended_at: number | null;
  end_reason: string | null;
  /** Why it was denied, by the names of publish/denials.ts, and the reason sent to the broadcaster. */
  denial_cause: string | null;
  denial_reason: string | null;
  /** The customer's HTTP status, if that denied it; null in rows from before 0032. */
  denial_status: number | null;
  bytes_in: number;
  bytes_out: number;
  /** Bytes that other nodes sent to their players, in addition to `bytes_out`. */
  bytes_elsewhere: Generated<number>;
  /** Its tracks as last written, JSON objects as in `PublishTracks`. */
  video: string | null;
  audio: string | null;
  /** Frames its readers had lost by then. */
  dropped_frames: number | null;
  /** Epoch of the node that owns the publish; null in rows from before 0014. */
  epoch: number | null;
  /** The trace it belongs to, a JSON object of W3C headers; null in rows from before 0016. */
  trace: string | null;
  /** The lost publish whose upstreams and players it took over; null for none. */
  continues: number | null;
  /** 1: it was published as the backup of its stream. */
  backup: Generated<number>;
  /** Hash of its WHIP session's id; null for RTMP and in rows from before 0027. */
  session: string | null;
}

/** Events that must arrive at the customer; written in the transaction that ends the publish. */
export interface OutboxTable {
  /** The webhook-id, the same for all attempts. */
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
  /** Answers in a row that refused it for good, a 4xx, and the first one's time. */
  refusals: Generated<number>;
  refused_since: number | null;
  /** Epoch of the node that delivers it; null in rows from before 0014. */
  epoch: number | null;
  /** The trace of the publish. */
  trace: string | null;
  /** `health`: an alert, for client id 0 if it is about no publish. null: the publish_done of the publish. */
  call: "health" | null;
}

/** What happened to a publish while it ran, in addition to its row, with which it is deleted. */
export interface PublishTimelineTable {
  client_id: number;
  /** JSON object as publish/timeline/kept-timelines.ts writes it. */
  kept: string;
}

/** A requested end of a publish that its node has yet to carry out. */
export interface KeptEndTable {
  client_id: number;
  /** Epoch of that node. */
  epoch: number;
  /** JSON object of `EndingColumns`; null in rows from before 0027. */
  ending: string | null;
}

/** One start of a service on this store. */
export interface NodeTable {
  /** Never reused: a node that restarts gets a new one. */
  epoch: number;
  name: string;
  /** `lost`: other nodes declared it dead, and have ended its publishes. */
  state: "up" | "draining" | "stopped" | "lost";
  /** Incremented with each heartbeat. */
  beats: number;
  /** Time of the last heartbeat, on the store's clock. */
  beat_at: number;
  started_at: number;
  version: string;
  /** JSON object: addresses, capacity and load, as cluster/nodes.ts writes it. */
  status: string;
}

/** Number sequences: `next` is the first number not handed out. */
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

/** Revoked web tokens (T7): one by its jti, or those of a stream with an older revision. */
export interface TokenRevocationTable {
  kind: "jti" | "stream";
  /** The jti, or the stream name without arguments. */
  value: string;
  /** For a stream: increases whenever its tokens are revoked; tokens with a lower number are invalid. 0: the stream was
   *  deleted. */
  revision: number;
  updated_at: number;
  /** Increases with every revocation, on every node and independently of clocks. */
  sequence: number;
  /** After this the tokens have expired anyway. */
  expires_at: number;
}

/** A person of one organisation. */
export interface PersonTable {
  id: string;
  organisation_id: string;
  /** Lower case, unique over the deployment. The first person of a new store is called `admin`. */
  email: string;
  role: Role;
  /** Argon2id in PHC form; `NO_PASSWORD` (organisation/passwords.ts) for a person without a password. */
  password_hash: string;
  created_at: number;
  updated_at: number;
  last_login_at: number | null;
}

/** A session of a person who has signed in. */
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
  /** Id of the changed object. */
  subject: string;
  /** JSON object with the details of the change; never a secret. */
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

/** Sum of the bytes of an organisation's streams on one day, in shards (tables/shards.ts). */
export interface UsageSumTable {
  readonly organisation_id: string;
  readonly day: string;
  readonly shard: number;
  readonly bytes_in: number;
  readonly bytes_out: number;
}

/** An upstream that a stream is always pushed to. */
export interface StreamUpstreamTable extends UpstreamPauseColumns {
  id: string;
  stream_id: string;
  /** A complete RTMP URL, encrypted with the key file of the data directory (AES-256-GCM, base64url). */
  url: string;
  /** The customer's label; null for none. */
  label: string | null;
  created_at: number;
}

/** The secrets with which webhook calls are signed (W9). */
export interface WebhookSecretTable {
  id: string;
  organisation_id: string;
  /** The text `whsec_…`, encrypted with the key file of the data directory. */
  sealed: string;
  created_at: number;
  /** null for the current one; a former one is also used for signing until then. */
  expires_at: number | null;
}

/** The settings of an organisation (M7); without a row all of them have their defaults. */
export interface OrganisationSettingTable {
  organisation_id: string;
  /** JSON object with the settings that differ from the defaults. */
  settings: string;
  updated_at: number;
}

/** What a webhook is called for. */
export type WebhookCallName = "publish" | "update_publish" | "publish_done" | "health";

/** One row per event sent to a customer, whatever the outcome. */
export interface DeliveryTable {
  /** The webhook-id. */
  id: string;
  organisation_id: string;
  /** 0 for a test. */
  client_id: number;
  call: WebhookCallName;
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
  /** The response, JSON (publish/webhook/kept-response.ts); null without one, and in rows from before 0032. */
  response: string | null;
  /** 1: it went to the second webhook, which gets copies. */
  is_copy: number | null;
  /** Approximate size of the row, for the limit of the log. */
  bytes: number;
}

/** One row: the sum of `bytes` over the delivery log, maintained by triggers (delivery-size.ts). */
export interface DeliverySizeTable {
  readonly bytes: number;
}

/** The sum of `bytes` over the deliveries of one organisation, maintained by triggers. */
export interface DeliveryShareTable {
  readonly organisation_id: string;
  readonly bytes: number;
}

/** Approximate rows and bytes of one organisation in one of its tables, maintained by triggers (table-share-tables.ts). */
export interface TableShareTable {
  readonly organisation_id: string;
  readonly table_name: string;
  readonly rows: number;
  readonly bytes: number;
}

/** The response to a request with an Idempotency-Key (M17). */
export interface KeptAnswerTable {
  /** SHA-256 of organisation, caller and key, lower-case hex. */
  id: string;
  organisation_id: string;
  /** The response and a digest of its request, encrypted with the key file of the data directory; null while the
   *  request runs. */
  sealed: string | null;
  begun_at: number;
}

export interface Schema
  extends IdentityTables,
    LogoTables,
    RefusalTables,
    StreamListTables,
    StreamTitleTables,
    WebhookCopyTables {
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
  token: TokenTable;
  person: PersonTable;
  person_session: PersonSessionTable;
  audit: AuditTable;
  usage: UsageTable;
  usage_sum: UsageSumTable;
  webhook_secret: WebhookSecretTable;
  organisation_setting: OrganisationSettingTable;
  delivery: DeliveryTable;
  delivery_size: DeliverySizeTable;
  delivery_share: DeliveryShareTable;
  table_share: TableShareTable;
  kept_answer: KeptAnswerTable;
  node: NodeTable;
  kept_end: KeptEndTable;
}
