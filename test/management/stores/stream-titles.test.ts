// Titles and the customers' own ids of streams in the management API, on both stores (vitest.config.ts).
import { sql } from "kysely";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { WINDOW } from "../../../ts/organisation/reads/stream-list.ts";
import { type Gateway, openGateway } from "../../support/gateway.ts";
import { onOneStore } from "../../support/whole-run.ts";

let gateway: Gateway;
beforeEach(async () => {
  gateway = await openGateway();
});
afterEach(() => gateway.close());

interface Stream {
  readonly id: string;
  readonly title: string | null;
  readonly external_id: string | null;
  readonly ingest: { readonly rtmp: { readonly streamname: string } };
}

async function call(method: string, path: string, body?: object, key = gateway.keys.administrator): Promise<Stream> {
  const answer = await gateway.call(method, path, { key, ...(body && { body }) });
  if (answer.status !== 200) throw new Error(`${answer.status} ${JSON.stringify(answer.body)}`);
  return answer.body as Stream;
}

const create = (body: object = {}, key?: string) => call("POST", "/stream", body, key);
const put = (id: string, what: "title" | "external-id", body: object, key = gateway.keys.administrator) =>
  gateway.call("PUT", `/stream/${id}/${what}`, { body, key });
const list = async (query: string, key?: string) =>
  ((await call("GET", `/stream?${query}`, undefined, key)) as unknown as Stream[]).map(({ id }) => id);
const search = (text: string) => list(`search=${encodeURIComponent(text)}`);
const byId = (id: string, rest = "", key?: string) => list(`external_id=${encodeURIComponent(id)}${rest}`, key);
const nameOf = ({ ingest }: Stream) => ingest.rtmp.streamname;

const invalid = (parameter: string, reason: string) => ({
  status: 400,
  body: { error: { code: 9002, userinfo: { parameter, reason } } },
});

onOneStore.describe("title and external id", () => {
  test("are null until they are set, at creation or later, and are cleared by null", async () => {
    const plain = await create();
    expect(plain).toMatchObject({ title: null, external_id: null });
    const given = await create({ title: "Evening show", external_id: "event-1", tags: ["a"] });
    expect(given).toMatchObject({ title: "Evening show", external_id: "event-1", tags: ["a"] });
    expect(await call("GET", `/stream/${given.id}`)).toEqual(given);
    gateway.clock.ms += 1_000;
    const titled = await call("PUT", `/stream/${plain.id}/title`, { title: "Morning show" });
    expect(titled).toMatchObject({ title: "Morning show", external_id: null, updated_at: "2026-01-01T00:00:01.000Z" });
    const named = await call("PUT", `/stream/${plain.id}/external-id`, { external_id: "event-2" });
    expect(named).toEqual({ ...titled, external_id: "event-2" });
    const listed = (await call("GET", "/stream")) as unknown as Stream[];
    expect(listed.find(({ id }) => id === plain.id)).toEqual(named);
    for (const none of [null, "", "  "]) {
      await call("PUT", `/stream/${plain.id}/title`, { title: "x" });
      expect(await call("PUT", `/stream/${plain.id}/title`, { title: none })).toMatchObject({ title: null });
      expect(await call("PUT", `/stream/${plain.id}/external-id`, { external_id: none })).toMatchObject({
        external_id: null,
      });
      expect(await create({ title: none, external_id: none })).toMatchObject({ title: null, external_id: null });
    }
  });

  test.each([
    ["  Evening show\t", "Evening show"],
    ["x".repeat(200), "x".repeat(200)],
    ["🎥".repeat(200), "🎥".repeat(200)],
    [`  ${"x".repeat(200)}  `, "x".repeat(200)],
    ["<script>alert(1)</script> ' or 1=1 --", "<script>alert(1)</script> ' or 1=1 --"],
    ["مساء الخير 👨‍👩‍👧 日本", "مساء الخير 👨‍👩‍👧 日本"],
  ])("a title %j is kept", async (given, kept) => {
    const { id, title } = await create({ title: given });
    expect(title).toBe(kept);
    expect(await call("PUT", `/stream/${id}/title`, { title: given })).toMatchObject({ title: kept });
  });

  test.each([
    ["title", "x".repeat(201), "must not be longer than 200 characters"],
    ["title", "a\nb", "must not contain line breaks or control characters"],
    ["title", "a\u001bb", "must not contain line breaks or control characters"],
    ["title", "a\u0085b", "must not contain line breaks or control characters"],
    ["title", "a\u2028b", "must not contain line breaks or control characters"],
    ["title", "a\u0000b", "must not contain NUL"],
    ["external_id", "x".repeat(129), "must not be longer than 128 characters"],
    ["external_id", "a\tb", "must be printable characters"],
    ["external_id", "a\u200bb", "must be printable characters"],
    ["external_id", "a\u202eb", "must be printable characters"],
    ["external_id", "a\u0000b", "must not contain NUL"],
  ])("%s %j is refused in words", async (member, value, reason) => {
    const { id } = await create();
    const what = member === "title" ? "title" : "external-id";
    expect(await put(id, what, { [member]: value })).toMatchObject(invalid(member, reason));
    expect(await gateway.call("POST", "/stream", { body: { [member]: value } })).toMatchObject(invalid(member, reason));
    expect(await list("")).toEqual([id]);
  });

  test.each([1, true, {}, ["a"]])("%j is not text", async (value) => {
    const { id } = await create();
    for (const [what, member] of [
      ["title", "title"],
      ["external-id", "external_id"],
    ] as const) {
      const wrong = { status: 400, body: { error: { code: 1004, userinfo: { parameter: member, type: "string" } } } };
      expect(await put(id, what, { [member]: value })).toMatchObject(wrong);
      expect(await gateway.call("POST", "/stream", { body: { [member]: value } })).toMatchObject(wrong);
      const missing = { status: 400, body: { error: { code: 1002, userinfo: { required_parameter: member } } } };
      expect(await put(id, what, {})).toMatchObject(missing);
    }
  });

  test("are set by users, not by read-only keys, and not on streams of others", async () => {
    const { id } = await create({}, gateway.keys.user);
    const other = await gateway.newOrganisation("Other");
    for (const [what, body] of [
      ["title", { title: "a" }],
      ["external-id", { external_id: "a" }],
    ] as const) {
      expect((await put(id, what, body, gateway.keys.user)).status).toBe(200);
      expect((await put(id, what, body, gateway.keys.readonly)).status).toBe(403);
      expect((await put(id, what, body, other.keys.administrator)).status).toBe(404);
      expect((await put("none", what, body)).status).toBe(404);
    }
    expect(await call("GET", `/stream/${id}`, undefined, gateway.keys.readonly)).toMatchObject({
      title: "a",
      external_id: "a",
    });
    await call("DELETE", `/stream/${id}`);
    expect((await put(id, "title", { title: "b" })).status).toBe(404);
    expect((await put(id, "external-id", { external_id: "b" })).status).toBe(404);
  });

  test("are in the audit log, as set", async () => {
    const { id } = await create({ title: "One", external_id: "event-1" });
    await put(id, "title", { title: " Two " });
    await put(id, "external-id", { external_id: null });
    const rows = await gateway.db.selectFrom("audit").select(["action", "detail"]).orderBy("id").execute();
    expect(rows.slice(-3).map(({ action, detail }) => [action, JSON.parse(detail)])).toMatchObject([
      ["stream.create", { title: "One", external_id: "event-1" }],
      ["stream.title", { title: "Two" }],
      ["stream.external_id", { external_id: null }],
    ]);
  });
});

describe("an external id", () => {
  test("that another stream has is refused in words that name it", async () => {
    const first = await create({ external_id: "event-1" });
    const second = await create();
    const refused = {
      status: 400,
      body: {
        error: {
          code: 1003,
          message: `Not unique: external_id is that of the stream ${nameOf(first)} (${first.id})`,
          userinfo: { parameter: "external_id", stream: first.id },
        },
      },
    };
    for (const external_id of ["event-1", " event-1 "]) {
      expect(await gateway.call("POST", "/stream", { body: { external_id } })).toMatchObject(refused);
      expect(await put(second.id, "external-id", { external_id })).toMatchObject(refused);
    }
    expect((await list("")).sort()).toEqual([first.id, second.id].sort());
    expect((await put(first.id, "external-id", { external_id: "event-1" })).status).toBe(200);
    expect((await put(second.id, "external-id", { external_id: "EVENT-1" })).status).toBe(200);
    const other = await gateway.newOrganisation("Other");
    expect(await create({ external_id: "event-1" }, other.keys.administrator)).toMatchObject({
      external_id: "event-1",
    });
  });

  test("is free again once it is changed, cleared, or its stream is deleted", async () => {
    const [first, second] = [await create({ external_id: "event-1" }), await create()];
    await call("PUT", `/stream/${first.id}/external-id`, { external_id: "event-2" });
    await call("PUT", `/stream/${second.id}/external-id`, { external_id: "event-1" });
    expect((await put(first.id, "external-id", { external_id: "event-1" })).status).toBe(400);
    await call("PUT", `/stream/${second.id}/external-id`, { external_id: null });
    await call("PUT", `/stream/${first.id}/external-id`, { external_id: "event-1" });
    expect(await byId("event-2")).toEqual([]);
    expect(await call("DELETE", `/stream/${first.id}`)).toMatchObject({ external_id: "event-1" });
    expect(await byId("event-1")).toEqual([]);
    const third = await create({ external_id: "event-1" });
    expect(await byId("event-1")).toEqual([third.id]);
    await call("DELETE", `/stream/${third.id}`);
    expect(await gateway.db.selectFrom("stream_external_id").selectAll().execute()).toEqual([]);
  });

  test("of a stream that a former version deleted is free as well", async () => {
    const first = await create({ external_id: "event-1" });
    await gateway.db.updateTable("stream").set({ state: "deleted" }).where("id", "=", first.id).execute();
    expect(await byId("event-1")).toEqual([]);
    const second = await create({ external_id: "event-1" });
    expect(await byId("event-1")).toEqual([second.id]);
  });

  test("claimed by ten requests at once is given to exactly one", async () => {
    const streams = await Promise.all(Array.from({ length: 4 }, () => create()));
    const answers = await Promise.all([
      ...streams.map(({ id }) => put(id, "external-id", { external_id: "event-1" })),
      ...Array.from({ length: 6 }, () => gateway.call("POST", "/stream", { body: { external_id: "event-1" } })),
    ]);
    const [won, ...more] = answers.filter(({ status }) => status === 200);
    expect(more).toEqual([]);
    const winner = won?.body as Stream;
    for (const { status, body } of answers.filter((answer) => answer !== won)) {
      expect({ status, body }).toMatchObject({ status: 400, body: { error: { code: 1003 } } });
      expect(JSON.stringify(body)).toContain(nameOf(winner));
    }
    expect(await byId("event-1")).toEqual([winner.id]);
  });

  test("changed by several requests at once leaves one claim, and what finds the stream is the last", async () => {
    const { id } = await create({ external_id: "event-0" });
    await Promise.all(Array.from({ length: 6 }, (_, at) => put(id, "external-id", { external_id: `event-${at + 1}` })));
    const { external_id } = await call("GET", `/stream/${id}`);
    expect(await gateway.db.selectFrom("stream_external_id").select("external_id").execute()).toEqual([
      { external_id },
    ]);
    for (let at = 0; at <= 6; at += 1) {
      expect(await search(`event-${at}`)).toEqual(external_id === `event-${at}` ? [id] : []);
    }
  });

  test("that a key limited to a tag cannot see is refused without naming the stream", async () => {
    const role = { role: "user", scope_tag: "mine" };
    const { key } = (await gateway.call("POST", "/organisation/key", { body: role })).body as { readonly key: string };
    const theirs = await create({ external_id: "event-1" });
    const mine = await create({ external_id: "event-2" }, key);
    const { body } = await gateway.call("POST", "/stream", { key, body: { external_id: "event-1" } });
    expect(body).toMatchObject({
      error: {
        code: 1003,
        message: "Not unique: external_id is that of another stream",
        userinfo: { parameter: "external_id" },
      },
    });
    expect(JSON.stringify(body)).not.toContain(theirs.id);
    const own = await gateway.call("POST", "/stream", { key, body: { external_id: "event-2" } });
    expect(JSON.stringify(own.body)).toContain(mine.id);
    expect(await byId("event-1", "", key)).toEqual([]);
    expect(await byId("event-2", "", key)).toEqual([mine.id]);
  });

  test("selects exactly, beside other filters", async () => {
    const { id } = await create({ external_id: "Event 1/ä%", tags: ["a"] });
    await create({ external_id: "Event 1/ä%2" });
    expect(await byId("Event 1/ä%")).toEqual([id]);
    expect(await byId(" Event 1/ä% ")).toEqual([id]);
    for (const none of ["event 1/ä%", "Event 1", "Event_1/ä%", "%"]) expect(await byId(none)).toEqual([]);
    for (const more of ["&tags[]=a", "&state=created", "&order=live", "&order=live&state=created", "&search=event"]) {
      expect(await byId("Event 1/ä%", more)).toEqual([id]);
    }
    for (const more of ["&tags[]=b", "&state=live", "&order=live&state=ended", "&search=other"]) {
      expect(await byId("Event 1/ä%", more)).toEqual([]);
    }
    await gateway.db.updateTable("stream").set({ state: "live" }).where("id", "=", id).execute();
    expect(await byId("Event 1/ä%", "&order=live")).toEqual([id]);
    const other = await gateway.newOrganisation("Other");
    expect(await byId("Event 1/ä%", "", other.keys.administrator)).toEqual([]);
    for (const empty of ["", "%20"]) {
      expect(await gateway.call("GET", `/stream?external_id=${empty}`)).toMatchObject(
        invalid("external_id", "must not be empty"),
      );
    }
    expect((await gateway.call("GET", `/stream?external_id=${"x".repeat(129)}`)).status).toBe(400);
  });
});

describe("a search", () => {
  test("finds any part of both in any case, on either store also beyond ASCII, and nothing that is no longer there", async () => {
    const { id } = await create({ title: "Übung: Straße & 音楽祭", external_id: "Order-4711/B" });
    for (const text of [
      "übung",
      "ÜBUNG",
      "STRASSE".replace("SS", "ß"),
      "楽",
      "e & ",
      "order-47",
      "711",
      "/b",
      "bung: straße & 音楽祭",
    ]) {
      expect([text, await search(text)]).toEqual([text, [id]]);
    }
    for (const text of ["%", "_", "\\", "übung order", "4712"]) expect([text, await search(text)]).toEqual([text, []]);
    await call("PUT", `/stream/${id}/title`, { title: "Yoga" });
    expect([await search("übung"), await search("oga"), await search("4711")]).toEqual([[], [id], [id]]);
    await call("PUT", `/stream/${id}/external-id`, { external_id: null });
    expect([await search("oga"), await search("4711")]).toEqual([[id], []]);
    await call("PUT", `/stream/${id}/tag`, { tags: ["yoga"] });
    await call("PUT", `/stream/${id}/tag`, { tags: [] });
    expect(await search("yoga")).toEqual([id]);
    await call("DELETE", `/stream/${id}`);
    expect(await search("oga")).toEqual([]);
    expect(await gateway.db.selectFrom("stream_text").selectAll().execute()).toEqual([]);
  });

  test("finds them through an index, however many newer streams there are", async () => {
    const { id } = await create({ title: "Abendprogramm aus Köln", external_id: "a1b2c3" });
    const long = await create({ title: `${"x".repeat(190)} Schluss`, external_id: `${"y".repeat(120)}-schluss` });
    for (let from = 0; from < WINDOW + 10; from += 1_000) {
      const rows = Array.from(
        { length: 1_000 },
        (_, at) =>
          `('x-${from + at}', '${gateway.organisation.id}', 'Ab1Cd-x${from + at}', 'ended', '[]', ${gateway.clock.ms + 1_000 + from + at}, 0)`,
      );
      await sql
        .raw(
          `insert into stream (id, organisation_id, name, state, tags, created_at, updated_at) values ${rows.join()}`,
        )
        .execute(gateway.db);
    }
    for (const text of ["abend", "PROGRAMM AUS", "köln", "öln", "A1B2C3", "2c3"]) {
      expect([text, await search(text)]).toEqual([text, [id]]);
    }
    expect(await search("x schluss")).toEqual([long.id]);
    expect(await search("y-schluss")).toEqual([long.id]);
    expect(await byId("a1b2c3")).toEqual([id]);
  });
});

onOneStore.describe("the broadcaster of a web token", () => {
  const shown = async (token: string) => {
    const { status, body } = await gateway.call("POST", "/webcaster/stream", { key: null, body: { token } });
    return { status, body };
  };
  const newToken = async (streamname: string, key = gateway.keys.administrator) => {
    const body = { streamname, ingesturl: "rtmp://in.example/live" };
    const answer = await gateway.call("POST", "/webcaster", { key, body });
    return (answer.body as { readonly data: { readonly token: string } }).data.token;
  };
  const titled = (title: string | null, organisation: string | null = "First") => ({
    status: 200,
    body: { success: true, data: { title, organisation, logo: null } },
  });

  test("sees the title, and nothing of the external id", async () => {
    const stream = await create({ title: "Evening show", external_id: "event-1" });
    const token = await newToken(`${nameOf(stream)}?passcode=a`);
    expect(await shown(token)).toEqual(titled("Evening show"));
    await put(stream.id, "title", { title: "Night show" });
    expect(await shown(token)).toEqual(titled("Night show"));
    await put(stream.id, "title", { title: null });
    expect(await shown(token)).toEqual(titled(null));
  });

  test("sees none of a deleted stream, of no stream, and of another organisation's", async () => {
    const stream = await create({ title: "Evening show" });
    const token = await newToken(nameOf(stream));
    expect(await shown(await newToken("nothing"))).toEqual(titled(null, null));
    const other = await gateway.newOrganisation("Other");
    expect(await shown(await newToken(nameOf(stream), other.keys.administrator))).toEqual(titled(null, null));
    await call("DELETE", `/stream/${stream.id}`);
    expect((await shown(token)).body).not.toMatchObject({ data: { title: "Evening show" } });
  });

  test("with one that is not valid sees nothing but why", async () => {
    const stream = await create({ title: "Evening show" });
    const token = await newToken(nameOf(stream));
    const invalid = (message: string) => ({ status: 403, body: { success: false, errorCode: 1002, message } });
    expect(await shown(`${token}x`)).toEqual(invalid("jwt malformed"));
    expect(await shown("a.b.c")).toEqual(invalid("jwt malformed"));
    expect((await shown(nameOf(stream))).status).toBe(403);
    gateway.clock.ms += 8 * 86_400_000;
    expect(await shown(token)).toEqual(invalid("jwt expired"));
  });
});
