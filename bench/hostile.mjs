// What one allowed publisher, player or upstream costs others on its worker: `npm run bench -- hostile [--seconds 60]
// [--kinds a,b,…] [--streams 20] [--attempts 2]`. Honest RTMP streams, half pushed and half played, run alone and then
// beside one attacker at full speed. The goal: nothing lost, and a p99 of delays at most twice that without
// attacker.
import { once } from "node:events";
import { createInterface } from "node:readline";
import { parseArgs } from "node:util";
import { honestLoad } from "./_clip.mjs";
import { machine } from "./_machine.mjs";
import { residentKb, threadSeconds } from "./_process.mjs";
import { freePort, generatorFault, LOAD_CORE, onCore, program, runLoad, startHeadgate } from "./_servers.mjs";

const KINDS = [
  "one-byte-chunks",
  "metadata",
  "configurations",
  "tiny-messages",
  "huge-frames",
  "controls",
  "commands",
  "sequence-jumps",
  "still-audio-clock",
  "many-ssrcs",
  "slow-player",
  "flooding-upstream",
];
/** The run without an attacker is a third as long, but at least this long, s. */
const ALONE_AT_LEAST = 10;
/** The attack begins with the load's warm-up and outlasts the measurement by this, s. */
const ATTACK_LONGER = 7;
const RATIO_LIMIT = 2;
/** The attacker yields the core that it shares with the honest load. */
const ATTACKER_NICE = "19";
const MEMORY_EVERY_MS = 200;

export async function bench(words) {
  const { values } = parseArgs({
    args: words,
    options: {
      seconds: { type: "string", default: "60" },
      kinds: { type: "string", default: KINDS.join(",") },
      streams: { type: "string", default: "20" },
      attempts: { type: "string", default: "2" },
    },
  });
  const [seconds, streams, attempts] = [values.seconds, values.streams, values.attempts].map(Number);
  const kinds = values.kinds.split(",");
  const unknown = kinds.filter((kind) => !KINDS.includes(kind));
  if (unknown.length > 0) throw new Error(`no such kind: ${unknown.join(", ")}; there are ${KINDS.join(", ")}`);
  const rows = [];
  for (const kind of kinds) {
    let row = await measure(kind, streams, seconds);
    for (let attempt = 1; row.noise.length > 0 && attempt < attempts; attempt += 1) {
      console.log(`${kind}: again, ${row.noise.join(", ")}`);
      row = await measure(kind, streams, seconds);
    }
    rows.push(row);
    console.log(JSON.stringify(row));
  }
  report(rows, streams, seconds);
}

/** One kind on a new service: the honest load alone, then beside the attacker. */
async function measure(kind, streams, seconds) {
  const [sinkPort, attackerPort] = [await freePort(), await freePort()];
  const log = [];
  const onLine = (line) => log.push(line);
  const server = await startHeadgate(sinkPort, streams + 1, { push: false, logLevel: "info", onLine });
  const honest = server.streams.slice(0, streams);
  const attacker = kind === "slow-player" ? honest[0] : server.streams[streams];
  // The generator plays every second stream, beginning with the second; the others are pushed.
  for (const stream of honest.filter((_, at) => at % 2 === 0)) await server.pushTo(stream, sinkPort);
  await server.pushTo(server.streams[streams], attackerPort);
  const names = honest.map(({ name }) => name);
  const run = async (time, onReady) => {
    const args = await honestLoad(server, names, { sinkPort, seconds: time });
    const probe = () => threadSeconds(server.pid, "media-");
    const { balance, seen } = await runLoad(args, probe, {
      onLine: (line) => line === "ready" && onReady(),
      preempts: true,
    });
    const took = seen.measured.time - seen.measuring.time;
    const share = (what) => Math.round(((seen.measured[what] - seen.measuring[what]) / took) * 100);
    return { ...balance, mediaCpu: share("cpu"), mediaWaited: share("waited") };
  };
  const alone = await run(Math.max(ALONE_AT_LEAST, Math.round(seconds / 3)), () => {});
  const before = residentKb(server.pid);
  let peak = before;
  const watching = setInterval(() => {
    peak = Math.max(peak, residentKb(server.pid));
  }, MEMORY_EVERY_MS);
  let attack;
  const beside = await run(seconds, () => {
    attack = startAttack(kind, server, attacker.name, seconds + ATTACK_LONGER, attackerPort);
  });
  const did = await attack;
  clearInterval(watching);
  await server.stop();
  // A late generator beside the attacker only makes delays longer: a goal met despite that is met.
  const faults = [generatorFault(alone), isHeld(alone, beside) ? null : generatorFault(beside)];
  const noise = faults.filter((fault) => fault !== null);
  return {
    kind,
    alone,
    beside,
    attack: did,
    memory_mb: Math.round((peak - before) / 1_024),
    ends: kind === "slow-player" ? {} : endsOf(log, attacker.id),
    noise,
  };
}

/** Resolves with what the attacker prints at its end. */
async function startAttack(kind, server, name, seconds, port) {
  const where = [server.target, server.http, server.streamUrl, name, String(seconds), `127.0.0.1:${port}`];
  const child = onCore(LOAD_CORE, "nice", ["-n", ATTACKER_NICE, program(), "attack", kind, ...where]);
  let did = null;
  createInterface(child.stdout).on("line", (line) => {
    did = JSON.parse(line);
  });
  const [code] = await once(child, "close");
  if (code !== 0 || did === null) throw new Error("the attacker failed");
  return { ...did, seconds };
}

/** How the service logged the ends of a stream's publishes: each reason with its count. */
function endsOf(log, stream) {
  const lines = log.filter((line) => line.startsWith("{")).map((line) => JSON.parse(line));
  const clients = new Set(lines.filter((line) => line.stream === stream).map((line) => line.clientId));
  const ends = {};
  for (const { msg, clientId, reason } of lines) {
    if (msg === "publish ended" && clients.has(clientId)) ends[reason] = (ends[reason] ?? 0) + 1;
  }
  return ends;
}

function report(rows, streams, seconds) {
  const table = rows.map(({ kind, alone, beside, attack, memory_mb, ends, noise }) => {
    const ratio = (what) => ratioOf(what, alone, beside);
    const delays = (what) => ["p50", "p99", "max"].map((name) => beside[`${what}_delay_${name}_ms`]).join(" / ");
    const perSecond = (count) => Math.round(count / attack.seconds);
    const held = isHeld(alone, beside);
    if (!held || noise.length > 0) process.exitCode = 1;
    const reasons = Object.entries(ends).map(([reason, count]) => `${reason} × ${count}`);
    return {
      kind,
      "lost of sent": `${beside.lost} / ${beside.sent}`,
      "lost alone": alone.lost,
      "video ms": delays("video"),
      "p99 alone": alone.video_delay_p99_ms,
      ratio: ratio("video"),
      "audio ms": delays("audio"),
      "audio ratio": ratio("audio"),
      "media CPU %": `${alone.mediaCpu} → ${beside.mediaCpu}`,
      "memory MB": `+${memory_mb}`,
      "attack/s": `${perSecond(attack.messages)}, ${(perSecond(attack.bytes + attack.upstream_bytes) / 1e6).toFixed(2)} MB`,
      ended: [...reasons, ...attack.endings].join("; ") || "open to the end",
      verdict: noise.length > 0 ? `noisy: ${noise.join(", ")}` : held ? "held" : "FAILED",
    };
  });
  console.log(`\n${streams} honest streams, one media worker on one core, ${seconds} s beside each attacker`);
  // One block per kind: a table this wide is unreadable in a terminal.
  for (const row of table) console.log(JSON.stringify(row, null, 1).replaceAll('"', ""));
  const narrow = ["kind", "lost of sent", "video ms", "p99 alone", "ratio", "media CPU %", "verdict"];
  console.table(table, narrow);
  console.log(`  ${machine()}`);
}

/** p99 beside the attacker divided by p99 alone; infinite if nothing arrived. */
function ratioOf(what, alone, beside) {
  if (beside.received === 0) return Number.POSITIVE_INFINITY;
  return Number((beside[`${what}_delay_p99_ms`] / alone[`${what}_delay_p99_ms`]).toFixed(2));
}

const faultsOf = ({ lost, misplaced, corrupt, publishers_closed }) => lost + misplaced + corrupt + publishers_closed;

const isHeld = (alone, beside) =>
  faultsOf(alone) + faultsOf(beside) === 0 &&
  ["video", "audio"].every((what) => ratioOf(what, alone, beside) <= RATIO_LIMIT);
