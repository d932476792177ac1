// The client against a running gateway: a whole program that imports only ts/client, and calls about a live
// publish of a real broadcaster.
import { readFileSync } from "node:fs";
import { afterAll, beforeAll, expect, test } from "vitest";
import { answerOf, createHeadgateClient, type HeadgateClient } from "../../../ts/client/index.ts";
import { until } from "../../support/child.ts";
import { run } from "../../support/client-program.ts";
import { type Customer, startCustomer } from "../../support/customer.ts";
import { broadcast } from "../../support/ffmpeg.ts";
import { type Headgate, startHeadgate } from "../../support/headgate.ts";

let customer: Customer;
let headgate: Headgate;
let client: HeadgateClient;

beforeAll(async () => {
  customer = await startCustomer();
  headgate = await startHeadgate({ customer });
  client = createHeadgateClient({ baseUrl: `${headgate.http}/`, apiKey: headgate.apiKey });
});

afterAll(async () => {
  await headgate?.stop();
  await customer?.close();
});

test("a program that imports only the client works", async () => {
  const source = readFileSync(new URL("../../support/client-program.ts", import.meta.url), "utf8");
  expect([...source.matchAll(/from "([^"]+)"/g)].map(([, from]) => from)).toEqual(["../../ts/client/index.ts"]);
  const report = await run(headgate.http, headgate.apiKey, customer.url);
  expect(report.stream).toMatchObject({ state: "created", tags: ["studio-1"] });
  expect(report.webhook).toBe(customer.url);
  expect(report.token.split(".")).toHaveLength(3);
  expect(report.sessions).toEqual([]);
  expect(report.refusal).toMatchObject({ status: 404, code: 3001, message: "Unknown stream (HTTP 404, code 3001)" });
  expect(report.refusal.requestId).toMatch(/^[0-9a-f-]{36}$/);
});

test("a live publish is listed, counted and stopped, and a stopped stream accepts no publish until unlock", async () => {
  const stream = await answerOf(client.POST("/stream"));
  const { url, streamname } = stream.ingest.rtmp;
  const path = { id: stream.id };
  const broadcaster = broadcast(`${url}/${streamname}`, { seconds: 60 });
  const session = await until("the session has video", async () => {
    const sessions = await answerOf(client.GET("/session"));
    return sessions.find(({ streamname: name, bytes_in }) => name === streamname && bytes_in > 0);
  });
  expect(session).toMatchObject({ stream: stream.id, protocol: "rtmp", address: "127.0.0.1", upstreams: [] });
  const shown = await answerOf(
    client.GET("/session/{client_id}", { params: { path: { client_id: session.client_id } } }),
  );
  expect(shown).toMatchObject({ client_id: session.client_id, streamname });
  expect((await answerOf(client.GET("/stream/{id}", { params: { path } }))).state).toBe("live");

  expect((await answerOf(client.PUT("/stream/{id}/stop", { params: { path } }))).state).toBe("locked");
  await broadcaster.exit;
  const done = await until("publish_done", () =>
    customer.calls("publish_done").find(({ body }) => body.includes(`name=${streamname}`)),
  );
  const refused = broadcast(`${url}/${streamname}`, { seconds: 60 });
  await refused.exit; // long before its 60 seconds, or the test is too slow
  expect(customer.calls("publish").filter(({ body }) => body.includes(`name=${streamname}`))).toHaveLength(1);
  expect((await answerOf(client.PUT("/stream/{id}/unlock", { params: { path } }))).state).toBe("ended");

  const told = new URLSearchParams(done.body);
  const { total } = await answerOf(client.GET("/organisation/usage", { params: { query: { stream: stream.id } } }));
  expect(total).toEqual({ bytes_in: Number(told.get("bytes_in")), bytes_out: Number(told.get("bytes_out")) });
  expect(total.bytes_in).toBeGreaterThan(0);
});

test("a kicked publish ends and its stream can be published again", async () => {
  const { ingest } = await answerOf(client.POST("/stream"));
  const { url, streamname } = ingest.rtmp;
  const live = async () =>
    (await answerOf(client.GET("/session"))).find((session) => session.streamname === streamname);
  for (const _ of ["first", "second"]) {
    const broadcaster = broadcast(`${url}/${streamname}`, { seconds: 60 });
    const session = await until("it is live", live);
    const params = { path: { client_id: session.client_id } };
    await answerOf(client.POST("/session/{client_id}/kick", { params, body: { reason: "Off air" } }));
    await broadcaster.exit;
    await until("it has ended", async () => ((await live()) === undefined ? true : undefined));
  }
});
