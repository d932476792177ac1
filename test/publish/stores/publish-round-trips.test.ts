// How often a publish waits for the store: each time costs a message to its thread, or a round trip of the network.
import { afterAll, beforeAll, expect, test } from "vitest";
import { addStream, until } from "../../support/publishing.ts";
import { recordRoundTrips } from "../../support/round-trips.ts";
import { openWhipGateway, type WhipGateway } from "../../support/whip-gateway.ts";

const BY_RTMP = "Ab1Cd-rtmp";
/** What the service does now and then for all publishes together, by the first table. */
const FOR_ALL = ["delivery", "delivery_share", "delivery_size", "publish_timeline", "refusal", "token_revocation"];
const FROM_TIME_TO_TIME = [...FOR_ALL, "token_key", "node"];
/** A look at all events that wait, the counters of running publishes, and the questions of this test. */
const NOT_OF_ONE =
  /^select "organisation_id"|^select min\("next_attempt_at"\)|^insert into "usage".*update "publish"|^select "delivered_at"/;

let gateway: WhipGateway;

beforeAll(async () => {
  gateway = await openWhipGateway();
  await addStream(gateway.db, BY_RTMP, "created");
  // What is read once and remembered: the customer, a block of client ids.
  for (const start of Object.values(WAYS)) await ended(await start());
});
afterAll(() => gateway.close());

const WAYS = {
  RTMP: async () => {
    gateway.publishing.handle({
      kind: "publish_requested",
      request: 1,
      app: "live",
      name: Buffer.from(BY_RTMP),
      arguments: null,
      address: "203.0.113.7",
    });
    const allowed = () => gateway.media.commands.findLast(({ command }) => command === "allow");
    const { clientId } = await until(() => allowed() as { readonly clientId: number } | undefined);
    gateway.media.commands.length = 0;
    return clientId;
  },
  WHIP: async () => (await gateway.opened()).clientId,
};

async function ended(clientId: number): Promise<void> {
  gateway.end(clientId);
  await until(async () => {
    const event = gateway.db.selectFrom("outbox").select("delivered_at").where("client_id", "=", clientId);
    return (await event.executeTakeFirst())?.delivered_at ?? null;
  });
}

/** The requests of a publish to the store: what each does, and to which tables. */
async function tripsOf(act: () => Promise<void>): Promise<readonly string[]> {
  const { sent, stop } = recordRoundTrips();
  try {
    await act();
  } finally {
    stop();
  }
  const all = sent.map((text) => text.replaceAll(/\s+/g, " ").trim()).filter((text) => !NOT_OF_ONE.test(text));
  const tables = all.map((text) => text.split(";").flatMap(namedIn));
  return tables
    .filter(([first = ""]) => first !== "" && !FROM_TIME_TO_TIME.includes(first.split(" ")[1] ?? ""))
    .map((each) => each.join(", "));
}

/** A verb and the first table that a statement names. */
function namedIn(statement: string): readonly string[] {
  const [, table = null] = /\b(?:from|into|update) "?(\w+)/.exec(statement) ?? [];
  return table === null ? [] : [`${statement.trim().split(" ")[0]} ${table}`];
}

test.each(["RTMP", "WHIP"] as const)(
  "a publish by %s waits for the store three times, and its end three times",
  async (way) => {
    let clientId = 0;
    const admission = await tripsOf(async () => {
      clientId = await WAYS[way]();
    });
    expect(admission).toEqual([
      "select stream",
      "insert publish",
      "update publish, update stream, select stream_upstream",
    ]);
    expect(await tripsOf(() => ended(clientId))).toEqual([
      "insert usage, insert outbox, insert webhook_copy_outbox, update publish, update stream",
      "update outbox",
      "update outbox",
    ]);
  },
);
