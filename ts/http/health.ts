// The metrics port: /metrics for Prometheus, /healthz (the process runs), /readyz (it takes publishes).
import { Hono } from "hono";
import type { Registry } from "prom-client";

export function healthApp(deps: {
  readonly registry: Registry;
  /** Which node this is. */
  readonly node: string;
  /** Why it takes none, or null. */
  readonly problem: () => string | null;
}): Hono {
  const app = new Hono();
  app.get("/healthz", (c) => c.text(`ok, node ${deps.node}\n`));
  app.get("/readyz", (c) => {
    const problem = deps.problem();
    return problem === null ? c.text("ready\n") : c.text(`not ready: ${problem}\n`, 503);
  });
  app.get("/metrics", async (c) => {
    return c.body(await deps.registry.metrics(), 200, { "content-type": deps.registry.contentType });
  });
  return app;
}
