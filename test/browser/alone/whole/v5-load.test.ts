// Live broadcasts by the v5 signalling, with werift as the WebRTC client of each, while other sockets send
// malformed frames.
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Headgate, startHeadgate } from "../../../support/headgate.ts";
import { connectV5 } from "../../../support/v5-client.ts";
import { broadcastByV5, type V5Broadcast } from "../../../support/v5-werift.ts";

/** `V5_SESSIONS=50 V5_FRAMES=10000` are the required figures; werift needs a core for twenty sessions. */
const SESSIONS = Number(process.env.V5_SESSIONS ?? 5);
const FRAMES = Number(process.env.V5_FRAMES ?? 2_000);
/** A socket is closed after a burst of a hundred. */
const FRAMES_PER_SOCKET = 90;

let headgate: Headgate;
const live: V5Broadcast[] = [];

beforeAll(async () => {
  headgate = await startHeadgate({
    env: {
      HEADGATE_LIMITS_WHIP_REQUESTS_PER_SECOND: "0",
      HEADGATE_LIMITS_WHIP_OFFERS_PER_SECOND: "0",
      HEADGATE_LIMITS_WHIP_HALF_OPEN_PER_ADDRESS: "0",
    },
  });
}, 60_000);
afterAll(async () => {
  await Promise.all(live.map((broadcast) => broadcast.close()));
  await headgate?.stop();
}, 60_000);

/** Frame number `n`: malformed or unexpected JSON, or bytes. */
function malformed(n: number, token: string): string | Buffer {
  const start = { type: "start_broadcast", message_id: n, message: { session_id: "x", jwt: token, audio: "1" } };
  const text = JSON.stringify(start);
  const at = (n * 7919) % text.length;
  const kinds: readonly (string | Buffer)[] = [
    text.slice(0, at),
    `${text.slice(0, at)}\u0000${text.slice(at)}`,
    JSON.stringify({ ...start, type: "x".repeat(n % 5_000) }),
    JSON.stringify({ ...start, message_id: { n } }),
    JSON.stringify({ ...start, message: [n] }),
    `${"[".repeat(n % 30_000)}`,
    `{"__proto__":${n},"type":"__proto__","message_id":${n}}`,
    JSON.stringify({ type: "signaling_message", message_id: n, message: { data: { type: "answer", sdp: text } } }),
    JSON.stringify({ type: "sign_in", message_id: n, message: { token: "%".repeat(n % 2_000) } }),
    Buffer.from(text).subarray(0, at),
  ];
  return kinds[n % kinds.length] ?? "";
}

test("malformed frames on other sockets are all answered and disturb no live broadcast", async () => {
  for (let n = 0; n < SESSIONS; n += 1) {
    const streamname = await headgate.newStream();
    const issued = await headgate.call("POST", "/webcaster", { streamname, ingesturl: headgate.rtmp });
    const { token } = issued.data as { token: string };
    live.push(await broadcastByV5(headgate.http, { jwt: token, streamname }));
  }
  const bytesOf = async () => {
    const sessions = (await headgate.call("GET", "/session?quantity=100")) as unknown as { bytes_in: number }[];
    return sessions.map(({ bytes_in }) => bytes_in);
  };
  const before = await bytesOf();
  expect(before).toHaveLength(SESSIONS);
  const started = performance.now();
  let answered = 0;
  for (let sent = 0; sent < FRAMES; sent += FRAMES_PER_SOCKET) {
    const client = await connectV5(headgate.http, 1_000_000);
    const count = Math.min(FRAMES_PER_SOCKET, FRAMES - sent);
    for (let n = 0; n < count; n += 1) client.raw(malformed(sent + n, "none"));
    // Its reply follows all others, and no frame of theirs has its id.
    const { error } = await client.call("echo", { session_id: "x", message: 1 });
    expect(error?.code).toBe(107001);
    expect(client.messages.every((message) => message.error !== undefined)).toBe(true);
    answered += client.messages.length - 1;
    await client.close();
  }
  expect(answered).toBe(FRAMES);
  console.log(`v5 load ${JSON.stringify({ SESSIONS, FRAMES, ms: Math.round(performance.now() - started) })}`);
  expect(live.every((broadcast) => broadcast.isLive())).toBe(true);
  const after = await bytesOf();
  expect(after).toHaveLength(SESSIONS);
  after.forEach((bytes, n) => {
    expect(bytes).toBeGreaterThan(before[n] ?? 0);
  });
}, 600_000);
