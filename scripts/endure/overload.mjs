// R11: three times as many set-ups as a node has room for.
import { measure } from "../bench/overload.mjs";

export const title = "three times the set-ups that a node has room for, beside the streams it has";

const TIMES = 5;
const SECONDS = 60;
const [STREAMS, SETUPS_PER_SECOND, LOAD_PERCENT] = [20, 180, "90"];

export async function endure(share) {
  const times = Math.max(1, Math.round(TIMES * share));
  const seconds = Math.max(12, Math.round(SECONDS * Math.min(1, share * TIMES)));
  const runs = [];
  for (let at = 0; at < times; at += 1) {
    runs.push(await measure({ seconds, streams: STREAMS, rate: SETUPS_PER_SECOND, load: LOAD_PERCENT }));
  }
  const faults = runs.filter(({ verdict }) => verdict !== "held").map(({ verdict }, at) => `run ${at}: ${verdict}`);
  return { figures: runs, faults };
}
