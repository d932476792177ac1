// R11: three times as many set-ups as a node has room for.
import { measure } from "../bench/overload.mjs";

export const title = "three times the set-ups that a node has room for, beside the streams it has";

const TIMES = 5;
const SECONDS = 60;
const [STREAMS, LOAD_PERCENT] = [20, "90"];
/** What room there is, is found by offering more and more, so many a second, for so long. */
const TRIAL_RATES = [180, 360, 720];
const TRIAL_S = 15;
/** How often too many come. */
const FACTOR = 3;

export async function endure(share) {
  const times = Math.max(1, Math.round(TIMES * share));
  const seconds = Math.max(12, Math.round(SECONDS * Math.min(1, share * TIMES)));
  const room = await roomForSetups();
  const runs = [];
  for (let at = 0; at < times; at += 1) {
    runs.push(await measure({ seconds, streams: STREAMS, rate: FACTOR * room, load: LOAD_PERCENT }));
  }
  const faults = runs.filter(({ verdict }) => verdict !== "held").map(({ verdict }, at) => `run ${at}: ${verdict}`);
  return { figures: { room, runs }, faults };
}

/** Set-ups a second that are let in when too many are offered. */
async function roomForSetups() {
  for (const rate of TRIAL_RATES) {
    const trial = await measure({ seconds: TRIAL_S, streams: STREAMS, rate, load: LOAD_PERCENT });
    if (trial.refused > 0) return Math.round(trial["let in"] / trial["crowd s"]);
  }
  throw new Error(`this node has room for ${TRIAL_RATES.at(-1)} set-ups a second`);
}
