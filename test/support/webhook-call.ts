// A call to a customer's webhook, as the gateway hands it to what sends and records it.
import type { WebhookCall } from "../../ts/publish/webhook/call.ts";

/** The publish call of a publish with this client id. */
export function webhookCallOf(clientId: number, organisationId: string): WebhookCall {
  return {
    organisationId,
    url: "https://customer.example/",
    id: `msg_${clientId}`,
    body: Buffer.from("call=publish"),
    keys: [],
    deadlineMs: 1,
    retryConnection: false,
    event: { call: "publish", clientId, name: "n", attempt: 1 },
  };
}
