// The status of each upstream of a running publish, through core, bridge and ts/media.ts: ffmpeg broadcasts,
// nginx-rtmp records behind a proxy that can drop its connections, and one upstream does not exist.
import { afterAll, beforeAll, expect, test } from "vitest";
import type { MediaEvent, PublishEnded } from "../../ts/media/events.ts";
import { type Media, startMedia, type UpstreamStatus } from "../../ts/media.ts";
import { until } from "../support/child.ts";
import { broadcast, decodeComplaints, packetsOf } from "../support/ffmpeg.ts";
import { isMonotonic, ofTrack, payloadBytes, startsAtKeyframe } from "../support/judge.ts";
import { type NginxRtmp, startNginxRtmp } from "../support/nginx-rtmp.ts";
import { type ResettingProxy, startResettingProxy } from "../support/resetting-proxy.ts";

const LOOPBACK = "127.0.0.1";
const CLIENT_ID = 1;
const REFUSED = { lastError: "the connection was refused", lastCause: "connection_refused" };

let upstream: NginxRtmp;
let proxy: ResettingProxy;
let media: Media;
let ended: PublishEnded | null = null;
let upstreams: readonly string[];

beforeAll(async () => {
  upstream = await startNginxRtmp();
  proxy = await startResettingProxy(Number(new URL(upstream.url).port));
  upstreams = [
    `${upstream.url}/healthy`,
    // Port 1 (tcpmux) has no listener on any current machine.
    `rtmp://${LOOPBACK}:1/live/dead-key?token=1`,
    `rtmp://${LOOPBACK}:${proxy.port}/live/flaky`,
  ];
  media = startMedia(
    {
      rtmpHost: LOOPBACK,
      rtmpPort: 0,
      rtmpTrustedProxies: [],
      rtmpTls: null,
      upstreamCa: null,
      mediaHost: LOOPBACK,
      mediaPort: 0,
      publicAddresses: [LOOPBACK],
      workers: 2,
      audioWorkers: 1,
      gopCache: true,
      pushSilence: true,
      captures: false,
      rtmpConnections: 0,
      rtmpConnectionsPerAddress: 0,
    },
    gateway,
    (error) => expect.unreachable(String(error)),
  );
});
afterAll(async () => {
  await media?.stop();
  proxy?.reset();
  await upstream?.stop();
});

/** The gateway's part: everyone may publish, every upstream is local. */
function gateway(event: MediaEvent): void {
  if (event.kind === "publish_ended") ended = event;
  if (event.kind === "address_wanted") media.dial(event.push, [LOOPBACK]);
  if (event.kind === "publish_requested") {
    const wanted = upstreams.map((url, at) => ({ id: String(at), url, source: "stream" as const }));
    media.allow(event.request, { clientId: CLIENT_ID, upstreams: wanted });
  }
}

/** Waits until the upstream at `place` of the list matches. */
function status(place: number, what: string, wished: (status: UpstreamStatus) => boolean): Promise<UpstreamStatus> {
  return until(what, () => {
    const found = media.snapshot(CLIENT_ID)?.upstreams[place];
    return found !== undefined && wished(found) ? found : null;
  });
}

test("a healthy upstream loses nothing beside an unreachable one and one that disconnects and resumes at an IDR", async () => {
  const encoder = broadcast(`rtmp://${LOOPBACK}:${media.rtmpPort}/live/cam`, { seconds: 60, gop: 25 });
  const healthy = await status(
    0,
    "the healthy one sends",
    ({ state, bytesOut }) => state === "sending" && bytesOut > 0,
  );
  expect(healthy).toMatchObject({ url: upstream.url, source: "stream", lastError: null, reconnects: 0 });
  expect(Date.now() - healthy.since).toBeLessThan(60_000);
  const dead = await status(1, "the dead one waits", ({ state }) => state === "waiting");
  expect(dead).toMatchObject({ url: `rtmp://${LOOPBACK}:1/live`, ...REFUSED, bytesOut: 0 });
  await status(2, "the flaky one sends", ({ state, bytesOut }) => state === "sending" && bytesOut > 0);
  expect(media.snapshot(CLIENT_ID)?.tracks).toEqual({
    video: { codec: "h264", width: 320, height: 180 },
    audio: { codec: "aac", sampleRate: 48_000, channels: 1 },
  });

  proxy.drop();
  const resumed = await status(
    2,
    "the flaky one sends again",
    ({ state, reconnects }) => state === "sending" && reconnects === 1,
  );
  expect(resumed.lastError).toMatch(/closed|lost|reset/i);
  const flaky = await until("the second recording", async () => {
    const file = upstream.recording("flaky");
    return file !== null && ofTrack(await packetsOf(file).catch(() => []), "video").length > 30 ? file : null;
  });
  encoder.kill("SIGTERM");
  await encoder.exit;
  const end = await until("the end", () => ended);

  const again = await packetsOf(flaky);
  expect(startsAtKeyframe(again) && isMonotonic(again)).toBe(true);
  expect(await decodeComplaints(flaky)).toBe("");
  const whole = await packetsOf(await until("the whole recording", () => upstream.recording("healthy")));
  expect(payloadBytes(whole)).toBe(end.bytesIn);
  expect(startsAtKeyframe(whole) && isMonotonic(whole)).toBe(true);
});
