// Broadcasters that are lost without notice, and what their upstreams and players see: one connection,
// silence, and then the successor. ffmpeg broadcasts, nginx-rtmp and ffmpeg are upstreams, ffmpeg plays and
// decodes. `DROP_OUTS` sets their number in the long test, `DROP_OUT_STREAMS` the number of concurrent
// streams.
import { afterAll, beforeAll, expect, test } from "vitest";
import { until } from "../support/child.ts";
import { type Customer, startCustomer } from "../support/customer.ts";
import {
  type DropOut,
  dropOut,
  encoderOf,
  judgeRecording,
  mediaPasses,
  publishesAt,
  sessionOf,
  startFfmpegUpstream,
} from "../support/drop-outs.ts";
import { broadcast, packetsOf } from "../support/ffmpeg.ts";
import { type Headgate, startHeadgate } from "../support/headgate.ts";
import { isMonotonic, ofTrack } from "../support/judge.ts";
import { type NginxRtmp, startNginxRtmp } from "../support/nginx-rtmp.ts";
import { inWholeRun } from "../support/whole-run.ts";

const DROP_OUTS = Number(process.env.DROP_OUTS ?? 4);
const STREAMS = Number(process.env.DROP_OUT_STREAMS ?? 2);
/** The hold window here: longer than any drop-out may last under load. */
const HOLD_S = 40;

let customer: Customer;
let upstream: NginxRtmp;
let headgate: Headgate;

beforeAll(async () => {
  customer = await startCustomer();
  upstream = await startNginxRtmp();
  const env = {
    HEADGATE_UPSTREAM_PUSH: `${upstream.url}/{name}`,
    HEADGATE_PUBLISH_HOLD_S: String(HOLD_S),
    HEADGATE_LIMITS_API_REQUESTS_PER_SECOND: "0",
  };
  headgate = await startHeadgate({ customer, env });
});
afterAll(async () => {
  await headgate?.stop();
  await Promise.all([upstream?.stop(), customer?.close()]);
});

async function newStream(): Promise<{ readonly id: string; readonly name: string }> {
  const stream = (await headgate.call("POST", "/stream")) as { id: string; ingest: { rtmp: { streamname: string } } };
  return { id: stream.id, name: stream.ingest.rtmp.streamname };
}

/** Waits until the upstream has the whole publish, and returns the recording. */
const recordingOf = (name: string) => until("the recording", () => upstream.recording(name));
const endAt = (name: string) => until("the upstream connection ends", () => upstream.hasEnded(name), 30_000);
const doneOf = (clientId: number) =>
  until("publish_done", () =>
    customer.calls("publish_done").filter(({ body }) => body.includes(`clientid=${clientId}`)),
  );

inWholeRun(
  "an encoder that is killed leaves its upstreams and player to the next, which is a publish of its own",
  async () => {
    const { id, name } = await newStream();
    const other = await startFfmpegUpstream();
    await headgate.call("POST", `/stream/${id}/upstream`, { url: other.url });
    const first = await encoderOf(headgate, name);
    const played = packetsOf(`${headgate.rtmp}/${name}`);
    await mediaPasses(headgate, first.session, 2_000);
    const second = await dropOut(headgate, name, first, { kind: "killed", gapMs: 3_000 });
    expect(await doneOf(first.session.client_id)).toHaveLength(1);
    expect(second.session.continues).toBe(first.session.client_id);
    expect(second.session.upstreams.map(({ state, reconnects }) => [state, reconnects])).toEqual([
      ["sending", 0],
      ["sending", 0],
    ]);
    await mediaPasses(headgate, second.session, 2_000);
    second.encoder.kill("SIGTERM");
    await endAt(name);
    await other.process.exit;
    expect(publishesAt(upstream, name)).toBe(1);
    for (const file of [await recordingOf(name), other.recording]) {
      const judged = await judgeRecording(file);
      expect(judged).toMatchObject({ isMonotonic: true, complaints: "" });
      expect(judged.audioHoleMs).toBeLessThan(400);
      expect(judged.videoHoleMs).toBeGreaterThan(2_900);
    }
    const seen = await played;
    expect(isMonotonic(seen)).toBe(true);
    // It continued to play: there is video from before the loss and from after it.
    const times = ofTrack(seen, "video").map(({ dts }) => dts);
    expect((times.at(-1) ?? 0) - (times[0] ?? 0)).toBeGreaterThan(5_000);
    const history = (await headgate.call("GET", `/stream/${id}/publish`)) as unknown as { continues: number | null }[];
    expect(history.map(({ continues }) => continues)).toEqual([first.session.client_id, null]);
    other.remove();
  },
);

test("other custom arguments are another publish, and an encoder that ends by itself ends immediately", async () => {
  const { name } = await newStream();
  const first = await encoderOf(headgate, `${name}`);
  first.encoder.kill("SIGKILL");
  await doneOf(first.session.client_id);
  expect(upstream.hasEnded(name)).toBe(false);
  const encoder = broadcast(`${headgate.rtmp}/${name}?camera=2`, { seconds: 600, gop: 25 });
  const second = await until("the next publish", async () => {
    const session = await sessionOf(headgate, name);
    return session !== undefined && session.timestamp_ms > 0 ? session : null;
  });
  expect(second.continues).toBeNull();
  await until("the upstream has both", () => publishesAt(upstream, name) === 2);
  const left = performance.now();
  encoder.kill("SIGTERM");
  await endAt(name);
  expect(performance.now() - left).toBeLessThan(15_000);
});

inWholeRun(
  "without a successor upstreams end when the window is over, and immediately when the stream is stopped",
  async () => {
    const [short, stopped] = [await newStream(), await newStream()];
    await headgate.call("PUT", `/stream/${short.id}/hold`, { hold_s: 2 });
    for (const { name } of [short, stopped]) {
      const { encoder, session } = await encoderOf(headgate, name);
      await recordingOf(name);
      encoder.kill("SIGKILL");
      await doneOf(session.client_id);
    }
    await endAt(short.name);
    expect(upstream.hasEnded(stopped.name)).toBe(false);
    await headgate.call("PUT", `/stream/${stopped.id}/stop`);
    await endAt(stopped.name);
  },
);

inWholeRun(
  `${DROP_OUTS} drop-outs of one to nine seconds are one connection at the upstream`,
  {
    timeout: 3_600_000,
  },
  async () => {
    const figures: { readonly audioHoleMs: number; readonly videoHoleMs: number }[] = [];
    const failures: string[] = [];
    let done = 0;
    await Promise.all(
      Array.from({ length: STREAMS }, async (_, stream) => {
        const { name } = await newStream();
        let running = await encoderOf(headgate, name);
        while (done < DROP_OUTS) {
          done += 1;
          // One to nine seconds, evenly distributed; every eighth is silent instead of disconnected.
          const gapMs = 1_000 + ((done * 3 + stream) % 9) * 1_000;
          const kind: DropOut = done % 8 === 0 ? "silent" : "killed";
          await mediaPasses(headgate, running.session, 2_000);
          const before = running.session.client_id;
          running = await dropOut(headgate, name, running, { kind, gapMs });
          const continues = (await sessionOf(headgate, name))?.continues;
          if (continues !== before) failures.push(`${kind} for ${gapMs} ms: continues ${continues}`);
        }
        await mediaPasses(headgate, running.session, 2_000);
        running.encoder.kill("SIGTERM");
        await endAt(name);
        if (publishesAt(upstream, name) !== 1) failures.push(`${publishesAt(upstream, name)} connections`);
        const judged = await judgeRecording(await recordingOf(name));
        if (!judged.isMonotonic) failures.push("a timestamp goes back");
        if (judged.complaints !== "") failures.push(judged.complaints);
        figures.push(judged);
      }),
    );
    const audioHoleMs = Math.max(...figures.map((of) => of.audioHoleMs));
    const videoHoleMs = Math.max(...figures.map((of) => of.videoHoleMs));
    console.log(
      `drop-outs ${JSON.stringify({ dropOuts: DROP_OUTS, streams: STREAMS, audioHoleMs, videoHoleMs, failures })}`,
    );
    expect(failures).toEqual([]);
  },
);
