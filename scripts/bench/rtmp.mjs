// CPU per stream for RTMP in → push out, Headgate beside nginx-rtmp in one run: `npm run bench -- rtmp [N] [SECONDS] [ROUNDS]`.
// Blocks alternate A B B A; each block's ledger must be exact, or the run has failed.
import { execFileSync } from "node:child_process";
import { cpus, release } from "node:os";
import { cpuSeconds, freePort, idleCpuMs, median, runLoad, startHeadgate, startNginx } from "./_servers.mjs";

export async function bench([n = "50", seconds = "20", rounds = "1"]) {
  const streams = Number(n);
  const sinkPort = await freePort();
  const servers = [await startHeadgate(sinkPort, streams), await startNginx(sinkPort)];
  const [headgate, nginx] = servers;
  const blocks = [];
  for (let round = 0; round < Number(rounds); round += 1) {
    for (const server of [headgate, nginx, nginx, headgate]) {
      const block = await measure(server, sinkPort, streams, seconds);
      blocks.push(block);
      console.log(JSON.stringify(block));
    }
  }
  for (const server of servers) await server.stop();
  report(blocks, streams);
  if (blocks.some(({ lost, misplaced }) => lost > 0 || misplaced > 0)) {
    console.log("FAILED: units were lost");
    process.exitCode = 1;
  }
}

async function measure(server, sinkPort, streams, seconds) {
  const idle = await idleCpuMs(server.pid);
  const args = ["rtmp", `127.0.0.1:${sinkPort}`, server.target, server.names(streams).join(","), seconds];
  const { balance, seen } = await runLoad(args, () => ({ cpu: cpuSeconds(server.pid) }));
  const took = seen.measured.time - seen.measuring.time;
  const ms = ((seen.measured.cpu - seen.measuring.cpu) * 1000 - idle * took) / (streams * took);
  return { server: server.name, cpu_ms_per_stream_second: Number(ms.toFixed(3)), ...balance };
}

function report(blocks, streams) {
  const of = (name) => blocks.filter(({ server }) => server === name).map((block) => block.cpu_ms_per_stream_second);
  const line = (name) => {
    const values = of(name).sort((a, b) => a - b);
    return `${name}: ${median(values).toFixed(2)} ms (${values[0]}–${values.at(-1)})`;
  };
  const nginxVersion = execFileSync("/usr/sbin/nginx", ["-v"], { encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });
  console.log(`\nCPU per stream-second, N = ${streams}, 2 Mbit/s + 128 kbit/s each, one core each for server and load`);
  console.log(`  ${line("headgate")}\n  ${line("nginx-rtmp")}`);
  console.log(`  ratio ${(median(of("headgate")) / median(of("nginx-rtmp"))).toFixed(2)}`);
  console.log(`  ${cpus()[0]?.model}, kernel ${release()}, Node ${process.version} ${nginxVersion.trim()}`);
}
