// CPU per stream for RTMP in → push out, Headgate beside nginx-rtmp in one run, or beside another checkout of it that is
// built: `npm run bench -- rtmp [N] [SECONDS] [ROUNDS] [--against DIR]`. Blocks alternate A B B A; each block's ledger must
// be exact, or the run has failed.
import { execFileSync } from "node:child_process";
import { cpus, release } from "node:os";
import { readAgainst, resultOf } from "./_against.mjs";
import { coreSeconds, cpuSeconds, idleCpuMs } from "./_process.mjs";
import { freePort, runLoad, startHeadgate, startNginx } from "./_servers.mjs";

export async function bench(words) {
  const { against, rest } = readAgainst(words);
  const [n = "50", seconds = "20", rounds = "1"] = rest;
  const streams = Number(n);
  const sinkPort = await freePort();
  const startOther = () => startHeadgate(sinkPort, streams, { from: against, name: "the other" });
  const servers = [
    await startHeadgate(sinkPort, streams),
    await (against === null ? startNginx(sinkPort) : startOther()),
  ];
  const [ours, other] = servers;
  const blocks = [];
  for (let round = 0; round < Number(rounds); round += 1) {
    for (const server of [ours, other, other, ours]) {
      const block = await measure(server, sinkPort, streams, seconds, against !== null);
      blocks.push(block);
      console.log(JSON.stringify(block));
    }
  }
  for (const server of servers) await server.stop();
  report(blocks, streams, other.name);
  if (blocks.some(({ lost, misplaced }) => lost > 0 || misplaced > 0)) {
    console.log("FAILED: units were lost");
    process.exitCode = 1;
  }
}

/** Beside nginx the whole process less what it idles; beside another checkout the threads of the media core. */
async function measure(server, sinkPort, streams, seconds, isCoreAlone) {
  const idle = isCoreAlone ? 0 : await idleCpuMs(server.pid);
  const args = ["rtmp", `127.0.0.1:${sinkPort}`, server.target, server.names(streams).join(","), seconds];
  const cpuOf = isCoreAlone ? coreSeconds : cpuSeconds;
  const { balance, seen } = await runLoad(args, () => ({ cpu: cpuOf(server.pid) }));
  const took = seen.measured.time - seen.measuring.time;
  const ms = ((seen.measured.cpu - seen.measuring.cpu) * 1000 - idle * took) / (streams * took);
  return { server: server.name, cpu_ms_per_stream_second: Number(ms.toFixed(3)), ...balance };
}

function report(blocks, streams, other) {
  console.log(`\nCPU per stream-second, N = ${streams}, 2 Mbit/s + 128 kbit/s each, one core each for server and load`);
  const costs = (name) => blocks.filter(({ server }) => server === name).map((block) => block.cpu_ms_per_stream_second);
  console.log(resultOf({ name: "headgate", costs: costs("headgate") }, { name: other, costs: costs(other) }));
  if (other === "nginx-rtmp") execFileSync("/usr/sbin/nginx", ["-v"], { stdio: "inherit" });
  console.log(`  ${cpus()[0]?.model}, kernel ${release()}, Node ${process.version}`);
}
