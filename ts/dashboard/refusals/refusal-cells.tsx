// What is shown of a refusal, in the list of all and in the history of its stream.
import { refusalWords } from "../../text/refusal-words.ts";
import { counted } from "../parts/time-words.ts";
import { filteredAddress } from "../shell/addresses.ts";
import type { Records } from "../shell/client.ts";
import { may } from "../shell/session.ts";
import { TimeText } from "../shell/time-text.tsx";

export type Refusal = Records["Refusal"];

export const PROTOCOL_WORDS = { rtmp: "RTMP", whip: "WHIP", v5: "WHIP (v5)" } as const;

export function RefusedAt({ at, last_at, count }: Refusal) {
  return (
    <>
      <TimeText at={at} />
      {count > 1 && (
        <small class="second">
          {counted(count, "time")}, last <TimeText at={last_at} />
        </small>
      )}
    </>
  );
}

/** What happened, what to do about it, and what the encoder or browser was told. */
export function RefusalReason({
  reason,
  reason_words,
  webhook_status,
  detail,
}: Pick<Refusal, "reason_words" | "webhook_status" | "detail"> & { readonly reason: string }) {
  const { advice } = refusalWords(reason, webhook_status);
  return (
    <div class="refusal-reason">
      <strong>{reason_words}</strong>
      {advice !== "" && <span class="second">{advice}</span>}
      {detail !== null && (
        <small class="second">
          It was told: <span class="told">{detail}</span>
        </small>
      )}
    </div>
  );
}

export function RefusedAddress({ address }: Refusal) {
  return address === null ? (
    <span class="soft">several, or no longer kept</span>
  ) : (
    <span class="mono nowrap">{address}</span>
  );
}

/** The calls to the webhook, if it was asked. */
export function RefusalDeliveries({ client_id }: Refusal) {
  if (client_id === null || !may("view_deliveries")) return null;
  return (
    <a href={filteredAddress("/dashboard/deliveries", { clientid: String(client_id) })}>
      Deliveries<span class="unseen"> of the publish {client_id}</span>
    </a>
  );
}
