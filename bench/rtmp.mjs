// CPU per stream for RTMP in → push out: `npm run bench -- rtmp [N] [SECONDS] [ROUNDS] [--clip x264]
// [--chunk 4096] [--players COUNT] [--against DIR]`. Compares Headgate with nginx-rtmp and with a
// relay that knows no protocol and copies bytes as they arrive, once for each picture, or promptly in turns as
// Headgate does; or with another built checkout. Publishers send a clip at random phases. Each round runs the
// blocks there and back; each block's ledger must be exact, or the run has failed. With players nothing is
// pushed: this many play each stream, nginx-rtmp is measured too, and the CPU time is per player. For each block it also reports how long
// each core was busy, which includes work of the kernel that is not accounted to the server.
import { execFileSync } from "node:child_process";
import { parseArgs } from "node:util";
import { providePrograms, toMeasure } from "../scripts/programs.mjs";
import { readAgainst, resultOf } from "./_against.mjs";
import { CLIP_NAMES, honestLoad } from "./_clip.mjs";
import { machine } from "./_machine.mjs";
import { coreSeconds, cpuSeconds, idleCpuMs, idleSeconds } from "./_process.mjs";
import {
  freePort,
  generatorFault,
  LOAD_CORE,
  runLoad,
  SERVER_CORE,
  startHeadgate,
  startNginx,
  startRelay,
} from "./_servers.mjs";
import { countSyscalls } from "./_syscalls.mjs";

/** A run for the counts alone, s: counting costs the server time. */
const COUNTED_S = "5";

export async function bench(words) {
  const { against, rest } = readAgainst(words);
  const { values, positionals } = parseArgs({
    args: rest,
    options: {
      clip: { type: "string", default: "x264" },
      chunk: { type: "string", default: "4096" },
      players: { type: "string" },
    },
    allowPositionals: true,
  });
  const [n = "50", seconds = "20", rounds = "1"] = positionals;
  if (!CLIP_NAMES.includes(values.clip)) throw new Error(`--clip is one of ${CLIP_NAMES.join(", ")}`);
  const streams = Number(n);
  const sinkPort = await freePort();
  // Not fatal: without ffmpeg recorded sizes are sent, without perf nothing is counted, and not every run needs nginx.
  const missing = providePrograms(toMeasure);
  if (missing) console.error(`headgate: ${missing}`);
  const { servers, pairs } = await startServers(values, { against, sinkPort, streams });
  const readers = streams * Number(values.players ?? 1);
  const load = { ...values, sinkPort, streams, readers, isCoreAlone: against !== null };
  const blocks = [];
  for (let round = 0; round < Number(rounds); round += 1) {
    for (const server of [...servers, ...servers.toReversed()]) {
      const block = await measure(server, load, seconds);
      blocks.push(block);
      console.log(JSON.stringify(block));
    }
  }
  const counts = [];
  for (const server of servers) {
    const syscalls = await count(server, load);
    if (syscalls !== null) {
      counts.push({ server: server.name, ...syscalls });
      console.log(JSON.stringify(counts.at(-1)));
    }
    await server.stop();
  }
  report(blocks, counts, load, pairs);
  for (const { server, ...block } of blocks) {
    const both = (name) => block[name] + (block[`visit_${name}`] ?? 0);
    const [lost, misplaced, corrupt] = [both("lost"), both("misplaced"), both("corrupt")];
    const silent = block.visit_silent ?? 0;
    if (lost + misplaced + corrupt + silent === 0) continue;
    console.log(`FAILED: ${server} lost ${lost} units, misplaced ${misplaced}, and changed ${corrupt}`);
    if (silent > 0) console.log(`FAILED: ${server} left ${silent} players without a picture`);
    process.exitCode = 1;
  }
}

/** The servers, and the names of those that are compared. */
async function startServers({ players }, { against, sinkPort, streams }) {
  const push = players === undefined;
  const servers = [await startHeadgate(sinkPort, streams, { push })];
  if (against === null) {
    servers.push(await startNginx(push ? sinkPort : null));
    const kinds = push ? ["at-once", "each-40-ms", "each-40-ms-in-turns", "promptly-in-turns"] : [];
    for (const kind of kinds) servers.push(await startRelay(sinkPort, kind));
  } else {
    servers.push(await startHeadgate(sinkPort, streams, { push, from: against, name: "the other" }));
  }
  const [ours, ...others] = servers.map(({ name }) => name);
  return { servers, pairs: others.map((other) => [ours, other]) };
}

function argsOf(server, { sinkPort, streams, clip, chunk, players }, seconds) {
  const audience = players === undefined ? "nobody" : `${players}-on-each`;
  return honestLoad(server, server.names(streams), { sinkPort, seconds, clip, players: audience, chunk });
}

/** CPU of the whole process minus its idle cost; compared with another checkout, that of the media core's
 *  threads. */
async function measure(server, load, seconds) {
  const idle = load.isCoreAlone ? 0 : await idleCpuMs(server.pid);
  const cpuOf = load.isCoreAlone ? coreSeconds : cpuSeconds;
  const { balance, seen } = await runLoad(await argsOf(server, load, seconds), () => ({
    cpu: cpuOf(server.pid),
    idle: idleSeconds(SERVER_CORE),
    loadIdle: idleSeconds(LOAD_CORE),
  }));
  const took = seen.measured.time - seen.measuring.time;
  const ms = ((seen.measured.cpu - seen.measuring.cpu) * 1000 - idle * took) / (load.readers * took);
  const noise = generatorFault(balance);
  const busyMs = (core) => {
    const busy = took - (seen.measured[core] - seen.measuring[core]);
    return Number(((busy * 1000) / (load.readers * took)).toFixed(3));
  };
  const cores = { core_ms: busyMs("idle"), load_core_ms: busyMs("loadIdle") };
  return { server: server.name, cpu_ms_per_stream_second: Number(ms.toFixed(3)), ...cores, noise, ...balance };
}

/** Reads, writes and waits per stream-second; null where they cannot be counted. */
async function count(server, load) {
  let counting = null;
  let counted = null;
  await runLoad(await argsOf(server, load, COUNTED_S), () => ({}), {
    onLine(line) {
      if (line === "measuring") counting = countSyscalls(server.pid);
      if (line === "measured") counted = counting?.stop() ?? null;
    },
  });
  const calls = await counted;
  if (calls === null) return null;
  const perStream = ([name, each]) => [name, Number((each / load.readers).toFixed(1))];
  return Object.fromEntries(Object.entries(calls).map(perStream));
}

function report(blocks, counts, { streams, clip, chunk, players }, pairs) {
  const unit = players === undefined ? "stream-second" : "player-second";
  const many = players === undefined ? "" : `, ${players} players each`;
  console.log(
    `\nCPU per ${unit}, N = ${streams}${many}, clip ${clip}, chunks of ${chunk}, one core each for server and load`,
  );
  const ofServer = (name, member) => blocks.filter(({ server }) => server === name).map((block) => block[member]);
  const costs = (name) => ({ name, costs: ofServer(name, "cpu_ms_per_stream_second") });
  for (const [ours, other] of pairs) console.log(resultOf(costs(ours), costs(other)));
  if (counts.length > 0) console.log(`\nSystem calls per ${unit}`);
  console.table(counts);
  const noisy = blocks.filter(({ noise }) => noise !== null).length;
  if (noisy > 0) console.log(`  ${noisy} of ${blocks.length} blocks were noisy: their figures are unreliable`);
  if (pairs.flat().includes("nginx-rtmp")) execFileSync("/usr/sbin/nginx", ["-v"], { stdio: "inherit" });
  console.log(`  ${machine()}`);
}
