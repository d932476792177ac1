// What callers rely on of the API and the webhook, as of the commits before: whatever is in the fixture stays.
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { contractLines, contractOf, contractText } from "../../scripts/api-contract.mjs";
import { apiDocument } from "../../ts/app.ts";

const promised = contractLines(readFileSync("test/fixtures/api-contract.txt", "utf8"));

/** What `changed` breaks of a document that `document` described. */
function broken(document: object, changed: object): readonly string[] {
  const now = new Set(contractOf(changed));
  return contractOf(document).filter((line) => !now.has(line));
}

/** A POST that takes a name and answers with a thing. */
function example(required: readonly string[], members: object, answer: readonly string[] = ["id"]) {
  const text = { type: "string" };
  const sent = { type: "object", properties: { name: text, ...members }, required };
  const thing = { type: "object", properties: { id: text, state: { type: "string", enum: ["on"] } }, required: answer };
  const content = (schema: object) => ({ content: { "application/json": { schema } } });
  const responses = { 200: content({ $ref: "#/components/schemas/Thing" }) };
  const post = { operationId: "make", requestBody: content(sent), responses };
  return { paths: { "/thing": { post } }, webhooks: {}, components: { schemas: { Thing: thing } } };
}

test("nothing that callers rely on is gone or different: if it may be, take the line out of the fixture", () => {
  const now = new Set(contractOf(apiDocument("0")));
  expect(promised.filter((line) => !now.has(line))).toEqual([]);
});

test("whatever is new is in the fixture: node scripts/client-types.mjs adds it", () => {
  const known = new Set(promised);
  expect(contractOf(apiDocument("0")).filter((line) => !known.has(line))).toEqual([]);
  expect(contractLines(contractText(promised))).toEqual(promised);
});

test("a further member breaks nobody, unless callers must send it or cannot rely on one any more", () => {
  const before = example(["name"], {});
  expect(broken(before, example(["name"], { title: { type: "string" } }))).toEqual([]);
  expect(broken(before, example(["name"], {}, ["id", "state"]))).toEqual([
    'Thing.state? = "on"',
    "Thing.state?: string",
  ]);
  expect(broken(before, example(["name"], {}, []))).toEqual(["Thing.id: string"]);
  expect(broken(before, example(["name", "title"], { title: { type: "string" } }))).toEqual([
    "POST /thing body application/json requires name",
  ]);
  expect(broken(before, example([], { name: { type: "integer" } }))).toEqual([
    "POST /thing body application/json requires name",
    "POST /thing body application/json.name: string",
  ]);
});
