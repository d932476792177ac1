// Members of a body that a route does not know are ignored, and the answer names them in `warnings`.
import { z } from "@hono/zod-openapi";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { unknownMembers } from "../../ts/http/request/warnings.ts";
import { ROUTES, type RouteName } from "../../ts/organisation/roles.ts";
import { type Gateway, openGateway } from "../support/gateway.ts";
import { fill, type Inventory, PASSWORD, personOf, requestOf } from "../support/inventory.ts";

let gateway: Gateway;
let owned: Inventory;
beforeAll(async () => {
  gateway = await openGateway();
  owned = await fill(gateway, gateway);
  await gateway.db.updateTable("organisation").set({ webhook: "https://customer.example/" }).execute();
});
afterAll(() => gateway.close());

const create = async (body: unknown, headers: Readonly<Record<string, string>> = {}) => {
  const answer = await gateway.call("POST", "/stream", { body, headers });
  return {
    status: answer.status,
    body: answer.body as { readonly id?: string; readonly warnings?: readonly string[] },
  };
};

describe("a new stream", () => {
  test("is created as if unknown members were not there, and the answer names them and no value", async () => {
    const { status, body } = await create({
      titel: "s3cret",
      tags: ["a"],
      Title: null,
      title: "Show",
      record: { on: true },
    });
    expect({ status, body }).toMatchObject({ status: 200, body: { tags: ["a"], title: "Show" } });
    expect(body.warnings).toEqual(["titel", "Title", "record"]);
    expect(JSON.stringify(body)).not.toContain("s3cret");
    expect((await gateway.call("GET", `/stream/${body.id}`)).body).not.toHaveProperty("warnings");
  });

  test.each([[undefined], [{}], [{ tags: [] }], [{ title: "a", external_id: null, publish_key: null, tags: null }]])(
    "from %j has no warnings at all",
    async (given) => {
      const { status, body } = await create(given);
      expect(status).toBe(200);
      expect(body).not.toHaveProperty("warnings");
    },
  );

  test.each(["__proto__", "constructor", "toString", "hasOwnProperty", "warnings", "id", "", " ", "a\nb", "ünï"])(
    "is warned of the member %j",
    async (name) => {
      const { status, body } = await create(`{${JSON.stringify(name)}: {"a": 1}}`);
      expect({ status, warnings: body.warnings }).toEqual({ status: 200, warnings: [name] });
    },
  );

  test("is warned of at most 20 names, each cut after 64 characters", async () => {
    const many = Object.fromEntries(Array.from({ length: 100 }, (_, at) => [`member-${at}-${"🎥".repeat(60)}`, at]));
    const { warnings = [] } = (await create(many)).body;
    expect(warnings).toHaveLength(20);
    expect([...(warnings[0] ?? "")]).toHaveLength(64);
    expect(warnings[0]).toBe(`member-0-${"🎥".repeat(55)}`);
    const long = (await create({ ["x".repeat(60_000)]: 1 })).body;
    expect(long.warnings).toEqual(["x".repeat(64)]);
    expect((await create(String.raw`{"a\ud800": 1}`)).body.warnings).toEqual(["a\ufffd"]);
  });

  test("that is requested again with its Idempotency-Key gets the same warnings", async () => {
    const headers = { "Idempotency-Key": "warned-1" };
    const first = await create({ nmae: 1 }, headers);
    expect(first.body.warnings).toEqual(["nmae"]);
    expect(await create({ nmae: 1 }, headers)).toEqual(first);
  });

  test("that is refused is refused as before", async () => {
    expect(await create({ tags: 1, nmae: 1 })).toMatchObject({ status: 400, body: { error: { code: 1004 } } });
    expect(await create("[]")).toMatchObject({ status: 400, body: { error: { code: 1004 } } });
    expect(await create("{")).toMatchObject({ status: 400, body: { error: { code: 9000 } } });
  });
});

/** Rejects unknown members, as ever; and is refused here, because nothing waits for another attempt. */
const STRICT: readonly RouteName[] = ["PUT /organisation/settings", "POST /stream/{id}/upstream/{upstream_id}/retry"];
const changing = (Object.keys(ROUTES) as RouteName[]).filter(
  (route) => /^(POST|PUT) /.test(route) && ROUTES[route] !== "anyone" && !STRICT.includes(route),
);

test.each(changing)("%s names them too", async (route) => {
  let headers: Record<string, string> = {};
  if (route === "PUT /me/password") {
    const ada = personOf("user");
    await gateway.call("POST", "/organisation/user", { body: ada });
    const login = await gateway.call("POST", "/login", {
      key: null,
      body: { email: ada.email, password: PASSWORD, x: 1 },
    });
    expect(login.body).toMatchObject({ warnings: ["x"] });
    const cookie = (login.headers.get("set-cookie") ?? "").split(";")[0] ?? "";
    headers = { cookie, "x-csrf-token": (login.body as { csrf_token: string }).csrf_token };
  }
  const { method, path, body } = requestOf(route, owned);
  const key = route === "PUT /me/password" ? null : gateway.keys.administrator;
  const answer = await gateway.call(method, path, { key, headers, body: { ...body, tpyo: 1, other: { a: 1 } } });
  const warned = { status: 200, body: { warnings: ["tpyo", "other"] } };
  expect({ status: answer.status, body: answer.body }).toMatchObject(warned);
});

test("the OpenAPI document has them in every answer to a POST or PUT, and in no list", async () => {
  const { body } = await gateway.call("GET", "/openapi.json", { key: null });
  type Schema = { readonly $ref?: string; readonly properties?: object };
  type Answers = {
    readonly responses: {
      readonly 200?: { readonly content: { readonly "application/json"?: { readonly schema: Schema } } };
    };
  };
  const { paths, components } = body as {
    readonly paths: Readonly<Record<string, Readonly<Record<string, Answers>>>>;
    readonly components: { readonly schemas: Readonly<Record<string, Schema>> };
  };
  for (const route of changing) {
    const [method = "", path = ""] = route.split(" ");
    const schema = paths[path]?.[method.toLowerCase()]?.responses[200]?.content["application/json"]?.schema;
    const record = schema?.$ref === undefined ? schema : components.schemas[schema.$ref.split("/").at(-1) ?? ""];
    expect([route, record?.properties]).toEqual([
      route,
      expect.objectContaining({ warnings: { $ref: "#/components/schemas/Warnings" } }),
    ]);
  }
});

test("a body that nobody reads may be anything", async () => {
  for (const body of ["{", "[1]", "text", "null", ""]) {
    const answer = await gateway.call("PUT", `/stream/${owned.stream.id}/unlock`, { body });
    expect(answer.status).toBe(200);
    expect(answer.body).not.toHaveProperty("warnings");
  }
});

test("nested members are named with their place, once for a whole list", () => {
  const inner = z.object({ known: z.string().optional() });
  const schema = z.object({
    outer: inner.nullable().optional(),
    list: z.array(inner).transform((all) => all.length),
    plain: z.string(),
  });
  const given = {
    outer: { known: "a", unknown: 1 },
    list: [{ typo: 1 }, { typo: 2, known: "b" }, {}],
    plain: "c",
    extra: { known: 1 },
  };
  expect(unknownMembers(schema, given)).toEqual(["outer.unknown", "list[].typo", "extra"]);
  expect(unknownMembers(schema, { outer: null, list: [] })).toEqual([]);
});
