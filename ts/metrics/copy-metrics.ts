// Metrics of second webhooks, which get copies, and of alerts.
import { Counter, Gauge, type Registry } from "prom-client";
import { inTime } from "../in-time.ts";
import { oncePerTurn } from "./once-per-turn.ts";

/** How long a scrape waits for the store, ms. */
const READ_LIMIT_MS = 1_000;

export interface CopyMetrics {
  /** A copy or an alert was sent to a second webhook. `outcome`: a status, or why there was none. */
  countCall(call: string, outcome: string): void;
  /** A copy was dropped because too many waited. */
  countDropped(): void;
  /** An alert was raised. */
  countAlert(event: string): void;
  /** Values read at each scrape. `open`: organisations whose second webhook has an open breaker. */
  watch(copies: {
    load(): { readonly open: readonly string[] };
    outbox(): Promise<{ readonly events: number; readonly oldestMs: number }>;
  }): void;
}

export function createCopyMetrics(registry: Registry): CopyMetrics {
  const registers = [registry];
  const calls = new Counter({
    name: "headgate_copy_calls_total",
    help: "Calls to second webhooks by how they ended: a status, or why there was none",
    labelNames: ["call", "outcome"],
    registers,
  });
  const dropped = new Counter({
    name: "headgate_copies_dropped_total",
    help: "Copies for second webhooks that were dropped because too many waited",
    registers,
  });
  const alerts = new Counter({
    name: "headgate_alerts_total",
    help: "Alerts raised about streams and webhooks, whether or not an organisation receives them",
    labelNames: ["event"],
    registers,
  });
  return {
    countCall: (call, outcome) => calls.inc({ call, outcome }),
    countDropped: () => dropped.inc(),
    countAlert: (event) => alerts.inc({ event }),
    watch({ load, outbox }) {
      const depth = oncePerTurn(() => inTime(READ_LIMIT_MS, outbox(), UNKNOWN).catch(() => UNKNOWN));
      new Gauge({
        name: "headgate_copy_outbox_events",
        help: "Copies of publish_done and alerts for second webhooks that are not delivered yet",
        registers,
        async collect() {
          this.set((await depth()).events);
        },
      });
      new Gauge({
        name: "headgate_copy_outbox_oldest_seconds",
        help: "Age of the oldest of them",
        registers,
        async collect() {
          this.set((await depth()).oldestMs / 1000);
        },
      });
      new Gauge({
        name: "headgate_copy_breaker_open",
        help: "1 for each organisation whose second webhook only times out and is called rarely",
        labelNames: ["organisation"],
        registers,
        collect() {
          this.reset();
          for (const organisation of load().open) this.set({ organisation }, 1);
        },
      });
    },
  };
}

const UNKNOWN = { events: Number.NaN, oldestMs: Number.NaN };
