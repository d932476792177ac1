// WHIP clients that are not browsers, each with a WebRTC stack of its own, concurrently: their media arrives
// upstream completely. `npm run matrix -- whip` gives each of them more time and larger video.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { providePionWhip } from "../../scripts/go.mjs";
import { providePython } from "../../scripts/python.mjs";
import { type Customer, startCustomer } from "../support/customer.ts";
import { type Headgate, startHeadgate } from "../support/headgate.ts";
import { startLossyProxy } from "../support/lossy-proxy.ts";
import { type NginxRtmp, startNginxRtmp } from "../support/nginx-rtmp.ts";
import { whipClients } from "../support/whip-clients.ts";
import { expectGoodPublish } from "../support/whip-judge.ts";
import { casesOfRun } from "../support/whole-run.ts";

const SECONDS = Number(process.env.WHIP_CLIENT_SECONDS ?? 10);
const SIZE = process.env.WHIP_CLIENT_SIZE ?? "320x180";

let customer: Customer;
let upstream: NginxRtmp;
let headgate: Headgate;

beforeAll(async () => {
  providePython();
  providePionWhip();
  customer = await startCustomer();
  upstream = await startNginxRtmp();
  headgate = await startHeadgate({
    customer,
    // GStreamer's ICE does not pair loopback addresses with others.
    env: { HEADGATE_UPSTREAM_PUSH: `${upstream.url}/{name}`, HEADGATE_MEDIA_HOST: "0.0.0.0" },
  });
}, 120_000);
afterAll(async () => {
  await headgate?.stop();
  await upstream?.stop();
  await customer?.close();
});

describe.concurrent("what is published by", () => {
  test.each(casesOfRun(whipClients, 2))(
    "$name decodes upstream, from a keyframe on, with audio and video together",
    { timeout: (SECONDS + 60) * 1_000 },
    async ({ name, publish }) => {
      const stream = await headgate.newStream();
      await publish(headgate.whip(stream), SECONDS, SIZE);
      const figures = await expectGoodPublish(stream, { customer, upstream, seconds: SECONDS });
      console.log(`whip client ${JSON.stringify({ name, ...figures })}`);
      expect(figures.pictures).toBeGreaterThan(0);
    },
  );

  test("FFmpeg 8 arrives as completely from far away", { timeout: (SECONDS + 60) * 1_000 }, async () => {
    const far = await startLossyProxy(headgate.http, { loss: 0, delay: 100, reorder: 0 });
    const stream = await headgate.newStream();
    const [ffmpeg] = whipClients.filter(({ name }) => name === "FFmpeg 8");
    await ffmpeg?.publish(headgate.whip(stream).replace(headgate.http, far.http), SECONDS, SIZE);
    const { pictures } = await expectGoodPublish(stream, { customer, upstream, seconds: SECONDS });
    expect(pictures).toBeGreaterThan(0);
    await far.close();
  });
});
