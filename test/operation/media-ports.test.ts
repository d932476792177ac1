// The kernel's figures about the media ports, as the log, doctor and the metrics show them.
import { pino } from "pino";
import { describe, expect, test } from "vitest";
import { kernelDropsOf, warnOfSmallBuffer } from "../../ts/media/ports.ts";
import { createMetrics } from "../../ts/metrics.ts";

/** As proc(5) writes them: port 8189 is 1FFD, 8190 is 1FFE. */
const UDP = `   sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode ref pointer drops
  100: 0100007F:1FFD 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 31 2 0000000000000000 42
  101: 00000000:1FFE 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 32 2 0000000000000000 0
  102: 00000000:0035 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 33 2 0000000000000000 9
`;
const UDP6 = `  sl  local_address                         remote_address                        st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode ref pointer drops
  7: 00000000000000000000000000000000:1FFD 00000000000000000000000000000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 34 2 0000000000000000 3
`;

describe("kernel drops", () => {
  test.each<[what: string, tables: string[], ports: number[], drops: number | null]>([
    ["are those of the ports, over both families", [UDP, UDP6], [8189, 8190], 45],
    ["are 0 on a port that lost nothing", [UDP, UDP6], [8190], 0],
    ["are unknown where no port is bound", [UDP, UDP6], [8191], null],
    ["are unknown without ports", [UDP, UDP6], [], null],
    ["are unknown where the system has no tables", [], [8189], null],
    ["are unknown where a table is something else", ["nonsense\nmore: nonsense\n\n"], [8189], null],
  ])("%s", (_, tables, ports, drops) => {
    expect(kernelDropsOf(tables, ports)).toBe(drops);
  });
});

describe("the start", () => {
  const logged = (granted: number | null) => {
    const lines: string[] = [];
    warnOfSmallBuffer(
      granted,
      pino({ base: null, timestamp: false }, { write: (line: string) => void lines.push(line) }),
    );
    return lines.map((line) => JSON.parse(line) as unknown);
  };

  test("warns once of a small receive buffer: the granted and requested sizes and how to raise it", () => {
    const msg =
      "the kernel buffers 212992 bytes per media port, 4194304 were requested: run `sysctl -w net.core.rmem_max=4194304`";
    expect(logged(212_992)).toEqual([{ level: 40, granted: 212_992, requested: 4_194_304, msg }]);
  });

  test("does not warn of a buffer of the requested size", () => {
    expect(logged(null)).toEqual([]);
  });
});

describe("the metrics of the media core", () => {
  const counts = { drops: 0 as number | null, refused: 0, failed: 0, odd: 0 };
  const watched = () => {
    const metrics = createMetrics();
    metrics.watchMedia({
      kernelDrops: () => counts.drops,
      refusedConnections: () => counts.refused,
      failedTranscoders: () => counts.failed,
      irregularities: () => (counts.odd === 0 ? [] : [{ code: "time_step", count: counts.odd }]),
    });
    return async () =>
      (await metrics.registry.metrics()).split("\n").filter((line) => /kernel|refused|failed|irregular/.test(line));
  };

  test("are counters, read again at each scrape", async () => {
    const scrape = watched();
    await scrape();
    Object.assign(counts, { drops: 5, refused: 6, failed: 7, odd: 8 });
    const values = (await scrape()).filter((line) => !line.startsWith("#"));
    expect(values).toEqual([
      "headgate_media_kernel_drops_total 5",
      "headgate_rtmp_connection_refused_total 6",
      "headgate_transcoder_failed_total 7",
      'headgate_irregularities_total{kind="time_step"} 8',
    ]);
    expect(await scrape()).toContain("# TYPE headgate_media_kernel_drops_total counter");
    counts.drops = null;
    expect(await scrape()).toContain("headgate_media_kernel_drops_total 5");
  });

  test("omit kernel drops where the system does not count them", async () => {
    counts.drops = null;
    expect((await watched()()).join("\n")).not.toContain("kernel");
  });
});
