// Senders that do something otherwise than they should, or as few do: pion packetizes itself, aiortc encodes. Each is
// a publish like any other, upstream has it completely and in time, and the session names what was irregular.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { providePionWhip } from "../../scripts/go.mjs";
import { providePython } from "../../scripts/python.mjs";
import { until } from "../support/child.ts";
import { type Customer, startCustomer } from "../support/customer.ts";
import { sessionOf } from "../support/drop-outs.ts";
import { type Headgate, startHeadgate } from "../support/headgate.ts";
import { type NginxRtmp, startNginxRtmp } from "../support/nginx-rtmp.ts";
import { publishByAiortc, publishByPion, type WhipClient } from "../support/whip-clients.ts";
import { expectGoodPublish } from "../support/whip-judge.ts";
import { casesOfRun, isWholeRun } from "../support/whole-run.ts";

/** Odd: silence is each second second. */
const SECONDS = 13;
const PAUSE_S = 3;
const LOOK_EVERY_MS = 500;
/** What may be missing at the end of one track, ms: packets or pictures that the end of the connection cuts off. */
const CUT_OFF_MS = 150;
/** Of a sender that encodes meanwhile, on a busy machine. */
const LATE_MS = 2_000;

interface OddSender {
  readonly name: string;
  readonly publish: WhipClient["publish"];
  readonly lateMs: number;
  /** What is counted. */
  readonly kinds: readonly string[];
}

const pion = (oddity: string, ...kinds: readonly string[]): OddSender => ({
  name: `pion, ${oddity}`,
  publish: publishByPion(oddity),
  lateMs: CUT_OFF_MS,
  kinds,
});
const aiortc = (oddity: string, ...kinds: readonly string[]): OddSender => ({
  name: `aiortc, ${oddity}`,
  publish: publishByAiortc(oddity),
  lateMs: LATE_MS,
  kinds,
});

/** Every tenth one is in the ordinary run. */
const PION = [
  pion("no-marker", "marker_misplaced"),
  pion("first-marker", "marker_misplaced"),
  pion("every-marker", "marker_misplaced"),
  pion("start-codes", "malformed_payload"),
  pion("lengths", "malformed_payload"),
  pion("forbidden-bit", "malformed_payload"),
  pion("stap-padding", "malformed_payload"),
  pion("whole-fragments", "malformed_payload"),
  pion("sprop"),
  pion("early-sets"),
  pion("annex-b", "malformed_payload"),
  pion("padding"),
  pion("padded"),
  pion("empty"),
  pion("extensions"),
  pion("new-ssrc"),
  pion("sequence-jump"),
  pion("early-wrap"),
  pion("jump-video", "time_step"),
  pion("jump-audio", "time_step"),
  pion("jump-both", "time_step"),
  pion("jump-back", "time_step"),
  pion("outlier", "time_outlier"),
  pion("dtx"),
  pion("standing-dtx", "time_stopped"),
  pion("pause"),
  pion("standing-pause", "time_stopped"),
  pion("still-video", "time_missing"),
  pion("zero-video", "time_missing"),
  pion("slow-audio", "time_stopped"),
];
/** They encode meanwhile, and want an idle machine: only in the whole run. */
const AIORTC = [aiortc("no-marker", "marker_misplaced"), aiortc("pause"), aiortc("standing-pause", "time_stopped")];

let customer: Customer;
let upstream: NginxRtmp;
let headgate: Headgate;

beforeAll(async () => {
  providePython();
  providePionWhip();
  customer = await startCustomer();
  upstream = await startNginxRtmp();
  const env = { HEADGATE_UPSTREAM_PUSH: `${upstream.url}/{name}`, HEADGATE_LIMITS_API_REQUESTS_PER_SECOND: "0" };
  headgate = await startHeadgate({ customer, env });
}, 120_000);
afterAll(async () => {
  await headgate?.stop();
  await upstream?.stop();
  await customer?.close();
});

/** The kinds that the session names until `publish` ends. */
async function kindsDuring(publish: Promise<unknown>, name: string): Promise<readonly string[]> {
  const kinds = new Set<string>();
  let hasEnded = false;
  const end = publish.finally(() => {
    hasEnded = true;
  });
  const look = async () => {
    const session = await sessionOf(headgate, name);
    // It may have ended since.
    const details = session && (await headgate.call("GET", `/session/${session.client_id}`).catch(() => null));
    for (const { code } of (details?.irregularities ?? []) as readonly { code: string }[]) kinds.add(code);
    return hasEnded;
  };
  await Promise.all([end, until("the publish ends", look, 120_000, LOOK_EVERY_MS)]);
  return [...kinds].sort();
}

describe.concurrent("complete upstream, and named, is the publish of", () => {
  test.each([...casesOfRun(PION, 10), ...(isWholeRun ? AIORTC : [])])(
    "$name",
    { timeout: (SECONDS + 90) * 1_000 },
    async ({ name, publish, lateMs, kinds }) => {
      const stream = await headgate.newStream();
      const found = await kindsDuring(publish(headgate.whip(stream), SECONDS, "320x180"), stream);
      // That a clock stands still from the beginning shows after 200 ms.
      const startLimitMs = name.endsWith("zero-video") ? 300 : 100;
      const figures = await expectGoodPublish(stream, { customer, upstream, seconds: SECONDS, startLimitMs });
      console.log(`odd sender ${JSON.stringify({ name, kinds: found, ...figures })}`);
      // A busy machine stops an encoder.
      const mayStop = lateMs === LATE_MS && !kinds.includes("time_stopped");
      expect(found.filter((kind) => !mayStop || kind !== "time_stopped")).toEqual(kinds);
      const shownS = SECONDS - (name.endsWith("pause") ? PAUSE_S : 0) - lateMs / 1_000;
      expect(figures.pictures).toBeGreaterThan(25 * shownS);
      expect(figures.seconds).toBeLessThan(SECONDS + startLimitMs / 1_000);
      expect(Math.abs(figures.endGapMs)).toBeLessThanOrEqual(lateMs);
    },
  );
});
