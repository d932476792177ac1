// A cold start with a new store until the service reports that it is ready, and its idle memory: `npm run bench --
// ready [TIMES] [--against DIR]`, ten times by default, on one core. After the first start the files are in the page
// cache.
import { readAgainst, resultOf } from "./_against.mjs";
import { machine } from "./_machine.mjs";
import { cpuSeconds, steadyResidentKb } from "./_process.mjs";
import { median, startHeadgate } from "./_servers.mjs";

const TIMES = 10;

export async function bench(words) {
  const { against, rest } = readAgainst(words);
  const times = Number(rest[0] ?? TIMES);
  if (!Number.isInteger(times) || times < 1) throw new Error("ready [TIMES] [--against DIR]");
  const servers = [{ name: "headgate", options: {} }];
  if (against !== null) servers.push({ name: "the other", options: { from: against } });
  const found = servers.map(({ name }) => ({ name, readyMs: [], cpuMs: [] }));
  for (let time = 0; time <= times; time += 1) {
    for (const [at, { options }] of servers.entries()) {
      const { readyMs, cpuMs } = await start(options);
      if (time === 0) continue; // the first start read files from the disk
      found[at].readyMs.push(readyMs);
      found[at].cpuMs.push(cpuMs);
    }
  }
  for (const [what, of] of [
    ["Time until ready", "readyMs"],
    ["CPU time until ready", "cpuMs"],
  ]) {
    console.log(what);
    const results = found.map((server) => ({ name: server.name, costs: server[of] }));
    console.log(results.length > 1 ? resultOf(...results) : `  ${median(results[0].costs).toFixed(0)} ms`);
  }
  for (const [at, { name, options }] of servers.entries()) {
    const { readyMs, cpuMs } = found[at];
    const result = { server: name, readyMs: median(readyMs), cpuMs: median(cpuMs), idleMb: await idleMb(options) };
    console.log(JSON.stringify(result));
  }
  console.log(`  ${machine()}, one media worker`);
}

async function start(options) {
  const began = performance.now();
  const server = await startHeadgate(0, 0, options);
  const readyMs = Math.round(performance.now() - began);
  const cpuMs = Math.round(cpuSeconds(server.pid) * 1_000);
  await server.stop();
  return { readyMs, cpuMs };
}

async function idleMb(options) {
  const server = await startHeadgate(0, 0, options);
  const kb = await steadyResidentKb(server.pid);
  await server.stop();
  return Math.round(kb / 1_024);
}
