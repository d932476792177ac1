// Reads the head of a customer's response as tolerantly as other clients do, and passes it on as RFC 9112 writes it, so
// that the strict parser behind it sees one form. What docs/webhook.md lists as accepted is accepted here. It never makes
// two readings of one response possible: contradictory lengths stay, and are refused.

/** Longest head of a response, with the interim responses before it, bytes. */
export const HEAD_LIMIT_BYTES = 64 * 1024;

const STATUS_LINE = /^HTTP\/[12]\.(\d)[ \t]+(\d{3})(?:[ \t]+(.*))?$/i;
const FIELD_NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;

/** The response to one request at a time. */
export class ResponseHead {
  /** What has arrived of the head; null once it is complete, or nothing is expected. */
  #head: Buffer | null = null;
  #hasBegun = false;
  /** Interim responses dropped before the head. */
  #dropped = 0;

  /** A request is being written: a head follows. */
  expect(): void {
    if (this.#head !== null) return;
    this.#head = Buffer.alloc(0);
    this.#hasBegun = false;
    this.#dropped = 0;
  }

  /** Whether a byte of the response has arrived. */
  get hasBegun(): boolean {
    return this.#hasBegun;
  }

  /** Bytes from the server; returns what is to be parsed now. */
  take(chunk: Buffer): Buffer {
    this.#hasBegun = true;
    if (this.#head === null) return chunk;
    this.#head = Buffer.concat([this.#head, chunk]);
    for (;;) {
      const head: Buffer = this.#head;
      const start = leadingBlankLines(head);
      const end = endOf(head, start);
      if (end === null && !isHopeless(head, start) && head.length + this.#dropped <= HEAD_LIMIT_BYTES) {
        return Buffer.alloc(0);
      }
      const lines = end === null ? [] : linesOf(head.subarray(start, end));
      const [, minor, status, reason = ""] = STATUS_LINE.exec(lines[0] ?? "") ?? [];
      if (end === null || minor === undefined || status === undefined) return this.#giveUp();
      // Interim responses may come unasked (RFC 9110 15.2); 101 ends HTTP.
      if (status.startsWith("1") && status !== "101") {
        this.#dropped += end;
        if (this.#dropped > HEAD_LIMIT_BYTES) return this.#giveUp();
        this.#head = head.subarray(end);
        continue;
      }
      this.#head = null;
      const fields = withOneLength(fieldsOf(lines.slice(1)));
      const written = [`HTTP/1.${minor === "0" ? "0" : "1"} ${status} ${printable(reason)}`, ...fields, "", ""];
      return Buffer.concat([Buffer.from(written.join("\r\n"), "latin1"), head.subarray(end)]);
    }
  }

  /** What is no head is left to the parser, which names the fault. */
  #giveUp(): Buffer {
    const head = this.#head ?? Buffer.alloc(0);
    this.#head = null;
    return head;
  }
}

/** Empty lines before a status line are ignored. */
function leadingBlankLines(head: Buffer): number {
  let at = 0;
  while (head[at] === 0x0a || head[at] === 0x0d) at += 1;
  return at;
}

/** Where the empty line that ends a head is over; null if it has not arrived. */
function endOf(head: Buffer, start: number): number | null {
  for (let at = head.indexOf(0x0a, start); at !== -1; at = head.indexOf(0x0a, at + 1)) {
    let next = at + 1;
    while (head[next] === 0x0d) next += 1;
    if (head[next] === 0x0a) return next + 1;
  }
  return null;
}

/** Whether what arrived is not the beginning of an HTTP response. */
function isHopeless(head: Buffer, start: number): boolean {
  const name = head.toString("latin1", start, start + 5).toUpperCase();
  return !"HTTP/".startsWith(name);
}

function linesOf(head: Buffer): readonly string[] {
  const lines = head.toString("latin1").split("\n");
  return lines.map((line) => line.replace(/\r+$/, "")).filter((line) => line !== "");
}

type Field = readonly [name: string, value: string];

/** Each header field; a folded one on one line, and what is none left out. */
function fieldsOf(lines: readonly string[]): readonly Field[] {
  const unfolded: string[] = [];
  for (const line of lines) {
    const isFolded = /^[ \t]/.test(line) && unfolded.length > 0;
    if (isFolded) unfolded.push(`${unfolded.pop()} ${line.trim()}`);
    else unfolded.push(line);
  }
  return unfolded.flatMap((line) => {
    const colon = line.indexOf(":");
    const name = line.slice(0, Math.max(0, colon)).trim();
    return FIELD_NAME.test(name) ? [[name, printable(line.slice(colon + 1))] as const] : [];
  });
}

/** A length that is repeated equally counts once, and none counts beside chunks (RFC 9112 6.3). */
function withOneLength(fields: readonly Field[]): readonly string[] {
  const valuesOf = (wanted: string) =>
    fields
      .filter(([name]) => name.toLowerCase() === wanted)
      .flatMap(([, value]) => value.split(",").map((one) => one.trim()));
  const lengths = new Set(valuesOf("content-length"));
  const isChunked = valuesOf("transfer-encoding").length > 0;
  const others = fields.filter(([name]) => name.toLowerCase() !== "content-length");
  const kept = isChunked || lengths.size === 0 ? [] : [`content-length: ${[...lengths].join(", ")}`];
  return [...others.map(([name, value]) => `${name}: ${value}`), ...kept];
}

/** Control characters are blanks here. */
function printable(text: string): string {
  return text.replace(/\p{Cc}+/gu, " ").trim();
}
