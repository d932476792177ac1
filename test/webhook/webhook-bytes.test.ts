// What a customer's server receives, byte for byte: what changes here breaks customers, whatever the change is good for.
import { createServer } from "node:net";
import { pino } from "pino";
import { afterAll, beforeAll, expect, test } from "vitest";
import { doneBody, publishBody, updateBody } from "../../ts/publish/webhook/body.ts";
import { createWebhook, type Webhook, type WebhookCall } from "../../ts/publish/webhook/call.ts";
import { until } from "../support/child.ts";

const ARGUMENTS = "passcode=s3cret&room=%C3%A9\xff";
const subject = {
  arguments: Buffer.from(ARGUMENTS, "latin1"),
  name: "Ab1Cd-9XyZ0",
  app: "live",
  address: "2001:db8::7",
  clientId: 100482,
};
const CALLS = [
  {
    call: "publish",
    body: publishBody(subject),
    signature: "v1,Vf0XUmcO9AMrkp9ia2g50uyw3MbyC92nJwOc55a+0xM=",
    fields: "call=publish&name=Ab1Cd-9XyZ0&app=live&addr=2001%3Adb8%3A%3A7&clientid=100482",
  },
  {
    call: "update_publish",
    body: updateBody(subject, { time: 30, timestamp: 30_012, extras: [["bitrate", "2500"]] }),
    signature: "v1,fCFJDRNpXrgLHp3SigxojzB0eBolYBsxKN4iS29RT7I=",
    fields:
      "call=update_publish&time=30&timestamp=30012&name=Ab1Cd-9XyZ0&app=live&addr=2001%3Adb8%3A%3A7&clientid=100482" +
      "&bitrate=2500",
  },
  {
    call: "publish_done",
    body: doneBody(subject, { bytesIn: 9_007_199_254_740_991, bytesOut: 12 }),
    signature: "v1,aEwfX75Crreyoh2rFEsgnXLsgr99EZXV5BPWMEwwi8w=",
    fields:
      "call=publish_done&name=Ab1Cd-9XyZ0&bytes_in=9007199254740991&bytes_out=12&app=live&addr=2001%3Adb8%3A%3A7" +
      "&clientid=100482",
  },
] as const;

let received = Buffer.alloc(0);
let webhook: Webhook;
let port: number;
const server = createServer((socket) => {
  socket.on("data", (data: Buffer) => {
    received = Buffer.concat([received, data]);
    socket.end("HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
  });
});

beforeAll(async () => {
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
  const address = server.address();
  port = address !== null && typeof address === "object" ? address.port : 0;
  const clock = { now: () => 1_767_225_600_999 };
  webhook = createWebhook({ webhookCa: null, dev: true, log: pino({ level: "silent" }), clock });
});
afterAll(async () => {
  await webhook.close();
  server.close();
});

test.each(CALLS)("the bytes of $call", async ({ call, body, signature, fields }) => {
  received = Buffer.alloc(0);
  const asked: WebhookCall = {
    organisationId: "org1",
    url: `http://127.0.0.1:${port}/hook?of=a%20customer`,
    id: "msg_01J9Z6Q3V5T0K8M2",
    body,
    keys: [Uint8Array.from({ length: 32 }, (_, index) => index)],
    deadlineMs: 30_000,
    retryConnection: false,
    trace: { traceId: "4bf92f3577b34da6a3ce929d0e0e4736", spanId: "00f067aa0ba902b7", isSampled: true, state: "a=b" },
    event: { call, clientId: subject.clientId, name: subject.name, attempt: 1 },
  };
  expect(await webhook.post(asked)).toMatchObject({ outcome: "answered", status: 200 });
  const whole = await until("all of it has arrived", () => {
    const text = received.toString("latin1");
    return text.endsWith(Buffer.from(body).toString("latin1")) ? text : null;
  });
  const head = [
    "POST /hook?of=a%20customer HTTP/1.1",
    `host: 127.0.0.1:${port}`,
    "connection: keep-alive",
    "content-type: application/x-www-form-urlencoded",
    "user-agent: headgate-webhook/1",
    "webhook-id: msg_01J9Z6Q3V5T0K8M2",
    "webhook-timestamp: 1767225600",
    `webhook-signature: ${signature}`,
    // The parent is a span of its own for each attempt.
    expect.stringMatching(/^traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-[0-9a-f]{16}-01$/),
    "tracestate: a=b",
    `content-length: ${body.length}`,
  ];
  const [sentHead = "", sentBody] = whole.split("\r\n\r\n");
  expect(sentHead.split("\r\n")).toEqual(head);
  expect(sentBody).toBe(`${ARGUMENTS}&${fields}`);
});
