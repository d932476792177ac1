// A load of short WHIP publishes while the store fails over, and what the customer, the broadcasters and the store must
// agree on afterwards. No media flows: each publish is ended as soon as it is answered.
import { readFileSync } from "node:fs";
import { until } from "./child.ts";
import type { Customer } from "./customer.ts";
import type { Headgate } from "./headgate.ts";

const OFFER = readFileSync(new URL("../fixtures/offers/chromium-156.sdp", import.meta.url), "utf8");
const WORKERS = 4;
/** Pause between two publishes of a worker, ms. */
const PAUSE_MS = 25;
/** Longer than any test offers load, ms. */
const LIMIT_MS = 600_000;

/** One publish request. */
export interface Attempt {
  /** The custom argument `n` of the publish. */
  readonly n: string;
  /** 201, or the status of the refusal. */
  readonly status: number;
  /** On the clock of `performance`, ms. */
  readonly answeredAt: number;
}

export interface FailoverLoad {
  readonly attempts: readonly Attempt[];
  /** Names of the streams whose creation was acknowledged. */
  readonly made: readonly string[];
  stop(): Promise<void>;
}

export async function startFailoverLoad(headgate: Headgate): Promise<FailoverLoad> {
  const attempts: Attempt[] = [];
  const made: string[] = [];
  let stopped = false;
  let count = 0;

  async function work(name: string): Promise<void> {
    const attempt = async () => {
      count += 1;
      const n = `load-${count}`;
      const response = await post(headgate.whip(`${name}?n=${n}`), OFFER);
      attempts.push({ n, status: response.status, answeredAt: performance.now() });
      const location = response.headers.get("location");
      if (location !== null) {
        await fetch(new URL(location, headgate.http), { method: "DELETE", headers: { connection: "close" } });
      }
      const stream = await headgate.newStream().catch(() => null);
      if (stream !== null) made.push(stream);
      return stopped;
    };
    await until("the load is stopped", attempt, LIMIT_MS, PAUSE_MS);
  }

  const names = [];
  for (let worker = 0; worker < WORKERS; worker += 1) names.push(await headgate.newStream());
  const working = Promise.all(names.map(work));
  return {
    attempts,
    made,
    async stop() {
      stopped = true;
      await working;
    },
  };
}

async function post(url: string, offer: string): Promise<Response> {
  const headers = { "content-type": "application/sdp", connection: "close" };
  const response = await fetch(url, { method: "POST", headers, body: offer });
  await response.arrayBuffer();
  return response;
}

/** What is wrong with the customer's events: an allowed publish without exactly one end, or an end without an
 *  allowed publish. */
export function faultsOfEvents(customer: Customer, allowed: readonly string[]): readonly string[] {
  const field = (body: string, name: string) => new URLSearchParams(body).get(name) ?? "";
  const asked = new Map(customer.calls("publish").map(({ body }) => [field(body, "clientid"), field(body, "n")]));
  /** Client id → the events that ended it, each by its id and its body. */
  const ends = new Map<string, Set<string>>();
  for (const { body, headers } of customer.calls("publish_done")) {
    const clientId = field(body, "clientid");
    ends.set(clientId, (ends.get(clientId) ?? new Set()).add(`${headers["webhook-id"]} ${body}`));
  }
  const ended = new Set([...ends.keys()].map((clientId) => asked.get(clientId)));
  return [
    ...allowed.filter((n) => !ended.has(n)).map((n) => `${n} has no publish_done`),
    ...[...ends].filter(([, events]) => events.size > 1).map(([clientId]) => `${clientId} has several publish_done`),
    ...[...ends.keys()].filter((clientId) => !asked.has(clientId)).map((clientId) => `${clientId} was never asked`),
  ];
}
