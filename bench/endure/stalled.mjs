// R13: crowds that hold connections open and send almost nothing, beside honest streams and requests.
import { connect } from "node:net";
import { percentile, wait } from "../_webhook.mjs";
import { besideHonest, faultsWhere, startService } from "./_service.mjs";

export const title = "1,000 slow HTTP clients, 500 stalled RTMP connections, 500 at one byte a second";

const SECONDS = 600;
const HONEST = 20;
const CROWD = { slowHttp: 1_000, stalledRtmp: 500, slowRtmp: 500 };
/** Maximum duration of each, s: a request's headers; a handshake; publish within a limit that is checked every
 *  second. */
const LASTS_S = { slowHttp: 8, stalledRtmp: 7, slowRtmp: 13 };
/** How many times longer honest requests and delays of honest frames may be than without the crowd. */
const RATIO_LIMIT = 2;
/** Below this a ratio is not meaningful, ms. */
const SMALL_MS = 5;
const ALONE_S = 10;

export async function endure(share) {
  const seconds = Math.max(20, Math.round(SECONDS * share));
  const few = share < 0.05 ? 0.1 : 1;
  const honest = Math.max(4, Math.round(HONEST * few));
  const server = await startService(honest, { HEADGATE_LIMITS_RTMP_CONNECTIONS_PER_ADDRESS: "0" });
  const run = (time, beside) => besideHonest(server, server.streams, time, beside);
  try {
    const alone = await run(ALONE_S, () => requests(server, ALONE_S));
    const beside = await run(seconds, async () => {
      const crowd = Object.entries(CROWD).map(([kind, count]) =>
        keepOpen(kind, server, Math.round(count * few), seconds),
      );
      const [times, ...lasted] = await Promise.all([requests(server, seconds), ...crowd]);
      return { times, lasted: Object.fromEntries(lasted) };
    });
    const p95 = (times) => Number(percentile(times, 0.95).toFixed(1));
    const requestsP95 = [p95(alone.other), p95(beside.other.times)];
    const picturesP99 = [alone.balance.video_delay_p99_ms, beside.balance.video_delay_p99_ms];
    const figures = { honest, requestsP95, picturesP99, lost: beside.balance.lost, ...beside.other.lasted };
    const isSlower = ([before, after]) => after > RATIO_LIMIT * Math.max(before, SMALL_MS);
    const tooLong = Object.entries(beside.other.lasted).filter(([kind, { longestS }]) => longestS > LASTS_S[kind]);
    const faults = faultsWhere({
      "honest streams lost units": beside.balance.lost > 0 || beside.balance.corrupt > 0,
      [`requests: p95 ${requestsP95.join(" and ")} ms`]: isSlower(requestsP95),
      [`video frames: p99 ${picturesP99.join(" and ")} ms`]: isSlower(picturesP99),
      [`${tooLong[0]?.[0]} lasted ${tooLong[0]?.[1].longestS} s`]: tooLong.length > 0,
    });
    return { figures, faults };
  } finally {
    await server.stop();
  }
}

/** Sends one request after the other; returns how long each took, ms. */
async function requests({ call }, seconds) {
  const times = [];
  const until = performance.now() + seconds * 1_000;
  while (performance.now() < until) {
    const asked = performance.now();
    await call("GET", "/session");
    times.push(performance.now() - asked);
    await wait(20);
  }
  return times;
}

/** Keeps `count` connections open, each reopened when the service closes it; returns how long the longest lasted. */
async function keepOpen(kind, { http, target }, count, seconds) {
  const [host, port] = (kind === "slowHttp" ? http : target).split(":");
  const until = performance.now() + seconds * 1_000;
  let closed = 0;
  let longestMs = 0;
  const one = async () => {
    while (performance.now() < until) {
      const opened = performance.now();
      const socket = connect({ host, port: Number(port) });
      const gone = new Promise((resolve) => socket.once("close", resolve));
      socket.on("error", () => {});
      socket.resume();
      const speaking = speak(kind, socket);
      await Promise.race([gone, wait(until - performance.now())]);
      clearInterval(speaking);
      closed += Number(socket.closed);
      longestMs = Math.max(longestMs, performance.now() - opened);
      socket.destroy();
      await wait(Math.random() * 200);
    }
  };
  await Promise.all(Array.from({ length: count }, one));
  return [kind, { closed, longestS: Number((longestMs / 1_000).toFixed(1)) }];
}

/** A header at one byte a second; half a handshake; or a handshake followed by a chunk at one byte a second. */
function speak(kind, socket) {
  const hello = Buffer.alloc(1_537, 3);
  if (kind === "slowHttp") socket.write("GET /healthz HTTP/1.1\r\nHost: a\r\nX-Slow: ");
  else socket.write(kind === "stalledRtmp" ? hello.subarray(0, 700) : Buffer.concat([hello, hello.subarray(1)]));
  if (kind === "stalledRtmp") return undefined;
  return setInterval(() => socket.write(kind === "slowHttp" ? "a" : Buffer.from([3])), 1_000);
}
