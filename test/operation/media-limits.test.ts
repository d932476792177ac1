// Limits on RTMP connections and the media core's own counters, through the bridge. The real core.
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { afterEach, describe, expect, test } from "vitest";
import { RECEIVE_BUFFER_BYTES } from "../../ts/media/ports.ts";
import { type Media, type MediaOptions, startMedia } from "../../ts/media.ts";

const LOOPBACK = "127.0.0.1";

let media: Media | null = null;
let sockets: Socket[] = [];
afterEach(async () => {
  for (const socket of sockets) socket.destroy();
  sockets = [];
  await media?.stop();
  media = null;
});

function start(limits: Pick<MediaOptions, "rtmpConnections" | "rtmpConnectionsPerAddress">): Media {
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
      workers: 1,
      audioWorkers: 1,
      gopCache: true,
      pushSilence: false,
      captures: false,
      ...limits,
    },
    () => {},
    (error) => expect.unreachable(String(error)),
  );
  return media;
}

async function open(port: number): Promise<Socket> {
  const socket = connect(port, LOOPBACK).on("error", () => {});
  sockets.push(socket);
  await once(socket, "connect");
  return socket;
}

/** C0 and C1; the service answers immediately. */
const HELLO = Buffer.concat([Buffer.from([3]), Buffer.alloc(1_536)]);

/** Whether the service answers on a new connection; false when it closes it, possibly with a reset because of
 *  the data sent. */
async function isServed(port: number | null): Promise<boolean> {
  const socket = await open(port ?? 0);
  const answer = Promise.race(
    ["data", "close"].map((event) =>
      once(socket, event).then(
        () => event === "data",
        () => false,
      ),
    ),
  );
  socket.write(HELLO);
  return await answer;
}

describe.each([
  ["in all", { rtmpConnections: 2, rtmpConnectionsPerAddress: 0 }],
  ["from one address", { rtmpConnections: 0, rtmpConnectionsPerAddress: 2 }],
])("a limit of two RTMP connections %s", (_, limits) => {
  test("closes the third one immediately, counts it, and serves again when one has left", async () => {
    const { rtmpPort, refusedConnections } = start(limits);
    const served = [await isServed(rtmpPort), await isServed(rtmpPort), await isServed(rtmpPort)];
    expect(served).toEqual([true, true, false]);
    expect(refusedConnections()).toBe(1);
    sockets[0]?.destroy();
    await expect.poll(() => isServed(rtmpPort)).toBe(true);
  });
});

test("without limits connections are served, and nothing is counted", async () => {
  const { rtmpPort, refusedConnections, failedTranscoders } = start({
    rtmpConnections: 0,
    rtmpConnectionsPerAddress: 0,
  });
  for (let each = 0; each < 20; each += 1) expect(await isServed(rtmpPort)).toBe(true);
  expect([refusedConnections(), failedTranscoders()]).toEqual([0, 0]);
});

test("Linux counts dropped datagrams of the media ports, and a small receive buffer is below the requested size", () => {
  const { kernelDrops, smallReceiveBuffer } = start({ rtmpConnections: 0, rtmpConnectionsPerAddress: 0 });
  expect(kernelDrops()).toBe(0);
  expect(smallReceiveBuffer ?? 0).toBeLessThan(RECEIVE_BUFFER_BYTES);
});
