// Role × route, complete (M4): every guarded route is called with a key and as a person of each role.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ROUTES } from "../../../ts/organisation/roles.ts";
import type { Role } from "../../../ts/store/tables/roles.ts";
import { type Gateway, openGateway } from "../../support/gateway.ts";

/** M4 as a list: the routes that user and readonly may call. A new route has to be considered here. */
const READONLY = [
  "GET /organisation",
  "GET /organisation/usage",
  "GET /organisation/events",
  "GET /organisation/settings",
  "GET /organisation/logo",
  "GET /organisation/status",
  "GET /organisation/webhook/copies",
  "GET /organisation/webhook/deliveries",
  "GET /organisation/webhook/deliveries/{id}",
  "GET /stream",
  "GET /stream/{id}",
  "GET /stream/{id}/upstream",
  "GET /stream/{id}/publish",
  "GET /stream/{id}/refusal",
  "GET /refusal",
  "GET /live/{file}",
  "GET /session",
  "GET /session/{client_id}",
  "GET /session/{client_id}/history",
  "GET /session/{client_id}/timeline",
  "GET /me",
  "PUT /me/password",
];
const USER = [
  ...READONLY,
  "POST /stream",
  "PUT /stream/{id}/tag",
  "PUT /stream/{id}/title",
  "PUT /stream/{id}/external-id",
  "POST /stream/{id}/upstream",
  "DELETE /stream/{id}/upstream/{upstream_id}",
  "PUT /stream/{id}/upstream/{upstream_id}/pause",
  "PUT /stream/{id}/upstream/{upstream_id}/resume",
  "POST /stream/{id}/upstream/{upstream_id}/retry",
  "POST /stream/{id}/upstream/{upstream_id}/test",
  "POST /session/{client_id}/upstream",
  "DELETE /session/{client_id}/upstream/{id}",
  "POST /stream/{id}/play-token",
  "POST /webcaster",
  "GET /token",
];

const guarded = Object.entries(ROUTES).flatMap(([route, action]) => (action === "anyone" ? [] : [route]));
const leastRole = (route: string): Role =>
  READONLY.includes(route) ? "readonly" : USER.includes(route) ? "user" : "administrator";
const ranks: readonly Role[] = ["readonly", "user", "administrator"];

let gateway: Gateway;

beforeAll(async () => {
  gateway = await openGateway();
});

afterAll(() => gateway.close());

test("every route that M4 names exists", () => {
  for (const route of USER) expect(guarded).toContain(route);
});

describe.each(ranks)("with a key of %s", (role) => {
  test.each(guarded)("%s", async (route) => {
    const [method, path] = route.split(" ") as [string, string];
    const key = gateway.keys[role];
    const { status, body } = await gateway.call(method, path.replaceAll(/\{\w+\}/g, "none"), { key });
    const least = leastRole(route);
    if (ranks.indexOf(role) >= ranks.indexOf(least)) {
      // Allowed: what follows does not depend on roles.
      expect(body).not.toHaveProperty("error.userinfo.required_role");
      expect(status).toBeLessThan(500);
    } else if (path.startsWith("/webcaster")) {
      const message = "Provided APIKey may not create web tokens";
      expect({ status, body }).toStrictEqual({ status: 403, body: { success: false, errorCode: 1001, message } });
    } else {
      const error = { code: 2001, message: "Access denied", userinfo: { required_role: least } };
      expect({ status, body }).toStrictEqual({ status: 403, body: { error } });
    }
  });
});

describe("without a key, and with one of an organisation that is not enabled", () => {
  test.each(guarded)("%s", async (route) => {
    const [method, path] = route.split(" ") as [string, string];
    const address = path.replaceAll(/\{\w+\}/g, "none");
    const isToken = path.startsWith("/webcaster");
    const refusal = (message: string, userinfo: object = {}) =>
      isToken ? { success: false, errorCode: 1001, message } : { error: { code: 2001, message, userinfo } };
    const none = await gateway.call(method, address, { key: null });
    const noKey = isToken
      ? refusal("Provided APIKey is not valid")
      : refusal("Access denied: send a valid API key in the header x-service-apikey", {
          required_header: "x-service-apikey",
        });
    expect({ status: none.status, body: none.body }).toStrictEqual({ status: 403, body: noKey });
    const other = await gateway.newOrganisation("Closed");
    await gateway.db.updateTable("organisation").set({ enabled: 0 }).where("id", "=", other.organisation.id).execute();
    const closed = await gateway.call(method, address, { key: other.keys.administrator });
    const body = refusal("Organisation is not enabled", { required_state: "enabled" });
    expect({ status: closed.status, body: closed.body }).toStrictEqual({ status: 403, body });
  });
});
