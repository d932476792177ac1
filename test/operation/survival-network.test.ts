// Broadcasters whose network fails during a publish, without any notification: it returns in time and the
// same publish continues, or the broadcaster returns by another network, or after the publish was lost.
// nginx-rtmp is the upstream; it records, and ends a publish that sends nothing for three seconds.
// `NETWORK_DROP_OUTS` sets their number in the long test, on two streams by RTMP and two by WHIP.
import { afterAll, beforeAll, expect, test } from "vitest";
import { inTime } from "../../ts/in-time.ts";
import { type BroadcasterNetwork, type Cut, openBroadcasterNetwork } from "../support/broadcaster-network.ts";
import { type Child, start, until } from "../support/child.ts";
import { type Customer, startCustomer } from "../support/customer.ts";
import {
  encoderOf,
  gap,
  judgeRecording,
  mediaPasses,
  publishesAt,
  type Session,
  sessionOf,
} from "../support/drop-outs.ts";
import { broadcast } from "../support/ffmpeg.ts";
import { type Headgate, startHeadgate } from "../support/headgate.ts";
import { type NginxRtmp, startNginxRtmp } from "../support/nginx-rtmp.ts";
import { inWholeRun } from "../support/whole-run.ts";

/** `returns`: the same publish continues; `replaced`: another network takes over; `lost`: the same one, too
 *  late. */
type Outcome = "returns" | "replaced" | "lost";
type Protocol = "rtmp" | "whip";

interface Running {
  readonly encoder: Child;
  readonly session: Session;
  readonly network: BroadcasterNetwork;
}

const DROP_OUTS = Number(process.env.NETWORK_DROP_OUTS ?? 16);
/** Silence that ends a publish is 15 s by RTMP and 30 s by WHIP (W19). */
const LOST_LIMIT_MS = 60_000;
/** After an outage of nine seconds TCP retransmits 12.6 s after the first loss, and not before. */
const RESUME_LIMIT_MS = 20_000;

let customer: Customer;
let upstream: NginxRtmp;
let headgate: Headgate;
let networks: BroadcasterNetwork[] = [];

/** A network that is closed at the end. */
async function newNetwork(): Promise<BroadcasterNetwork> {
  const network = await openBroadcasterNetwork();
  networks.push(network);
  return network;
}

beforeAll(async () => {
  customer = await startCustomer();
  upstream = await startNginxRtmp({ dropsIdleS: 3 });
  const { host } = await newNetwork();
  const env = {
    HEADGATE_UPSTREAM_PUSH: `${upstream.url}/{name}`,
    HEADGATE_PUBLISH_HOLD_S: "60",
    HEADGATE_LIMITS_API_REQUESTS_PER_SECOND: "0",
    HEADGATE_HTTP_HOST: host,
    HEADGATE_RTMP_HOST: host,
    HEADGATE_MEDIA_HOST: host,
  };
  headgate = await startHeadgate({ customer, env });
});
afterAll(async () => {
  await headgate?.stop();
  await Promise.all([upstream?.stop(), customer?.close(), ...networks.map((network) => network.close())]);
  networks = [];
});

/** A broadcaster in a network; its publish is a different one from `before`. */
async function runIn(network: BroadcasterNetwork, protocol: Protocol, name: string, before?: number): Promise<Running> {
  const url = await network.rtmp(`${headgate.rtmp}/${name}`);
  const [program = "", ...words] = [...network.within, "/usr/bin/python3", "test/fixtures/gstreamer-whip.py"];
  const publish = () =>
    protocol === "whip"
      ? start(program, [...words, headgate.whip(name), "3600"])
      : broadcast(url, { seconds: 3_600, gop: 25, within: network.within });
  const options = before === undefined ? { publish } : { publish, before };
  return { ...(await encoderOf(headgate, name, options)), network };
}

const doneOf = (clientId: number) =>
  customer.calls("publish_done").filter(({ body }) => body.includes(`clientid=${clientId}`));

/** Waits until the media of a publish is as far as it would be without the outage; returns how long that
 *  took, ms. */
async function resumed(name: string, { session }: Running, to: number): Promise<number> {
  const began = performance.now();
  const look = async () => {
    const found = await sessionOf(headgate, name);
    if (found?.client_id !== session.client_id) throw new Error(`${session.client_id} is over`);
    return found.timestamp_ms >= to;
  };
  await until("the media continues", look, RESUME_LIMIT_MS);
  return Math.round(performance.now() - began);
}

/** Cuts the network of a running broadcaster; returns who broadcasts afterwards, and how long that took from
 *  then on. */
async function goOff(
  running: Running,
  to: { readonly outcome: Outcome; readonly how: Cut; readonly gapMs: number },
  on: { readonly name: string; readonly protocol: Protocol; readonly other: BroadcasterNetwork },
): Promise<Running & { readonly tookMs: number }> {
  const { name, protocol, other } = on;
  const { network, session, encoder } = running;
  const before = (await sessionOf(headgate, name))?.timestamp_ms ?? 0;
  network.cut(to.how);
  if (to.outcome === "lost") {
    await until("it is lost", () => doneOf(session.client_id).length > 0, LOST_LIMIT_MS);
  } else await gap(to.gapMs);
  if (to.outcome !== "replaced") network.restore();
  const began = performance.now();
  if (to.outcome === "returns") return { ...running, tookMs: await resumed(name, running, before + to.gapMs) };
  const next = await runIn(to.outcome === "lost" ? network : other, protocol, name, session.client_id);
  const tookMs = Math.round(performance.now() - began);
  if (to.outcome === "replaced") network.restore();
  // A returning client finds the connection closed; webrtcbin does not end because of that.
  if (protocol === "whip") await mediaPasses(headgate, next.session, 2_000).then(() => encoder.kill("SIGKILL"));
  if ((await inTime(RESUME_LIMIT_MS * 2, encoder.exit, null)) === null) throw new Error("it goes on");
  return { ...next, tookMs };
}

/** Faults of an ended stream: more than one connection to the upstream, timestamps that go back, decoding
 *  errors. */
async function faultsAt(name: string): Promise<{ faults: string[]; audioHoleMs: number; videoHoleMs: number }> {
  await until("the upstream connection ends", () => upstream.hasEnded(name), 90_000);
  const judged = await judgeRecording(upstream.recording(name) ?? "");
  const faults = judged.complaints === "" ? [] : [judged.complaints];
  if (publishesAt(upstream, name) !== 1) faults.push(`${publishesAt(upstream, name)} connections`);
  if (!judged.isMonotonic) faults.push("a timestamp goes back");
  return { ...judged, faults };
}

test("an encoder whose network returns in time continues where it was, and nothing is missing", async () => {
  const network = await newNetwork();
  const name = await headgate.newStream();
  const running = await runIn(network, "rtmp", name);
  for (const [how, gapMs] of [
    ["link", 1_000],
    ["path", 1_500],
    // Longer than the upstream waits for media.
    ["path", 5_000],
  ] as const) {
    await goOff(running, { outcome: "returns", how, gapMs }, { name, protocol: "rtmp", other: network });
  }
  running.encoder.kill("SIGTERM");
  const { faults, audioHoleMs, videoHoleMs } = await faultsAt(name);
  expect(faults).toEqual([]);
  expect(Math.max(audioHoleMs, videoHoleMs)).toBeLessThan(100);
  expect(await until("publish_done", () => doneOf(running.session.client_id))).toHaveLength(1);
});

test("a broadcaster that returns by another network takes over, and its former connection disturbs nothing when it is back", async () => {
  const [first, other] = [await newNetwork(), await newNetwork()];
  const name = await headgate.newStream();
  const running = await runIn(first, "rtmp", name);
  const next = await goOff(
    running,
    { outcome: "replaced", how: "path", gapMs: 1_000 },
    { name, protocol: "rtmp", other },
  );
  expect(next.session.continues).toBe(running.session.client_id);
  expect((await sessionOf(headgate, name))?.client_id).toBe(next.session.client_id);
  next.encoder.kill("SIGTERM");
  expect((await faultsAt(name)).faults).toEqual([]);
  for (const { session } of [running, next]) {
    expect(await until("publish_done", () => doneOf(session.client_id))).toHaveLength(1);
  }
});

inWholeRun(`${DROP_OUTS} network outages are one connection at the upstream`, { timeout: 3_600_000 }, async () => {
  const failures: string[] = [];
  const streams: object[] = [];
  const took: Record<string, number[]> = {};
  let done = 0;
  const outcomes: readonly Outcome[] = ["returns", "replaced", "returns", "lost"];
  const protocols = networks[0]?.hasUdp ? (["rtmp", "whip", "rtmp", "whip"] as const) : (["rtmp", "rtmp"] as const);
  await Promise.all(
    protocols.map(async (protocol, stream) => {
      const pair = [await newNetwork(), await newNetwork()];
      const name = await headgate.newStream();
      let running = await runIn(pair[0] as BroadcasterNetwork, protocol, name);
      for (let round = 0; done < DROP_OUTS; round += 1) {
        done += 1;
        const outcome = outcomes[(round + stream) % outcomes.length] ?? "returns";
        // One to nine seconds, evenly distributed; every other one on the broadcaster's own interface.
        const gapMs = 1_000 + ((round * 2 + stream * 3) % 9) * 1_000;
        const how = (round + (stream >> 1)) % 2 === 0 ? "link" : "path";
        await mediaPasses(headgate, running.session, 2_000);
        const { client_id: before } = running.session;
        const other = pair.find((network) => network !== running.network) ?? running.network;
        try {
          const after = await goOff(running, { outcome, how, gapMs }, { name, protocol, other });
          const of = `${protocol} ${outcome}`;
          took[of] = [...(took[of] ?? []), after.tookMs];
          running = after;
          const { continues } = running.session;
          if (outcome !== "returns" && continues !== before)
            failures.push(`${of}: it continues ${continues}, not ${before}`);
        } catch (error) {
          failures.push(`${protocol} ${outcome} ${how} ${gapMs} ms: ${error}`);
          running.network.restore();
          running = await runIn(running.network, protocol, name);
        }
      }
      await mediaPasses(headgate, running.session, 2_000);
      await headgate.call("POST", `/session/${running.session.client_id}/kick`);
      running.encoder.kill("SIGKILL");
      const { faults, audioHoleMs, videoHoleMs } = await faultsAt(name);
      failures.push(...faults);
      streams.push({ protocol, audioHoleMs, videoHoleMs });
    }),
  );
  const figures = Object.fromEntries(
    Object.entries(took).map(([of, all]) => [of, { times: all.length, maxMs: Math.max(...all) }]),
  );
  console.log(`networks off ${JSON.stringify({ dropOuts: done, figures, streams, failures })}`);
  expect(failures).toEqual([]);
});
