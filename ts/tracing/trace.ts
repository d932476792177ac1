// The trace that a request belongs to, in the headers of W3C Trace Context (Recommendation of 23 November 2021,
// https://www.w3.org/TR/trace-context-1/): taken from incoming requests, and passed on in outgoing calls. Traces are
// recorded only in the log: no spans, no exporter.
import { randomBytes } from "node:crypto";

/** A position in a trace. */
export interface Trace {
  /** 32 hexadecimal digits, lower case, not all zero. */
  readonly traceId: string;
  /** Our own span, the parent of all calls that follow from it; 16 such digits. */
  readonly spanId: string;
  /** Whether the caller may have recorded it (2.2.4.1, flag `sampled`). */
  readonly isSampled: boolean;
  /** `tracestate` as it is passed on; null for none. */
  readonly state: string | null;
}

/** Version, trace id, parent id, flags, and what a later version may append (3.2.2, 3.2.4). */
const TRACEPARENT = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;
/** The forbidden version (3.2.2.1). */
const INVALID_VERSION = "ff";
const ZEROS = /^0+$/;
/** The only flag of version 00 (3.2.2.5.1). */
const SAMPLED = 0x01;

/** A member of `tracestate`: key, `=`, value (3.3.1.3). */
const MEMBER =
  /^(?:[a-z][a-z0-9_\-*/]{0,255}|[a-z0-9][a-z0-9_\-*/]{0,240}@[a-z][a-z0-9_\-*/]{0,13})=[\x20-\x2b\x2d-\x3c\x3e-\x7e]{0,255}[\x21-\x2b\x2d-\x3c\x3e-\x7e]$/;
/** Most members of a list (3.3.1.1), and how much of it is passed on, characters (3.3.1.5). */
const MEMBERS_LIMIT = 32;
const STATE_LIMIT = 512;
/** Members longer than this are dropped first when a list is too long (3.3.1.5), characters. */
const LONG_MEMBER = 128;

/** A new trace. It counts as sampled, since our log records it: receivers that follow their parent's decision record it
 *  too. */
export function newTrace(): Trace {
  return { traceId: hex(16), spanId: hex(8), isSampled: true, state: null };
}

/** A new span in the trace of these headers; in a new trace when `traceparent` is missing or malformed. */
export function traceOf(traceparent: string | null | undefined, tracestate: string | null | undefined): Trace {
  const parent = readTraceparent(traceparent ?? "");
  return parent === null ? newTrace() : { ...parent, spanId: hex(8), state: readTracestate(tracestate ?? "") };
}

/** The content of `traceparent`, or null when it must be ignored. Repeated headers arrive joined, and are invalid. */
export function readTraceparent(header: string): Omit<Trace, "spanId" | "state"> | null {
  const [, version, traceId = "", parentId = "", flags = "", rest] = TRACEPARENT.exec(header) ?? [];
  if (version === undefined || version === INVALID_VERSION) return null;
  // Version 00 ends here; what a later version appends is ignored (3.2.4).
  if (version === "00" && rest !== undefined) return null;
  if (ZEROS.test(traceId) || ZEROS.test(parentId)) return null;
  return { traceId, isSampled: (Number.parseInt(flags, 16) & SAMPLED) !== 0 };
}

/** The part of `tracestate` that is passed on; null for none. A list with a malformed member or a duplicate key is
 *  dropped completely (3.3.1, 4.3). */
export function readTracestate(header: string): string | null {
  const members = header
    .split(",")
    .map((member) => member.replace(/^[ \t]+|[ \t]+$/g, ""))
    .filter((member) => member !== "");
  const keys = new Set(members.map((member) => member.slice(0, member.indexOf("="))));
  if (members.length === 0 || members.length > MEMBERS_LIMIT || keys.size < members.length) return null;
  if (!members.every((member) => MEMBER.test(member))) return null;
  let kept = members;
  const isTooLong = () => kept.join(",").length > STATE_LIMIT;
  if (isTooLong()) kept = kept.filter((member) => member.length <= LONG_MEMBER);
  while (isTooLong()) kept = kept.slice(0, -1);
  return kept.length === 0 ? null : kept.join(",");
}

/** Headers of a call made within `trace`: each call is a span of its own. */
export function traceHeaders(trace: Trace): { readonly traceparent: string; readonly tracestate?: string } {
  return headersOf({ ...trace, spanId: hex(8) });
}

/** The stored form, which `traceFrom` reads. */
export function traceText(trace: Trace): string {
  return JSON.stringify(headersOf(trace));
}

/** The stored trace; null for none. */
export function traceFrom(text: string | null): Trace | null {
  if (text === null) return null;
  const { traceparent = "", tracestate } = JSON.parse(text) as { traceparent?: string; tracestate?: string };
  return readTraceparent(traceparent) === null ? null : traceOf(traceparent, tracestate);
}

function headersOf({ traceId, spanId, isSampled, state }: Trace) {
  const traceparent = `00-${traceId}-${spanId}-${isSampled ? "01" : "00"}`;
  return state === null ? { traceparent } : { traceparent, tracestate: state };
}

/** Random bytes for ids are drawn in batches: a system call for each id would dominate its cost. */
const DRAWN_BYTES = 4_096;
let drawn = { bytes: Buffer.alloc(0), used: 0 };

function hex(bytes: number): string {
  if (drawn.used + bytes > drawn.bytes.length) drawn = { bytes: randomBytes(DRAWN_BYTES), used: 0 };
  const from = drawn.used;
  drawn.used += bytes;
  return drawn.bytes.toString("hex", from, drawn.used);
}
