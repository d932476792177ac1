// What happens to publishes, for those who only observe: the timeline, step times, metrics, captures, alerts and the log. Whoever
// listens decides nothing, and its failure is no publish's.
import type { Logger } from "pino";
import type { ConnectionRefused, OnAirChanged, PublishEnded, UpstreamChanged } from "../media/events.ts";
import type { OfferSummary } from "../media.ts";
import type { Denied } from "./denials.ts";
import type { Ending } from "./ending/ending.ts";
import type { RecordedEndReason } from "./ending/recorded-end-reason.ts";
import type { PointReading } from "./monitoring/measurements.ts";
import type { RunningPublish, StartingPublish } from "./publishes.ts";
import type { Intent } from "./record.ts";
import type { RefusedPublish } from "./refusals/refusals.ts";
import type { WebhookAnswer } from "./webhook/answer.ts";
import type { WebhookCall } from "./webhook/call.ts";

export type PublishEvent =
  | { readonly kind: "requested" }
  /** The stream of the request is known. */
  | { readonly kind: "found"; readonly organisationId: string }
  /** A webhook call, of any kind, is over. */
  | {
      readonly kind: "asked";
      readonly call: WebhookCall["event"]["call"];
      readonly organisationId: string;
      /** Only whoever tries the webhook waits for it. */
      readonly isTrial: boolean;
      readonly answer: WebhookAnswer;
      readonly tookMs: number;
    }
  /** The admission is over. */
  | { readonly kind: "decided"; readonly protocol: Intent["protocol"]; readonly refusal: Denied | null }
  /** The broadcaster is refused; the last word, also after an admission that allowed it. */
  | { readonly kind: "denied"; readonly refusal: Denied; readonly request: RefusedPublish }
  /** It runs; the media core receives it next. */
  | { readonly kind: "started"; readonly publish: StartingPublish }
  /** The media core has it. `offer`: of a WHIP client. */
  | { readonly kind: "opened"; readonly publish: StartingPublish; readonly offer: OfferSummary | null }
  /** A point of its history was taken, as every five seconds. */
  | { readonly kind: "sample"; readonly publish: RunningPublish; readonly reading: PointReading }
  | {
      readonly kind: "ended";
      /** Null for a publish that did not run any more. */
      readonly publish: RunningPublish | null;
      readonly counters: PublishEnded;
      /** As recorded. */
      readonly reason: RecordedEndReason;
      /** Who ended it on purpose; null for nobody. */
      readonly ending: Ending | null;
    }
  | OnAirChanged
  | UpstreamChanged
  | ConnectionRefused;

export interface PublishEvents {
  /** Listeners are called at once, in the order in which they began to listen. Never throws. */
  emit(event: PublishEvent): void;
  listen(listener: (event: PublishEvent) => void): void;
}

export function createPublishEvents(log: Pick<Logger, "error">): PublishEvents {
  const listeners: ((event: PublishEvent) => void)[] = [];
  return {
    emit(event) {
      for (const listener of listeners) {
        try {
          listener(event);
        } catch (err) {
          log.error({ err, event: event.kind }, "an observer of publishes failed");
        }
      }
    },
    listen: (listener) => void listeners.push(listener),
  };
}
