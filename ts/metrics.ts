// Metrics of the gateway for Prometheus. Names are a contract with operators: add, never rename.
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from "prom-client";
import { inTime } from "./in-time.ts";
import type { Protocol } from "./media/protocols.ts";
import { type CopyMetrics, createCopyMetrics } from "./metrics/copy-metrics.ts";
import { oncePerTurn } from "./metrics/once-per-turn.ts";

/** The outcomes of a webhook call that are counted. */
type WebhookOutcome =
  | { readonly outcome: "answered"; readonly status: number }
  | { readonly outcome: "unreachable"; readonly cause: string };

/** A webhook answer that takes longer delays broadcasters noticeably, ms (W11). */
const SLOW_ANSWER_MS = 300;
/** How long a scrape waits for one value, ms. */
const READ_LIMIT_MS = 2_000;

/** Values of what is running. */
interface LiveNumbers {
  readonly publishes: Readonly<Record<Protocol, number>>;
  readonly players: number;
  /** Streams pulled from other nodes. */
  readonly pulls: number;
  /** By state. */
  readonly upstreams: Readonly<Record<string, number>>;
  /** Totals of the running publishes and pulls. */
  readonly bytesIn: number;
  readonly bytesOut: number;
}

/** The media core's own counters, since its start. */
interface MediaCounts {
  kernelDrops(): number | null;
  refusedConnections(): number;
  failedTranscoders(): number;
  irregularities(): readonly { readonly code: string; readonly count: number }[];
}

/** What publishing has to show. */
interface PublishingNumbers {
  /** `open`: organisations whose current webhook has an open breaker. */
  load(): { readonly inFlight: number; readonly waiting: number; readonly open: readonly string[] };
  outbox(): Promise<{ readonly events: number; readonly oldestMs: number }>;
  live(): LiveNumbers;
}

export interface Metrics {
  readonly registry: Registry;
  /** `route` is the pattern, never the path: names and ids must not become labels. */
  observeRequest(request: {
    readonly method: string;
    readonly route: string;
    readonly status: number;
    readonly tookMs: number;
  }): void;
  /** `call`: publish, update_publish, publish_done or health. */
  observeWebhook(call: string, answer: WebhookOutcome, tookMs: number): void;
  countRefusal(request: "publish" | "play", cause: string): void;
  countStart(protocol: Protocol): void;
  /** `reason` as recorded; the bytes of the whole publish. */
  countEnd(reason: string, bytes: { readonly bytesIn: number; readonly bytesOut: number }): void;
  /** Bytes sent to the players of a pull that has ended. */
  countPullEnd(bytesOut: number): void;
  countUpstreamLost(): void;
  /** A connection was refused before it requested a publish or a play; `code` as the media core reports it. */
  countRefusedConnection(code: string): void;
  /** A publish took over from the other one of its stream; `cause`: as the media core reports it. */
  countTakeover(cause: string): void;
  /** An event was given up: its customer will never receive it. */
  countGivenUp(): void;
  /** Reads the media core's counters at each scrape. Call once, when it has started. */
  watchMedia(media: MediaCounts): void;
  /** `running`: how many previews run. */
  watchPreviews(running: () => number): void;
  /** Those of second webhooks, and alerts. */
  readonly copies: CopyMetrics;
  /** Values read at each scrape. */
  watchPublishing(publishing: PublishingNumbers): void;
}

/** The counters used by publishes and players. */
export type PublishingMetrics = Pick<
  Metrics,
  | "observeWebhook"
  | "countStart"
  | "countEnd"
  | "countPullEnd"
  | "countRefusedConnection"
  | "countUpstreamLost"
  | "countTakeover"
  | "countGivenUp"
  | "watchPublishing"
  | "copies"
>;

/** prom-client would wake an idle process a hundred times a second to measure the event loop's delay, which
 *  capacity/loop-delay.ts does. */
const NEVER_MS = 2 ** 31 - 1;

export function createMetrics(): Metrics {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: NEVER_MS });
  for (const name of registry.getMetricsAsArray().map((metric) => metric.name))
    if (name.startsWith("nodejs_eventloop_lag_")) registry.removeSingleMetric(name);
  // Gauges with the suffix of counters, which Prometheus' checks refuse; each is the sum of the one without it.
  for (const name of ["resources", "handles", "requests"]) registry.removeSingleMetric(`nodejs_active_${name}_total`);
  const registers = [registry];
  const counters = createCounters(registers);
  /** Totals of the publishes that have ended. */
  const ended = { bytesIn: 0, bytesOut: 0 };
  return {
    registry,
    copies: createCopyMetrics(registry),
    observeRequest({ method, route, status, tookMs }) {
      counters.requests.inc({ method, route, status });
      counters.seconds.observe({ method, route }, tookMs / 1000);
    },
    observeWebhook(call, answer, tookMs) {
      counters.calls.inc({ call, outcome: answer.outcome === "answered" ? String(answer.status) : answer.cause });
      counters.answers.observe({ call }, tookMs / 1000);
      if (answer.outcome === "answered" && tookMs > SLOW_ANSWER_MS) counters.slow.inc({ call });
    },
    countRefusal(request, cause) {
      counters.refused.inc({ request, cause });
      if (request === "publish") counters.denials.inc({ cause });
    },
    countStart: (protocol) => counters.starts.inc({ protocol }),
    countEnd(reason, { bytesIn, bytesOut }) {
      counters.ends.inc({ reason });
      ended.bytesIn += bytesIn;
      ended.bytesOut += bytesOut;
    },
    countPullEnd(bytesOut) {
      ended.bytesOut += bytesOut;
    },
    countUpstreamLost: () => counters.losses.inc(),
    countRefusedConnection: (code) => counters.refusals.inc({ code }),
    countTakeover: (cause) => counters.takeovers.inc({ cause }),
    countGivenUp: () => counters.givenUp.inc(),
    watchMedia: (media) => watchMedia(registers, media),
    watchPreviews(running) {
      new Gauge({
        name: "headgate_previews",
        help: "Previews of live streams that are served now",
        registers,
        collect() {
          this.set(running());
        },
      });
    },
    watchPublishing: (publishing) => watchPublishing(registers, publishing, ended),
  };
}

/** What the gateway counts itself. */
function createCounters(registers: Registry[]) {
  const requests = new Counter({
    name: "headgate_http_requests_total",
    help: "HTTP requests answered",
    labelNames: ["method", "route", "status"],
    registers,
  });
  const seconds = new Histogram({
    name: "headgate_http_request_seconds",
    help: "Time from request to response",
    labelNames: ["method", "route"],
    buckets: [0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10],
    registers,
  });
  const calls = new Counter({
    name: "headgate_webhook_calls_total",
    help: "Webhook calls by how they ended: a status, or why there was none",
    labelNames: ["call", "outcome"],
    registers,
  });
  const answers = new Histogram({
    name: "headgate_webhook_seconds",
    help: "Time from a webhook call to its status, or to giving up",
    labelNames: ["call"],
    buckets: [0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 5, 10],
    registers,
  });
  const slow = new Counter({
    name: "headgate_webhook_slow_total",
    help: "Webhook answers that took longer than 300 ms",
    labelNames: ["call"],
    registers,
  });
  const refused = new Counter({
    name: "headgate_refused_total",
    help: "Publish and play requests refused, by cause; too_many_names: whoever sent them guesses stream names or publish keys",
    labelNames: ["request", "cause"],
    registers,
  });
  const denials = new Counter({
    name: "headgate_publish_denied_total",
    help: "Publish requests refused, by cause; each counts in headgate_refused_total with request=publish as well",
    labelNames: ["cause"],
    registers,
  });
  const starts = new Counter({
    name: "headgate_publish_started_total",
    help: "Publishes that became live",
    labelNames: ["protocol"],
    registers,
  });
  const ends = new Counter({
    name: "headgate_publish_ended_total",
    help: "Publishes that ended, by reason",
    labelNames: ["reason"],
    registers,
  });
  const losses = new Counter({
    name: "headgate_upstream_lost_total",
    help: "Times an upstream stopped accepting a publish, or never began to",
    registers,
  });
  const refusals = new Counter({
    name: "headgate_rtmp_connection_failed_total",
    help: "RTMP connections that failed before they requested a publish or a play, by cause: tls_* in the handshake of TLS",
    labelNames: ["code"],
    registers,
  });
  const takeovers = new Counter({
    name: "headgate_takeovers_total",
    help: "Publishes that took over on air from the other one of their stream, by cause: lost, silent, switched",
    labelNames: ["cause"],
    registers,
  });
  const givenUp = new Counter({
    name: "headgate_outbox_given_up_total",
    help: "publish_done events and alerts that were given up, after 72 hours, an hour, or a lasting refusal",
    registers,
  });
  return {
    requests,
    seconds,
    calls,
    answers,
    slow,
    refused,
    denials,
    starts,
    ends,
    losses,
    refusals,
    takeovers,
    givenUp,
  };
}

/** Reads the media core's counters at each scrape. */
function watchMedia(registers: Registry[], media: MediaCounts): void {
  const counter = (name: string, help: string, read: () => number) =>
    new Counter({
      name,
      help,
      registers,
      collect() {
        this.reset();
        this.inc(read());
      },
    });
  // Where the system does not report drops the metric is absent: 0 would be wrong.
  let drops = media.kernelDrops();
  if (drops !== null) {
    counter(
      "headgate_media_kernel_drops_total",
      "Datagrams the kernel dropped on the media ports because they were not read in time",
      () => (drops = media.kernelDrops() ?? drops ?? 0),
    );
  }
  counter(
    "headgate_rtmp_connection_refused_total",
    "RTMP connections closed at once, and upstreams not dialled, because a limit was reached",
    () => media.refusedConnections(),
  );
  counter("headgate_transcoder_failed_total", "Transcoders from Opus to AAC that failed", () =>
    media.failedTranscoders(),
  );
  new Counter({
    name: "headgate_irregularities_total",
    help: "What was irregular about broadcasters and was tolerated, repaired or left out, by kind",
    labelNames: ["kind"],
    registers,
    collect() {
      this.reset();
      for (const { code, count } of media.irregularities()) this.inc({ kind: code }, count);
    },
  });
}

/** Reads the values of publishing at each scrape; `ended`: totals of the publishes that have ended. */
function watchPublishing(
  registers: Registry[],
  { load, outbox, live: measure }: PublishingNumbers,
  ended: Readonly<Record<"bytesIn" | "bytesOut", number>>,
): void {
  const live = oncePerTurn(measure);
  const gauge = (name: string, help: string, read: () => number | Promise<number>) =>
    new Gauge({
      name,
      help,
      registers,
      async collect() {
        this.set(await orUnknown(read));
      },
    });
  gauge("headgate_webhook_in_flight", "Webhook calls in flight", () => load().inFlight);
  gauge("headgate_webhook_waiting", "Webhook calls that wait for a place", () => load().waiting);
  const depth = oncePerTurn(outbox);
  gauge(
    "headgate_outbox_events",
    "publish_done events and alerts not delivered yet",
    async () => (await depth()).events,
  );
  gauge("headgate_outbox_oldest_seconds", "Age of the oldest of them", async () => (await depth()).oldestMs / 1000);
  gauge("headgate_players", "Current players", () => live().players);
  const byLabel = (name: string, help: string, label: string, read: () => Readonly<Record<string, number>>) =>
    new Gauge({
      name,
      help,
      labelNames: [label],
      registers,
      collect() {
        this.reset();
        for (const [value, number] of Object.entries(read())) this.set({ [label]: value }, number);
      },
    });
  gauge("headgate_pulls", "Streams that are pulled from other nodes", () => live().pulls);
  byLabel("headgate_publishes", "Publishes that are live", "protocol", () => live().publishes);
  byLabel("headgate_upstreams", "Upstreams of live publishes, by state", "state", () => live().upstreams);
  new Counter({
    name: "headgate_media_bytes_total",
    help: "Bytes of media from broadcasters, and to players and upstreams",
    labelNames: ["direction"],
    registers,
    collect() {
      const { bytesIn, bytesOut } = live();
      this.reset();
      this.inc({ direction: "in" }, ended.bytesIn + bytesIn);
      this.inc({ direction: "out" }, ended.bytesOut + bytesOut);
    },
  });
  new Gauge({
    name: "headgate_webhook_breaker_open",
    help: "1 for each organisation whose current webhook only times out and is called rarely",
    labelNames: ["organisation"],
    registers,
    collect() {
      this.reset();
      for (const organisation of load().open) this.set({ organisation }, 1);
    },
  });
}

/** NaN when it cannot be read in time: metrics are needed most while the store is down. */
async function orUnknown(read: () => number | Promise<number>): Promise<number> {
  return await inTime(READ_LIMIT_MS, Promise.resolve().then(read), Number.NaN).catch(() => Number.NaN);
}
