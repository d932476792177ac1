// What is kept of a customer's response for the people of its organisation: header fields without secrets, and the start
// of the body as text. It decides nothing, and the broadcaster receives nothing of it.
import { withoutSecrets } from "../../text/without-secrets.ts";
import { pairsOf } from "./body.ts";

/** Bytes of the body that are kept. */
const BODY_LIMIT_BYTES = 2_000;
/** Header fields that are kept, and the characters of all of them together. */
const FIELDS_LIMIT = 50;
const FIELDS_LIMIT_CHARACTERS = 2_000;
/** In place of a secret. */
export const MASK = "***";
/** Shorter values occur in other words by chance. */
const ECHO_LEAST_CHARACTERS = 4;

/** Fields whose values are known to hold no secret; of others only the name is kept. */
const OPEN_FIELDS = new Set([
  ...["accept", "age", "allow", "cache-control", "cf-ray", "connection", "content-encoding", "content-language"],
  ...["content-length", "content-type", "date", "expires", "keep-alive", "last-modified", "location", "retry-after"],
  ...["server", "server-timing", "strict-transport-security", "traceparent", "trailer", "transfer-encoding"],
  ...["upgrade", "vary", "via", "x-cache", "x-powered-by", "x-request-id", "x-runtime", "x-served-by"],
]);

export interface WebhookResponse {
  readonly headers: readonly (readonly [name: string, value: string])[];
  /** The start of the body; "" when there was none, null when it was compressed. */
  readonly body: string | null;
  /** More was received than is kept, or the body had not ended. */
  readonly isCut: boolean;
}

/** The response to one request, while it arrives. */
export class KeptResponse {
  /** Resolves when nothing more is added. */
  readonly over: Promise<void>;
  readonly #headers: WebhookResponse["headers"];
  readonly #isCompressed: boolean;
  readonly #chunks: Buffer[] = [];
  #bytes = 0;
  #isOver = false;
  #isComplete = false;
  #settle!: () => void;

  constructor(headers: Readonly<Record<string, string | readonly string[] | undefined>>) {
    this.over = new Promise((resolve) => {
      this.#settle = resolve;
    });
    this.#headers = keptFields(headers);
    const encoding = String(headers["content-encoding"] ?? "identity");
    this.#isCompressed = encoding.trim().toLowerCase() !== "identity";
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  add(chunk: Buffer): void {
    // A copy: the platform uses the memory of a chunk again.
    const room = BODY_LIMIT_BYTES - this.#bytes;
    if (room > 0 && !this.#isCompressed) this.#chunks.push(Buffer.from(chunk.subarray(0, room)));
    this.#bytes += chunk.length;
  }

  /** `isComplete`: the body ended as its framing says. */
  end(isComplete: boolean): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#isComplete = isComplete;
    this.#settle();
  }

  /** What has arrived so far. */
  read(): WebhookResponse {
    const isCut = !this.#isComplete || this.#bytes > BODY_LIMIT_BYTES;
    const body = this.#isCompressed ? null : textOf(Buffer.concat(this.#chunks));
    return { headers: this.#headers, body, isCut };
  }
}

function keptFields(headers: Readonly<Record<string, string | readonly string[] | undefined>>) {
  const kept: (readonly [string, string])[] = [];
  let characters = 0;
  for (const [name, given] of Object.entries(headers)) {
    const values = typeof given === "string" ? [given] : (given ?? []);
    for (const value of values) {
      const field = [printable(name), OPEN_FIELDS.has(name) ? withoutSecrets(printable(value)) : MASK] as const;
      characters += field[0].length + field[1].length;
      if (kept.length === FIELDS_LIMIT || characters > FIELDS_LIMIT_CHARACTERS) return kept;
      kept.push(field);
    }
  }
  return kept;
}

/** UTF-8 without control characters besides tab and line feed; what is no text becomes U+FFFD. A character that the limit
 *  cuts is left out. At most as many bytes as were kept. */
function textOf(bytes: Buffer): string {
  const text = new TextDecoder().decode(bytes, { stream: true }).replace(/\r\n?/g, "\n");
  const safe = text.replace(/[^\P{C}\t\n]|[\p{Zl}\p{Zp}]/gu, "");
  const encoded = Buffer.from(safe);
  if (encoded.length <= BODY_LIMIT_BYTES) return safe;
  return new TextDecoder().decode(encoded.subarray(0, BODY_LIMIT_BYTES), { stream: true });
}

const printable = (text: string) => text.replace(/\p{C}/gu, "");

/** As stored. Values of the broadcaster's custom arguments, and of the query of the webhook's URL, are masked wherever the
 *  customer's server repeated them. */
export function responseText({ headers, body, isCut }: WebhookResponse, { url, body: form }: Sent): string {
  const secrets = [...secretsIn(pairsOf(form).custom), ...secretsIn((url.split("?", 2)[1] ?? "").split("&"))];
  // The longest first, so that none hides a part of another.
  const ordered = secrets.toSorted((one, other) => other.length - one.length);
  const masked = (text: string) => ordered.reduce((rest, secret) => rest.replaceAll(secret, MASK), text);
  const fields = headers.map(([name, value]) => [name, masked(value)]);
  return JSON.stringify({ headers: fields, body: body === null ? null : masked(body), is_cut: isCut });
}

/** What the response is the answer to. */
interface Sent {
  readonly url: string;
  /** One character per byte. */
  readonly body: string;
}

/** The values of pairs that are not our own, as they were sent and decoded. */
function secretsIn(pairs: readonly string[]): readonly string[] {
  const values = pairs.flatMap((pair) => {
    const at = pair.indexOf("=");
    const [name, value] = [...new URLSearchParams(pair)][0] ?? ["", ""];
    return [pair.slice(at + 1), at === -1 ? name : value];
  });
  return [...new Set(values)].filter((value) => value.length >= ECHO_LEAST_CHARACTERS);
}

export function readResponse(text: string | null): WebhookResponse | null {
  if (text === null) return null;
  const { is_cut: isCut, ...kept } = JSON.parse(text) as Omit<WebhookResponse, "isCut"> & { readonly is_cut: boolean };
  return { ...kept, isCut };
}
