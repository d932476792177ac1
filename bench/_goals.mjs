// The performance goals that a bench measures: how each is run, and the rows made of the blocks it prints.
import { median } from "./_servers.mjs";

/** @typedef {{
 *    readonly id: string;
 *    readonly run: readonly string[];
 *    rowsOf(found: readonly object[]): string[][];
 *  }} Goal */

/** Rounds of `rtmp`, which measures every server twice in each, there and back. */
const roundsOf = (blocks) => String(Math.ceil(blocks / 2));
const SECONDS = "10";

/** Each with the words of its run and what makes rows of its blocks: measure, ours, beside it, ratio, wanted.
 *  @type {(blocks: number, peers: readonly string[]) => Goal[]} */
export function goals(blocks, peers) {
  return [
    {
      ...{ id: "whip", run: ["whip", "opus", "10", "50", "100", SECONDS, String(blocks), ...peers] },
      rowsOf: (found) => [
        ...[
          [10, 2.5],
          [50, 1.1],
          [100, 0.9],
        ].map(([n, goal]) => {
          const [ours, peer] = ["headgate", "MediaMTX"].map((name) => of(found, name, n));
          return [
            `WHIP → RTMP, Opus, N = ${n}`,
            cost(ours),
            besides("MediaMTX", peer),
            ratio(ours, peer),
            `${goal}; 0.2`,
          ];
        }),
        delays("WHIP, N = 50, video", of(found, "headgate", 50), "video_delay"),
      ],
    },
    {
      ...{ id: "whip-aac", run: ["whip", "stereo", "mono", "50", SECONDS, String(blocks)] },
      rowsOf: (found) =>
        [
          ["stereo", "6.0; 0.5"],
          ["mono", "4.5"],
        ].map(([sound, goal]) => {
          const same = found.filter((block) => block.sound === sound);
          const [ours, floor] = ["headgate", "codecs alone"].map((name) => of(same, name));
          const beside = `SRS absent; ${besides("codecs alone", floor)}`;
          return [`WHIP → RTMP, AAC ${sound}, N = 50`, cost(ours), beside, ratio(ours, floor), goal];
        }),
    },
    ...[
      ["opus", 1_000, "Opus"],
      ["stereo", 120, "AAC stereo"],
      ["mono", 200, "AAC mono"],
    ].map(([sound, n, name]) => ({
      ...{ id: "full-core", run: ["whip", sound, String(n), "60", "1"] },
      rowsOf: (all) => {
        const found = of(all, "headgate");
        return [
          [
            `${n} streams on one core, ${name}`,
            `${cost(found)}; lost ${sum(found, "lost")}, video p99 ${middle(found, "video_delay_p99_ms")} ms`,
            ...["", "", "0 lost, p99 20 ms"],
          ],
        ];
      },
    })),
    {
      ...{ id: "starts", run: ["first-frames", "20", "200", SECONDS, "3"] },
      rowsOf: (found) =>
        [20, 200].map((rate) => {
          const same = found.filter((block) => block.rate === rate && block.webhook);
          const [answered, first] = ["answered_ms", "first_frame_ms"].map((name) =>
            median(same.map((b) => b[name].p50)),
          );
          const lost = sum(same, "lost") + sum(same, "refused");
          return [
            `${rate} WHIP publishes started a second, with a webhook`,
            `POST → 201 ${answered} ms, first video ${first} ms, ${middle(same, "core")} of a core, ${lost} failed`,
            ...["", "", "200 a second; 3 ms; 100 ms"],
          ];
        }),
    },
    ...[100, 400].map((n) => ({
      ...{ id: "rtmp", run: ["rtmp", String(n), SECONDS, roundsOf(blocks)] },
      rowsOf: (found) => relayed(found, n),
    })),
    {
      ...{ id: "players", run: ["rtmp", "1", SECONDS, roundsOf(blocks), "--players", "100"] },
      rowsOf: (found) => {
        const [ours, peer] = ["headgate", "nginx-rtmp"].map((name) => of(found, name));
        return [
          ["one stream to 100 RTMP players, each", cost(ours), besides("nginx-rtmp", peer), ratio(ours, peer), "0.6"],
        ];
      },
    },
    {
      ...{ id: "memory", run: ["whip", "opus", "stereo", "100", SECONDS, "3", "--no-gop-cache"] },
      rowsOf: (found) =>
        [
          ["opus", "Opus", 150],
          ["stereo", "AAC", 330],
        ].map(([sound, name, goal]) => {
          const same = of(found, "headgate").filter((block) => block.sound === sound);
          return [
            `memory of a live session without cached group, ${name}`,
            `${middle(same, "kb_per_session_live")} kB`,
            "",
            "",
            `${goal} kB`,
          ];
        }),
    },
    {
      ...{ id: "tokens", run: ["http", SECONDS, "50"] },
      rowsOf: ([result, split]) => [
        [
          "web tokens over HTTP, requests per CPU second",
          String(result.perCpuSecond),
          `jose alone ${Math.round(1e6 / split.cryptoPerRequestUs)}`,
          (result.perCpuSecond / (1e6 / split.cryptoPerRequestUs)).toFixed(2),
          "5,500",
        ],
      ],
    },
    {
      ...{ id: "startup", run: ["ready", String(blocks)] },
      rowsOf: ([result]) => [
        [
          "start with a new store; memory when idle",
          `${result.cpuMs} ms; ${result.idleMb} MB`,
          "",
          "",
          "400 ms; 100 MB",
        ],
      ],
    },
  ];
}

/** RTMP in, pushed on, beside the servers of the same run; the counts of system calls come last. */
function relayed(found, n) {
  const ours = of(found, "headgate");
  const calls = (name) => {
    const counted = found.find((line) => line.server === name && line.reads !== undefined);
    return counted === undefined ? "" : `; ${counted.reads} reads, ${counted.writes} writes`;
  };
  const beside = (name, goal) => {
    const other = of(found, name);
    const what = `RTMP → push, N = ${n}`;
    return [what, cost(ours) + calls("headgate"), besides(name, other) + calls(name), ratio(ours, other), goal];
  };
  return [
    beside("nginx-rtmp", "0.5"),
    beside("relay each-40-ms", "1.3"),
    beside("relay each-40-ms-in-turns", ""),
    beside("relay promptly-in-turns", ""),
    delays(`RTMP, N = ${n}, video`, ours, "video_delay"),
  ];
}

const of = (found, name, n) =>
  found.filter(
    (b) => b.server === name && b.cpu_ms_per_stream_second !== undefined && (n === undefined || b.streams === n),
  );
const values = (blocks, name) => blocks.map((block) => block[name]).sort((a, b) => a - b);
const middle = (blocks, name) => (blocks.length === 0 ? "?" : Number(median(values(blocks, name)).toFixed(3)));
const sum = (blocks, name) => values(blocks, name).reduce((total, value) => total + value, 0);

/** CPU ms per stream-second, and how many of the blocks are unreliable. */
function cost(blocks) {
  if (blocks.length === 0) return "not measured";
  const costs = values(blocks, "cpu_ms_per_stream_second");
  const text = `${median(costs).toFixed(2)} ms (${costs[0].toFixed(2)}–${costs.at(-1).toFixed(2)})`;
  const failed = blocks.filter(
    ({ faults, noise, lost }) => (faults?.length ?? 0) > 0 || (noise ?? null) !== null || lost > 0,
  );
  return failed.length === 0 ? text : `${text}, ${failed.length} of ${blocks.length} blocks noisy or with loss`;
}

const besides = (name, blocks) => (blocks.length === 0 ? `${name} absent` : `${name} ${cost(blocks)}`);

function ratio(ours, others) {
  if (ours.length === 0 || others.length === 0) return "";
  const name = "cpu_ms_per_stream_second";
  return `**${(median(values(ours, name)) / median(values(others, name))).toFixed(2)}**`;
}

const delays = (what, blocks, name) => [
  `added delay, ${what}`,
  `p50 ${middle(blocks, `${name}_p50_ms`)} ms, p99 ${middle(blocks, `${name}_p99_ms`)} ms`,
  ...["", "", "1 ms; 3 ms"],
];
