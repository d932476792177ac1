// Whether cost and memory stay constant: `npm run bench -- soak [--minutes 30] [--sessions 100] [--parts whip,rtmp]
// [--publishers 2N] [--players 2N] [--window SECONDS]`. First N WHIP sessions with transport-cc, pushed as Opus; then
// RTMP publishers with pushes, and players that come and go. The service has one core, the load the other.
import { parseArgs } from "node:util";
import { honestLoad } from "./_clip.mjs";
import { machine } from "./_machine.mjs";
import { udpDrops } from "./_process.mjs";
import { freePort, generatorFault, runLoad, startHeadgate } from "./_servers.mjs";
import { watchWindows } from "./_windows.mjs";

/** A window is a sixth of the run, within these limits, s. */
const WINDOW_S = [20, 300];
/** A load that may be too much for the generator is tried for this long, and then reduced by this factor. */
const TRIAL_S = 10;
const SMALLER = 0.8;
/** Below this share of its core a late generator was delayed by other processes: fewer streams would not help. */
const BUSY = 0.5;
/** Limit of the last window's processor time relative to the first's. */
const RATIO_LIMIT = 1.03;
/** Limit of the last window's memory relative to the first's. */
const MEMORY_LIMIT = 1.05;
/** A session with less transport-wide feedback per second does not use it. */
const FEEDBACK_AT_LEAST = 1;

export async function bench(words) {
  const { values } = parseArgs({
    args: words,
    options: {
      minutes: { type: "string", default: "30" },
      sessions: { type: "string", default: "100" },
      parts: { type: "string", default: "whip,rtmp" },
      publishers: { type: "string" },
      players: { type: "string" },
      window: { type: "string" },
    },
  });
  const seconds = Math.round(Number(values.minutes) * 60);
  const sessions = Number(values.sessions);
  const window = Number(values.window ?? Math.min(Math.max(seconds / 6, WINDOW_S[0]), WINDOW_S[1]));
  const loads = {
    whip: { name: "WHIP sessions", count: sessions, args: whipArgs, faults: whipFaults },
    rtmp: {
      name: "RTMP publishers",
      count: Number(values.publishers ?? sessions * 2),
      args: rtmpArgs(Number(values.players ?? sessions * 2)),
      faults: rtmpFaults,
    },
  };
  for (const part of values.parts.split(",")) {
    const load = loads[part];
    if (load === undefined) throw new Error(`no such part: ${part}`);
    const carried = await largest(load);
    report(load, carried, await run(load, carried, seconds, window));
  }
}

const whipArgs = (sinkPort, server, seconds) => {
  const where = [`127.0.0.1:${sinkPort}`, server.http, server.streamUrl];
  return ["whip", ...where, server.names().join(","), String(seconds), "opus", "gcm"];
};

const rtmpArgs = (players) => (sinkPort, server, seconds) =>
  honestLoad(server, server.names(), { sinkPort, seconds, players });

/** The largest part of a load that the generator can carry on its core. */
async function largest(load) {
  let count = load.count;
  for (;;) {
    const { balance, generatorShare } = await run(load, count, TRIAL_S, null);
    const fault = generatorFault(balance);
    if (fault === null) return count;
    if (generatorShare < BUSY) {
      console.log(`${fault} at ${percent(generatorShare)} of its core: something else runs on this machine`);
      return count;
    }
    const fewer = Math.floor(count * SMALLER);
    if (fewer === 0) throw new Error(`the generator cannot carry even one: ${fault}`);
    console.log(
      `${count} ${load.name} are too many for the generator (${fault}, ${percent(generatorShare)}): ${fewer}`,
    );
    count = fewer;
  }
}

/** One run on a new service; `window` is null for a trial. */
async function run(load, count, seconds, window) {
  const sinkPort = await freePort();
  const server = await startHeadgate(sinkPort, count);
  let stop = () => [];
  let windows = [];
  const probe = () => ({ drops: udpDrops() });
  const print = (closed) => console.log(JSON.stringify(closed));
  const onLine = (line) => {
    if (line === "measuring" && window !== null) stop = watchWindows(server.pid, count, window, print);
    if (line === "measured") windows = stop();
  };
  const { balance, seen, generatorShare } = await runLoad(await load.args(sinkPort, server, seconds), probe, {
    onLine,
  });
  await server.stop();
  const drops = seen.measured.drops - seen.measuring.drops;
  return { balance, windows, generatorShare, drops, seconds };
}

function report(load, count, { balance, windows, generatorShare, drops, seconds }) {
  console.log(`\n${count} ${load.name} for ${seconds} s, one core each for service and load`);
  console.table(windows);
  const [first, last] = [windows[0], windows.at(-1)];
  const ratio = last.cpu_ms_per_stream_second / first.cpu_ms_per_stream_second;
  const memory = last.resident_mb / first.resident_mb;
  console.log(`  ratio of last and first window: processor ${ratio.toFixed(3)}, memory ${memory.toFixed(3)}`);
  const { lost_units, ...rest } = balance;
  console.log(`  ${JSON.stringify(rest)}`);
  console.log(`  generator: ${percent(generatorShare)} of its core; ${machine()}`);
  const faults = [...load.faults(balance, count, seconds), generatorFault(balance)].filter((fault) => fault !== null);
  for (const name of ["lost", "misplaced"]) if (balance[name] > 0) faults.push(`${name} ${balance[name]}`);
  if (drops > 0) faults.push(`${drops} datagrams dropped`);
  if (ratio > RATIO_LIMIT) faults.push(`processor time grew by ${ratio.toFixed(3)}`);
  if (memory > MEMORY_LIMIT) faults.push(`memory grew by ${memory.toFixed(3)}`);
  if (count < load.count) faults.push(`the generator carried ${count} of ${load.count}`);
  console.log(faults.length === 0 ? "  held" : `  FAILED: ${faults.join("; ")}`);
  if (faults.length > 0) process.exitCode = 1;
  if (lost_units.length > 0) console.log(`  lost: ${lost_units.slice(0, 10).join(", ")} …`);
}

function whipFaults(balance, count, seconds) {
  const feedback = balance.transport_feedback / (count * seconds);
  console.log(`  transport-wide feedback: ${feedback.toFixed(1)} packets per session and second`);
  const faults = feedback < FEEDBACK_AT_LEAST ? ["transport-cc is not used"] : [];
  for (const name of ["closed_early", "unsent_datagrams"])
    if (balance[name] > 0) faults.push(`${name} ${balance[name]}`);
  return faults;
}

function rtmpFaults(balance) {
  const names = ["corrupt", "publishers_closed", "visit_lost", "visit_misplaced", "visit_corrupt", "visit_unexpected"];
  return [...names, "visit_silent"].filter((name) => balance[name] > 0).map((name) => `${name} ${balance[name]}`);
}

const percent = (share) => `${(share * 100).toFixed(0)} %`;
