// What the client adds to sending requests: safe retries, reading lists to their end, and typed errors.
import { once } from "node:events";
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, test } from "vitest";
import { answerOf, createHeadgateClient, everyOf, HeadgateError, isHeadgateError } from "../../ts/client/index.ts";
import { retryingFetch } from "../../ts/client/retry.ts";

const json = (status: number, body: unknown, headers: Record<string, string> = {}) =>
  new Response(JSON.stringify(body), { status, headers: { "content-type": "application/json", ...headers } });

/** A service that gives these answers one after the other; undefined: no answer. */
function service(...answers: readonly (Response | undefined)[]) {
  const asked: { readonly key: string | null; readonly body: string; readonly url: string }[] = [];
  const send = async (request: Request): Promise<Response> => {
    const answer = answers[asked.length];
    asked.push({ key: request.headers.get("idempotency-key"), body: await request.text(), url: request.url });
    if (answer === undefined) throw new TypeError("fetch failed");
    return answer;
  };
  return { asked, send };
}

const REQUEST = (method: string) =>
  new Request("https://headgate.example/stream", { method, ...(method === "POST" ? { body: "{}" } : {}) });

test("a POST without an answer is sent again under the same Idempotency-Key, after the pauses that were asked for", async () => {
  const { asked, send } = service(undefined, json(503, {}, { "retry-after": "5" }), json(200, {}));
  const pauses: number[] = [];
  const fetch = retryingFetch(send, 2, async (ms) => void pauses.push(ms));
  expect((await fetch(REQUEST("POST"))).status).toBe(200);
  expect(new Set(asked.map(({ key }) => key)).size).toBe(1);
  expect(asked.map(({ key, body }) => [key?.length, body])).toEqual(Array(3).fill([36, "{}"]));
  expect(pauses).toEqual([250, 5_000]);
});

test("a request whose first attempt is still running waits for its answer; any other conflict is returned", async () => {
  const pending = service(json(409, { error: { code: 9410 } }, { "retry-after": "1" }), json(200, {}));
  expect((await retryingFetch(pending.send, 2, async () => {})(REQUEST("POST"))).status).toBe(200);
  const reused = service(json(409, { error: { code: 9409 } }));
  expect((await retryingFetch(reused.send, 2, async () => {})(REQUEST("POST"))).status).toBe(409);
});

test("a DELETE without an answer is not sent again, and other retries are limited", async () => {
  const removed = service(undefined);
  await expect(retryingFetch(removed.send, 2, async () => {})(REQUEST("DELETE"))).rejects.toThrow("fetch failed");
  expect(removed.asked).toHaveLength(1);
  const down = service(undefined, undefined, undefined);
  await expect(retryingFetch(down.send, 2, async () => {})(REQUEST("GET"))).rejects.toThrow("fetch failed");
  expect(down.asked).toHaveLength(3);
});

test("a list is read to its end", async () => {
  const { asked, send } = service(
    json(200, [{ id: "a" }, { id: "b" }], { "x-next-cursor": "c1" }),
    json(200, [{ id: "c" }]),
  );
  const client = createHeadgateClient({ baseUrl: "https://headgate.example", apiKey: "k", fetch: send });
  const ids: string[] = [];
  for await (const { id } of everyOf((page) => client.GET("/stream", { params: { query: page } }))) ids.push(id);
  expect(ids).toEqual(["a", "b", "c"]);
  expect(asked.map(({ url }) => new URL(url).search)).toEqual(["", "?cursor=c1"]);
});

test.each(["Parameter required", "Parameter required: webhook"])(
  "an error names code, field and status: %s",
  async (told) => {
    const error = { code: 1002, message: told, userinfo: { required_parameter: "webhook" } };
    const { send } = service(json(400, { error }));
    const client = createHeadgateClient({ baseUrl: "https://headgate.example", apiKey: "k", fetch: send });
    const call = answerOf(client.PUT("/organisation/webhook", { body: { webhook: null } }));
    const message = "Parameter required: webhook (HTTP 400, code 1002)";
    await expect(call).rejects.toMatchObject({ message, code: 1002, field: "webhook", status: 400 });
  },
);

test("the kind of an error is distinct although its code may mean something else in the other service", async () => {
  const management = { error: { code: 1003, message: "Not unique: email", userinfo: { parameter: "email" } } };
  const token = { success: false, errorCode: 1003, message: "Wrong data type: exp" };
  const newer = { error: { code: 9999, message: "New", userinfo: {} } };
  const kinds = [management, token, newer, "<html>"].map((body) => new HeadgateError(json(400, {}), body).kind);
  expect(kinds).toEqual(["not_unique", "wrong_data_type", "other", "other"]);

  const error: unknown = new HeadgateError(json(404, {}), { error: { code: 3001, message: "m", userinfo: {} } });
  expect(isHeadgateError(error)).toBe(true);
  expect(isHeadgateError(error, "not_unique")).toBe(false);
  if (!isHeadgateError(error, "unknown_stream", "unknown_user")) throw new Error("it is about an unknown stream");
  const kind: "unknown_stream" | "unknown_user" = error.kind; // the type contains only the kinds asked for
  expect(kind).toBe("unknown_stream");
  expect(isHeadgateError(new Error("other"), "other")).toBe(false);
});

test("a redirect is an error that says where to, and the key reaches no other host", async () => {
  const reached: string[] = [];
  const serve = async (answer: RequestListener) => {
    const server = createServer(answer).listen(0, "127.0.0.1");
    await once(server, "listening");
    return { server, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
  };
  const other = await serve(({ url = "" }, response) => {
    reached.push(url);
    response.end("[]");
  });
  const first = await serve(({ url = "" }, response) => {
    response.writeHead(301, { location: other.url + url }).end("<h1>Moved</h1>");
  });
  const client = createHeadgateClient({ baseUrl: first.url, apiKey: "secret" });
  await expect(answerOf(client.GET("/organisation"))).rejects.toMatchObject({
    status: 301,
    message: `redirected to ${other.url}/organisation, which is not followed (HTTP 301, code 0)`,
  });
  expect(reached).toEqual([]);
  for (const { server } of [first, other]) {
    server.closeAllConnections();
    server.close();
  }
});
