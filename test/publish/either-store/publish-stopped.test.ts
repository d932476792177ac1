// Stop, lock and delete of a stream, and disabling an organisation, while a publish of it is being admitted:
// in either order, it is never on the air afterwards, and the customer gets as many ends as it allowed
// publishes.
import { afterEach, beforeEach, expect, test } from "vitest";
import { deleteStream, findStream, lockStream } from "../../../ts/organisation/streams.ts";
import { endingOf } from "../../../ts/publish/ending/ending.ts";
import { createLiveSessions } from "../../../ts/publish/live-sessions.ts";
import { until } from "../../support/child.ts";
import { type Customer, startCustomer } from "../../support/customer.ts";
import { pause } from "../../support/pause.ts";
import { addStream, openStage, STREAM, type Stage } from "../../support/publishing.ts";

/** Of each command; the measurement uses 200. */
const ROUNDS = Number(process.env.STOPPED_ROUNDS ?? 6);
/** About the duration of an admission here. */
const ADMISSION_MS = 30;

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

const moment = (round: number) => pause((round / ROUNDS) * ADMISSION_MS); // the moment is what is tested
const stateOf = async (name: string) =>
  (await stage.db.selectFrom("publish").select("state").where("name", "=", name).execute()).map(({ state }) => state);

test.each([
  // `stop` locks as well (M11).
  ["stop or lock", lockStream],
  ["delete", deleteStream],
])(
  "%s misses no publish that is being admitted",
  async (_, move) => {
    const { publishing, db, media, clock } = stage;
    const sessions = createLiveSessions({
      publishing,
      media: () => media,
      clock: Date,
      findingsOf: () => [],
      dev: true,
    });
    let stopped = 0;
    for (let round = 0; round < ROUNDS; round += 1) {
      const name = `Ab1Cd-round${round}`;
      await addStream(db, name, "created");
      const stream = await findStream(db, "org1", `stream ${name}`);
      const request = stage.ask(name);
      await moment(round);
      await db.transaction().execute((trx) => move(trx, stream, clock.ms));
      sessions.kick("org1", { streamId: stream.id }, endingOf("ended_by_api", "Stopped"));
      const answer = await stage.answered(request);
      const isOver = () => publishing.running().every(({ intent }) => intent.name !== name);
      if (answer.command === "allow") {
        const { clientId } = answer;
        await until("it is ended", () =>
          media.commands.some((each) => each.command === "end" && each.clientId === clientId),
        );
        stage.end(clientId, "kicked");
      } else stopped += 1;
      await until("it has ended", async () => isOver() && !(await stateOf(name)).includes("live"));
    }
    console.log(`stopped ${JSON.stringify({ rounds: ROUNDS, beforeTheyWereLive: stopped })}`);
    const ended = async () =>
      (await db.selectFrom("publish").select("client_id").where("state", "=", "ended").execute()).length;
    await until("as many ends as were accepted", async () => customer.calls("publish_done").length === (await ended()));
  },
  60_000 + ROUNDS * 500,
);

test(
  "disabling an organisation misses no publish that is being admitted",
  async () => {
    const { publishing, db, media, clock } = stage;
    const allowed: number[] = [];
    for (let round = 0; round < ROUNDS; round += 1) {
      const id = `org-of-round${round}`;
      const name = `Ab1Cd-disabled${round}`;
      const times = { created_at: clock.ms, updated_at: clock.ms };
      const organisation = { id, hash: id, name: id, plan: "paid", enabled: 1, webhook: customer.url } as const;
      await db
        .insertInto("organisation")
        .values({ ...organisation, ...times })
        .execute();
      await addStream(db, name, "created", id);
      const request = stage.ask(name);
      await moment(round);
      await db.updateTable("organisation").set({ enabled: 0 }).where("id", "=", id).execute();
      const answer = await stage.answered(request);
      if (answer.command === "allow") allowed.push(answer.clientId);
      else expect(publishing.running().some(({ intent }) => intent.name === name)).toBe(false);
      expect(await stage.request(name)).toMatchObject({ command: "deny" });
    }
    console.log(`disabled ${JSON.stringify({ rounds: ROUNDS, beforeTheyWereLive: ROUNDS - allowed.length })}`);
    const told = () => new Set(media.commands.flatMap((each) => (each.command === "end" ? [each.clientId] : [])));
    // Those that were already live: within ten seconds.
    await until("the live ones are ended", () => allowed.every((clientId) => told().has(clientId)), 20_000);
    for (const clientId of allowed) stage.end(clientId, "kicked");
    const states = async () => (await db.selectFrom("publish").select("state").execute()).map(({ state }) => state);
    await until(
      "nothing is on the air",
      async () => publishing.running().length === 0 && !(await states()).includes("live"),
    );
    const accepted = async () => (await states()).filter((state) => state === "ended").length;
    await until(
      "as many ends as were accepted",
      async () => customer.calls("publish_done").length === (await accepted()),
    );
  },
  60_000 + ROUNDS * 500,
);

test("a disabled organisation's running publish ends, and one being admitted is denied", async () => {
  const clientId = await stage.allowed(STREAM);
  await addStream(stage.db, "Ab1Cd-other", "created");
  let answerNow = () => {};
  const disabled = new Promise<void>((resolve) => {
    answerNow = resolve;
  });
  customer.answer(async () => {
    await disabled;
    return { status: 200 };
  });
  const request = stage.ask("Ab1Cd-other");
  await until("the customer is asked", () => customer.calls("publish").length === 2);
  await stage.db.updateTable("organisation").set({ enabled: 0 }).execute();
  answerNow();
  expect(await stage.answered(request)).toMatchObject({ command: "deny" });
  await until(
    "the running one ends",
    () => stage.media.commands.some((each) => each.command === "end" && each.clientId === clientId),
    20_000,
  );
}, 40_000);
