// The metrics port: /metrics for Prometheus, /healthz (the process runs), /readyz (it accepts publishes).
import { Hono } from "hono";
import type { Registry } from "prom-client";

/** The metrics port from the first moment on: until `become`, it says what the start waits for. A start that migrates
 *  large tables takes long, and must not be taken for one that hangs. */
export function startingHealth(node: string) {
  let step = "opening the store";
  const app = new Hono();
  app.get("/healthz", (c) => c.text(`ok, node ${node} is starting: ${step}\n`));
  app.get("/readyz", (c) => c.text(`not ready: starting: ${step}\n`, 503));
  app.get("/metrics", (c) => c.text(`starting: ${step}\n`, 503));
  let serving = app;
  return {
    fetch: (request: Request) => serving.fetch(request),
    /** What the start does at present, for people. */
    now(what: string) {
      step = what;
    },
    become(running: Hono) {
      serving = running;
    },
  };
}

export function healthApp(deps: {
  readonly registry: Registry;
  /** The name of this node. */
  readonly node: string;
  /** Why it accepts no publishes, or null. */
  readonly problem: () => string | null;
  /** Metrics of another process of this service, by its node's name; null when there is none. */
  readonly metricsOf?: (node: string) => Promise<string | null>;
}): Hono {
  const app = new Hono();
  app.get("/healthz", (c) => c.text(`ok, node ${deps.node}\n`));
  app.get("/readyz", (c) => {
    const problem = deps.problem();
    return problem === null ? c.text("ready\n") : c.text(`not ready: ${problem}\n`, 503);
  });
  app.get("/metrics", async (c) => {
    const node = c.req.query("node");
    if (node !== undefined && node !== deps.node) {
      const text = (await deps.metricsOf?.(node)) ?? null;
      return text === null
        ? c.text(`no node ${node}\n`, 404)
        : c.body(text, 200, { "content-type": deps.registry.contentType });
    }
    return c.body(await deps.registry.metrics(), 200, { "content-type": deps.registry.contentType });
  });
  return app;
}
