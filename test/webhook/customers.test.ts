// The gateway's cache of organisations for webhook calls expires in time, whatever happens to the clock.
import { afterEach, beforeEach, expect, test } from "vitest";
import { createCustomers } from "../../ts/organisation/customers.ts";
import { type Gateway, openGateway } from "../support/gateway.ts";

const HOUR_MS = 3_600_000;

let gateway: Gateway;
beforeEach(async () => {
  gateway = await openGateway();
});
afterEach(() => gateway.close());

test.each([
  ["ten seconds", 10_000],
  ["the clock was set back by an hour", -HOUR_MS],
])("a change by another process is seen after %s", async (_, step) => {
  const { db, clock, organisation } = gateway;
  const secrets = { keys: async () => [] };
  const customers = createCustomers({ db, clock: { now: () => clock.ms }, secrets, copySecrets: secrets });
  expect(await customers.of(organisation.id)).toMatchObject({ webhook: null });
  const webhook = "https://customer.example/publish";
  await db.updateTable("organisation").set({ webhook }).execute();
  expect(await customers.of(organisation.id)).toMatchObject({ webhook: null });
  clock.ms += step;
  expect(await customers.of(organisation.id)).toMatchObject({ webhook });
});
