// When the outbox polls the store: an event recorded during a poll is seen by the next one, not a minute
// later.
import { type Insertable, sql } from "kysely";
import { pino } from "pino";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { WebhookAnswer } from "../../ts/publish/webhook/answer.ts";
import { PROBE_EVERY_MS } from "../../ts/publish/webhook/customer-gate.ts";
import { createOutbox, type Outbox, type OutboxDeps } from "../../ts/publish/webhook/outbox/outbox.ts";
import { Round } from "../../ts/publish/webhook/outbox/round.ts";
import type { OutboxTable } from "../../ts/store/schema.ts";
import { openStage, type Stage, until } from "../support/publishing.ts";

const ANSWER: WebhookAnswer & { readonly outcome: "answered" } = {
  outcome: "answered",
  status: 200,
  reason: null,
  retryAfter: null,
};

let stage: Stage;
beforeEach(async () => {
  stage = await openStage({ webhook: null, ca: null });
});
afterEach(() => stage.close());

const URL_OF_ORG1 = "https://a.example/";
type Event = Insertable<OutboxTable>;

/** The publish_done of a publish of org1, due now, but for what `change` says. */
function eventOf(clientId: number, change: Partial<Event> = {}): Event {
  const { ms } = stage.clock;
  const event = { organisation_id: "org1", url: URL_OF_ORG1, body: "call=publish_done", epoch: 1 };
  return { id: `msg_${clientId}`, client_id: clientId, ...event, next_attempt_at: ms, created_at: ms, ...change };
}

const add = (...events: readonly Event[]) => stage.db.insertInto("outbox").values(events).execute();

/** Of the only event. */
async function isDelivered(): Promise<boolean> {
  const [event] = await stage.db.selectFrom("outbox").select("delivered_at").execute();
  return event?.delivered_at !== null;
}

test("an event that is recorded during a poll is delivered by the next one, immediately", async () => {
  const delivered: number[] = [];
  const event = eventOf(7);
  let looks = 0;
  const outbox = outboxOf({
    webhook: {
      // Called during a poll, after it has read which organisations have events. The embedded store processes
      // statements in order: the event is stored before the poll ends.
      load() {
        looks += 1;
        if (looks === 1) {
          void add(event).then(() => outbox.wake());
        }
        return { inFlight: 0, waiting: 0, open: [], slow: [] };
      },
      async post(call) {
        delivered.push(call.event.clientId);
        return ANSWER;
      },
    },
  });
  outbox.wake();
  await until(() => delivered.length > 0);
  expect(delivered).toEqual([7]);
  // Nothing is left that this would wait for.
  await outbox.stop(600_000);
});

test("an event that becomes due while another organisation's is delivered is delivered immediately afterwards", async () => {
  const { db, clock } = stage;
  const began = clock.ms;
  for (const id of ["B", "C"]) {
    const organisation = { id, hash: id, name: id, plan: "paid", enabled: 1, webhook: null } as const;
    await db
      .insertInto("organisation")
      .values({ ...organisation, created_at: began, updated_at: began })
      .execute();
  }
  await add(
    eventOf(1, { organisation_id: "C" }),
    // Due while C's is delivered, which takes a minute on the given clock.
    eventOf(2, { organisation_id: "B", next_attempt_at: began + 30_000 }),
  );
  const posted: { readonly organisation: string; readonly at: number }[] = [];
  const outbox = outboxOf({
    webhook: {
      load: () => ({ inFlight: 0, waiting: 0, open: [], slow: [] }),
      async post(call) {
        posted.push({ organisation: call.organisationId, at: performance.now() });
        if (call.organisationId === "B") return ANSWER;
        clock.ms += 60_000;
        // Not tried again in this test: that would check all organisations.
        return { outcome: "answered", status: 503, reason: null, retryAfter: "3600" };
      },
    },
  });
  outbox.wake();
  await until(() => posted.length === 2);
  const [first, second] = posted;
  expect([first?.organisation, second?.organisation]).toEqual(["C", "B"]);
  expect((second?.at ?? 0) - (first?.at ?? 0)).toBeLessThan(5_000);
  await outbox.stop(5_000);
});

test("an event written between the beginning of a poll and its organisation's turn is delivered immediately", async () => {
  const { clock } = stage;
  const delivered: number[] = [];
  let isFirst = true;
  const outbox = outboxOf({
    webhook: {
      // Called when a poll has begun, before the first organisation has its turn: the end of a publish is recorded a
      // moment later by the clock, and asks for its delivery.
      load() {
        if (isFirst) {
          isFirst = false;
          clock.ms += 5;
          void add(eventOf(7));
          outbox.added("org1");
        }
        return { inFlight: 0, waiting: 0, open: [], slow: [] };
      },
      async post(call) {
        delivered.push(call.event.clientId);
        return ANSWER;
      },
    },
  });
  outbox.added("org2"); // an end of another publish: this poll reads no organisation but those named
  await until(() => delivered.length > 0);
  expect(delivered).toEqual([7]);
  await outbox.stop(5_000);
});

test("an event written just before the clock was set back by less than a second is delivered within seconds", async () => {
  const { clock } = stage;
  const { outbox, reads } = countedOutbox();
  await add(eventOf(7, { next_attempt_at: clock.ms + 300, created_at: clock.ms + 300 }));
  outbox.added("org1");
  await until(() => reads() === 1);
  clock.ms += 1_000;
  await until(isDelivered);
  await outbox.stop(5_000);
});

test.each([
  ["an end that nobody takes", 503, {}, 80],
  ["an alert that nobody takes", 503, { call: "health" }, 2],
  ["an end that is refused", 403, {}, 2],
] as const)("%s (%i) is not given up because the clock was set forward", async (_, status, change, hours) => {
  const { clock, db } = stage;
  const outbox = outboxOf({
    webhook: {
      load: () => ({ inFlight: 0, waiting: 0, open: [], slow: [] }),
      // Another status each time.
      post: async ({ event: { attempt } }) => ({ ...ANSWER, status: status + attempt }),
    },
  });
  await add(eventOf(7, change));
  outbox.wake();
  const tried = async (attempt: number) => {
    const [event] = await db.selectFrom("outbox").selectAll().execute();
    return event?.last_status === status + attempt && event;
  };
  await until(() => tried(1));
  clock.ms += hours * 3_600_000;
  outbox.wake();
  expect((await until(() => tried(2))).given_up_at).toBeNull();
  await outbox.stop(0);
});

test("an organisation whose settings cannot be read is asked for once in a while, however many of its events wait", async () => {
  const { db, clock, service } = stage;
  const organisation = { id: "C", hash: "C", name: "C", plan: "paid", enabled: 1, webhook: null } as const;
  await db
    .insertInto("organisation")
    .values({ ...organisation, created_at: clock.ms, updated_at: clock.ms })
    .execute();
  await add(...Array.from({ length: 100 }, (_, at) => eventOf(at + 1)), eventOf(1_000, { organisation_id: "C" }));
  let asked = 0;
  let delivered = 0;
  const outbox = outboxOf({
    customers: {
      async of(id) {
        if (id === "C") return await service.customers.of(id);
        asked += 1;
        throw new Error("its secret cannot be opened");
      },
    },
    webhook: {
      load: () => ({ inFlight: 0, waiting: 0, open: [], slow: [] }),
      async post() {
        delivered += 1;
        return ANSWER;
      },
    },
  });
  outbox.wake();
  await until(() => delivered === 1 && asked > 0);
  for (let times = 0; times < 100; times += 1) await polled(outbox);
  expect(asked).toBeLessThanOrEqual(10);
  await outbox.stop(0);
});

test("an event that is to be tried again while a poll reads when the next one is due is not forgotten", async () => {
  const round = new Round({
    oldest: async () => ({ organisations: [], more: false }),
    page: async () => ({ organisations: [], last: null }),
    async next(now) {
      round.checkBy(now + 1_000); // a delivery has failed: what the store says was read before
      return now + 30_000;
    },
  });
  round.wantCheck();
  await round.next(0, false);
  expect(round.checkAt).toBe(1_000);
});

test("an organisation's only event is read once", async () => {
  await add(eventOf(1));
  const { outbox, reads } = countedOutbox();
  outbox.release(1, "org1", true);
  await until(isDelivered);
  await lookedFor(outbox);
  expect(reads()).toBe(1);
  await outbox.stop(5_000);
});

test("an end without an event reads nothing, and what was held back meanwhile is delivered", async () => {
  const { outbox, reads } = countedOutbox();
  for (let publish = 1; publish <= 5; publish += 1) {
    outbox.hold(publish);
    outbox.release(publish, "org1", false);
  }
  await polled(outbox);
  expect(reads()).toBe(0);
  // Held twice: by the last update, and by its end.
  outbox.hold(6);
  outbox.hold(6);
  await add(eventOf(6, { body: "call=health", call: "health" }));
  outbox.added("org1");
  await until(() => reads() === 1);
  outbox.release(6, "org1", false);
  await polled(outbox);
  expect(reads()).toBe(1);
  outbox.release(6, "org1", false);
  await until(isDelivered);
  await outbox.stop(5_000);
});

test("a customer that only times out is tried once in five seconds, whatever the number of polls and the clock", async () => {
  const { db, clock } = stage;
  const tried: number[] = [];
  await add(...[1, 2, 3, 4].map((clientId) => eventOf(clientId)));
  const outbox = outboxOf({
    webhook: {
      load: () => ({ inFlight: 0, waiting: 0, open: ["org1"], slow: [{ organisationId: "org1", url: URL_OF_ORG1 }] }),
      async post(call) {
        tried.push(call.event.clientId);
        return { outcome: "unreachable", cause: "deadline", detail: "no answer" };
      },
    },
  });
  const settled = async (count: number) =>
    (await db.selectFrom("outbox").select("id").where("attempts", ">", 0).execute()).length === count;
  outbox.wake();
  await until(() => settled(1));
  clock.ms += PROBE_EVERY_MS - 1;
  await lookedFor(outbox);
  expect(tried).toEqual([1]);
  clock.ms += 1;
  outbox.wake();
  await until(() => tried.length === 2);
  clock.ms -= 3_600_000;
  outbox.wake();
  await until(() => tried.length === 3);
  await outbox.stop(5_000);
  expect(tried).toEqual([1, 2, 3]);
});

test("a store that can be read but not written is tried once in five seconds, and nothing is posted meanwhile", async () => {
  const { db } = stage;
  const ids = Array.from({ length: 40 }, (_, at) => at + 1);
  await add(...ids.map((id) => eventOf(id)));
  await sql`
    create trigger full before update on outbox begin select raise(abort, 'the disk is full'); end
  `.execute(db);
  const [posted, lines]: [Set<number>, string[]] = [new Set(), []];
  let looks = 0;
  const outbox = outboxOf({
    log: pino({ level: "error" }, { write: (line: string) => void lines.push(line) }),
    webhook: {
      load() {
        looks += 1;
        return { inFlight: 0, waiting: 0, open: [], slow: [] };
      },
      async post(call) {
        posted.add(call.event.clientId);
        return ANSWER;
      },
    },
  });
  outbox.wake();
  await until(() => lines.length > 0);
  await lookedFor(outbox);
  await lookedFor(outbox);
  expect([posted.size, lines.length]).toEqual([0, 1]);
  expect(looks).toBeLessThanOrEqual(2);
  await sql`drop trigger full`.execute(db);
  await until(() => posted.size === ids.length);
  await outbox.stop(5_000);
});

/** The outbox of the stage, whose customer answers, and how often it has read the events of an organisation. */
function countedOutbox(): { readonly outbox: Outbox; reads(): number } {
  let reads = 0;
  const db = stage.db.withPlugin({
    transformQuery({ node }) {
      if (node.kind === "SelectQueryNode" && node.selections?.[0]?.selection.kind === "SelectAllNode") reads += 1;
      return node;
    },
    transformResult: async ({ result }) => result,
  });
  const webhook = { load: () => ({ inFlight: 0, waiting: 0, open: [], slow: [] }), post: async () => ANSWER };
  return { outbox: outboxOf({ db, webhook }), reads: () => reads };
}

/** The outbox of the stage. */
function outboxOf(deps: Pick<OutboxDeps, "webhook"> & Partial<OutboxDeps>): Outbox {
  const { db, clock, service } = stage;
  const times = { clock: { now: () => clock.ms }, deadlineMs: 1_000 };
  return createOutbox({
    ...{
      db,
      table: "outbox",
      member: { epoch: 1 },
      customers: service.customers,
      log: pino({ level: "silent" }),
      ...times,
    },
    ...deps,
  });
}

/** Time for what a poll that was asked for would send: the embedded store processes statements in order. */
async function polled(outbox: Outbox): Promise<void> {
  for (let at = 0; at < 10; at += 1) await outbox.depth();
}

/** Several polls one after the other, with everything they start: the embedded store processes statements in
 *  order. */
async function lookedFor(outbox: Outbox): Promise<void> {
  for (let at = 0; at < 10; at += 1) {
    outbox.wake();
    await outbox.depth();
  }
}
