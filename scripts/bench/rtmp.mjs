// CPU per stream for RTMP in → push out: `npm run bench -- rtmp [N] [SECONDS] [ROUNDS] [--clip x264] [--chunk 4096]
// [--players COUNT] [--against DIR]`. Headgate beside nginx-rtmp and beside a relay that knows no protocol, which reads and
// writes what is there, or once for each picture; or beside another checkout that is built. Publishers of a clip, at random
// phases. Blocks alternate, there and back; each block's ledger must be exact, or the run has failed. With players nothing is
// pushed: so many play each stream, beside nginx-rtmp, and the CPU is that of one of them.
import { execFileSync } from "node:child_process";
import { cpus, release } from "node:os";
import { parseArgs } from "node:util";
import { readAgainst, resultOf } from "./_against.mjs";
import { CLIP_NAMES, honestLoad } from "./_clip.mjs";
import { coreSeconds, cpuSeconds, idleCpuMs } from "./_process.mjs";
import { freePort, generatorFault, runLoad, startHeadgate, startNginx, startRelay } from "./_servers.mjs";
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
  const push = values.players === undefined;
  const servers = [await startHeadgate(sinkPort, streams, { push })];
  if (against === null) {
    servers.push(await startNginx(push ? sinkPort : null));
    if (push) servers.push(await startRelay(sinkPort, "at-once"), await startRelay(sinkPort, "each-40-ms"));
  } else {
    servers.push(await startHeadgate(sinkPort, streams, { push, from: against, name: "the other" }));
  }
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
    if (syscalls !== null) counts.push({ server: server.name, ...syscalls });
    await server.stop();
  }
  report(blocks, counts, load, servers);
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

function argsOf(server, { sinkPort, streams, clip, chunk, players }, seconds) {
  const audience = players === undefined ? "nobody" : `${players}-on-each`;
  return honestLoad(server, server.names(streams), { sinkPort, seconds, clip, players: audience, chunk });
}

/** The whole process less what it idles; beside another checkout the threads of the media core. */
async function measure(server, load, seconds) {
  const idle = load.isCoreAlone ? 0 : await idleCpuMs(server.pid);
  const cpuOf = load.isCoreAlone ? coreSeconds : cpuSeconds;
  const { balance, seen } = await runLoad(await argsOf(server, load, seconds), () => ({ cpu: cpuOf(server.pid) }));
  const took = seen.measured.time - seen.measuring.time;
  const ms = ((seen.measured.cpu - seen.measuring.cpu) * 1000 - idle * took) / (load.readers * took);
  const noise = generatorFault(balance);
  return { server: server.name, cpu_ms_per_stream_second: Number(ms.toFixed(3)), noise, ...balance };
}

/** Reads, writes and waits per stream-second; null where they cannot be counted. */
async function count(server, load) {
  let counting = null;
  let counted = null;
  await runLoad(await argsOf(server, load, COUNTED_S), () => ({}), {
    hear(line) {
      if (line === "measuring") counting = countSyscalls(server.pid);
      if (line === "measured") counted = counting?.stop() ?? null;
    },
  });
  const calls = await counted;
  if (calls === null) return null;
  const perStream = ([name, each]) => [name, Number((each / load.readers).toFixed(1))];
  return Object.fromEntries(Object.entries(calls).map(perStream));
}

function report(blocks, counts, { streams, clip, chunk, players }, servers) {
  const unit = players === undefined ? "stream-second" : "player-second";
  const many = players === undefined ? "" : `, ${players} players each`;
  console.log(
    `\nCPU per ${unit}, N = ${streams}${many}, clip ${clip}, chunks of ${chunk}, one core each for server and load`,
  );
  const costs = (name) => blocks.filter(({ server }) => server === name).map((block) => block.cpu_ms_per_stream_second);
  const [ours, ...others] = servers.map(({ name }) => name);
  for (const other of others) {
    console.log(resultOf({ name: ours, costs: costs(ours) }, { name: other, costs: costs(other) }));
  }
  if (counts.length > 0) console.log(`\nSystem calls per ${unit}`);
  console.table(counts);
  const noisy = blocks.filter(({ noise }) => noise !== null).length;
  if (noisy > 0) console.log(`  ${noisy} of ${blocks.length} blocks were noisy: their figures say little`);
  if (others.includes("nginx-rtmp")) execFileSync("/usr/sbin/nginx", ["-v"], { stdio: "inherit" });
  console.log(`  ${cpus()[0]?.model}, kernel ${release()}, Node ${process.version}`);
}
