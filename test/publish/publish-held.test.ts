// Publishes that were lost and are held: which publish continues them, what is recorded about it, and who
// ends them.
import { afterEach, beforeEach, expect, test } from "vitest";
import { endingOf } from "../../ts/publish/ending/ending.ts";
import { until } from "../support/child.ts";
import { type Customer, startCustomer } from "../support/customer.ts";
import { openStage, STREAM, type Stage } from "../support/publishing.ts";

const BYTES = { bytesIn: 7, bytesOut: 9 };

let customer: Customer;
let stage: Stage;

beforeEach(async () => {
  customer = await startCustomer();
  stage = await openStage({ webhook: customer.url, ca: customer.ca });
});
afterEach(async () => {
  await stage.close();
  await customer.close();
});

/** The hold that the core got when a publish was allowed. */
function holdOf(clientId: number) {
  for (const each of stage.media.commands) {
    if ((each.command === "allow" || each.command === "open_whip") && each.clientId === clientId) return each.hold;
  }
  throw new Error(`publish ${clientId} was not allowed`);
}

const released = () => stage.media.commands.flatMap((each) => (each.command === "release" ? [each.clientId] : []));

/** A publish that is lost and held. */
async function lost(options: { readonly arguments?: string | null } = {}): Promise<number> {
  const clientId = await stage.allowed(STREAM, options);
  stage.end(clientId, "broadcaster_left", BYTES, true);
  await until("its end is recorded", async () => {
    const row = await stage.db
      .selectFrom("publish")
      .select("state")
      .where("client_id", "=", clientId)
      .executeTakeFirst();
    return row?.state === "ended";
  });
  return clientId;
}

test("a publish continues it with a renewed publish key, if its other custom arguments are the same", async () => {
  await stage.change({ publish_key: true });
  const keyOf = async () => {
    const row = await stage.db.selectFrom("stream").selectAll().executeTakeFirstOrThrow();
    return stage.service.appDeps.publishKeys.of(row);
  };
  const first = await lost({ arguments: `pass=1&key=${await keyOf()}` });
  await stage.db.updateTable("stream").set({ key_salt: "renewed" }).execute();
  const second = await lost({ arguments: `key=${await keyOf()}&pass=1` });
  expect(holdOf(second)).toMatchObject({ continues: first });
  const third = await stage.allowed(STREAM, { arguments: `key=${await keyOf()}&pass=2` });
  expect(holdOf(third)).toMatchObject({ continues: null });
});

test("a publish with the same name and custom arguments continues it, and its record says which one", async () => {
  const first = await lost({ arguments: "pass=1" });
  await customer.received("publish_done");
  const second = await stage.allowed(STREAM, { arguments: "pass=1" });
  expect(holdOf(second)).toEqual({ windowMs: 10_000, continues: first });
  expect(stage.publishing.running()[0]?.continues).toBeNull();
  stage.publishing.handle({ kind: "hold_ended", clientId: first, successor: second });
  expect(stage.publishing.running()[0]?.continues).toBe(first);
  const continues = () =>
    stage.db.selectFrom("publish").select(["client_id", "continues"]).orderBy("client_id").execute();
  await until("it is recorded", async () => (await continues()).at(-1)?.continues !== null);
  expect(await continues()).toEqual([
    { client_id: first, continues: null },
    { client_id: second, continues: first },
  ]);
  expect(released()).toEqual([]);
  expect(customer.calls("publish_done")).toHaveLength(1);
});

test.each([
  ["other arguments", "pass=1", "pass=2"],
  ["arguments after none", null, "pass=1"],
])("%s are another publish, and what was held ends", async (_, before, after) => {
  const first = await lost({ arguments: before });
  const second = await stage.allowed(STREAM, { arguments: after });
  expect(holdOf(second)?.continues).toBeNull();
  expect(released()).toEqual([first]);
});

test("a hold that has expired is not continued", async () => {
  const first = await lost();
  stage.publishing.handle({ kind: "hold_ended", clientId: first, successor: null });
  const second = await stage.allowed(STREAM);
  expect(holdOf(second)?.continues).toBeNull();
  expect(released()).toEqual([]);
});

test("the hold's length is set by the organisation, or by the stream itself", async () => {
  await stage.change({ hold_s: 30 });
  stage.service.customers.forget("org1");
  const first = await stage.allowed(STREAM);
  expect(holdOf(first)?.windowMs).toBe(30_000);
  stage.end(first, "unpublished", BYTES);
  await stage.db.updateTable("stream").set({ hold_s: 0 }).execute();
  await until("it is over", () => stage.publishing.running().length === 0);
  expect(holdOf(await stage.allowed(STREAM))?.windowMs).toBe(0);
});

test("how long a broadcaster may send nothing is set by the organisation", async () => {
  const first = await stage.allowed(STREAM);
  expect(holdOf(first)).not.toHaveProperty("silenceMs");
  stage.end(first, "unpublished", BYTES);
  await stage.change({ silence_s: 60 });
  stage.service.customers.forget("org1");
  await until("it is over", () => stage.publishing.running().length === 0);
  expect(holdOf(await stage.allowed(STREAM))?.silenceMs).toBe(60_000);
});

test("stopping the stream ends its hold, and so does a drain", async () => {
  const first = await lost();
  expect(stage.publishing.kick(({ intent }) => intent.name === STREAM, endingOf("ended_by_api", "Stopped"))).toBe(true);
  expect(released()).toEqual([first]);
  await stage.publishing.drain(1_000);
  expect(released()).toEqual([first, first]);
});

test("a DELETE by a WHIP client ends its hold even after its connection has closed", async () => {
  const session = "session";
  const request = { app: "live", name: Buffer.from(STREAM), arguments: null, address: "203.0.113.9", session };
  const opened = await stage.publishing.openWhip(request, () => "v=0\r\n");
  if (opened.outcome !== "opened") throw new Error("denied");
  const { clientId } = opened;
  stage.end(clientId, "unpublished", BYTES, true);
  expect(stage.publishing.endWhip(session, true)).toBe(true);
  expect(released()).toEqual([]);
  expect(stage.publishing.endWhip(session)).toBe(true);
  expect(released()).toEqual([clientId]);
  stage.publishing.handle({ kind: "hold_ended", clientId, successor: null });
  expect(stage.publishing.endWhip(session)).toBe(false);
});
