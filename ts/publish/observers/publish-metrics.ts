// Counts what happens to publishes.
import type { Metrics } from "../../metrics.ts";
import type { PublishEvents } from "../publish-events.ts";

export function countPublishes(
  events: Pick<PublishEvents, "listen">,
  metrics: Pick<Metrics, "observeWebhook" | "countStart" | "countEnd" | "countRefusedConnection">,
): void {
  events.listen((event) => {
    switch (event.kind) {
      case "asked":
        return metrics.observeWebhook(event.call, event.answer, event.tookMs);
      case "started":
        return metrics.countStart(event.publish.protocol);
      case "ended":
        return metrics.countEnd(event.reason, event.counters);
      case "connection_refused":
        return metrics.countRefusedConnection(event.code);
    }
  });
}
