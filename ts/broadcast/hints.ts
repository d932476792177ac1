// Detects problems of a running broadcast from its metrics: a hint appears only once a problem has lasted, and
// disappears only once it has been absent for as long, so that texts do not flicker.
import type { Metrics } from "../webcaster/pure/metrics.ts";
import type { Notice } from "./notices.ts";

type Trouble = "cpu" | "bandwidth" | "loss" | "delay" | "tcp";

/** Consecutive readings, one each second, before a hint appears or disappears. */
const LASTS = 5;
/** Above this viewers notice it, percent and milliseconds. */
const MUCH_LOSS_PERCENT = 5;
const LONG_ROUND_TRIP_MS = 800;
/** An uplink is too slow when it carries less than this share of what should be sent. */
const SLOW_SHARE = 0.6;

/** Remedies, the most serious problem first: only one is shown. */
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

/** The state of the detection: for how many readings each trouble has been present or, below 0, absent. */
export interface Watch {
  readonly lasted: Readonly<Record<Trouble, number>>;
  readonly said: readonly Trouble[];
  /** The hint to show. */
  readonly hint: Notice | null;
}

export const NOTHING_SEEN: Watch = {
  lasted: { cpu: 0, bandwidth: 0, loss: 0, delay: 0, tcp: 0 },
  said: [],
  hint: null,
};

/** The state after one more reading. `wantedBitrate`: the bitrate of the chosen quality, bit/s. */
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
  // Browsers report "bandwidth" during a slow start as well: only the estimate shows whether it is really too little.
  if (video?.limitedBy === "bandwidth" && carried !== null && carried < wantedBitrate * SLOW_SHARE) {
    troubles.add("bandwidth");
  }
  if ((connection?.packetLossPercent ?? 0) >= MUCH_LOSS_PERCENT) troubles.add("loss");
  if ((connection?.roundTripMs ?? 0) >= LONG_ROUND_TRIP_MS) troubles.add("delay");
  if (connection?.transport === "tcp") troubles.add("tcp");
  return troubles;
}
