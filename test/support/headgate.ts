// The service as an operator runs it: its own process, its own data directory, free ports.
import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { provideRuntime } from "../../scripts/runtimes.mjs";
import { type Child, start, until } from "./child.ts";
import { command, commandInProcess, outputOf } from "./command.ts";
import type { Customer } from "./customer.ts";
import { beginStore, databaseUrlOf } from "./stores.ts";

const READY_LIMIT_MS = 60_000;

export interface Headgate {
  /** `http://127.0.0.1:…` */
  readonly http: string;
  /** `rtmp://127.0.0.1:…/live` */
  readonly rtmp: string;
  /** `rtmps://127.0.0.1:…/live`; null without a certificate. */
  readonly rtmps: string | null;
  /** `http://127.0.0.1:…`, of the metrics port. */
  readonly metrics: string;
  /** The WHIP URL of a stream; `name` may carry encoded arguments. */
  whip(name: string): string;
  readonly apiKey: string;
  /** What it was started with, for an operator's commands. */
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly process: Child;
  /** Calls the management API and returns the JSON answer; fails on any status but 200. */
  call(method: string, path: string, body?: unknown): Promise<Record<string, unknown>>;
  /** The name of a new stream. */
  newStream(): Promise<string>;
  /** Runs an operator's command beside it; returns its output. */
  command(words: readonly string[]): Promise<string>;
  /** Sends SIGTERM; returns the exit code. */
  stop(): Promise<number | string>;
}

export interface HeadgateOptions {
  /** Its certificate is trusted, and its webhook is used. */
  readonly customer?: Customer;
  /** Settings by their HEADGATE_ names. */
  readonly env?: Readonly<Record<string, string>>;
  /** Words of a command that runs the service, which follows them. */
  readonly within?: readonly string[];
  /** A name of scripts/runtimes.mjs; by default TEST_RUNTIME of the environment, or the Node that runs the tests. */
  readonly runtime?: string;
}

/** Starts a service. */
export async function startHeadgate(options: HeadgateOptions = {}): Promise<Headgate> {
  const dataDir = mkdtempSync(join(tmpdir(), "headgate-test-"));
  const apiKey = options.env?.HEADGATE_BOOTSTRAP_API_KEY ?? `test-${randomBytes(24).toString("hex")}`;
  const { customer } = options;
  const databaseUrl = await databaseUrlOf(dataDir);
  if (databaseUrl === null) beginStore(dataDir);
  if (customer) writeFileSync(join(dataDir, "ca.pem"), customer.ca);
  const env = {
    PATH: process.env.PATH,
    HEADGATE_DATA_DIR: dataDir,
    HEADGATE_HTTP_HOST: "127.0.0.1",
    HEADGATE_HTTP_PORT: "0",
    HEADGATE_RTMP_HOST: "127.0.0.1",
    HEADGATE_RTMP_PORT: "0",
    HEADGATE_METRICS_PORT: "0",
    HEADGATE_NODE_PORT: "0",
    HEADGATE_MEDIA_HOST: "127.0.0.1",
    HEADGATE_MEDIA_PORT: "0",
    HEADGATE_BOOTSTRAP_API_KEY: apiKey,
    HEADGATE_MEDIA_WORKERS: "2",
    HEADGATE_DRAIN_S: "0",
    // The machine that runs the tests is busy; tests of a full node set a limit.
    HEADGATE_LIMITS_LOAD_PERCENT: "0",
    // Everything of a lost publish ends at once; tests of held streams set another value.
    HEADGATE_PUBLISH_HOLD_S: "0",
    HEADGATE_DEV: "1",
    ...(databaseUrl === null ? {} : { HEADGATE_DATABASE_URL: databaseUrl }),
    ...(customer ? { HEADGATE_WEBHOOK_CA: join(dataDir, "ca.pem") } : {}),
    ...options.env,
  };
  const { within = [], runtime = process.env.TEST_RUNTIME } = options;
  const runner = runtime === undefined ? [process.execPath] : provideRuntime(runtime);
  const [program = "", ...words] = [...within, ...runner, "scripts/headgate.mjs", "serve"];
  const process_ = start(program, words, { env });
  process_.exit.finally(() => rmSync(dataDir, { recursive: true, force: true }));
  let hasEnded = false;
  process_.exit.then(() => {
    hasEnded = true;
  });
  const ready = () => {
    if (hasEnded) throw new Error("it has ended");
    return readyLine(process_);
  };
  const line = await until("the ready line", ready, READY_LIMIT_MS).catch((error: Error) => {
    process_.kill("SIGKILL");
    throw new Error(`${error.message}; it said ${process_.stderr().slice(-2_000)}`);
  });
  const { http, rtmp, rtmps, metrics } = JSON.parse(line) as Pick<Headgate, "http" | "rtmp" | "rtmps" | "metrics">;

  async function call(method: string, path: string, body?: unknown): Promise<Record<string, unknown>> {
    const response = await fetch(http + path, {
      method,
      // A new connection, because the service may be closing an idle one.
      headers: { "x-service-apikey": apiKey, "content-type": "application/json", connection: "close" },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const answer = (await response.json()) as Record<string, unknown>;
    if (response.status !== 200) throw new Error(`${method} ${path}: ${response.status} ${JSON.stringify(answer)}`);
    return answer;
  }

  if (customer) await call("PUT", "/organisation/webhook", { webhook: customer.url });
  return {
    http,
    rtmp,
    rtmps,
    metrics,
    whip: (name) => `${http}/p/webrtc?stream_name=${encodeURIComponent(name)}&stream_url=${encodeURIComponent(rtmp)}`,
    apiKey,
    env,
    process: process_,
    call,
    async newStream() {
      const stream = (await call("POST", "/stream")) as { ingest: { rtmp: { streamname: string } } };
      return stream.ingest.rtmp.streamname;
    },
    async command(words) {
      // During an upgrade other commands may be asked for.
      return await outputOf([...words, "--json"], env, words[0] === "upgrade" ? commandInProcess : command);
    },
    async stop() {
      process_.kill("SIGTERM");
      return await process_.exit;
    },
  };
}

function readyLine(child: Child): string | undefined {
  return child
    .stdout()
    .split("\n")
    .find((line) => line.startsWith('{"ready":true'));
}
