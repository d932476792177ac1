// A TCP proxy that puts further RTMP messages between those of an encoder, and may announce another chunk size.
import { type AddressInfo, connect, createServer } from "node:net";

/** C0, C1 and C2. */
const HANDSHAKE_BYTES = 1 + 2 * 1536;
/** A chunk stream that no encoder uses. */
const CHUNK_STREAM = 60;
const SET_CHUNK_SIZE = 1;
const VIDEO = 9;

export interface OddMessage {
  readonly type: number;
  readonly body: Uint8Array;
}

/** Finds the ends of messages in what an encoder sends (RTMP 5.3.1). */
class Boundaries {
  readonly #streams = new Map<number, { length: number; left: number; type: number; hasExtended: boolean }>();
  #bytes = Buffer.alloc(0);
  #chunkSize = 128;
  #shaken = false;

  /** The input so far as whole messages, each with its type; 0 for the handshake and for the parts of others. */
  take(input: Buffer): { readonly bytes: Buffer; readonly type: number; readonly isBoundary: boolean }[] {
    this.#bytes = Buffer.concat([this.#bytes, input]);
    const pieces = [];
    for (let piece = this.#next(); piece !== null; piece = this.#next()) pieces.push(piece);
    return pieces;
  }

  #next() {
    if (!this.#shaken) {
      if (this.#bytes.length === 0) return null;
      // C2 follows our answer: it arrives later than C1.
      const all = this.#bytes.length >= HANDSHAKE_BYTES;
      this.#shaken = all;
      return all ? this.#cut(HANDSHAKE_BYTES, 0, false) : null;
    }
    const first = this.#bytes[0];
    if (first === undefined) return null;
    const id = first & 0x3f;
    if (id < 2) throw new Error("ffmpeg uses ids of one byte");
    const fields = [11, 7, 3, 0][first >> 6] ?? 0;
    const known = this.#streams.get(id);
    const stream = known ?? { length: 0, left: 0, type: 0, hasExtended: false };
    if (this.#bytes.length < 1 + fields) return null;
    const hasExtended = fields > 0 ? this.#bytes.readUIntBE(1, 3) === 0xffffff : stream.hasExtended;
    const length = fields >= 7 ? this.#bytes.readUIntBE(4, 3) : stream.length;
    const type = fields >= 7 ? (this.#bytes[7] ?? 0) : stream.type;
    const left = stream.left > 0 ? stream.left : length;
    const payload = Math.min(left, this.#chunkSize);
    const header = 1 + fields + (hasExtended ? 4 : 0);
    if (this.#bytes.length < header + payload) return null;
    if (type === SET_CHUNK_SIZE && payload >= 4) this.#chunkSize = this.#bytes.readUInt32BE(header) & 0x7fffffff;
    this.#streams.set(id, { length, left: left - payload, type, hasExtended });
    const isBoundary = [...this.#streams.values()].every((of) => of.left === 0);
    return this.#cut(header + payload, isBoundary ? type : 0, isBoundary);
  }

  #cut(count: number, type: number, isBoundary: boolean) {
    const bytes = this.#bytes.subarray(0, count);
    this.#bytes = this.#bytes.subarray(count);
    return { bytes, type, isBoundary };
  }
}

function chunk({ type, body }: OddMessage): Buffer {
  const header = Buffer.alloc(12);
  header[0] = CHUNK_STREAM;
  header.writeUIntBE(body.length, 4, 3);
  header[7] = type;
  header[8] = 1;
  return Buffer.concat([header, body]);
}

/** Listens on a free port in front of `target`; after each video frame, the next of `messages` is sent, in turns. */
export async function startOddMessages(
  target: number,
  messages: readonly OddMessage[],
): Promise<{ readonly port: number; close(): void }> {
  const server = createServer((client) => {
    const ours = connect(target, "127.0.0.1");
    const boundaries = new Boundaries();
    let early = Buffer.alloc(0);
    let turn = 0;
    ours.on("error", () => client.destroy()).pipe(client);
    client.on("error", () => ours.destroy());
    client.on("end", () => ours.end());
    client.on("data", (input: Buffer) => {
      // The handshake is passed on as it comes, and read again by the parser.
      if (early.length < HANDSHAKE_BYTES) {
        const rest = HANDSHAKE_BYTES - early.length;
        ours.write(input.subarray(0, rest));
        early = Buffer.concat([early, input.subarray(0, rest)]);
        boundaries.take(input.subarray(0, rest));
        if (input.length <= rest) return;
        input = input.subarray(rest);
      }
      for (const { bytes, type, isBoundary } of boundaries.take(input)) {
        ours.write(bytes);
        const odd = messages[turn % messages.length];
        if (type !== VIDEO || !isBoundary || odd === undefined) continue;
        ours.write(chunk(odd));
        turn += 1;
      }
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return { port: (server.address() as AddressInfo).port, close: () => server.close() };
}
