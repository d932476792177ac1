// Whether a webhook fails at present: its latest call, if that failed. Read along an index.
import type { Kysely } from "kysely";
import { UNREACHABLE_CAUSES } from "../../publish/webhook/answer.ts";
import { listDeliveries } from "../../publish/webhook/delivery-list.ts";
import type { Schema } from "../../store/schema.ts";
import { isFailedCall, settlesDone } from "../../text/webhook-words.ts";
import { Time, z } from "../openapi.ts";

/** A failure before this is no longer "at present", ms: nothing may have been broadcast since. */
const PRESENT_MS = 3_600_000;
/** Newest calls that are read: alerts among those of the webhook say nothing about broadcasts. */
const CALLS_READ = 20;

const Outcome = z.enum(["answered", ...UNREACHABLE_CAUSES]);
export const WebhookFailure = z
  .object({
    delivery: z.string().openapi({ description: "Id of the call in GET /organisation/webhook/deliveries" }),
    call: z.enum(["publish", "update_publish", "publish_done", "health"]),
    outcome: Outcome,
    status: z.int().nullable(),
    at: Time,
  })
  .nullable();
type Failure = z.infer<typeof WebhookFailure>;

/** Null for a webhook that does not fail, and without one. `copies`: the second webhook, where any success will do. */
export async function webhookFailureOf(
  db: Kysely<Schema>,
  {
    organisationId,
    url,
    copies,
  }: { readonly organisationId: string; readonly url: string | null; readonly copies: boolean },
  now: number,
): Promise<Failure> {
  if (url === null) return null;
  const filter = { call: null, clientId: null, name: null, failed: false, before: null, quantity: CALLS_READ } as const;
  const { rows } = await listDeliveries(db, organisationId, { ...filter, copies, from: now - PRESENT_MS });
  const newest = rows.find(({ call }) => copies || call !== "health");
  // A call to a former webhook says nothing about this one.
  if (newest === undefined || newest.url !== url) return null;
  const { id, call, outcome, status, last_at } = newest;
  if (copies ? settlesDone(status) : !isFailedCall(call, status)) return null;
  const at = new Date(Number(last_at)).toISOString();
  return { delivery: id, call, outcome: outcome as z.infer<typeof Outcome>, status, at };
}
