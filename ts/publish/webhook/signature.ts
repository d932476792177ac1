// The signature of a webhook call: Standard Webhooks 1.0, symmetric scheme `v1` (W9). Pure.
import { createHmac, randomBytes } from "node:crypto";

/** A fresh webhook-id. */
export function newWebhookId(): string {
  return `msg_${randomBytes(16).toString("hex")}`;
}

/** The three headers of Standard Webhooks over the raw body: one signature for each key, the first key's first.
 *  `now`: epoch ms. */
export function signatureHeaders(
  event: { readonly id: string; readonly body: Uint8Array },
  keys: readonly Uint8Array[],
  now: number,
): Record<"webhook-id" | "webhook-timestamp" | "webhook-signature", string> {
  const timestamp = String(Math.floor(now / 1_000));
  const head = `${event.id}.${timestamp}.`;
  const signatures = keys.map((key) => {
    const code = createHmac("sha256", key).update(head).update(event.body).digest("base64");
    return `v1,${code}`;
  });
  return { "webhook-id": event.id, "webhook-timestamp": timestamp, "webhook-signature": signatures.join(" ") };
}
