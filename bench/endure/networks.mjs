// Reliability R4: one WebRTC publisher through each of forty networks.
import { freePort } from "../_servers.mjs";
import { faultsWhere, load, startService } from "./_service.mjs";

export const title = "forty networks: loss, delay, jitter, reordering, duplicates, limited rate, blackouts";

const SECONDS = 60;
/** Cells in parallel: as many as the two cores carry without being late themselves. */
const AT_ONCE = 4;
/** With 20 % loss, ms. */
const CONNECT_LIMIT_MS = 10_000;

const CELLS = [
  ...[0, 1, 2, 5, 10, 20].flatMap((loss) => [0, 50, 100, 250].map((delay) => `loss=${loss},delay=${delay}`)),
  ...[5, 20, 50].flatMap((jitter) => [0, 2].map((loss) => `delay=50,jitter=${jitter},loss=${loss}`)),
  ...[2, 5, 10].map((reorder) => `delay=20,reorder=${reorder}`),
  ...[1, 5].map((duplicate) => `delay=20,duplicate=${duplicate}`),
  ...[3_000, 4_000].map((rate) => `delay=20,rate=${rate}`),
  ...["2000-2200", "2000-2500", "2000-4000"].map((blackout) => `delay=20,blackout=${blackout}`),
];
/** Share of the video frames that must arrive; in other networks only corruption counts as a fault. */
const DELIVERY = { "loss=5,delay=50": 0.995, "loss=10,delay=100": 0.97 };

export async function endure(share) {
  const seconds = Math.max(8, Math.round(SECONDS * share));
  const cells = share < 0.01 ? ["loss=5,delay=50", "delay=20,blackout=2000-2500"] : CELLS;
  const server = await startService(cells.length);
  const [figures, faults] = [{}, []];
  try {
    for (let from = 0; from < cells.length; from += AT_ONCE) {
      const group = cells.slice(from, from + AT_ONCE);
      await Promise.all(
        group.map(async (cell, at) => {
          const sinkPort = await freePort();
          const stream = server.streams[from + at];
          await server.pushTo(stream, sinkPort);
          const where = [`127.0.0.1:${sinkPort}`, server.http, server.streamUrl, stream.name];
          const account = await load("impaired", ...where, seconds, cell, from + at + 1, 0);
          figures[cell] = told(account);
          faults.push(...faultsOf(cell, account));
        }),
      );
    }
  } finally {
    await server.stop();
  }
  return { figures, faults };
}

function told({ pictures, pictures_sent, sounds, sounds_sent, corrupt, connected_after_ms }) {
  return `${pictures}/${pictures_sent}, ${sounds}/${sounds_sent}, ${corrupt} corrupt, ${connected_after_ms} ms`;
}

/** Frames before the first one that arrived do not count as lost: the upstream was not connected yet. */
function faultsOf(cell, { pictures, pictures_sent, first_picture, corrupt, backwards, connected_after_ms }) {
  const share = pictures / (pictures_sent - Math.max(0, first_picture));
  return faultsWhere({
    [`${cell}: ${corrupt} corrupt pictures`]: corrupt > 0,
    [`${cell}: ${backwards} timestamps went back`]: backwards > 0,
    [`${cell}: no picture`]: pictures === 0,
    [`${cell}: ${(share * 100).toFixed(1)} % of the pictures`]: share < (DELIVERY[cell] ?? 0),
    [`${cell}: connected after ${connected_after_ms} ms`]: connected_after_ms > CONNECT_LIMIT_MS,
  });
}
