// The operator's numbers of running publishes, summed over their snapshots.
import { expect, test } from "vitest";
import { liveNumbers } from "../../ts/publish/running/live-numbers.ts";
import { openStage, STREAM, until } from "../support/publishing.ts";
import { RecordingMedia } from "../support/recording-media.ts";

const upstream = {
  id: "u",
  url: "rtmp://up.example/live",
  source: "deployment",
  since: 0,
  lastError: null,
  lastCause: null,
  bytesOut: 0,
  droppedFrames: 0,
  reconnects: 0,
} as const;

test("publishes, players, upstreams and bytes are summed, and an upstream is not a player", () => {
  const media = new RecordingMedia();
  const upstreams = (["sending", "waiting"] as const).map((state) => ({ ...upstream, state }));
  media.measure(1, { subscribers: 3, bytesIn: 10, bytesOut: 100, upstreams });
  media.measure(2, { subscribers: 1, bytesIn: 5, bytesOut: 50 });
  const running = [
    { clientId: 1, protocol: "rtmp" },
    { clientId: 2, protocol: "whip" },
    // Ended in the media core, and not yet reported to the gateway.
    { clientId: 3, protocol: "whip" },
  ] as const;
  expect(liveNumbers(running, () => media)).toEqual({
    publishes: { rtmp: 1, whip: 2 },
    players: 3,
    pulls: 0,
    upstreams: { connecting: 0, sending: 1, waiting: 1, refused: 0, paused: 0 },
    bytesIn: 15,
    bytesOut: 150,
  });
});

test("players of a pulled stream count here, and its bytes in count on the other node", () => {
  const media = new RecordingMedia();
  const name = { clientId: 7, name: STREAM, url: "rtmp://192.0.2.9:1935/live", since: 0, state: "playing" } as const;
  media.pulled = [{ ...name, players: 2, bytesIn: 10, bytesOut: 20 }];
  expect(liveNumbers([], () => media)).toMatchObject({ players: 2, pulls: 1, bytesIn: 0, bytesOut: 20 });
});

test("an upstream that is not a subscriber yet does not make the number of players negative", () => {
  const media = new RecordingMedia();
  media.measure(1, { subscribers: 0, upstreams: [{ ...upstream, state: "sending" }] });
  expect(liveNumbers([{ clientId: 1, protocol: "rtmp" }], () => media).players).toBe(0);
});

test("starts are counted, and ends by their reason with the bytes of the publish", async () => {
  const stage = await openStage({ webhook: null, ca: null });
  try {
    const clientId = await stage.allowed(STREAM);
    stage.end(clientId, "unpublished", { bytesIn: 12_345, bytesOut: 67 });
    const text = await until(async () => {
      const metrics = await stage.metrics.registry.metrics();
      return metrics.includes('headgate_publish_ended_total{reason="unpublished"} 1') && metrics;
    });
    expect(text).toContain('headgate_publish_started_total{protocol="rtmp"} 1\n');
    expect(text).toContain('headgate_media_bytes_total{direction="in"} 12345\n');
    expect(text).toContain('headgate_media_bytes_total{direction="out"} 67\n');
  } finally {
    await stage.close();
  }
});
