// The webhook's format is nginx-rtmp's notify: the same ffmpeg publishes the same name and arguments to
// nginx-rtmp and to Headgate, and both calls are parsed and compared, field by field, for the fields that
// both have.
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { until } from "../../support/child.ts";
import { type Customer, startCustomer } from "../../support/customer.ts";
import { broadcast } from "../../support/ffmpeg.ts";
import { type Headgate, startHeadgate } from "../../support/headgate.ts";
import { type NginxRtmp, startNginxRtmp } from "../../support/nginx-rtmp.ts";

const CUSTOM = "passcode=s3cr%C3%A9t&b=1%2F2&empty=&last=a-b_c.d~e";
const CALLS = ["publish", "update_publish", "publish_done"] as const;

let notified: Server;
const bodies: string[] = [];
let nginx: NginxRtmp;
let customer: Customer;
let headgate: Headgate;
/** First event of each call, by server. */
let oracle: Map<string, URLSearchParams>;
let ours: Map<string, URLSearchParams>;

function firstOfEach(all: readonly string[]): Map<string, URLSearchParams> {
  const events = new Map<string, URLSearchParams>();
  for (const body of all) {
    const fields = new URLSearchParams(body);
    const call = fields.get("call") ?? "";
    if (!events.has(call)) events.set(call, fields);
  }
  return events;
}

beforeAll(async () => {
  notified = createServer(async (request, response) => {
    let body = "";
    for await (const chunk of request) body += chunk;
    bodies.push(body);
    response.end();
  });
  await new Promise<void>((resolve) => notified.listen(0, "127.0.0.1", resolve));
  nginx = await startNginxRtmp({ notify: `http://127.0.0.1:${(notified.address() as AddressInfo).port}/` });
  customer = await startCustomer();
  headgate = await startHeadgate({ customer, env: { HEADGATE_WEBHOOK_UPDATE_S: "5" } });
  const name = await headgate.newStream();
  const encoders = [nginx.url, headgate.rtmp].map((url) => broadcast(`${url}/${name}?${CUSTOM}`, { seconds: 8 }));
  await until("an update of both", () => {
    const theirs = bodies.some((body) => body.includes("call=update_publish"));
    return theirs && customer.calls("update_publish").length > 0;
  });
  for (const encoder of encoders) expect(await encoder.exit, encoder.stderr()).toBe(0);
  await until("the end of both", () => {
    return bodies.some((body) => body.includes("call=publish_done")) && customer.calls("publish_done").length > 0;
  });
  oracle = firstOfEach(bodies);
  ours = firstOfEach(customer.requests.map(({ body }) => body));
});
afterAll(async () => {
  await headgate?.stop();
  await nginx?.stop();
  await customer?.close();
  notified?.close();
});

describe.each(CALLS)("%s", (call) => {
  test("has the same name, app, address and custom arguments as from nginx-rtmp", () => {
    const shared = ["call", "name", "app", "addr", ...new URLSearchParams(CUSTOM).keys()];
    const of = (events: Map<string, URLSearchParams>) =>
      Object.fromEntries(shared.map((field) => [field, events.get(call)?.getAll(field)]));
    expect(of(ours)).toEqual(of(oracle));
  });

  test("has a decimal client id, the same one in all events of the publish", () => {
    for (const events of [oracle, ours]) {
      expect(events.get(call)?.get("clientid")).toMatch(/^\d+$/);
      expect(events.get(call)?.get("clientid")).toBe(events.get("publish")?.get("clientid"));
    }
  });

  test("has no field but those of the specification and the broadcaster's", () => {
    const fixed = ["call", "name", "app", "addr", "clientid", "time", "timestamp", "bytes_in", "bytes_out"];
    const known = new Set([...fixed, ...new URLSearchParams(CUSTOM).keys()]);
    expect([...(ours.get(call)?.keys() ?? [])].filter((field) => !known.has(field))).toEqual([]);
  });
});

test("time and timestamp are whole numbers of the same unit in both", () => {
  for (const events of [oracle, ours]) {
    const update = events.get("update_publish");
    const [time, timestamp] = [Number(update?.get("time")), Number(update?.get("timestamp"))];
    expect(Number.isInteger(time) && Number.isInteger(timestamp)).toBe(true);
    // Seconds since the publish, and milliseconds of media: about the same moment of a broadcast in real
    // time.
    expect(Math.abs(timestamp / 1_000 - time)).toBeLessThan(3);
  }
});
