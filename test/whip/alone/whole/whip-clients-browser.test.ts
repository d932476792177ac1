// WHIP clients that pages take from npm, in Chromium: their media arrives upstream completely.
import { afterAll, beforeAll, expect, test } from "vitest";
import { until } from "../../../support/child.ts";
import { type Chromium, startChromium } from "../../../support/chromium.ts";
import { type ClientPages, serveClientPages } from "../../../support/client-pages.ts";
import { type Customer, startCustomer } from "../../../support/customer.ts";
import { mediaPasses, sessionOf } from "../../../support/drop-outs.ts";
import { type Headgate, startHeadgate } from "../../../support/headgate.ts";
import { type NginxRtmp, startNginxRtmp } from "../../../support/nginx-rtmp.ts";
import { expectGoodPublish } from "../../../support/whip-judge.ts";

const SECONDS = Number(process.env.WHIP_CLIENT_SECONDS ?? 7);

let customer: Customer;
let upstream: NginxRtmp;
let headgate: Headgate;
let chromium: Chromium;
let pages: ClientPages;

beforeAll(async () => {
  customer = await startCustomer();
  upstream = await startNginxRtmp();
  headgate = await startHeadgate({ customer, env: { HEADGATE_UPSTREAM_PUSH: `${upstream.url}/{name}` } });
  chromium = await startChromium();
  pages = await serveClientPages();
}, 60_000);
afterAll(async () => {
  await chromium?.close();
  await pages?.close();
  await headgate?.stop();
  await upstream?.stop();
  await customer?.close();
});

test.each(["whip-whep", "whip-web-client"])(
  "what Chromium publishes by %s decodes upstream, from a keyframe on, with audio and video together",
  { timeout: (SECONDS + 60) * 1_000 },
  async (client) => {
    const name = await headgate.newStream();
    const page = await chromium.open(headgate.whip(name), { site: pages.origin, client });
    expect(await page.start()).toMatchObject({ status: 201 });
    await until("the client connects", async () => (await page.state()) === "connected");
    const session = await until("the session", () => sessionOf(headgate, name));
    await mediaPasses(headgate, session, SECONDS * 1_000);
    await page.stop();
    const figures = await expectGoodPublish(name, { customer, upstream, seconds: SECONDS });
    console.log(`whip client ${JSON.stringify({ name: client, ...figures })}`);
    expect(figures.longestGopMs).toBeLessThanOrEqual(2_500);
    await page.page.close();
  },
);
