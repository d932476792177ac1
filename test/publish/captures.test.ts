// A capture of the next publish of a stream: it begins with that publish, and is stopped like any other.
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { createCaptures } from "../../ts/publish/capture/captures.ts";
import { createPublishEvents } from "../../ts/publish/publish-events.ts";
import type { StartingPublish } from "../../ts/publish/publishes.ts";

test("the next publish of its stream is captured, once, and the capture can be stopped", async () => {
  const begun: number[] = [];
  const stopped: number[] = [];
  const source = (clientId: number) => ({
    status: () => ({ bytes: 7, frames: 1, ...(stopped.includes(clientId) ? { ended: "stopped" } : {}) }),
    stop: () => void stopped.push(clientId),
  });
  const log = { info() {}, warn() {} };
  const events = createPublishEvents({ error() {} });
  const captures = createCaptures({
    config: { directory: mkdtempSync(join(tmpdir(), "headgate-captures-")), maxMb: 1, maxS: 60 },
    media: () => ({
      capture: () => null,
      captureNext(clientId) {
        begun.push(clientId);
        return source(clientId);
      },
    }),
    version: "0",
    clock: { now: () => 0 },
    log,
    events,
  });
  const { id } = (await captures.begin(
    { streamId: "one", clientId: null, seconds: null, media: false },
    async () => {},
  )) ?? { id: "" };
  const start = (clientId: number, streamId: string) =>
    events.emit({ kind: "started", publish: { clientId, intent: { streamId } } as StartingPublish });
  start(1, "another");
  expect(captures.find(id)).toMatchObject({ state: "waiting", clientId: null });
  start(2, "one");
  start(3, "one");
  expect(begun).toEqual([2]);
  expect(captures.find(id)).toMatchObject({ state: "running", clientId: 2, bytes: 7 });
  expect(captures.stop(id)).toMatchObject({ state: "ended", reason: "stopped" });
  expect(stopped).toEqual([2]);
});
