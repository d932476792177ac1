// How late the event loop runs what is due. Sampled only while it is busy: an idle process would wake up for nothing
// else.
import { type IntervalHistogram, monitorEventLoopDelay, performance } from "node:perf_hooks";
import { Gauge, type Registry } from "prom-client";

/** Between two samples, ms. */
const SAMPLED_MS = 20;
/** A loop that has worked for a smaller share of the time is idle. */
const BUSY_SHARE = 0.03;

export interface LoopDelay {
  /** Average since the last call, ms; 0 while idle. Decides whether there are samples until the next one. */
  averageMs(): number;
  /** Whether the loop was busy at the last call. */
  isBusy(): boolean;
  stop(): void;
}

/** Registers its figures since the last scrape under the names that prom-client's own have, which take a sample every
 *  10 ms. */
export function openLoopDelay(registry: Registry | null): LoopDelay {
  const average = monitorEventLoopDelay({ resolution: SAMPLED_MS });
  const scraped = monitorEventLoopDelay({ resolution: SAMPLED_MS });
  let worked = performance.eventLoopUtilization();
  let isBusy = true;
  sample(true);
  if (registry !== null) publish(registry, scraped);

  function sample(on: boolean): void {
    for (const histogram of [average, scraped]) {
      if (on) histogram.enable();
      else histogram.disable();
    }
  }

  return {
    averageMs() {
      const late = lateMs(average.mean);
      average.reset();
      const now = performance.eventLoopUtilization();
      isBusy = performance.eventLoopUtilization(now, worked).utilization >= BUSY_SHARE;
      worked = now;
      sample(isBusy);
      return late;
    },
    isBusy: () => isBusy,
    stop: () => sample(false),
  };
}

/** A sample is the time since the former one, ns; NaN without samples. */
const lateMs = (sampleNs: number) => Math.max(0, sampleNs / 1e6 - SAMPLED_MS) || 0;

function publish(registry: Registry, samples: IntervalHistogram): void {
  const figures = {
    "": ["mean", () => samples.mean],
    min_: ["least", () => samples.min],
    max_: ["most", () => samples.max],
    mean_: ["mean", () => samples.mean],
    p50_: ["50th percentile", () => samples.percentile(50)],
    p90_: ["90th percentile", () => samples.percentile(90)],
    p99_: ["99th percentile", () => samples.percentile(99)],
  } as const;
  for (const [name, [words, read]] of Object.entries(figures)) {
    new Gauge({
      name: `nodejs_eventloop_lag_${name}seconds`,
      help: `How late the event loop ran what was due since the last scrape, ${words}`,
      registers: [registry],
      collect() {
        this.set(samples.count === 0 ? 0 : lateMs(read()) / 1e3);
      },
    });
  }
  // Registered last, so collected last.
  new Gauge({
    name: "nodejs_eventloop_lag_stddev_seconds",
    help: "How late the event loop ran what was due since the last scrape, standard deviation",
    registers: [registry],
    collect() {
      this.set(samples.count === 0 ? 0 : samples.stddev / 1e9);
      samples.reset();
    },
  });
}
