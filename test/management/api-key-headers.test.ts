// Additional header names for the API key (M3): each works like x-service-apikey, and a header with another
// meaning is refused.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { loadConfig } from "../../ts/config.ts";
import { ConfigInvalid } from "../../ts/errors.ts";
import { type Gateway, openGateway } from "../support/gateway.ts";

let gateway: Gateway;

beforeAll(async () => {
  gateway = await openGateway({
    HEADGATE_HTTP_API_KEY_HEADERS: "X-Api-Key, x-other-key",
    HEADGATE_LIMITS_API_REQUESTS_PER_SECOND: "20",
  });
});
afterAll(() => gateway.close());

const TOKEN = { streamname: "a", ingesturl: "rtmp://in.example/live" };
const withKeys = (headers: Readonly<Record<string, string>>) => ({
  management: async () => await gateway.call("GET", "/organisation", { key: null, headers }),
  token: async () => await gateway.call("POST", "/webcaster", { key: null, headers, body: TOKEN }),
});

describe("a key", () => {
  test.each(["x-service-apikey", "x-api-key", "X-OTHER-KEY"])(
    "in %s is accepted by the management API and the token service",
    async (name) => {
      const { management, token } = withKeys({ [name]: gateway.keys.administrator });
      expect(await management()).toMatchObject({ status: 200, body: { id: gateway.organisation.id } });
      expect(await token()).toMatchObject({ status: 200, body: { success: true } });
    },
  );

  test("in a header that is not configured is rejected", async () => {
    const { management } = withKeys({ "x-third-key": gateway.keys.administrator });
    expect((await management()).status).toBe(403);
  });

  test("sent in two headers counts as one key, with one rate limit", async () => {
    const key = gateway.keys.user;
    const both = await withKeys({ "x-service-apikey": key, "x-api-key": key }).management();
    const one = await withKeys({ "x-other-key": key }).management();
    expect([both.status, one.status]).toEqual([200, 200]);
    const left = [both, one].map(({ headers }) => Number(headers.get("ratelimit-remaining")));
    expect(left[1]).toBe((left[0] ?? 0) - 1);
  });

  test("sent together with another one is refused like an invalid key, whichever of the two is valid", async () => {
    const { administrator, user } = gateway.keys;
    for (const [first, second] of [
      [administrator, user],
      [administrator, "wrong"],
      ["", administrator],
    ] as const) {
      const { management, token } = withKeys({ "x-service-apikey": first, "x-api-key": second });
      expect(await management()).toMatchObject({
        status: 403,
        body: { error: { code: 2001, message: expect.stringContaining("x-service-apikey or x-api-key") } },
      });
      expect(await token()).toMatchObject({ status: 403, body: { success: false, errorCode: 1001 } });
    }
  });

  test("in a configured header gets no CORS headers for pages of other origins", async () => {
    const asked = { origin: "https://page.example", "access-control-request-headers": "x-api-key" };
    const preflight = await gateway.app.request("/webcaster", { method: "OPTIONS", headers: asked });
    const { headers } = await withKeys({ "x-api-key": gateway.keys.user, origin: asked.origin }).token();
    for (const answered of [preflight.headers, headers]) {
      expect(answered.get("access-control-allow-origin")).toBeNull();
      expect(answered.get("access-control-allow-headers")).toBeNull();
    }
    expect(JSON.stringify(gateway.log())).not.toContain(gateway.keys.user);
  });
});

const faultsOf = (names: string) => {
  try {
    loadConfig({ env: { HEADGATE_DATA_DIR: "/nowhere", HEADGATE_HTTP_API_KEY_HEADERS: names } });
  } catch (error) {
    expect(error).toBeInstanceOf(ConfigInvalid);
    return (error as ConfigInvalid).message;
  }
  return null;
};

test.each([
  ["Authorization", "http.api_key_headers must not name authorization: it carries web tokens"],
  ["x-key,Cookie", "http.api_key_headers must not name cookie: it carries the sessions of people"],
  [
    "Transfer-Encoding",
    "http.api_key_headers must not name transfer-encoding: it is for one connection only, and proxies drop it",
  ],
  ["x key", 'HEADGATE_HTTP_API_KEY_HEADERS must be a list of HTTP header names, not "x key"'],
  ["x-kéy", 'HEADGATE_HTTP_API_KEY_HEADERS must be a list of HTTP header names, not "x-kéy"'],
])("%s is refused at startup, with the reason", (names, fault) => {
  expect(faultsOf(names)).toBe(fault);
});

test("names may be repeated, including x-service-apikey", () => {
  expect(faultsOf("x-service-apikey,X-Key,x-key")).toBeNull();
});
