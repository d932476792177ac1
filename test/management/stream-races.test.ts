// What changes a stream between a request's beginning and its transaction.
import { afterEach, beforeEach, expect, test } from "vitest";
import { type Gateway, openGateway } from "../support/gateway.ts";

let gateway: Gateway;
beforeEach(async () => {
  gateway = await openGateway();
});
afterEach(() => gateway.close());

test("an unlock that comes second does not mark as ended what has gone live after the first", async () => {
  const { db } = gateway;
  const { id } = (await gateway.call("POST", "/stream")).body as { readonly id: string };
  await gateway.call("PUT", `/stream/${id}/lock`);
  // Before the transaction of the second one, the first is over and a publish has begun.
  const begin = db.transaction.bind(db);
  db.transaction = () => {
    db.transaction = begin;
    const builder = begin();
    const execute = builder.execute.bind(builder);
    builder.execute = async (work) => {
      await db.updateTable("stream").set({ state: "live", state_before_lock: null }).where("id", "=", id).execute();
      return await execute(work);
    };
    return builder;
  };
  expect(await gateway.call("PUT", `/stream/${id}/unlock`)).toMatchObject({ status: 200, body: { state: "live" } });
});
