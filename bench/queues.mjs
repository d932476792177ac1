// What recovery and hanging customers cost everybody else: `npm run bench -- queues [organisations]`.
import { outage } from "./_outage.mjs";
import { tenants } from "./_webhook-tenants.mjs";

const ORGANISATIONS = 10_000;
const EVENTS = 3;

export async function bench([organisations = ORGANISATIONS, seconds = 8, rounds = 3]) {
  await outage(Number(organisations), EVENTS);
  await tenants(Number(seconds), Number(rounds), 1_000, 50, true);
}
