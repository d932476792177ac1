// For the customer's side: is this call Headgate's, and what does it say? Runs wherever there is Web Cryptography
// (Node 20, Deno, Bun, Cloudflare Workers) and needs nothing else; copy it or import it.
//
//   const event = await verify(request.headers, await request.arrayBuffer(), "whsec_…");
//   if (event.call === "publish" && event.arguments.get("passcode") !== "s3cret") return new Response("Wrong passcode", { status: 403 });
//   return new Response(null, { status: 200 });

/** How old, or how far ahead, a call may be, seconds: an older one may be a replayed recording. */
export const TOLERANCE_S = 300;

interface Common {
  /** The same in all retries of one event: store it to recognise duplicates. */
  readonly id: string;
  /** Stream name without arguments. */
  readonly name: string;
  readonly app: string;
  /** IP address of the broadcaster. */
  readonly addr: string;
  /** The same in all events of one publish. */
  readonly clientid: number;
  /** What the broadcaster put after the `?` of the stream name. */
  readonly arguments: URLSearchParams;
}

export type WebhookEvent =
  | (Common & { readonly call: "publish" })
  | (Common & {
      readonly call: "update_publish";
      /** Seconds since the publish was allowed. */
      readonly time: number;
      /** Newest packet timestamp, ms. */
      readonly timestamp: number;
      /** Fields requested by the organisation, by name. */
      readonly extras: ReadonlyMap<string, number>;
    })
  | (Common & {
      readonly call: "publish_done";
      /** Audio and video bytes received from the encoder, and sent out. */
      readonly bytesIn: number;
      readonly bytesOut: number;
    })
  /** An alert, whose answer decides nothing. Of `webhook_failing` and `webhook_back`, which are about no publish, the names
   *  are empty and `clientid` is 0. */
  | (Common & {
      readonly call: "health";
      /** More may follow in later versions: acknowledge those that you do not know. */
      readonly event: AlertEvent | (string & {});
      /** Since when, ISO 8601. */
      readonly since: string;
      /** Id of the upstream; null for an alert about something else. */
      readonly upstream: string | null;
      /** A sentence for people. */
      readonly detail: string;
    });

export type AlertEvent =
  | "media_lost"
  | "media_back"
  | "upstream_lost"
  | "upstream_back"
  | "webhook_failing"
  | "webhook_back";

/** The call is not Headgate's, not recent, or not a valid event. Respond with 401. */
export class WebhookRefused extends Error {
  readonly code: "missing_header" | "bad_timestamp" | "bad_signature" | "bad_body";
  constructor(code: WebhookRefused["code"], message: string) {
    super(message);
    this.name = "WebhookRefused";
    this.code = code;
  }
}

type Headers = { get(name: string): string | null } | Readonly<Record<string, string | readonly string[] | undefined>>;

/** Verifies the signature over the raw body and parses the event. `secret`: one, or several during a rotation. `body`:
 *  the bytes as received, or the same as text. Rejects with `WebhookRefused`. */
export async function verify(
  headers: Headers,
  body: ArrayBuffer | Uint8Array | string,
  secret: string | readonly string[],
  options: { readonly now?: number; readonly toleranceS?: number } = {},
): Promise<WebhookEvent> {
  const { now = Date.now(), toleranceS = TOLERANCE_S } = options;
  const id = header(headers, "webhook-id");
  const timestamp = header(headers, "webhook-timestamp");
  const given = header(headers, "webhook-signature").split(" ");
  if (!/^\d{1,12}$/.test(timestamp) || Math.abs(now / 1_000 - Number(timestamp)) > toleranceS) {
    throw new WebhookRefused("bad_timestamp", "webhook-timestamp is not recent");
  }
  const bytes = bytesOf(body);
  const signed = concatenated(new TextEncoder().encode(`${id}.${timestamp}.`), bytes);
  for (const text of [secret].flat()) {
    const key = await crypto.subtle.importKey("raw", keyOf(text), { name: "HMAC", hash: "SHA-256" }, false, ["verify"]);
    for (const signature of given) {
      const code = signature.startsWith("v1,") ? fromBase64(signature.slice(3)) : null;
      if (code !== null && (await crypto.subtle.verify("HMAC", key, code, signed))) return readEvent(id, bytes);
    }
  }
  throw new WebhookRefused("bad_signature", "no signature matches the secret");
}

/** Our fields come last, so that fields sent by the broadcaster cannot replace them. */
function readEvent(id: string, body: Uint8Array): WebhookEvent {
  const pairs = [...new URLSearchParams(`&${new TextDecoder().decode(body)}`)];
  const start = pairs.findLastIndex(([name]) => name === "call");
  if (start === -1) throw new WebhookRefused("bad_body", "the body has no call");
  const fields = new Map(pairs.slice(start));
  const text = (name: string): string => {
    const value = fields.get(name);
    if (value === undefined) throw new WebhookRefused("bad_body", `the body has no ${name}`);
    return value;
  };
  const number = (name: string): number => {
    const value = Number(text(name));
    if (!Number.isSafeInteger(value) || value < 0) throw new WebhookRefused("bad_body", `${name} is not a number`);
    return value;
  };
  const call = text("call");
  const isAboutPublish = call !== "health" || fields.has("clientid");
  const common = {
    id,
    name: isAboutPublish ? text("name") : "",
    app: isAboutPublish ? text("app") : "",
    addr: isAboutPublish ? text("addr") : "",
    clientid: isAboutPublish ? number("clientid") : 0,
    arguments: new URLSearchParams(pairs.slice(0, start)),
  };
  switch (call) {
    case "publish":
      return { call: "publish", ...common };
    case "update_publish": {
      const extras = new Map([...fields].filter(([name]) => !FIXED.has(name)).map(([name, value]) => [name, +value]));
      return { call: "update_publish", ...common, time: number("time"), timestamp: number("timestamp"), extras };
    }
    case "publish_done":
      return { call: "publish_done", ...common, bytesIn: number("bytes_in"), bytesOut: number("bytes_out") };
    case "health": {
      const upstream = fields.get("upstream") ?? null;
      return { call, ...common, event: text("event"), since: text("since"), upstream, detail: text("detail") };
    }
    default:
      throw new WebhookRefused("bad_body", "call is not known");
  }
}

const FIXED = new Set(["call", "time", "timestamp", "name", "app", "addr", "clientid"]);

function header(headers: Headers, name: string): string {
  const value = typeof headers.get === "function" ? headers.get(name) : (headers as Record<string, unknown>)[name];
  if (typeof value !== "string" || value === "") throw new WebhookRefused("missing_header", `no ${name}`);
  return value;
}

function keyOf(secret: string): Uint8Array<ArrayBuffer> {
  const key = fromBase64(secret.replace(/^whsec_/, ""));
  if (key === null || key.length === 0) throw new TypeError("the secret must be whsec_ followed by base64");
  return key;
}

function fromBase64(text: string): Uint8Array<ArrayBuffer> | null {
  try {
    return Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  } catch {
    return null;
  }
}

function bytesOf(body: ArrayBuffer | Uint8Array | string): Uint8Array {
  if (typeof body === "string") return new TextEncoder().encode(body);
  return body instanceof Uint8Array ? body : new Uint8Array(body);
}

function concatenated(head: Uint8Array, tail: Uint8Array): Uint8Array<ArrayBuffer> {
  const whole = new Uint8Array(head.length + tail.length);
  whole.set(head);
  whole.set(tail, head.length);
  return whole;
}
