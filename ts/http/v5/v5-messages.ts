// The frames of the deprecated v5 signalling (docs/v5.md), parsed into types. Pure: no socket, no session.
import { z } from "zod";
import { percentDecoded } from "../../text/percent.ts";
import { V5Fault } from "./v5-faults.ts";

/** Longest message id echoed in full, characters. */
const MESSAGE_ID_LIMIT = 64;

/** Members may be text, a number or a boolean; null counts as absent. */
const text = z.union([z.string(), z.number(), z.boolean()]).transform(String);
const optional = <T extends z.ZodType>(schema: T) => schema.nullish().transform((value) => value ?? null);
const parties = { sender_peer: optional(text), receiver_peer: optional(text) };
const answer = z.object({ type: z.literal("answer"), sdp: z.string() });
/** ICE-lite needs no remote candidates: the client's connectivity checks suffice. */
const candidate = z.object({ candidate: z.unknown() }).refine((data) => data.candidate !== undefined);
const flag = z
  .union([z.literal(["0", "1"]), z.literal([0, 1]), z.boolean()])
  .transform((on) => `${Number(on)}` === "1");

const REQUESTS = {
  sign_in: z.object({
    token: optional(z.string()),
    jwt: optional(z.string()),
    bintu_api_key: optional(z.string()),
    service_api_key: optional(z.string()),
  }),
  start_broadcast: z.object({
    session_id: optional(text),
    output: optional(z.string()),
    streamname: optional(z.string()),
    videobitrate: optional(text),
    audiobitrate: optional(text),
    rtmpconnectinfo: optional(z.string()),
    audio: optional(flag),
    video: optional(flag),
    jwt: optional(z.string()),
  }),
  signaling_message: z.object({ ...parties, data: z.union([answer, candidate]) }),
  send_metadata: z.object({
    ...parties,
    data: z.object({ eventName: z.string(), payload: z.unknown() }),
  }),
  stop_broadcast: z.object({ session_id: optional(text), ...parties }),
  sign_out: z.object({ session_id: optional(text) }),
  status: z.object({ data: z.unknown() }),
  echo: z.object({ session_id: optional(text), message: z.unknown() }),
} as const;

type Type = keyof typeof REQUESTS;

/** A request, by its type. */
export type V5Request = { [T in Type]: { readonly type: T } & Readonly<z.output<(typeof REQUESTS)[T]>> }[Type];

export type V5Frame =
  | { readonly outcome: "request"; readonly id: number | string; readonly request: V5Request }
  /** `id` is null when the frame has none that can be echoed. */
  | { readonly outcome: "fault"; readonly id: number | string | null; readonly fault: V5Fault };

/** Parses a text frame; null stands for a binary one. */
export function readFrame(frame: string | null): V5Frame {
  const value = frame === null ? undefined : parseJson(frame);
  if (!isRecord(value)) return fault(null, new V5Fault(101003, "A frame is a JSON object", { parameter: "frame" }));
  const { type, message_id: id, message } = value;
  if (id === undefined) return fault(null, missing("message_id"));
  if (!isMessageId(id)) return fault(null, wrong("message_id"));
  if (type === undefined) return fault(id, missing("type"));
  if (!isType(type)) {
    // The type is echoed only when it is a plain name.
    const known = typeof type === "string" && /^\w{1,40}$/.test(type) ? { type } : {};
    return fault(id, new V5Fault(101001, null, known));
  }
  const body = message ?? {};
  const read = REQUESTS[type].safeParse(body);
  if (read.success) return { outcome: "request", id, request: { type, ...read.data } as V5Request };
  const path = read.error.issues[0]?.path ?? [];
  const parameter = path.join(".") || "message";
  return fault(id, isAbsent(body, path) ? missing(parameter) : wrong(parameter));
}

/** A web token as clients send it: the text itself, JSON text (a string, or an object with `jwt` or `token`), and either
 *  of them percent-encoded. */
export function readToken(given: string): string {
  const plain = percentDecoded(given.trim()) ?? given.trim();
  const value = /^["{]/.test(plain) ? parseJson(plain) : plain;
  if (typeof value === "string") return value;
  const inner = isRecord(value) ? (value.jwt ?? value.token) : undefined;
  return typeof inner === "string" ? inner : plain;
}

function fault(id: number | string | null, why: V5Fault): V5Frame {
  return { outcome: "fault", id, fault: why };
}

/** The fault for a missing required member. */
export function missing(parameter: string): V5Fault {
  return new V5Fault(101002, `Parameter required: ${parameter}`, { parameter });
}

/** The fault for a member of the wrong type or out of range. */
export function wrong(parameter: string): V5Fault {
  return new V5Fault(101003, `Wrong data type: ${parameter}`, { parameter });
}

function isType(type: unknown): type is Type {
  return typeof type === "string" && Object.hasOwn(REQUESTS, type);
}

function isMessageId(id: unknown): id is number | string {
  return typeof id === "string" ? id.length <= MESSAGE_ID_LIMIT : Number.isSafeInteger(id);
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isAbsent(value: unknown, path: readonly PropertyKey[]): boolean {
  const found = path.reduce<unknown>((of, key) => (isRecord(of) ? of[String(key)] : undefined), value);
  return found === undefined;
}

function parseJson(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    return undefined;
  }
}
