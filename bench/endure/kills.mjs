// R7: kill -9 of the service under load.
import { kills } from "../_webhook-kills.mjs";
import { faultsWhere } from "./_service.mjs";

export const title = "kill -9 of the service while streams are live";

const KILLS = 100;
/** Including Node's own start. */
const READY_LIMIT_MS = 2_000;

export async function endure(share) {
  const { publishes, done, wrong, settingsLost, readyMs } = await kills(Math.max(2, Math.round(KILLS * share)));
  const sorted = readyMs.map(Math.round).sort((a, b) => a - b);
  const figures = { publishes, done, settingsLost, readyMs: { p50: sorted[sorted.length >> 1], most: sorted.at(-1) } };
  const faults = faultsWhere({
    [wrong[0]]: wrong.length > 0,
    "publishes without an end": done < publishes,
    "acknowledged settings were lost": settingsLost > 0,
    "half of the starts took longer than 2 s": figures.readyMs.p50 > READY_LIMIT_MS,
  });
  return { figures, faults };
}
