// `headgate explain` with real broadcasts: its text about a running publish, and about an ended one.
import { afterAll, beforeAll, expect, test } from "vitest";
import { until } from "../support/child.ts";
import { outputOf } from "../support/command.ts";
import { type Customer, startCustomer } from "../support/customer.ts";
import { broadcast } from "../support/ffmpeg.ts";
import { type Headgate, startHeadgate } from "../support/headgate.ts";
import { type NginxRtmp, startNginxRtmp } from "../support/nginx-rtmp.ts";
import { whipClients } from "../support/whip-clients.ts";

let customer: Customer;
let upstream: NginxRtmp;
let headgate: Headgate;

beforeAll(async () => {
  customer = await startCustomer();
  upstream = await startNginxRtmp();
  headgate = await startHeadgate({ customer, env: { HEADGATE_UPSTREAM_PUSH: `${upstream.url}/{name}` } });
}, 120_000);
afterAll(async () => {
  await headgate?.stop();
  await upstream?.stop();
  await customer?.close();
});

async function explain(clientId: string, ...flags: string[]): Promise<string> {
  const words = ["explain", clientId, "--url", headgate.http, ...flags];
  return await outputOf(words, { PATH: process.env.PATH, HEADGATE_API_KEY: headgate.apiKey });
}

const clientIdOf = (body: string) => new URLSearchParams(body).get("clientid") ?? "";

test("a WHIP publish is explained from its offer to the delivered end", async () => {
  const name = await headgate.newStream();
  const client = whipClients.find((each) => each.name === "FFmpeg 8");
  await client?.publish(headgate.whip(name), 6, "320x180");
  const clientId = clientIdOf((await customer.received("publish_done")).body);
  const text = await until("it is delivered", async () => {
    const told = await explain(clientId);
    return told.includes("publish_done was delivered") ? told : null;
  });
  const lines = text.split("\n");
  expect(lines[0]).toMatch(new RegExp(`^Publish ${clientId} of stream \\S+ by WHIP, ended; trace [0-9a-f]{32}$`));
  const { host } = new URL(upstream.url);
  const expected = [
    /A broadcaster at 127\.0\.0\.1 asked to publish by WHIP\./,
    /The webhook answered 200 after \d+ ms\./,
    /The publish was accepted\./,
    /The broadcaster offered video \(H\.264\) and audio \(Opus\); agreed: H\.264 and Opus\./,
    /ICE and DTLS connected after [\d.]+ m?s over (UDP|TCP) from 127\.0\.0\.1:\d+\./,
    /The first video arrived after .*: H\.264, 320×180\./,
    new RegExp(`Upstream ${host} accepted the publish after`),
    /Ended after .*: the broadcaster stopped\./,
    /publish_done was delivered on the first attempt \(200\)\./,
  ];
  for (const line of expected) expect(text).toMatch(line);
  const offsets = lines.flatMap((line) => /^ *\+(\d+\.\d{3}) s /.exec(line)?.[1] ?? []).map(Number);
  expect(offsets).toEqual([...offsets].sort((a, b) => a - b));
}, 120_000);

test("a running RTMP publish is explained so far, also as JSON", async () => {
  const name = await headgate.newStream();
  const encoder = broadcast(`${headgate.rtmp}/${name}?passcode=s3cret`, { seconds: 120 });
  const publish = await until("the request to the customer", () =>
    customer.calls("publish").find(({ body }) => body.includes(name)),
  );
  const clientId = clientIdOf(publish.body);
  const text = await until("its video", async () => {
    const told = await explain(clientId);
    return told.includes("The first video arrived") ? told : null;
  });
  expect(text).toMatch(/The first video arrived after .*: H\.264, 320×180\./);
  expect(text).toMatch(/Running for .*: /);
  const told = JSON.parse(await explain(clientId, "--json")) as { state: string; moments: { what: string }[] };
  expect(told.state).toBe("live");
  expect(told.moments.map(({ what }) => what)).toEqual(expect.arrayContaining(["requested", "first_video", "running"]));
  expect(text + JSON.stringify(told)).not.toContain("s3cret");
  encoder.kill("SIGKILL");
  await encoder.exit;
}, 120_000);

test("an unknown client id is reported as unknown, with where to find ids", async () => {
  await expect(explain("999999")).rejects.toThrow(/404: Unknown session.*\n.*publish denied/);
});
