// A separate service for each row, with a customer that allows everything and records its events; and the
// load generator's programs.
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { honestLoad } from "../_clip.mjs";
import { startRecordingCustomer } from "../_recording-customer.mjs";
import { freePort, LOAD_CORE, onCore, program, runLoad, startHeadgate } from "../_servers.mjs";
import { certificate, wait } from "../_webhook.mjs";

/** Starts Headgate with `streams` streams whose organisation has a webhook. `sinkPort` is for upstreams of the load
 *  generator. */
export async function startService(streams, env = {}) {
  const folder = mkdtempSync(join(tmpdir(), "headgate-endure-"));
  const ca = join(folder, "ca.pem");
  writeFileSync(ca, certificate.cert);
  const customer = await startRecordingCustomer();
  const settings = { HEADGATE_WEBHOOK_CA: ca, HEADGATE_LIMITS_API_REQUESTS_PER_SECOND: "0", ...env };
  // Its first output for people is not part of its log.
  const onLine = (line) => line.startsWith("{") && console.error(line);
  const server = await startHeadgate(0, streams, { push: false, logLevel: "fatal", onLine, env: settings });
  await server.call("PUT", "/organisation/webhook", { webhook: customer.url });
  return {
    ...server,
    customer,
    async stop() {
      await server.stop();
      await customer.stop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** The JSON that one program of the load generator prints at its end. */
export async function load(...args) {
  const child = onCore(LOAD_CORE, program(), args.map(String));
  let said = null;
  createInterface(child.stdout).on("line", (line) => {
    if (line.startsWith("{")) said = JSON.parse(line);
  });
  const [code] = await once(child, "close");
  if (code !== 0 || said === null) throw new Error(`the load generator failed at ${args[0]}`);
  return said;
}

/** Runs `beside` while honest RTMP streams of a clip are played or pushed; resolves with their result and that of
 *  `beside`. */
export async function besideHonest(server, streams, seconds, beside) {
  const sinkPort = await freePort();
  for (const stream of streams.filter((_, at) => at % 2 === 0)) await server.pushTo(stream, sinkPort);
  const names = streams.map(({ name }) => name);
  let other = null;
  const args = await honestLoad(server, names, { sinkPort, seconds });
  const { balance } = await runLoad(args, () => ({}), {
    onLine: (line) => {
      if (line === "ready") other = beside();
    },
    preempts: true,
  });
  return { balance, other: await other };
}

/** The publishes that the customer allowed, those whose end it received, and faults in any of them. */
export function endsOf(customer) {
  const all = [...customer.events.values()];
  const asked = all.filter((events) => events.some(({ call }) => call === "publish"));
  const ends = asked.map((events) => events.filter(({ call }) => call === "publish_done").length);
  const count = (fits) => ends.filter(fits).length;
  return {
    publishes: asked.length,
    done: count((n) => n >= 1),
    lost: count((n) => n === 0),
    twice: count((n) => n > 1),
  };
}

/** Waits until every publish has ended, with a limit; returns the seconds it took. */
export async function untilAllEnded(customer, limitS) {
  const startedAt = performance.now();
  const seconds = () => (performance.now() - startedAt) / 1_000;
  while (endsOf(customer).lost > 0 && seconds() < limitS) await wait(200);
  return Number(seconds().toFixed(1));
}

/** Size of V8's heap in a service, MB. The rest of its memory is mostly that of the media core. */
export async function heapMb(metrics) {
  const text = await (await fetch(`${metrics}/metrics`)).text();
  const bytes = Number(/^nodejs_heap_size_total_bytes (\S+)/m.exec(text)?.[1]);
  return Number((bytes / 2 ** 20).toFixed(1));
}

/** Faults as texts: the names whose condition is true. */
export const faultsWhere = (conditions) => Object.keys(conditions).filter((words) => conditions[words]);
