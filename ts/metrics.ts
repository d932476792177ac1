// What the gateway measures of itself, for Prometheus. Names are a contract with operators: add, never rename.
import { Counter, collectDefaultMetrics, Histogram, Registry } from "prom-client";

export interface Metrics {
  readonly registry: Registry;
  /** `route` is the pattern, never the path: names and ids are no labels. */
  observeRequest(request: {
    readonly method: string;
    readonly route: string;
    readonly status: number;
    readonly tookMs: number;
  }): void;
}

export function createMetrics(): Metrics {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  const requests = new Counter({
    name: "headgate_http_requests_total",
    help: "HTTP requests answered",
    labelNames: ["method", "route", "status"],
    registers: [registry],
  });
  const seconds = new Histogram({
    name: "headgate_http_request_seconds",
    help: "Time from request to response",
    labelNames: ["method", "route"],
    buckets: [0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10],
    registers: [registry],
  });
  return {
    registry,
    observeRequest({ method, route, status, tookMs }) {
      requests.inc({ method, route, status });
      seconds.observe({ method, route }, tookMs / 1000);
    },
  };
}
