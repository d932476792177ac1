// A publish of ffmpeg with odd messages after every video frame: a player, an upstream and the customer see the same
// as without them, and the session names what was left out.
import { afterAll, beforeAll, expect, test } from "vitest";
import { until } from "../support/child.ts";
import { type Customer, startCustomer } from "../support/customer.ts";
import { sessionOf } from "../support/drop-outs.ts";
import { broadcast, decodeComplaints, packetsOf } from "../support/ffmpeg.ts";
import { type Headgate, startHeadgate } from "../support/headgate.ts";
import { content } from "../support/judge.ts";
import { type NginxRtmp, startNginxRtmp } from "../support/nginx-rtmp.ts";
import { type OddMessage, startOddMessages } from "../support/odd-messages.ts";

const SECONDS = 8;

/** An AMF0 command of the encoder's own with these bytes after its command object. */
const own = (...values: number[]) => [2, 0, 3, 0x6f, 0x77, 0x6e, 0, 0, 0, 0, 0, 0, 0, 0, 0, 5, ...values];
const odd = (type: number, ...body: number[]): OddMessage => ({ type, body: Uint8Array.from(body) });

const MESSAGES = [
  // Tags that end inside their header.
  ...[[0xaf], [0x90], [0x91, 0x4f]].map((body) => odd(8, ...body)),
  ...[[0x17], [0x27, 1], [0x90], [0x91, 0x68, 0x76]].map((body) => odd(9, ...body)),
  // G.711, Speex, MP3 of 8 kHz; codec id 0.
  ...[0x72, 0x82, 0xb2, 0xe2].map((first) => odd(8, first, 1, 2, 3)),
  odd(9, 0x20, 1, 2, 3),
  // References, AMF3, cut arguments, empty commands, with and without the format byte.
  ...[own(7, 0, 0), own(0x11, 4, 1), own(2, 0, 9, 1), own(0x0e), []].flatMap((body) => [
    odd(20, ...body),
    odd(17, ...body),
    odd(17, 0, ...body),
  ]),
  odd(18),
  odd(15, 0),
  // Control messages that mean nothing.
  odd(1, 0, 0),
  odd(2, 0, 0, 1, 0),
  odd(5, 0, 0, 0, 0),
  odd(4, 9, 9),
];

let customer: Customer;
let upstream: NginxRtmp;
let headgate: Headgate;

beforeAll(async () => {
  customer = await startCustomer();
  upstream = await startNginxRtmp();
  const env = { HEADGATE_UPSTREAM_PUSH: `${upstream.url}/{name}`, HEADGATE_LIMITS_API_REQUESTS_PER_SECOND: "0" };
  headgate = await startHeadgate({ customer, env });
});
afterAll(async () => {
  await headgate?.stop();
  await upstream?.stop();
  await customer?.close();
});

test("odd messages after every frame of ffmpeg cost no frame and are named", async () => {
  const proxy = await startOddMessages(Number(new URL(headgate.rtmp).port), MESSAGES);
  const name = await headgate.newStream();
  const encoder = broadcast(`rtmp://127.0.0.1:${proxy.port}/live/${name}`, {
    seconds: SECONDS,
    gop: 1_000,
    keepsCopy: true,
  });
  const playing = until("the stream is live", () => packetsOf(`${headgate.rtmp}/${name}`).catch(() => null));
  const codes = await until("they are named", async () => {
    const session = await sessionOf(headgate, name);
    if (session === undefined) return null;
    const { irregularities } = await headgate.call("GET", `/session/${session.client_id}`);
    const found = (irregularities as readonly { code: string }[]).map(({ code }) => code);
    return found.length >= 4 ? found.sort() : null;
  });
  expect(codes).toEqual(["truncated_tag", "unreadable_message", "unsupported_audio", "unsupported_video"]);
  const played = await playing;
  expect(await encoder.exit, encoder.stderr()).toBe(0);
  const want = content(await encoder.sent());
  expect(want.video).toHaveLength(25 * SECONDS);
  expect(content(played)).toEqual(want);
  const recording = await until("the recording", () => upstream.recording(name));
  expect(content(await packetsOf(recording))).toEqual(want);
  expect(await decodeComplaints(recording)).toBe("");
  proxy.close();
});
