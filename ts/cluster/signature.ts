// Authenticates a call as coming from a node of this service: an HMAC over the entire call, valid only for a short time
// and only once. An eavesdropper between the nodes can read a call, but neither repeat nor change one.
import { createHash, createHmac, randomUUID, timingSafeEqual } from "node:crypto";
import { steadyClock } from "../in-time.ts";

/** Header of a call: `<epoch ms>.<nonce>.<hex>`. */
export const CALL_HEADER = "headgate-call";
/** How far apart two nodes' estimates of the store's clock may be, ms. */
const AGE_LIMIT_MS = 30_000;
/** Calls kept in memory so that none is accepted twice; beyond that, calls are refused. */
const REMEMBERED_LIMIT = 200_000;

export interface SignedCall {
  readonly method: string;
  /** Path and query. */
  readonly target: string;
  readonly body: Uint8Array;
  /** IP address of the client whose request is passed on; empty for a call of the node itself. */
  readonly client: string;
}

/** The header's value for a call at `now`, epoch ms. */
export function signCall(key: Uint8Array, call: SignedCall, now: number): string {
  const head = `${Math.round(now)}.${randomUUID()}`;
  return `${head}.${macOf(key, call, head).toString("hex")}`;
}

/** A call that was accepted. */
interface Seen {
  /** Until when it is remembered in any case, on a clock that never goes back, ms. */
  readonly until: number;
  /** After this it is rejected for its age, epoch ms. */
  readonly tooOldAfter: number;
}

/** Verifies calls; remembers those of the last seconds. */
export class CallVerifier {
  readonly #key: Uint8Array;
  /** By nonce, in order of arrival. */
  readonly #seen = new Map<string, Seen>();

  #now = 0;
  readonly #steady = steadyClock({ now: () => this.#now });

  constructor(key: Uint8Array) {
    this.#key = key;
  }

  /** Whether the call comes from a node, is recent, and was not seen before. `now`: epoch ms. */
  holds(header: string | undefined, call: SignedCall, now: number): boolean {
    const [, time = "", nonce = "", mac = ""] = /^(\d{1,16})\.([\w-]{36})\.([0-9a-f]{64})$/.exec(header ?? "") ?? [];
    if (mac === "" || Math.abs(now - Number(time)) > AGE_LIMIT_MS) return false;
    if (!timingSafeEqual(macOf(this.#key, call, `${time}.${nonce}`), Buffer.from(mac, "hex"))) return false;
    this.#now = now;
    const steady = this.#steady.now();
    for (const [old, { until, tooOldAfter }] of this.#seen) {
      // While the clock was set back, calls from before the step are too recent, and remembered if there is room.
      if (until > steady || (tooOldAfter >= now && this.#seen.size < REMEMBERED_LIMIT)) break;
      this.#seen.delete(old);
    }
    if (this.#seen.has(nonce) || this.#seen.size >= REMEMBERED_LIMIT) return false;
    this.#seen.set(nonce, { until: steady + 2 * AGE_LIMIT_MS, tooOldAfter: Number(time) + AGE_LIMIT_MS });
    return true;
  }
}

function macOf(key: Uint8Array, { method, target, body, client }: SignedCall, head: string): Buffer {
  const digest = createHash("sha256").update(body).digest("hex");
  return createHmac("sha256", key).update([method, target, client, head, digest].join("\n")).digest();
}
