// The measurement of dashboard.mjs: readers of event streams like a person's, each with its own session.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { request } from "node:http";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { endingWithUs } from "./_ending.mjs";
import { cpuSeconds } from "./_process.mjs";
import { wait } from "./_webhook.mjs";

/** Goal: the largest share of a core for all readers together. */
const GOAL = 0.03;
/** Compilation by V8 and the first reads are not measured, s. */
const WARM_UP_S = 5;

export async function dashboard({ readers, streams, live, seconds }) {
  const file = fileURLToPath(new URL("./_dashboard-gateway.mjs", import.meta.url));
  const words = [file, String(streams), String(live), String(readers)];
  const child = endingWithUs(spawn(process.execPath, words, { stdio: ["pipe", "pipe", "inherit"] }));
  const lines = createInterface(child.stdout)[Symbol.asyncIterator]();
  const told = async () => JSON.parse((await lines.next()).value);
  try {
    const { port, cookies, pages, pointsMs } = await told();
    const idle = await measure(child.pid, seconds, []);
    const lists = await measure(
      child.pid,
      seconds,
      cookies.map((cookie) => read(port, cookie, "")),
    );
    const ofPages = cookies.map((cookie, at) => read(port, cookie, `?stream=${pages[at % pages.length]}`));
    const page = await measure(child.pid, seconds, ofPages);
    const percent = (share) => `${(share * 100).toFixed(2)} %`;
    console.log(`${live} live of ${streams} streams, stand-in media core, ${seconds} s each, shares of a core:`);
    console.log(`  without readers: ${percent(idle.cpu)}`);
    for (const [name, { cpu, bytes, events }] of Object.entries({ "the list": lists, "a page": page })) {
      const verdict = cpu - idle.cpu <= GOAL ? "within" : "beyond";
      const rate = `${(bytes / seconds / readers / 1_000).toFixed(1)} kB and ${(events / seconds / readers).toFixed(1)} events a second each`;
      console.log(
        `  ${readers} read ${name}: ${percent(cpu - idle.cpu)} more (goal ${percent(GOAL)}: ${verdict}), ${rate}`,
      );
    }
    console.log(`  a point in the history of 1,000 publishes: ${pointsMs.toFixed(2)} ms, ${percent(pointsMs / 5_000)}`);
    return { idle, lists, page, pointsMs };
  } finally {
    child.stdin.end();
    await once(child, "exit");
  }
}

/** CPU time of the gateway with these readers, as a share of a core, and what they received. */
async function measure(pid, seconds, opened) {
  const readers = await Promise.all(opened);
  await wait(WARM_UP_S * 1_000);
  for (const reader of readers) reader.forget();
  const before = cpuSeconds(pid);
  const started = performance.now();
  await wait(seconds * 1_000);
  const cpu = (cpuSeconds(pid) - before) / ((performance.now() - started) / 1_000);
  const sum = (of) => readers.reduce((total, reader) => total + reader.counted()[of], 0);
  const result = { cpu, bytes: sum("bytes"), events: sum("events") };
  for (const reader of readers) reader.close();
  return result;
}

/** Resolves when the stream is open. */
async function read(port, cookie, query) {
  let counted = { bytes: 0, events: 0 };
  const asked = request({ port, host: "127.0.0.1", path: `/organisation/events${query}`, headers: { cookie } }).end();
  const [response] = await once(asked, "response");
  if (response.statusCode !== 200) throw new Error(`the gateway answered ${response.statusCode}`);
  response.on("error", () => {});
  response.on("data", (data) => {
    counted.bytes += data.length;
    counted.events +=
      data.toString().split("\nevent: ").length - 1 + (data.subarray(0, 7).toString() === "event: " ? 1 : 0);
  });
  return {
    counted: () => counted,
    forget() {
      counted = { bytes: 0, events: 0 };
    },
    close: () => asked.destroy(),
  };
}
