// `headgate webhook …`: what the customer's developers do from a terminal. All but `simulate` ask a running service
// through its management API, with the API key of HEADGATE_API_KEY or HEADGATE_API_KEY_FILE.
import { readApiKey } from "../config.ts";
import { ConfigInvalid, ServiceError } from "../errors.ts";
import { clock } from "../main.ts";
import { simulate } from "./webhook-simulate.ts";

/** How long the service may take to answer, ms: a webhook's deadline and a little. */
const ANSWER_LIMIT_MS = 15_000;

/** Flags as cleye takes them. */
export const webhookFlags = {
  url: { type: String, description: "address of the service", default: "http://127.0.0.1:8080" },
  json: { type: Boolean, description: "deliveries: print JSON, as test and replay always do" },
  arguments: { type: String, description: "test: custom arguments, as behind the ? of a stream name" },
  failed: { type: Boolean, description: "deliveries: only failed ones" },
  name: { type: String, description: "deliveries: only of this stream name" },
  quantity: { type: Number, description: "deliveries: how many", default: 20 },
  port: { type: Number, description: "simulate: port to listen on", default: 8443 },
  status: { type: Number, description: "simulate: what to answer", default: 200 },
  delay: { type: Number, description: "simulate: wait so many ms before", default: 0 },
  reason: { type: String, description: "simulate: text of the answer", default: "" },
  secret: { type: String, description: "simulate: verify signatures with this whsec_…" },
  certificate: {
    type: String,
    description: "simulate: where to write its certificate",
    default: "headgate-simulated-customer.pem",
  },
} as const;

export interface WebhookFlags {
  readonly url: string;
  readonly json?: boolean | undefined;
  readonly arguments?: string | undefined;
  readonly failed?: boolean | undefined;
  readonly name?: string | undefined;
  readonly quantity: number;
  readonly port: number;
  readonly status: number;
  readonly delay: number;
  readonly reason: string;
  readonly secret?: string | undefined;
  readonly certificate: string;
}

/** The service said no, or nothing. */
class ServiceAnswered extends ServiceError {
  readonly code = "service_answered";
}

/** `words`: test, deliveries, replay and an id, or simulate. Throws `ConfigInvalid` for anything else. */
export async function runWebhook(words: readonly string[], flags: WebhookFlags): Promise<void> {
  const [verb, id] = words;
  switch (verb) {
    case "test": {
      const body = flags.arguments === undefined ? {} : { arguments: flags.arguments };
      return print(await ask(flags.url, "POST", "/organisation/webhook/test", body));
    }
    case "deliveries": {
      const query = new URLSearchParams({ quantity: String(flags.quantity) });
      if (flags.failed) query.set("failed", "true");
      if (flags.name !== undefined) query.set("name", flags.name);
      const list = await ask(flags.url, "GET", `/organisation/webhook/deliveries?${query}`);
      if (flags.json) return print(list);
      for (const delivery of list as Delivery[]) console.log(lineOf(delivery));
      return;
    }
    case "replay": {
      if (id === undefined)
        throw new ConfigInvalid("webhook replay wants the id of a delivery: headgate webhook deliveries");
      const path = `/organisation/webhook/deliveries/${encodeURIComponent(id)}/replay`;
      return print(await ask(flags.url, "POST", path));
    }
    case "simulate":
      return await runSimulation(flags);
    default:
      throw new ConfigInvalid(
        `webhook ${verb ?? ""} is not known: headgate webhook test, deliveries, replay, simulate`,
      );
  }
}

interface Delivery {
  readonly id: string;
  readonly call: string;
  readonly name: string;
  readonly clientid: number;
  readonly outcome: string;
  readonly status: number | null;
  readonly latency_ms: number;
  readonly attempts: number;
  readonly last_at: string;
}

function lineOf(delivery: Delivery): string {
  const { id, call, name, clientid, outcome, status, latency_ms, attempts, last_at } = delivery;
  const answer = status ?? outcome;
  return `${last_at}  ${id}  ${call}  ${name}  clientid ${clientid}  ${answer}  ${latency_ms} ms  attempts ${attempts}`;
}

function print(answer: unknown): void {
  console.log(JSON.stringify(answer, null, 2));
}

async function ask(url: string, method: string, path: string, body?: object): Promise<unknown> {
  let response: Response;
  try {
    response = await fetch(new URL(path, url), {
      method,
      headers: { "x-service-apikey": readApiKey() },
      signal: AbortSignal.timeout(ANSWER_LIMIT_MS),
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
  } catch (cause) {
    throw new ServiceAnswered(`no answer from ${url}: is headgate running there? (--url)`, { cause });
  }
  const answer = (await response.json()) as { readonly error?: { readonly message: string; readonly code: number } };
  if (response.ok) return answer;
  throw new ServiceAnswered(`${response.status}: ${answer.error?.message} (code ${answer.error?.code})`);
}

async function runSimulation(flags: WebhookFlags): Promise<void> {
  const simulation = await simulate({
    port: flags.port,
    status: flags.status,
    delayMs: flags.delay,
    reason: flags.reason,
    secret: flags.secret ?? null,
    certFile: flags.certificate,
    clock,
    print: (line) => console.log(line),
  });
  console.log(`A simulated customer answers ${flags.status} at ${simulation.url}`);
  console.log(`Start headgate with --dev --webhook-ca ${flags.certificate}, and set the webhook to that address.`);
  for (const signal of ["SIGTERM", "SIGINT"] as const) process.once(signal, () => simulation.close());
}
