// Reliability R5: network changes during a running WHIP session.
import { freePort } from "../_servers.mjs";
import { endsOf, faultsWhere, load, startService, untilAllEnded } from "./_service.mjs";

export const title = "WHIP sessions with blackouts of 3, 10 and 30 s, a silent end, or a new port";

const TRIALS = 200;
const AT_ONCE = 50;
/** Whether the session survives, and within how many ms it is pushed again. */
const KINDS = {
  "blackout-3": { lives: true, resumedMs: 5_000 },
  "blackout-10": { lives: true, resumedMs: 5_000 },
  "blackout-30": { lives: false },
  gone: { lives: false },
  // Recognised by its media: the publisher's next ICE check may take 2.5 s, as from Chromium.
  rebind: { lives: true, resumedMs: 2_000 },
};
/** The short form asserts nothing about speed on a shared machine. */
const SHORT_SLACK = 3;
/** From the last packet of a publisher to its end, s. */
const END_LIMIT_S = 35;

/** @type {(share: number) => Promise<{ figures: object; faults: string[] }>} */
export async function endure(share) {
  const atOnce = Math.max(4, Math.round(AT_ONCE * Math.min(1, share * 4)));
  const rounds = Math.max(1, Math.round((TRIALS * share) / atOnce));
  const kinds = share < 0.01 ? ["blackout-3", "rebind"] : Object.keys(KINDS);
  const figures = {};
  const faults = [];
  for (const kind of kinds) {
    const sinkPort = await freePort();
    const server = await startService(atOnce, { HEADGATE_PUBLISH_HOLD_S: "0" });
    try {
      for (const stream of server.streams) await server.pushTo(stream, sinkPort);
      const names = server.names().join(",");
      const { lives, resumedMs } = KINDS[kind];
      const limitMs = share < 0.01 ? resumedMs * SHORT_SLACK : resumedMs;
      // A name is free again only when its session has ended, so each round of sessions that end is a
      // separate program.
      const said = [];
      for (let round = 0; round < (lives ? 1 : rounds); round += 1) {
        const where = [`127.0.0.1:${sinkPort}`, server.http, server.streamUrl, names];
        said.push(await load("trials", ...where, kind, lives ? rounds : 1));
        await untilAllEnded(server.customer, END_LIMIT_S);
      }
      const sum = (name) => said.reduce((total, one) => total + one[name], 0);
      const [sessions, resumed] = [sum("sessions"), sum("resumed")];
      const slowest = Math.max(...said.map((one) => one.resumed_max_ms));
      const ends = endsOf(server.customer);
      figures[kind] = { sessions, resumed, resumedP50Ms: said[0].resumed_p50_ms, resumedMaxMs: slowest, ...ends };
      faults.push(
        ...faultsWhere({
          [`${kind}: ${sessions - resumed} of ${sessions} were not pushed again`]: lives && resumed < sessions,
          [`${kind}: pushed again after ${slowest} ms`]: lives && slowest > limitMs,
          [`${kind}: ${resumed} of ${sessions} survived`]: !lives && resumed > 0,
          [`${kind}: ${ends.lost} without an end, ${ends.twice} with two`]: ends.lost + ends.twice > 0,
        }),
      );
    } finally {
      await server.stop();
    }
  }
  return { figures, faults };
}
