// Broadcasters and players of a rehearsal, all of them ffmpeg: streams that continue and are checked frame by frame,
// and publishes that begin and end all the time.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { endingWithUs } from "../../bench/_ending.mjs";

const FRAMES_PER_SECOND = 25;
/** Interval between two frames, ms; RTMP timestamps are whole milliseconds. */
const FRAME_MS = 1_000 / FRAMES_PER_SECOND;
const ROUNDING_MS = 2;

/** Publishes until it is ended, or for a number of seconds. */
export function publish(url, seconds = null) {
  return running("ffmpeg", [
    ...["-nostdin", "-loglevel", "error", "-re", "-f", "lavfi"],
    ...["-i", `testsrc=size=160x90:rate=${FRAMES_PER_SECOND}`, "-f", "lavfi", "-i", "sine=sample_rate=48000"],
    ...(seconds === null ? [] : ["-t", String(seconds)]),
    ...["-c:v", "libx264", "-preset", "ultrafast", "-tune", "zerolatency", "-pix_fmt", "yuv420p", "-threads", "1"],
    ...["-g", String(FRAMES_PER_SECOND), "-c:a", "aac", "-flags", "+global_header", "-f", "flv", url],
  ]);
}

/** Plays until the stream ends, or for a number of seconds; returns the timestamps of its video frames, ms. */
export function play(url, seconds = null) {
  const shown = ["-select_streams", "v", "-show_entries", "packet=dts_time", "-of", "csv=print_section=0"];
  const player = running("ffprobe", [
    ...["-loglevel", "error", ...(seconds === null ? [] : ["-read_intervals", `%+${seconds}`])],
    ...[...shown, url],
  ]);
  const times = () =>
    player
      .said()
      .split("\n")
      .map((line) => Number.parseFloat(line) * 1_000)
      .filter(Number.isFinite);
  return { ...player, times };
}

/** Where frames are missing: the timestamps, ms, between which there is a gap. */
export function gapsIn(times) {
  const next = times.slice(1).map((time, at) => [times[at], time]);
  return next.filter(([from, to]) => Math.abs(to - from - FRAME_MS) > ROUNDING_MS);
}

function running(command, words) {
  const child = endingWithUs(spawn(command, words, { stdio: ["ignore", "pipe", "pipe"] }));
  const written = { stdout: "", stderr: "" };
  for (const name of ["stdout", "stderr"]) {
    child[name].setEncoding("utf8").on("data", (text) => {
      written[name] += text;
    });
  }
  let code = null;
  const exit = once(child, "close").then(([status, signal]) => {
    code = status ?? signal;
    return code;
  });
  return {
    exit,
    /** null while it runs. */
    code: () => code,
    said: () => written.stdout,
    complaint: () => written.stderr,
    end: () => child.kill("SIGTERM"),
  };
}
