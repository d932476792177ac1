// What surrounds every answer: headers by area, and one log line without secrets.
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Gateway, openGateway } from "../../support/gateway.ts";

let gateway: Gateway;

beforeAll(async () => {
  gateway = await openGateway({ HEADGATE_PUBLIC_URL: "https://api.example" });
});

afterAll(() => gateway.close());

async function headersOf(method: string, path: string, names: readonly string[]) {
  const { headers } = await gateway.app.request(path, { method });
  return names.map((name) => headers.get(name));
}
const GUARDS = ["content-security-policy", "cross-origin-resource-policy", "cache-control", "x-content-type-options"];
const NOTHING_RUNS = "default-src 'none'; frame-ancestors 'none'";

test("the management API is restricted to its own origin, is not cached and runs no script", async () => {
  for (const path of ["/organisation", "/stream", "/login", "/nowhere"]) {
    expect(await headersOf("GET", path, GUARDS)).toEqual([NOTHING_RUNS, "same-origin", "no-store", "nosniff"]);
  }
  expect(await headersOf("GET", "/stream", ["strict-transport-security", "referrer-policy"])).toEqual([
    "max-age=31536000",
    "no-referrer",
  ]);
});

test("what pages of other origins may read has CORS headers; keys may be cached for a while", async () => {
  const keys = await headersOf("GET", "/.well-known/jwks.json", GUARDS);
  expect(keys).toEqual([NOTHING_RUNS, "cross-origin", "public, max-age=300", "nosniff"]);
  expect((await headersOf("POST", "/webcaster/verify", GUARDS))[1]).toBe("cross-origin");
});

test("the page of the documentation runs only its own scripts", async () => {
  const [policy] = await headersOf("GET", "/docs", GUARDS);
  expect(policy).toMatch(/^default-src 'none'; script-src 'self'; /);
});

test("a request is one log line: its id, route, status and caller's address, without path, query, key or body", async () => {
  const secret = "s3cret-of-a-broadcaster";
  const body = { email: `${secret}@customer.example`, password: secret };
  const headers = { "x-service-apikey": secret, cookie: `__Host-headgate=${secret}`, "x-csrf-token": secret };
  const answers = [
    await gateway.call("GET", `/stream?state=${secret}`),
    await gateway.call("GET", `/stream/${secret}`),
    await gateway.call("POST", "/login", { body, headers, key: null }),
    await gateway.call("PUT", "/organisation/webhook", { body: { webhook: `https://customer.example/?k=${secret}` } }),
    await gateway
      .call("POST", `/p/webrtc?stream_name=${secret}&stream_url=rtmp://x/live`, { key: null })
      .catch(() => null),
  ];
  const lines = gateway.log().split("\n").filter(Boolean);
  const line = lines
    .map((text) => JSON.parse(text))
    .find(({ requestId }) => {
      return requestId === answers[1]?.headers.get("x-request-id");
    });
  expect(line).toMatchObject({ method: "GET", route: "/stream/:id", status: 404, address: "203.0.113.7" });
  expect(gateway.log()).not.toContain(secret);
});
