// The tables of the store, one Kysely schema for libsql and PostgreSQL: text, integer and bigint only,
// times as epoch milliseconds, JSON as text, booleans as 0 and 1.
import type { Generated } from "kysely";

export type Role = "administrator" | "user" | "readonly";
export type StreamState = "created" | "live" | "ended" | "locked" | "deleted";

export interface OrganisationTable {
  id: string;
  /** Five characters of [A-Za-z0-9]; the first part of every stream name of the organisation. Unique. */
  hash: string;
  name: string;
  plan: "trial" | "paid";
  enabled: number;
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
  created_at: number;
  expires_at: number | null;
  last_used_at: number | null;
}

export interface StreamTable {
  id: string;
  organisation_id: string;
  /** Stream name, unique over the deployment and never reused. */
  name: string;
  state: StreamState;
  /** JSON array of strings. */
  tags: string;
  created_at: number;
  updated_at: number;
}

/** One row per publish request that the customer was asked about: the intent row of W17a, written while
 *  the webhook is asked. `asking` → `denied`, or `asking` → `live` → `ended`. */
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
  /** The webhook URL at the time of asking; null when the organisation had none. */
  webhook: string | null;
  state: "asking" | "denied" | "live" | "ended";
  asked_at: number;
  accepted_at: number | null;
  ended_at: number | null;
  end_reason: string | null;
  bytes_in: number;
  bytes_out: number;
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
  /** Of a stream: how often its tokens have been revoked; tokens with a lower number hold no more. */
  revision: number;
  updated_at: number;
  /** From then on the tokens have expired anyway. */
  expires_at: number;
}

export interface Schema {
  organisation: OrganisationTable;
  api_key: ApiKeyTable;
  stream: StreamTable;
  publish: PublishTable;
  outbox: OutboxTable;
  sequence: SequenceTable;
  token_key: TokenKeyTable;
  token_revocation: TokenRevocationTable;
}
