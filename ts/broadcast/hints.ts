// What is wrong with a broadcast that runs, from its metrics: nothing is said before it has lasted, and nothing is taken
// back before it has been gone for as long, so that no sentence flickers.
import type { Metrics } from "../webcaster/pure/metrics.ts";
import type { Notice } from "./notices.ts";

type Trouble = "cpu" | "bandwidth" | "loss" | "delay" | "tcp";

/** Readings in a row, one each second, until it is said, and until it is taken back. */
const LASTS = 5;
/** From here on viewers see it, percent and milliseconds. */
const MUCH_LOSS_PERCENT = 5;
const LONG_ROUND_TRIP_MS = 800;
/** An uplink is too slow when it carries less than this share of what is to be sent. */
const SLOW_SHARE = 0.6;

/** What helps, the gravest first: only one is shown. */
const HINTS: Readonly<Record<Trouble, Notice>> = {
  cpu: {
    tone: "warning",
    title: "This device is too busy",
    remedy: "It cannot encode your video fast enough. Close other programs, or choose a lower quality.",
  },
  bandwidth: {
    tone: "warning",
    title: "Your upload is too slow",
    remedy: "Choose a lower quality, move closer to the Wi-Fi router or use a cable.",
  },
  loss: {
    tone: "warning",
    title: "Your network is losing data",
    remedy: "Viewers may see stuttering. Move closer to the Wi-Fi router, or use a cable.",
  },
  delay: {
    tone: "warning",
    title: "Your network responds slowly",
    remedy: "Viewers see you with more delay than usual. Pause other uploads and downloads on this network.",
  },
  tcp: {
    tone: "warning",
    title: "This network blocks UDP",
    remedy:
      "Your broadcast uses TCP, which is slower, and may stutter. Another network, such as a hotspot, may work better.",
  },
};
const TROUBLES = Object.keys(HINTS) as readonly Trouble[];

/** What was seen so far: for how many readings each trouble has been there, or, below 0, gone. */
export interface Watch {
  readonly lasted: Readonly<Record<Trouble, number>>;
  readonly said: readonly Trouble[];
  /** What to say now. */
  readonly hint: Notice | null;
}

export const NOTHING_SEEN: Watch = {
  lasted: { cpu: 0, bandwidth: 0, loss: 0, delay: 0, tcp: 0 },
  said: [],
  hint: null,
};

/** The watch after one more reading. `wantedBitrate`: what the chosen quality takes, bit/s. */
export function watchOn(before: Watch, metrics: Metrics, wantedBitrate: number): Watch {
  const now = troublesOf(metrics, wantedBitrate);
  const lasted = { ...before.lasted };
  for (const trouble of TROUBLES) {
    const count = lasted[trouble];
    lasted[trouble] = now.has(trouble) ? Math.max(count, 0) + 1 : Math.min(count, 0) - 1;
  }
  const said = TROUBLES.filter((trouble) =>
    before.said.includes(trouble) ? lasted[trouble] > -LASTS : lasted[trouble] >= LASTS,
  );
  const [gravest] = said;
  return { lasted, said, hint: gravest === undefined ? null : HINTS[gravest] };
}

function troublesOf({ video, connection }: Metrics, wantedBitrate: number): ReadonlySet<Trouble> {
  const troubles = new Set<Trouble>();
  if (video?.limitedBy === "cpu") troubles.add("cpu");
  const carried = connection?.availableBitrateBps ?? null;
  // The browser says "bandwidth" of a slow start as well: only the estimate tells whether it is really too little.
  if (video?.limitedBy === "bandwidth" && carried !== null && carried < wantedBitrate * SLOW_SHARE) {
    troubles.add("bandwidth");
  }
  if ((connection?.packetLossPercent ?? 0) >= MUCH_LOSS_PERCENT) troubles.add("loss");
  if ((connection?.roundTripMs ?? 0) >= LONG_ROUND_TRIP_MS) troubles.add("delay");
  if (connection?.transport === "tcp") troubles.add("tcp");
  return troubles;
}
