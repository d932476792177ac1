// A player that reads 10 kB/s for a minute beside one that reads everything: `npm run bench -- slow-player [SECONDS]`.
// Prints what the slow one lost, how much memory the media core used for it, and whether the other one lost anything.
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startMedia } from "../dist/media.js";
import { residentKb } from "./_process.mjs";

const BYTES_PER_SECOND = 10_000;
const READS_PER_SECOND = 5;
/** The queue of a subscriber (docs/rtmp.md), with a margin for other changes within a minute, kB. */
const MEMORY_LIMIT_KB = 16_384;
const PICTURES_PER_SECOND = 25;
const CLIENT_ID = 1;

export async function bench([seconds = "60"]) {
  const folder = mkdtempSync(join(tmpdir(), "headgate-slow-player-"));
  const source = join(folder, "source.flv");
  const whole = join(folder, "whole.flv");
  encode(source);
  const media = startMedia(options(), (event) => answer(media, event), console.error);
  const url = `rtmp://127.0.0.1:${media.rtmpPort}/live/stream`;
  const copy = ["-nostdin", "-v", "error"];
  const publisher = ffmpeg([
    ...copy,
    "-re",
    "-stream_loop",
    "-1",
    "-i",
    source,
    "-t",
    seconds,
    "-c",
    "copy",
    "-f",
    "flv",
    url,
  ]);
  await until(() => (media.snapshot(CLIENT_ID)?.bytesIn ?? 0) > 0);
  const player = ffmpeg([...copy, "-i", url, "-c", "copy", "-f", "flv", whole]);
  await until(() => media.snapshot(CLIENT_ID)?.subscribers === 1);
  const before = residentKb(process.pid);
  const slow = await startSlowPlayer(media.rtmpPort);
  let [last, peak] = [media.snapshot(CLIENT_ID), before];
  const watching = setInterval(() => {
    last = media.snapshot(CLIENT_ID) ?? last;
    peak = Math.max(peak, residentKb(process.pid));
  }, 500);
  await publisher.ended;
  await player.ended;
  clearInterval(watching);
  slow.stop();
  await media.stop();
  const lost = Number(seconds) * PICTURES_PER_SECOND - pictures(whole);
  const figures = {
    seconds: Number(seconds),
    in_mbit_s: Number(((last.bytesIn * 8) / 1e6 / Number(seconds)).toFixed(2)),
    slow_player_read_kb: Math.round(slow.read() / 1_000),
    slow_player_dropped_frames: last.droppedFrames,
    memory_peak_over_start_kb: peak - before,
    other_player_lost_pictures: lost,
  };
  console.log(JSON.stringify(figures));
  rmSync(folder, { recursive: true, force: true });
  if (figures.slow_player_dropped_frames === 0 || figures.memory_peak_over_start_kb > MEMORY_LIMIT_KB || lost !== 0) {
    console.log("FAILED");
    process.exitCode = 1;
  }
}

/** 20 s of moving noise, about 8 Mbit/s, a keyframe every 2 s. */
function encode(file) {
  const picture = [
    "-f",
    "lavfi",
    "-i",
    `testsrc2=size=640x360:rate=${PICTURES_PER_SECOND},noise=alls=40:allf=t`,
    "-t",
    "20",
  ];
  const coding = [
    "-c:v",
    "libx264",
    "-preset",
    "ultrafast",
    "-g",
    "50",
    "-bf",
    "0",
    "-b:v",
    "8M",
    "-pix_fmt",
    "yuv420p",
  ];
  execFileSync("ffmpeg", ["-nostdin", "-v", "error", ...picture, ...coding, "-f", "flv", file]);
}

function options() {
  const host = "127.0.0.1";
  return {
    rtmpHost: host,
    rtmpPort: 0,
    rtmpTrustedProxies: [],
    rtmpTls: null,
    upstreamCa: null,
    mediaHost: host,
    mediaPort: 0,
    publicAddresses: [host],
    workers: 2,
    audioWorkers: 1,
    gopCache: true,
    pushSilence: true,
    captures: false,
    rtmpConnections: 0,
    rtmpConnectionsPerAddress: 0,
  };
}

/** The gateway's part: every publish is allowed. */
function answer(media, event) {
  if (event.kind === "publish_requested") media.allow(event.request, { clientId: CLIENT_ID, upstreams: [] });
}

function ffmpeg(args) {
  const child = spawn("ffmpeg", args, { stdio: ["ignore", "inherit", "inherit"] });
  process.once("exit", () => child.kill("SIGKILL"));
  return { child, ended: once(child, "close") };
}

/** ffmpeg behind a proxy that passes on 10 kB/s of the core's output. */
async function startSlowPlayer(port) {
  let passed = 0;
  const proxy = createServer((client) => {
    const core = connect(port, "127.0.0.1");
    client.on("error", () => core.destroy()).pipe(core);
    core.on("error", () => client.destroy());
    const reading = setInterval(() => {
      const chunk = core.read(BYTES_PER_SECOND / READS_PER_SECOND) ?? core.read();
      if (chunk === null) return;
      passed += chunk.length;
      client.write(chunk);
    }, 1_000 / READS_PER_SECOND);
    core.once("close", () => clearInterval(reading));
  }).listen(0, "127.0.0.1");
  await once(proxy, "listening");
  const { child } = ffmpeg([
    "-nostdin",
    "-v",
    "fatal",
    "-i",
    `rtmp://127.0.0.1:${proxy.address().port}/live/stream`,
    "-f",
    "null",
    "-",
  ]);
  return {
    read: () => passed,
    stop() {
      child.kill("SIGKILL");
      proxy.close();
    },
  };
}

function pictures(file) {
  const args = ["-v", "error", "-count_packets", "-select_streams", "v", "-show_entries", "stream=nb_read_packets"];
  return Number.parseInt(execFileSync("ffprobe", [...args, "-of", "csv=p=0", file], { encoding: "utf8" }), 10);
}

async function until(look) {
  while (!look()) await new Promise((resolve) => setTimeout(resolve, 10));
}
