// A publish request, whatever its protocol.
import type { OfferSummary } from "../../media.ts";
import type { TokenClaims } from "../../token/tokens.ts";
import type { Trace } from "../../tracing/trace.ts";
import type { Intent } from "../record.ts";

export interface PublishRequest {
  readonly protocol: Intent["protocol"];
  readonly app: string;
  /** Stream name as sent, without arguments. */
  readonly name: Uint8Array;
  /** Bytes after the first `?`; null when there was none. */
  readonly arguments: Uint8Array | null;
  /** IP address of the broadcaster. */
  readonly address: string;
  /** Claims of the web token that came with the request; absent or null when there was none. */
  readonly claims?: TokenClaims | null;
  /** The trace the request belongs to; a new trace begins here when it is absent. */
  readonly trace?: Trace;
  /** Of a WHIP client; absent: it made none. */
  readonly offer?: OfferSummary;
  /** The id that its WHIP session will have. */
  readonly session?: string;
  /** The signalling a WHIP publish came by; absent: WHIP. */
  readonly via?: "v5";
  /** As of `RefusedPublish`. */
  readonly mayMove?: boolean;
}
