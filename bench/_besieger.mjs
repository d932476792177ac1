// Organisation A of strangers.mjs, in its own process as its programs are: `URL KEY` as arguments. Each request again as
// soon as it is answered, until standard input is closed; then prints the number of answers by status as JSON.
import { setMaxListeners } from "node:events";

/** Requests that wait for their answers at the same time, of each kind: more than its key's rate lets through. */
const AT_ONCE = { searches: 40, lists: 8, tags: 8, exports: 2 };
const DASHBOARDS = 20;
/** How long one waits that was told to, ms: as different clients do. */
const waitMs = () => 50 + Math.random() * 100;

const [url, key] = process.argv.slice(2);
const answers = new Map();
const aborted = new AbortController();
setMaxListeners(0, aborted.signal);
const headers = { "x-service-apikey": key, "content-type": "application/json" };
let turn = 0;

const REQUESTS = {
  searches: () => ask(`/stream?search=${["zzzz", "event-99", "x1", "common"][turn++ % 4]}`),
  lists: () => ask("/stream?tags[]=common&quantity=500"),
  tags: () => ask(`/stream/a-${turn++ % 1_000}/tag`, { method: "PUT", body: `{"tags":["common","new-${turn}"]}` }),
  exports: () => ask("/organisation/usage?from=2026-01-01&to=2026-03-31"),
};

async function ask(path, options = {}) {
  const response = await fetch(url + path, { headers, signal: aborted.signal, ...options });
  await response.arrayBuffer();
  answers.set(response.status, (answers.get(response.status) ?? 0) + 1);
  if (response.status === 429 || response.status === 503) await new Promise((r) => setTimeout(r, waitMs()));
}

async function repeat(request) {
  while (!aborted.signal.aborted) await request();
}

async function watch() {
  const response = await fetch(`${url}/organisation/events`, { headers, signal: aborted.signal });
  for await (const _ of response.body);
}

process.stdin.resume().once("end", () => aborted.abort());
const loops = Object.entries(AT_ONCE).flatMap(([name, times]) =>
  Array.from({ length: times }, () => repeat(REQUESTS[name])),
);
const ends = await Promise.allSettled([...loops, ...Array.from({ length: DASHBOARDS }, watch)]);
for (const { reason } of ends) if (reason !== undefined && reason.name !== "AbortError") console.error(reason);
console.log(JSON.stringify(Object.fromEntries(answers)));
