// A WebRTC publisher through a network that loses, delays and reorders datagrams, both ways: no broken
// picture goes upstream, hardly one is missing, and audio and video are in sync although their clocks
// disagree. Three networks here; `npm run matrix -- whip` goes through all of them.
import { afterAll, beforeAll, expect, test } from "vitest";
import { run } from "../support/child.ts";
import { freePort } from "../support/free-port.ts";
import { type Headgate, startHeadgate } from "../support/headgate.ts";

interface Network {
  readonly loss: number;
  /** One way, ms. */
  readonly delay: number;
  readonly reorder: number;
}
interface Outcome {
  readonly pictures_sent: number;
  readonly pictures: number;
  readonly sounds_sent: number;
  readonly sounds: number;
  readonly corrupt: number;
  readonly backwards: number;
  readonly first_picture: number;
  readonly first_sound: number;
  readonly skew_ms: number;
}

const IS_WHOLE = process.env.WHIP_IMPAIRMENT === "all";
const SECONDS = IS_WHOLE ? 30 : 10;
const NETWORKS: readonly Network[] = IS_WHOLE
  ? [0, 1, 5, 10].flatMap((loss) =>
      [0, 50, 100].flatMap((delay) => [0, 5].map((reorder) => ({ loss, delay, reorder }))),
    )
  : [
      { loss: 0, delay: 0, reorder: 0 },
      { loss: 5, delay: 50, reorder: 0 },
      { loss: 10, delay: 100, reorder: 5 },
    ];
/** By its sender reports the camera is this far ahead of the microphone, ms. */
const CLOCKS_APART_MS = 300;
/** After the second sender report, ms. */
const SKEW_LIMIT_MS = 20;
/** Loss and one-way delay up to which nearly everything must arrive, and that share. */
const DELIVERY = { loss: 5, delay: 50, least: 0.995 };
/** Audio is accepted from 60 ms before the first picture on, by arrival: if the machine stalls between the
 *  two, a few packets may be missing. Packets of 20 ms. */
const FIRST_SOUND_LIMIT = 5;
const SEED = 1;
const PROGRAM = `${process.env.CARGO_TARGET_DIR ?? "target"}/release/headgate-bench`;

let headgate: Headgate;
/** Ports of the upstreams, one for each network. */
const ports = new Set<number>();

beforeAll(async () => {
  while (ports.size < NETWORKS.length) ports.add(await freePort());
  const upstreams = [...ports].map((port) => `127.0.0.1:${port}`);
  headgate = await startHeadgate({ env: { HEADGATE_UPSTREAM_ALLOW: upstreams.join(",") } });
}, 600_000);
afterAll(async () => await headgate?.stop());

test.concurrent.each(NETWORKS)(
  "$loss % loss, $delay ms, $reorder % reordered",
  { timeout: (SECONDS + 60) * 1_000 },
  async ({ loss, delay, reorder }) => {
    const port = [...ports][
      NETWORKS.findIndex((of) => of.loss === loss && of.delay === delay && of.reorder === reorder)
    ];
    const name = await headgate.newStream();
    const conditions = `loss=${loss},delay=${delay},reorder=${reorder}`;
    const where = [`127.0.0.1:${port}`, new URL(headgate.http).host, `rtmp://127.0.0.1:${port}/live`, name];
    const how = [String(SECONDS), conditions, String(SEED), String(CLOCKS_APART_MS)];
    const outcome = JSON.parse((await run(PROGRAM, ["impaired", ...where, ...how])).stdout()) as Outcome;
    console.log(`whip impairment ${JSON.stringify({ loss, delay, reorder, ...outcome })}`);
    expect(outcome.corrupt, "corrupt pictures").toBe(0);
    expect(outcome.backwards, "decode times that go back").toBe(0);
    expect(Math.abs(outcome.skew_ms), "skew").toBeLessThanOrEqual(SKEW_LIMIT_MS);
    if (loss === 0) {
      expect(outcome.first_picture, "first picture").toBe(0);
      expect(outcome.first_sound, "first sound").toBeLessThanOrEqual(FIRST_SOUND_LIMIT);
    }
    if (loss <= DELIVERY.loss && delay <= DELIVERY.delay) {
      expect(outcome.pictures / outcome.pictures_sent).toBeGreaterThanOrEqual(DELIVERY.least);
      // A publish begins with its first picture: audio that arrived before a retransmitted one is not part of
      // it.
      const sounds = outcome.sounds_sent - outcome.first_sound;
      expect(outcome.sounds / sounds).toBeGreaterThanOrEqual(DELIVERY.least);
    }
  },
);
