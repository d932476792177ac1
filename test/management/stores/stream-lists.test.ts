// Streams found by a part of their name or of a tag, and live ones first: page by page, on both stores
// (vitest.config.ts).

import { sql } from "kysely";
import { afterEach, beforeEach, expect, test } from "vitest";
import { WINDOW } from "../../../ts/organisation/reads/stream-list.ts";
import type { StreamState } from "../../../ts/store/schema.ts";
import { type Gateway, openGateway } from "../../support/gateway.ts";

let gateway: Gateway;

beforeEach(async () => {
  gateway = await openGateway();
});
afterEach(() => gateway.close());

let streams = 0;

async function add(name: string, state: StreamState = "created", tags: readonly string[] = []): Promise<void> {
  streams += 1;
  const times = { created_at: gateway.clock.ms + streams, updated_at: gateway.clock.ms };
  const of = { id: `s-${streams}`, organisation_id: gateway.organisation.id, name, state, tags: JSON.stringify(tags) };
  await gateway.db
    .insertInto("stream")
    .values({ ...of, ...times })
    .execute();
}

type Listed = { readonly ingest: { readonly rtmp: { readonly streamname: string } } };

async function page(query: string) {
  const { status, body, headers } = await gateway.call("GET", `/stream${query}`);
  expect({ status, body }).toMatchObject({ status: 200 });
  const names = (body as Listed[]).map(({ ingest }) => ingest.rtmp.streamname);
  return { names, cursor: headers.get("x-next-cursor") };
}

test("a part of the name or of a tag finds a stream in any case, and special characters are not patterns", async () => {
  await add("Ab1Cd-9XyZ0");
  await add("Ab1Cd-other", "created", ["Studio-1", "100%"]);
  await add("Ab1Cd-third", "created", ["a_b", "Ähre"]);
  const found = async (search: string) => (await page(`?search=${encodeURIComponent(search)}`)).names;
  expect(await found("9xyz")).toEqual(["Ab1Cd-9XyZ0"]);
  expect(await found("studio")).toEqual(["Ab1Cd-other"]);
  expect(await found("%")).toEqual(["Ab1Cd-other"]);
  expect(await found("_")).toEqual(["Ab1Cd-third"]);
  expect(await found("Ähre")).toEqual(["Ab1Cd-third"]);
  expect(await found("\\")).toEqual([]);
  expect(await found("' or 1=1 --")).toEqual([]);
  expect(await found("")).toHaveLength(3);
});

test("a search of more than 100 characters is refused by name", async () => {
  const answer = await gateway.call("GET", `/stream?search=${"a".repeat(101)}`);
  expect(answer).toMatchObject({ status: 400, body: { error: { code: 9002, userinfo: { parameter: "search" } } } });
});

test("live ones come first when requested, each group newest first, over all pages", async () => {
  for (const [name, state] of [
    ["a", "live"],
    ["b", "created"],
    ["c", "live"],
    ["d", "ended"],
    ["e", "locked"],
    ["f", "live"],
    ["g", "deleted"],
  ] as const) {
    await add(name, state);
  }
  const all = ["f", "c", "a", "e", "d", "b"];
  for (const quantity of [1, 2, 3, 4, 6]) {
    const names: string[] = [];
    for (let cursor: string | null = ""; cursor !== null; ) {
      const next = await page(`?order=live&quantity=${quantity}${cursor === "" ? "" : `&cursor=${cursor}`}`);
      names.push(...next.names);
      cursor = next.cursor;
    }
    expect(names).toEqual(all);
  }
  expect((await page("?order=newest")).names).toEqual(["f", "e", "d", "c", "b", "a"]);
  expect((await page("?order=live&state=live")).names).toEqual(["f", "c", "a"]);
  expect((await page("?order=live&state=ended")).names).toEqual(["d"]);
  expect((await page("?order=live&search=E")).names).toEqual(["e"]);
});

test("a cursor of one order is refused in the other", async () => {
  for (const name of ["a", "b"]) await add(name, "live");
  for (const [order, other] of [
    ["live", "newest"],
    ["newest", "live"],
  ]) {
    const { cursor } = await page(`?order=${order}&quantity=1`);
    const answer = await gateway.call("GET", `/stream?order=${other}&cursor=${cursor}`);
    expect(answer).toMatchObject({ status: 400, body: { error: { userinfo: { parameter: "cursor" } } } });
  }
});

test("what a search finds changes with the tags, and a deleted stream is not found", async () => {
  await add("Ab1Cd-first", "created", ["Morning-Show"]);
  const found = async (query: string) => (await page(query)).names;
  expect(await found("?search=show")).toEqual(["Ab1Cd-first"]);
  expect(await found("?search=irs")).toEqual(["Ab1Cd-first"]);
  await gateway.db.updateTable("stream").set({ tags: '["evening"]' }).execute();
  expect(await found("?search=show")).toEqual([]);
  expect(await found("?tags[]=evening")).toEqual(["Ab1Cd-first"]);
  await gateway.db.updateTable("stream").set({ state: "deleted" }).execute();
  for (const query of ["?search=even", "?search=first", "?tags[]=evening", ""]) expect(await found(query)).toEqual([]);
  for (const table of ["stream_tag", "stream_word"] as const) {
    expect(await gateway.db.selectFrom(table).selectAll().execute()).toEqual([]);
  }
});

test("streams that a filter leaves far apart are found page by page", async () => {
  await add("Ab1Cd-oldest", "created", ["rare", "common"]);
  const text = (
    index: number,
  ) => `('x-${index}', '${gateway.organisation.id}', 'Ab1Cd-x${index}', 'ended', '["common"]',
    ${gateway.clock.ms + 1_000 + index}, 0)`;
  for (let from = 0; from < WINDOW + 10; from += 1_000) {
    const rows = Array.from({ length: 1_000 }, (_, index) => text(from + index)).join();
    await sql
      .raw(`insert into stream (id, organisation_id, name, state, tags, created_at, updated_at) values ${rows}`)
      .execute(gateway.db);
  }
  for (const query of [
    "?tags[]=common&tags[]=rare",
    "?tags[]=common&state=created",
    "?search=com&tags[]=rare&state=created",
  ]) {
    const names: string[] = [];
    let [cursor, pages]: [string | null, number] = [null, 0];
    do {
      const next: Awaited<ReturnType<typeof page>> = await page(query + (cursor === null ? "" : `&cursor=${cursor}`));
      names.push(...next.names);
      cursor = next.cursor;
      pages += 1;
    } while (cursor !== null);
    expect({ query, names, pages }).toEqual({
      query,
      names: ["Ab1Cd-oldest"],
      pages: query.includes("com&state") || query.startsWith("?tags[]=common") ? 2 : 1,
    });
  }
  // By its tag alone, and by the beginning of a word, at once.
  expect((await page("?tags[]=rare")).names).toEqual(["Ab1Cd-oldest"]);
  expect((await page("?search=rar")).names).toEqual(["Ab1Cd-oldest"]);
});
