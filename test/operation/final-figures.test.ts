// The figures of a publish at its end: log, record, explain and webhook state those of the very end, although readings are
// taken only every few seconds.
import { afterAll, beforeAll, expect, test } from "vitest";
import { start, until } from "../support/child.ts";
import { type Customer, startCustomer } from "../support/customer.ts";
import { type Headgate, startHeadgate } from "../support/headgate.ts";

/** At 25 a second, a little more than three seconds: no multiple of an interval between readings. */
const FRAMES = 76;

interface Stream {
  readonly id: string;
  readonly ingest: { readonly rtmp: { readonly streamname: string } };
}

let customer: Customer;
let headgate: Headgate;

beforeAll(async () => {
  customer = await startCustomer();
  headgate = await startHeadgate({ customer });
}, 120_000);
afterAll(async () => {
  await headgate?.stop();
  await customer?.close();
});

/** Publishes exactly that many frames, in real time, and then ends as an encoder does. */
async function publish(frames: number, name: string): Promise<void> {
  const input = ["-re", "-f", "lavfi", "-i", "testsrc=size=320x180:rate=25", "-frames:v", String(frames)];
  const codec = "-c:v libx264 -preset ultrafast -tune zerolatency -g 25 -pix_fmt yuv420p -f flv".split(" ");
  const encoder = start("ffmpeg", ["-nostdin", "-loglevel", "warning", ...input, ...codec, `${headgate.rtmp}/${name}`]);
  expect(await encoder.exit, encoder.stderr()).toBe(0);
}

const lines = (said: string) =>
  headgate.process
    .stderr()
    .split("\n")
    .filter((line) => line.includes(said))
    .map((line) => JSON.parse(line) as Record<string, number | string>);

test.each([1, FRAMES, 2 * FRAMES])(
  "the end of a publish of %i frames states them all, and the same bytes everywhere",
  async (frames) => {
    const before = lines('"publish ended"').length;
    const { id, ingest } = (await headgate.call("POST", "/stream")) as unknown as Stream;
    await publish(frames, ingest.rtmp.streamname);
    const line = await until("it has ended", () => lines('"publish ended"')[before], 60_000);
    expect(line).toMatchObject({ frames, framesDropped: 0, packetsLost: null });
    const { clientId = 0, bytesIn = 0, bytesOut = 0 } = line as { clientId: number; bytesIn: number; bytesOut: number };
    expect(bytesIn).toBeGreaterThan(frames * 10);
    const bodyOf = () =>
      customer
        .calls("publish_done")
        .map(({ body }) => new URLSearchParams(body))
        .find((body) => body.get("clientid") === String(clientId));
    const done = await until("publish_done", bodyOf, 60_000);
    expect([done.get("bytes_in"), done.get("bytes_out")]).toEqual([String(bytesIn), String(bytesOut)]);
    const timeline = await headgate.call("GET", `/session/${clientId}/timeline`);
    const moments = timeline.moments as { what: string; figures: object }[];
    expect(moments.find(({ what }) => what === "ended")?.figures).toMatchObject({
      bytes_in: bytesIn,
      bytes_out: bytesOut,
    });
    const publishes = (await headgate.call("GET", `/stream/${id}/publish`)) as unknown as { video: object }[];
    expect(publishes[0]).toMatchObject({ video: { width: 320, height: 180 }, audio: null });
  },
  120_000,
);
