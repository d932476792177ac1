// `headgate webhook …`: commands for the customer's developers. All but `simulate` call a running service through its
// management API, with the API key of HEADGATE_API_KEY or HEADGATE_API_KEY_FILE.

import { clock } from "../../clock.ts";
import { ConfigInvalid, PortTaken } from "../../errors.ts";
import { jsonText } from "../../text/terminal.ts";
import { hasFailed } from "../../text/webhook-words.ts";
import { ask, askPages } from "../asking.ts";
import { WEBHOOK_VERBS, type WebhookFlags } from "../command-flags.ts";
import type { GivenFlags } from "../flags.ts";
import { MORE, printLine, print as printRecord } from "../output.ts";
import { quantityOf, unknownVerb, wanted } from "../words.ts";
import { simulate } from "./simulate.ts";

/** `words`: one of `WEBHOOK_VERBS`. Throws `ConfigInvalid` for anything else. */
export async function runWebhook(words: readonly string[], flags: WebhookFlags & GivenFlags): Promise<void> {
  const [verb, id] = words;
  const path = flags.copies ? "/organisation/webhook/copies" : "/organisation/webhook";
  switch (verb) {
    case "show":
      return shown(flags, await ask(flags, "GET", flags.copies ? path : "/organisation"));
    case "set": {
      const webhook = wanted(id, "the URL of the webhook");
      // Without --copies it would replace the webhook that decides.
      if (flags.events !== undefined && !flags.copies) throw new ConfigInvalid("--events is for webhook set --copies");
      const events = flags.events === undefined ? {} : { events: flags.events };
      return shown(flags, await ask(flags, "PUT", path, { webhook, ...events }));
    }
    case "rm":
      return shown(flags, await ask(flags, "DELETE", path));
    case "secret": {
      const made = (await ask(flags, "POST", `${path}/secret`)) as { readonly secret: string };
      return printRecord(flags, made, [
        `Secret that signs the calls, shown only once: ${made.secret}`,
        "A former one also signs them for 24 hours.",
      ]);
    }
    case "test": {
      const body = flags.arguments === undefined ? {} : { arguments: flags.arguments };
      const answer = (await ask(flags, "POST", `${path}/test`, body)) as Pick<Delivery, "outcome">;
      print(answer);
      if (answer.outcome !== "answered") process.exitCode = 1; // for scripts
      return;
    }
    case "deliveries": {
      const list = { path: "/organisation/webhook/deliveries", query: filterOf(flags), ...quantityOf(flags, 20) };
      const { rows, hasMore } = await askPages(flags, list, (page: readonly Delivery[]) => page);
      if (flags.json) return print(rows);
      for (const delivery of rows) printLine(lineOf(delivery));
      if (hasMore) printLine(MORE);
      return;
    }
    case "delivery": {
      const delivery = wanted(id, "the id of a delivery (headgate webhook deliveries)");
      return print(await ask(flags, "GET", `/organisation/webhook/deliveries/${encodeURIComponent(delivery)}`));
    }
    case "replay": {
      const delivery = wanted(id, "the id of a delivery (headgate webhook deliveries)");
      const path = `/organisation/webhook/deliveries/${encodeURIComponent(delivery)}/replay`;
      return print(await ask(flags, "POST", path));
    }
    case "simulate":
      return await runSimulation(flags);
    default:
      throw unknownVerb("webhook", verb, WEBHOOK_VERBS);
  }
}

function filterOf({ copies, failed, name, call, clientId, from, to }: WebhookFlags): URLSearchParams {
  const isSet = (flag: boolean | undefined) => (flag ? "true" : undefined);
  const given = { copies: isSet(copies), failed: isSet(failed), name, call, clientid: clientId, from, to };
  return new URLSearchParams(Object.entries(given).filter((each): each is [string, string] => each[1] !== undefined));
}

/** `record`: an organisation, or its second webhook. */
function shown(flags: WebhookFlags & GivenFlags, record: unknown): void {
  const { webhook, events } = record as { readonly webhook: string | null; readonly events?: string };
  const what = flags.copies ? "second webhook" : "webhook";
  const gets = events === undefined ? "" : `, and gets ${events === "all" ? "all events" : events}`;
  printRecord(flags, record, [webhook === null ? `No ${what} is set.` : `The ${what} is ${webhook}${gets}`]);
}

interface Delivery {
  readonly id: string;
  readonly call: string;
  readonly name: string;
  readonly clientid: number;
  readonly outcome: string;
  readonly status: number | null;
  readonly reason: string | null;
  readonly latency_ms: number;
  readonly attempts: number;
  readonly last_at: string;
}

function lineOf(delivery: Delivery): string {
  const { id, call, name, clientid, outcome, status, reason, latency_ms, attempts, last_at } = delivery;
  const said = status !== null && hasFailed(status) ? `failed with ${status}` : (status ?? outcome);
  const answer = [said, ...(reason === null ? [] : [`(${reason})`])].join(" ");
  return `${last_at}  ${id}  ${call}  ${name}  clientid ${clientid}  ${answer}  ${latency_ms} ms  attempts ${attempts}`;
}

function print(answer: unknown): void {
  console.log(jsonText(answer));
}

async function runSimulation(flags: WebhookFlags): Promise<void> {
  requireWithin("--port", flags.port, 0, 65_535);
  requireWithin("--status", flags.status, 200, 599);
  requireWithin("--delay", flags.delay, 0, 600_000);
  const simulation = await simulate({
    port: flags.port,
    status: flags.status,
    delayMs: flags.delay,
    reason: flags.reason,
    secret: flags.secret ?? null,
    certFile: flags.certificate,
    clock,
    print: printLine,
  }).catch((cause: NodeJS.ErrnoException) => {
    if (cause.syscall === "open") {
      throw new ConfigInvalid(`--certificate: cannot write ${flags.certificate}: ${cause.message}`, { cause });
    }
    if (cause.code === "EACCES") {
      throw new PortTaken(`cannot listen on port ${flags.port}: this user may not (--port)`, { cause });
    }
    if (cause.code !== "EADDRINUSE") throw cause;
    throw new PortTaken(`cannot listen on port ${flags.port}: it is in use (--port)`, { cause });
  });
  console.log(`A simulated customer answers ${flags.status} at ${simulation.url}`);
  console.log(`Start headgate with --dev --webhook-ca ${flags.certificate}, and set the webhook to that address.`);
  for (const signal of ["SIGTERM", "SIGINT"] as const) process.once(signal, () => simulation.close());
}

function requireWithin(flag: string, value: number, least: number, most: number): void {
  if (Number.isSafeInteger(value) && value >= least && value <= most) return;
  throw new ConfigInvalid(`${flag} must be a whole number from ${least} to ${most}`);
}
