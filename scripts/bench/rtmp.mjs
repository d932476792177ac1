// CPU per stream for RTMP in → push out, Headgate beside nginx-rtmp in one run: `npm run bench -- rtmp [N] [SECONDS] [ROUNDS]`.
// Blocks alternate A B B A; each block's ledger must be exact, or the run has failed.
import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { cpus, release } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { root } from "../build.mjs";
import { cpuSeconds, freePort, LOAD_CORE, onCore, startHeadgate, startNginx } from "./_servers.mjs";

/** How long an idle server is watched, ms: its own cost is taken off. */
const IDLE_MS = 3_000;

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
  const idleFrom = cpuSeconds(server.pid);
  await new Promise((resolve) => setTimeout(resolve, IDLE_MS));
  const idlePerSecond = ((cpuSeconds(server.pid) - idleFrom) * 1000) / IDLE_MS;
  const program = join(root, "target", "release", "headgate-bench");
  const names = server.names(streams).join(",");
  const child = onCore(LOAD_CORE, program, ["rtmp", `127.0.0.1:${sinkPort}`, server.target, names, seconds]);
  const cpu = [];
  const time = [];
  let balance = {};
  createInterface(child.stdout).on("line", (line) => {
    if (line.startsWith("{")) balance = JSON.parse(line);
    else {
      cpu.push(cpuSeconds(server.pid));
      time.push(performance.now() / 1000);
    }
  });
  const [code] = await once(child, "close");
  if (code !== 0) throw new Error("the load generator failed");
  const took = time[1] - time[0];
  const ms = ((cpu[1] - cpu[0] - idlePerSecond * took) * 1000) / (streams * took);
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

function median(values) {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length / 2;
  return sorted.length % 2 ? sorted[Math.floor(middle)] : (sorted[middle - 1] + sorted[middle]) / 2;
}
