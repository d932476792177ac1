// Asks the customer about a publish request, and records its intent at the same time.
import type { Kysely } from "kysely";
import type { Logger } from "pino";
import type { Customer } from "../../organisation/customers.ts";
import type { Schema } from "../../store/schema.ts";
import { type DenialContext, type Denied, denied } from "../denials.ts";
import type { RecordedEndReason } from "../ending/recorded-end-reason.ts";
import type { Ends } from "../ends.ts";
import { type Intent, recordIntent } from "../record.ts";
import type { WebhookAnswer } from "../webhook/answer.ts";
import { publishBody } from "../webhook/body.ts";
import type { Webhook } from "../webhook/call.ts";
import { newWebhookId } from "../webhook/signature.ts";
import { createDenialRecords } from "./denial-records.ts";

export interface Asking {
  /** Null when the publish may go live: its intent is then on disk (W17a). `about` receives the customer's answer. */
  ask(intent: Intent, customer: Customer, about: DenialContext): Promise<Denied | null>;
  /** Resolves when all denials so far have been recorded. */
  settled(): Promise<void>;
}

export interface AskingDeps {
  readonly db: Kysely<Schema>;
  /** Epoch ms. */
  readonly clock: { now(): number };
  readonly log: Logger;
  readonly webhook: Webhook;
  /** Records what the store could not take. */
  readonly ends: Pick<Ends, "record" | "retry">;
  readonly settings: { readonly deadlineMs: number };
}

export function createAsking(deps: AskingDeps): Asking {
  const { db, clock, log } = deps;
  const denials = createDenialRecords({ db, clock, log });
  return {
    async ask(intent, customer, about) {
      const { clientId } = intent;
      let recorded: Promise<boolean> | null = null;
      const record = () => {
        recorded ??= recordIntent(db, intent, clock.now()).catch((err: unknown) => {
          log.error({ err, clientId }, "publish intent could not be recorded");
          return false;
        });
        return recorded;
      };
      const answer = intent.webhook === null ? null : await askCustomer(deps, intent, intent.webhook, customer, record);
      const refusal = answer === null ? null : refusalOf(answer, customer.settings);
      if (answer?.outcome === "answered") about.status = answer.status;
      if (answer?.outcome === "unreachable") Object.assign(about, { unreachable: answer.cause, detail: answer.detail });
      if (refusal === null) {
        if (await record()) return null;
        await withdraw(deps.ends, intent, "internal_error");
        return denied("store_unavailable");
      }
      if (recorded === null) return refusal;
      denials.add({ ...refusal, clientId, status: about.status ?? null }, recorded);
      // Without its intent it has no row that says why.
      return { ...refusal, isRecorded: recorded };
    },
    settled: denials.settled,
  };
}

/** Ends the publish if the store has its intent; publish_done then follows. */
export async function withdraw(
  ends: Pick<Ends, "record">,
  { clientId, organisationId, epoch }: Intent,
  reason: RecordedEndReason,
): Promise<void> {
  await ends.record({ clientId, organisationId, epoch, reason, ending: null, counters: null }).done;
}

async function askCustomer(
  { webhook, settings }: Pick<AskingDeps, "webhook" | "settings">,
  intent: Intent,
  url: string,
  { keys, copies }: Customer,
  begun: () => void,
): Promise<WebhookAnswer> {
  return await webhook.post({
    organisationId: intent.organisationId,
    url,
    id: newWebhookId(),
    body: publishBody(intent),
    keys,
    deadlineMs: settings.deadlineMs,
    retryConnection: true,
    copies,
    begun,
    trace: intent.trace,
    event: { call: "publish", clientId: intent.clientId, name: intent.name, attempt: 1 },
  });
}

/** Exactly 200 allows (W10); without a usable answer the request is denied unless the organisation chose otherwise
 *  (W12). */
function refusalOf(answer: WebhookAnswer, settings: Customer["settings"]): Denied | null {
  if (answer.outcome === "unreachable") {
    return settings.publish_on_hook_unreachable === "allow" ? null : denied("customer_unreachable");
  }
  if (answer.status === 200) return null;
  return denied("rejected_by_customer", settings.reason_to_broadcaster ? answer.reason : null);
}
