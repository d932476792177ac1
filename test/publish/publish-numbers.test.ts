// The dashboard's graphs, as the media core measures them for a real broadcast by RTMP.
import { expect, test } from "vitest";
import { type Media, startMedia } from "../../ts/media.ts";
import { until } from "../support/child.ts";
import { broadcast } from "../support/ffmpeg.ts";

const LIMIT_MS = 60_000;

function startCore(): Media {
  const media: Media = startMedia(
    {
      rtmpHost: "127.0.0.1",
      rtmpPort: 0,
      rtmpTrustedProxies: [],
      rtmpTls: null,
      upstreamCa: null,
      mediaHost: "127.0.0.1",
      mediaPort: 0,
      publicAddresses: ["127.0.0.1"],
      workers: 2,
      audioWorkers: 1,
      gopCache: true,
      pushSilence: false,
      captures: false,
      rtmpConnections: 0,
      rtmpConnectionsPerAddress: 0,
    },
    (event) => {
      if (event.kind === "publish_requested") media.allow(event.request, { clientId: 1, upstreams: [] });
    },
    (error) => {
      throw error;
    },
  );
  return media;
}

test(
  "a broadcast's frames, GOP and round trip are measured, and how busy its worker is",
  async () => {
    const media = startCore();
    const encoder = broadcast(`rtmp://127.0.0.1:${media.rtmpPort}/live/cam`, { seconds: 120, gop: 20 });
    try {
      const told = await until(
        "two GOPs and a measured worker",
        () => {
          const snapshot = media.snapshot(1);
          const isMeasured =
            snapshot !== null && snapshot.gopMs !== null && media.workerStatus().some(({ load }) => load > 0);
          return isMeasured ? snapshot : null;
        },
        LIMIT_MS,
      );
      expect(told).toMatchObject({ gopMs: 800, lossPercent: null, skewMs: null });
      expect(told.videoFrames).toBeGreaterThan(20);
      expect(told.rttMs).toBeGreaterThan(0);
      expect(told.rttMs).toBeLessThan(1_000);
      const workers = media.workerStatus();
      expect(workers).toHaveLength(2);
      for (const { load, busy, lateMs } of workers) {
        expect(Math.max(load, busy)).toBeLessThanOrEqual(1);
        expect(lateMs).toBeGreaterThanOrEqual(0);
      }
    } finally {
      encoder.kill("SIGKILL");
      await encoder.exit;
      await media.stop();
    }
  },
  LIMIT_MS * 2,
);
