// A main encoder and its backup, as broadcasters run them: the main is killed, or somebody switches, and what
// the upstreams and a player receive. ffmpeg and Chromium broadcast, nginx-rtmp and ffmpeg are upstreams,
// ffmpeg plays and decodes.
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { type Child, start, until } from "../support/child.ts";
import { startChromium } from "../support/chromium.ts";
import { type Customer, startCustomer } from "../support/customer.ts";
import { judgeRecording, mediaPasses, publishesAt, type Session, startFfmpegUpstream } from "../support/drop-outs.ts";
import { broadcast, packetsOf } from "../support/ffmpeg.ts";
import { type Headgate, startHeadgate } from "../support/headgate.ts";
import { isMonotonic, ofTrack } from "../support/judge.ts";
import { type NginxRtmp, startNginxRtmp } from "../support/nginx-rtmp.ts";
import { inWholeRun } from "../support/whole-run.ts";

interface PairSession extends Session {
  readonly backup: boolean;
  readonly on_air: boolean;
  readonly bytes_in: number;
  readonly bytes_out: number;
}

let customer: Customer;
let upstream: NginxRtmp;
let headgate: Headgate;
const encoders: Child[] = [];

beforeAll(async () => {
  customer = await startCustomer();
  upstream = await startNginxRtmp();
  const env = {
    HEADGATE_UPSTREAM_PUSH: `${upstream.url}/{name}`,
    HEADGATE_LIMITS_API_REQUESTS_PER_SECOND: "0",
    HEADGATE_MEDIA_WORKERS: "3",
  };
  headgate = await startHeadgate({ customer, env });
});
afterEach(() => {
  for (const encoder of encoders.splice(0)) encoder.kill("SIGKILL");
});
afterAll(async () => {
  await headgate?.stop();
  await Promise.all([upstream?.stop(), customer?.close()]);
});

async function newStream(): Promise<{ readonly id: string; readonly name: string }> {
  const stream = (await headgate.call("POST", "/stream")) as { id: string; ingest: { rtmp: { streamname: string } } };
  return { id: stream.id, name: stream.ingest.rtmp.streamname };
}

/** The main or backup publish of a stream, once it has sent for two seconds. */
const sessionOf = (name: string, backup: boolean) =>
  until(
    `${backup ? "backup" : "publish"} of ${name}`,
    async () => {
      const all = (await headgate.call("GET", "/session")) as unknown as PairSession[];
      return all.find((of) => of.streamname === name && of.backup === backup && of.timestamp_ms > 2_000);
    },
    60_000,
  );

async function mainOf(name: string): Promise<{ readonly encoder: Child; readonly session: PairSession }> {
  const encoder = broadcast(`${headgate.rtmp}/${name}`, { seconds: 600, gop: 25 });
  encoders.push(encoder);
  return { encoder, session: await sessionOf(name, false) };
}

/** With another size, B-frames, another keyframe interval, and another audio sample rate. */
async function backupOf(name: string): Promise<{ readonly encoder: Child; readonly session: PairSession }> {
  const encoder = start("ffmpeg", [
    ...["-nostdin", "-loglevel", "warning", "-re", "-f", "lavfi", "-i", "testsrc2=size=480x270:rate=30"],
    ...["-f", "lavfi", "-i", "sine=frequency=880:sample_rate=44100", "-c:v", "libx264", "-preset", "veryfast"],
    ...["-bf", "2", "-g", "60", "-sc_threshold", "0", "-pix_fmt", "yuv420p", "-c:a", "aac", "-ar", "44100"],
    ...["-flags", "+global_header", "-f", "flv", `${headgate.rtmp}/${name}?backup=1`],
  ]);
  encoders.push(encoder);
  return { encoder, session: await sessionOf(name, true) };
}

const endAt = (name: string) => until("the upstream connection ends", () => upstream.hasEnded(name), 30_000);
const doneOf = (clientId: number) =>
  until("publish_done", () => {
    const found = customer.calls("publish_done").filter(({ body }) => body.includes(`clientid=${clientId}`));
    return found.length > 0 ? found : null;
  });
const switchTo = (id: string, to?: number) =>
  headgate.call("PUT", `/stream/${id}/switch`, to === undefined ? {} : { to }) as unknown as Promise<{
    readonly client_id: number;
    readonly on_air: boolean;
  }>;

test("the backup takes over from a killed main encoder within a second, on the existing upstream connections", {
  timeout: 240_000,
}, async () => {
  const { id, name } = await newStream();
  const other = await startFfmpegUpstream();
  await headgate.call("POST", `/stream/${id}/upstream`, { url: other.url });
  const main = await mainOf(name);
  const backup = await backupOf(name);
  expect(customer.calls("publish").some(({ body }) => body.startsWith("backup=1&call=publish"))).toBe(true);
  expect(backup.session).toMatchObject({ on_air: false, bytes_out: 0, upstreams: [], continues: null });
  const played = packetsOf(`${headgate.rtmp}/${name}`);
  await mediaPasses(headgate, main.session, 3_000);
  main.encoder.kill("SIGKILL");
  expect(await doneOf(main.session.client_id)).toHaveLength(1);
  const taken = await until("the backup is on air", async () => {
    const session = await sessionOf(name, true);
    return session.on_air ? session : null;
  });
  expect(taken.continues).toBe(main.session.client_id);
  await mediaPasses(headgate, taken, 4_000);
  const after = await sessionOf(name, true);
  expect(after.upstreams.map(({ state, reconnects }) => [state, reconnects])).toEqual([
    ["sending", 0],
    ["sending", 0],
  ]);
  const { moments } = (await headgate.call("GET", `/session/${after.client_id}/timeline`)) as unknown as {
    readonly moments: readonly { readonly text: string }[];
  };
  const told = moments.map(({ text }) => text).join(" ");
  expect(told).toContain(`is on standby for publish ${main.session.client_id}, which is on air`);
  expect(told).toContain(`took over from publish ${main.session.client_id} (the other one was lost)`);
  backup.encoder.kill("SIGTERM");
  await endAt(name);
  await other.process.exit;
  expect(publishesAt(upstream, name)).toBe(1);
  for (const file of [upstream.recording(name) ?? "", other.recording]) {
    const judged = await judgeRecording(file);
    console.log(`taken over ${JSON.stringify(judged)}`);
    expect(judged).toMatchObject({ isMonotonic: true, complaints: "" });
    expect(judged.videoHoleMs).toBeLessThan(1_500);
    expect(judged.audioHoleMs).toBeLessThan(1_500);
  }
  const seen = ofTrack(await played, "video");
  expect(isMonotonic(seen)).toBe(true);
  expect((seen.at(-1)?.dts ?? 0) - (seen[0]?.dts ?? 0)).toBeGreaterThan(5_000);
  other.remove();
});

inWholeRun("a switch puts the backup on air and the main back, and both continue", { timeout: 240_000 }, async () => {
  const { id, name } = await newStream();
  const main = await mainOf(name);
  const backup = await backupOf(name);
  for (const to of [backup, main, backup]) {
    const switched = await switchTo(id);
    expect(switched).toEqual({ client_id: to.session.client_id, on_air: true });
    expect(await switchTo(id, to.session.client_id)).toEqual(switched);
    await mediaPasses(headgate, to.session, 3_000);
    expect((await sessionOf(name, true)).on_air).toBe(to === backup);
    expect((await sessionOf(name, false)).on_air).toBe(to === main);
  }
  const audit = (await headgate.call("GET", "/organisation/audit")) as unknown as { action: string }[];
  expect(audit.filter(({ action }) => action === "stream.switch").length).toBe(6);
  const metrics = await (await fetch(`${headgate.metrics}/metrics`)).text();
  expect(metrics).toContain('headgate_takeovers_total{cause="switched"} 3');
  // The end of the standby publish does not end the stream; the end of the one on air does.
  main.encoder.kill("SIGTERM");
  await doneOf(main.session.client_id);
  expect(upstream.hasEnded(name)).toBe(false);
  backup.encoder.kill("SIGTERM");
  await endAt(name);
  expect(publishesAt(upstream, name)).toBe(1);
  const judged = await judgeRecording(upstream.recording(name) ?? "");
  console.log(`switched three times ${JSON.stringify(judged)}`);
  expect(judged).toMatchObject({ isMonotonic: true, complaints: "" });
  expect(judged.videoHoleMs).toBeLessThan(1_500);
});

inWholeRun(
  "the backup takes over from a main encoder that sends nothing, which becomes the standby when it returns",
  {
    timeout: 240_000,
  },
  async () => {
    const { name } = await newStream();
    const main = await mainOf(name);
    const backup = await backupOf(name);
    main.encoder.kill("SIGSTOP");
    await until("the backup is on air", async () => ((await sessionOf(name, true)).on_air ? true : null), 30_000);
    main.encoder.kill("SIGCONT");
    await mediaPasses(headgate, backup.session, 4_000);
    expect((await sessionOf(name, false)).on_air).toBe(false);
    // And back again when the backup sends nothing.
    backup.encoder.kill("SIGSTOP");
    await until("the main is on air", async () => ((await sessionOf(name, false)).on_air ? true : null), 30_000);
    await mediaPasses(headgate, main.session, 2_000);
    main.encoder.kill("SIGTERM");
    await endAt(name);
    expect(publishesAt(upstream, name)).toBe(1);
    const judged = await judgeRecording(upstream.recording(name) ?? "");
    console.log(`silent twice ${JSON.stringify(judged)}`);
    expect(judged).toMatchObject({ isMonotonic: true, complaints: "" });
  },
);

inWholeRun("a WHIP browser is the backup of an RTMP encoder", { timeout: 240_000 }, async () => {
  const { name } = await newStream();
  const main = await mainOf(name);
  const chromium = await startChromium();
  try {
    const tab = await chromium.open(headgate.whip(`${name}?backup=1`));
    await until("the offer is answered", async () => (await tab.start()).status === 201, 30_000);
    const { client_id, on_air, bytes_out } = await sessionOf(name, true);
    expect({ on_air, bytes_out }).toEqual({ on_air: false, bytes_out: 0 });
    main.encoder.kill("SIGKILL");
    const took = await until("it is on air", async () => ((await sessionOf(name, true)).on_air ? true : null));
    expect(took).toBe(true);
    await mediaPasses(headgate, { client_id }, 4_000);
    expect(upstream.hasEnded(name)).toBe(false);
    await headgate.call("POST", `/session/${client_id}/kick`);
    await endAt(name);
  } finally {
    await chromium.close();
  }
  expect(publishesAt(upstream, name)).toBe(1);
  const judged = await judgeRecording(upstream.recording(name) ?? "");
  console.log(`taken over by a browser ${JSON.stringify(judged)}`);
  expect(judged).toMatchObject({ isMonotonic: true, complaints: "" });
  expect(judged.videoHoleMs).toBeLessThan(3_000);
});
