// The trace that a request belongs to, by the headers of W3C Trace Context (Recommendation of 23 November 2021,
// https://www.w3.org/TR/trace-context-1/): read from whoever calls us, and told to whomever we call. Nothing is recorded
// here but in the log: no spans, no exporter.
import { randomBytes } from "node:crypto";

/** Where we are in a trace. */
export interface Trace {
  /** 32 hexadecimal digits, lower case, not all zero. */
  readonly traceId: string;
  /** Our own span, the parent of whatever comes of it; 16 such digits. */
  readonly spanId: string;
  /** Whether callers may have recorded it (2.2.4.1, flag `sampled`). */
  readonly isSampled: boolean;
  /** `tracestate` as it is passed on; null for none. */
  readonly state: string | null;
}

/** Version, trace id, parent id, flags, and what a later version may append (3.2.2, 3.2.4). */
const TRACEPARENT = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;
/** A version that is forbidden (3.2.2.1). */
const INVALID_VERSION = "ff";
const ZEROS = /^0+$/;
/** The one flag of version 00 (3.2.2.5.1). */
const SAMPLED = 0x01;

/** A member of `tracestate`: key, `=`, value (3.3.1.3). */
const MEMBER =
  /^(?:[a-z][a-z0-9_\-*/]{0,255}|[a-z0-9][a-z0-9_\-*/]{0,240}@[a-z][a-z0-9_\-*/]{0,13})=[\x20-\x2b\x2d-\x3c\x3e-\x7e]{0,255}[\x21-\x2b\x2d-\x3c\x3e-\x7e]$/;
/** Members that a list may have (3.3.1.1), and what of it is passed on, characters (3.3.1.5). */
const MEMBERS_LIMIT = 32;
const STATE_LIMIT = 512;
/** Longer members go first when a list is too long (3.3.1.5), characters. */
const LONG_MEMBER = 128;

/** A trace that begins here. It counts as sampled, since our log has it: a receiver that asks its parent goes on. */
export function newTrace(): Trace {
  return { traceId: hex(16), spanId: hex(8), isSampled: true, state: null };
}

/** A span of ours in the trace of these headers; in a new one when `traceparent` is missing or malformed. */
export function traceOf(traceparent: string | null | undefined, tracestate: string | null | undefined): Trace {
  const parent = readTraceparent(traceparent ?? "");
  return parent === null ? newTrace() : { ...parent, spanId: hex(8), state: readTracestate(tracestate ?? "") };
}

/** What `traceparent` says, or null when it is to be ignored. Several headers arrive joined, and are none. */
export function readTraceparent(header: string): Omit<Trace, "spanId" | "state"> | null {
  const [, version, traceId = "", parentId = "", flags = "", rest] = TRACEPARENT.exec(header) ?? [];
  if (version === undefined || version === INVALID_VERSION) return null;
  // Version 00 ends here; what a later one appends is not understood, and no fault (3.2.4).
  if (version === "00" && rest !== undefined) return null;
  if (ZEROS.test(traceId) || ZEROS.test(parentId)) return null;
  return { traceId, isSampled: (Number.parseInt(flags, 16) & SAMPLED) !== 0 };
}

/** What of `tracestate` is passed on; null for nothing. A list with a malformed member or a key twice is dropped whole
 *  (3.3.1, 4.3). */
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

/** Headers of a call that is made in `trace`: each call is a span of its own. */
export function traceHeaders(trace: Trace): { readonly traceparent: string; readonly tracestate?: string } {
  return headersOf({ ...trace, spanId: hex(8) });
}

/** For the store: what `traceFrom` reads. */
export function traceText(trace: Trace): string {
  return JSON.stringify(headersOf(trace));
}

/** The trace that was stored; null for none. */
export function traceFrom(text: string | null): Trace | null {
  if (text === null) return null;
  const { traceparent = "", tracestate } = JSON.parse(text) as { traceparent?: string; tracestate?: string };
  return readTraceparent(traceparent) === null ? null : traceOf(traceparent, tracestate);
}

function headersOf({ traceId, spanId, isSampled, state }: Trace) {
  const traceparent = `00-${traceId}-${spanId}-${isSampled ? "01" : "00"}`;
  return state === null ? { traceparent } : { traceparent, tracestate: state };
}

/** Ids are taken from bytes that were drawn together: a call of the system for each would be most of what it costs. */
const DRAWN_BYTES = 4_096;
let drawn = { bytes: Buffer.alloc(0), used: 0 };

function hex(bytes: number): string {
  if (drawn.used + bytes > drawn.bytes.length) drawn = { bytes: randomBytes(DRAWN_BYTES), used: 0 };
  const from = drawn.used;
  drawn.used += bytes;
  return drawn.bytes.toString("hex", from, drawn.used);
}
