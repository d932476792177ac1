// Ends of publishes that a node carries out when it is back.
import type { KyselyPlugin } from "kysely";
import { afterEach, beforeEach, expect, test } from "vitest";
import { carryOutKeptEnds, keepEnd } from "../../ts/cluster/kept-ends.ts";
import { StoreFailed } from "../../ts/errors.ts";
import { openStage, type Stage } from "../support/publishing.ts";

let stage: Stage;
beforeEach(async () => {
  stage = await openStage({ webhook: null, ca: null });
});
afterEach(() => stage.close());

/** What the store has done is not told. */
const WITHOUT_ANSWER: KyselyPlugin = {
  transformQuery: ({ node }) => node,
  async transformResult() {
    throw new StoreFailed("the connection is lost");
  },
};

test("an end is carried out also when an answer of the store was lost, and then forgotten", async () => {
  const { db } = stage;
  await keepEnd(db, { epoch: 5, clientId: 7, ending: null });
  await keepEnd(db, { epoch: 6, clientId: 8, ending: null });
  const ended: number[] = [];
  const carryOut = (by: typeof db) => carryOutKeptEnds(by, 5, ({ clientId }) => void ended.push(clientId));
  await expect(carryOut(db.withPlugin(WITHOUT_ANSWER))).rejects.toThrow(StoreFailed);
  await carryOut(db);
  await carryOut(db);
  expect(ended).toEqual([7]);
  expect(await db.selectFrom("kept_end").select("client_id").execute()).toEqual([{ client_id: 8 }]);
});

test("an end that a node did not carry out before it died is forgotten when the others take over", async () => {
  const { db, publishing } = stage;
  const [own] = await db.selectFrom("node").select("epoch").where("state", "=", "up").execute();
  await keepEnd(db, { epoch: Number(own?.epoch), clientId: 7, ending: null });
  await keepEnd(db, { epoch: 900, clientId: 8, ending: null });
  await publishing.takeOver("node_lost");
  expect(await db.selectFrom("kept_end").select("client_id").execute()).toEqual([{ client_id: 7 }]);
});
