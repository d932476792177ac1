// The customer's reason reaches the broadcaster: in ffmpeg's output and in the WHIP problem document, unless
// the organisation disables that (W26).
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Customer, startCustomer } from "../support/customer.ts";
import { broadcast } from "../support/ffmpeg.ts";
import { type Headgate, startHeadgate } from "../support/headgate.ts";

const OFFER = `v=0\r
o=- 1 1 IN IP4 127.0.0.1\r
s=-\r
t=0 0\r
a=group:BUNDLE 0\r
m=audio 9 UDP/TLS/RTP/SAVPF 111\r
c=IN IP4 0.0.0.0\r
a=mid:0\r
a=sendonly\r
a=rtcp-mux\r
a=setup:actpass\r
a=ice-ufrag:abcd\r
a=ice-pwd:abcdefghijklmnopqrstuvwx\r
a=fingerprint:sha-256 ${Array.from({ length: 32 }, () => "AB").join(":")}\r
a=rtpmap:111 opus/48000/2\r
`;

let customer: Customer;
let headgate: Headgate;

beforeAll(async () => {
  customer = await startCustomer();
  headgate = await startHeadgate({ customer });
  const headers = { "content-type": "text/plain; charset=utf-8" };
  customer.answer({ status: 403, headers, body: "Your plan has ended – call us\nnot for you" });
});
afterAll(async () => {
  await headgate?.stop();
  await customer?.close();
});

async function refusals(): Promise<{ readonly ffmpeg: string; readonly whip: Record<string, unknown> }> {
  const name = await headgate.newStream();
  const encoder = broadcast(`${headgate.rtmp}/${name}`, { seconds: 20 });
  expect(await encoder.exit).not.toBe(0);
  const headers = { "content-type": "application/sdp" };
  const response = await fetch(headgate.whip(name), { method: "POST", headers, body: OFFER });
  expect(response.status).toBe(403);
  return { ffmpeg: encoder.stderr(), whip: (await response.json()) as Record<string, unknown> };
}

test("the first line of the customer's text is shown", async () => {
  const { ffmpeg, whip } = await refusals();
  expect(ffmpeg).toContain("Your plan has ended – call us");
  expect(whip).toMatchObject({ code: "rejected_by_customer", detail: "Your plan has ended – call us" });
  expect(ffmpeg + JSON.stringify(whip)).not.toContain("not for you");
});

test("none of it is shown when the organisation disables that", async () => {
  await headgate.call("PUT", "/organisation/settings", { reason_to_broadcaster: false });
  const { ffmpeg, whip } = await refusals();
  expect(ffmpeg).toContain("Publish denied");
  expect(whip).toMatchObject({ detail: "Publish denied" });
  expect(ffmpeg + JSON.stringify(whip)).not.toContain("plan");
});

test("the delivery log contains it", async () => {
  const list = (await headgate.call("GET", "/organisation/webhook/deliveries?failed=true")) as unknown as {
    reason: string;
  }[];
  expect(list.map(({ reason }) => reason)).toEqual(Array(4).fill("Your plan has ended – call us"));
});
