// The OpenAPI document and its page: everything that is served is described, nothing else is, and reading it
// requires no other server.
import { afterAll, beforeAll, expect, test } from "vitest";
import { ROUTES } from "../../ts/organisation/roles.ts";
import { type Gateway, openGateway } from "../support/gateway.ts";

let gateway: Gateway;

beforeAll(async () => {
  gateway = await openGateway({ HEADGATE_PUBLIC_URL: "https://api.example" });
});

afterAll(() => gateway.close());

interface Operation {
  readonly operationId: string;
  readonly security?: readonly object[];
  readonly responses: Readonly<Record<string, unknown>>;
}
interface Document {
  readonly openapi: string;
  readonly servers: readonly object[];
  readonly webhooks: Readonly<Record<string, unknown>>;
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
}

async function documentOf(): Promise<Document> {
  const { status, body } = await gateway.call("GET", "/openapi.json", { key: null });
  expect(status).toBe(200);
  return body as Document;
}

/** Method and path of every route that a caller of `app` can reach, as OpenAPI writes them. */
function servedRoutes(): string[] {
  const served = gateway.app.routes.filter(
    ({ method, path }) => method !== "ALL" && method !== "OPTIONS" && path !== WEB_SOCKET && !PAGES.includes(path),
  );
  return [...new Set(served.map(({ method, path }) => `${method} ${path.replace(/:(\w+)/g, "{$1}")}`))].sort();
}

/** The parts of WHIP that browsers request and people do not read about. */
const WHIP = /^\w+ \/p\/webrtc(\/|$)/;
/** OpenAPI cannot describe it; docs/v5.md does. */
const WEB_SOCKET = "/p/webrtcws";
/** Nor addresses of any depth: those of the dashboard's pages, all of which return the document of
 *  /dashboard. The root redirects there. Nor what only browsers request, to sign in at an identity provider. */
const SIGN_IN = "/login/identity-provider/:organisation";
const PAGES: readonly string[] = ["/", "/favicon.ico", "/dashboard/*", SIGN_IN, `${SIGN_IN}/callback`];

test("every route that is served has a row in the table of roles, and every row is served", () => {
  expect(servedRoutes().filter((route) => !WHIP.test(route))).toStrictEqual(Object.keys(ROUTES).sort());
});

test("every route is described, and nothing else", async () => {
  const { paths } = await documentOf();
  const described = Object.entries(paths).flatMap(([path, methods]) =>
    Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
  );
  const api = described.filter((route) => !WHIP.test(route)).sort();
  expect(api).toStrictEqual(Object.keys(ROUTES).sort());
  expect(described).toContain("POST /p/webrtc");
});

test("operations have unique names, and guarded ones state it", async () => {
  const { paths } = await documentOf();
  const operations = Object.values(paths).flatMap((methods) => Object.values(methods));
  const names = operations.map(({ operationId }) => operationId);
  expect(new Set(names).size).toBe(names.length);
  for (const [route, action] of Object.entries(ROUTES)) {
    const [method, path] = route.split(" ") as [string, string];
    const operation = paths[path]?.[method.toLowerCase()];
    expect(operation?.security).toStrictEqual(action === "anyone" ? [] : [{ apiKey: [] }, { session: [] }]);
    if (action !== "anyone") expect(operation?.responses).toHaveProperty("403");
  }
});

test("the document is OpenAPI 3.1, names this server and describes the calls of the webhook", async () => {
  const { openapi, servers, webhooks } = await documentOf();
  expect(openapi).toBe("3.1.0");
  expect(servers).toStrictEqual([{ url: "https://api.example" }]);
  expect(Object.keys(webhooks)).toStrictEqual(["publish", "update_publish", "publish_done"]);
});

test("an id has the same type everywhere, and a list states where its next page begins", async () => {
  const { paths } = await documentOf();
  const shown = paths["/session/{client_id}"]?.["get"] as Operation & { readonly parameters: readonly object[] };
  expect(shown.parameters).toContainEqual(
    expect.objectContaining({ name: "client_id", in: "path", schema: expect.objectContaining({ type: "integer" }) }),
  );
  for (const path of [
    "/stream",
    "/stream/{id}/publish",
    "/deployment/organisation",
    "/session",
    "/organisation/user",
    "/organisation/key",
    "/organisation/audit",
  ]) {
    expect(paths[path]?.["get"]?.responses["200"]).toHaveProperty("headers.x-next-cursor");
  }
});

test("every WHIP route that is served is described", async () => {
  const { paths } = await documentOf();
  const whip = Object.entries(paths).flatMap(([path, methods]) =>
    Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
  );
  const served = gateway.app.routes.filter(({ method, path }) => method !== "ALL" && WHIP.test(`${method} ${path}`));
  const names = served.map(({ method, path }) => `${method} ${path.replace(/:(\w+)/g, "{$1}")}`);
  expect(whip.filter((route) => WHIP.test(route)).sort()).toStrictEqual([...new Set(names)].sort());
});

test("the type of a problem document links to its place on a page of the docs", async () => {
  const problem = await gateway.call("DELETE", "/p/webrtc/none");
  const { type } = problem.body as { readonly type: string };
  const [path = "", code] = type.split("#");
  const page = await gateway.app.request(path);
  expect(page.status).toBe(200);
  expect(await page.text()).toContain(`id="${code}"`);
});

test("the page and its files refer to no other server", async () => {
  const page = await gateway.app.request("/docs");
  const html = await page.text();
  expect(page.headers.get("content-security-policy")).toContain("default-src 'none'");
  expect(html).not.toMatch(/https?:\/\//);
  for (const [, file] of html.matchAll(/<(?:link|script)[^>]* (?:href|src)="(\/docs\/[^"]+)"/g)) {
    const answer = await gateway.app.request(file as string);
    expect(answer.status).toBe(200);
    expect(answer.headers.get("content-type")).toMatch(/^text\/(css|javascript); charset=utf-8$/);
  }
  for (const name of ["constructor", "__proto__"]) {
    expect((await gateway.app.request(`/docs/${name}`)).status).toBe(404);
  }
  const missing = await gateway.app.request("/docs/swagger-ui.js.map");
  expect([missing.status, missing.headers.get("cache-control")]).toEqual([404, "no-store"]);
});
