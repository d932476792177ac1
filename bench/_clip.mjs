// The clips that honest publishers send, made once per checkout by ffmpeg: real encoder output.
import { spawn } from "node:child_process";
import { existsSync, renameSync } from "node:fs";
import { join } from "node:path";
import { root } from "../scripts/build.mjs";

const words = (text) => text.split(" ");
const X264 = "-c:v libx264 -preset veryfast -pix_fmt yuv420p -sc_threshold 0";
const SOUND = "-f lavfi -i sine=frequency=440:sample_rate=48000";
const AAC = "-c:a aac -b:a 128k -ac 2";
/** Moving noise: frame sizes of 2 to 60 kB at 2 Mbit/s. */
const moving = (size, rate) => `-f lavfi -i testsrc2=size=${size}:rate=${rate},noise=alls=12:allf=t`;
/** A still image whose grain changes every five seconds: frames of a few bytes, then one of some 200 kB. */
const SCREEN = "-f lavfi -i nullsrc=size=1280x720:rate=0.2,geq=random(1)*255:128:128,fps=25";

/** Each 20 s long. */
const CLIPS = {
  /** 720p25 at 2 Mbit/s with a keyframe every two seconds. */
  x264: `${moving("1280x720", 25)} ${SOUND} ${X264} -g 50 -keyint_min 50 -b:v 2M -maxrate 2M -bufsize 2M ${AAC}`,
  /** Like hardware encoding for low delay: no B-frames, similar frame sizes, one IDR of some 60 kB. */
  nvenc: `${moving("1280x720", 25)} ${SOUND} ${X264} -tune zerolatency -g 50 -keyint_min 50 -b:v 2M -maxrate 2M -bufsize 500k ${AAC}`,
  /** 1080p60 at 6 Mbit/s. */
  fast: `${moving("1920x1080", 60)} ${SOUND} ${X264} -g 120 -keyint_min 120 -b:v 6M -maxrate 6M -bufsize 6M ${AAC}`,
  screen: `${SCREEN} ${SOUND} ${X264} -tune zerolatency -g 250 -crf 30 ${AAC}`,
  sound: `${SOUND} ${AAC}`,
};
export const CLIP_NAMES = Object.keys(CLIPS);

/** Each clip is made once per process, by the first caller. */
const made = new Map();

/** The load generator's arguments for publishing a clip by RTMP under these names. They are pushed to `sinkPort`,
 *  except those that the generator plays itself (`players`: "every-second", "nobody", a number that come and go, or
 *  "N-on-each"). `chunk`: chunk size in bytes; by default the generator chooses. */
export async function honestLoad(server, names, { sinkPort, seconds, clip, players = "every-second", chunk }) {
  const where = [`127.0.0.1:${sinkPort}`, server.target, names.join(",")];
  const words = ["honest", ...where, String(seconds), await clipFile(clip), String(players)];
  return chunk === undefined ? words : [...words, chunk];
}

/** The file of a clip. Without ffmpeg the generator uses recorded sizes of the first clip. */
function clipFile(name = "x264") {
  if (!made.has(name)) made.set(name, make(name));
  return made.get(name);
}

/** Asynchronous, because a request whose connection stays silent for 5 s would be answered with 408. */
async function make(name) {
  const file = join(root, ".build", `bench-clip-${name}.flv`);
  if (existsSync(file)) return file;
  const unfinished = `${file}.${process.pid}`;
  const args = ["-nostdin", "-v", "error", "-y", ...words(CLIPS[name]), "-t", "20", "-f", "flv", unfinished];
  const ffmpeg = spawn("ffmpeg", args, { stdio: ["ignore", "ignore", "inherit"] });
  const code = await new Promise((resolve) => ffmpeg.once("close", resolve).once("error", resolve));
  if (code !== 0) {
    if (name !== "x264") throw new Error(`ffmpeg with libx264 is needed for the clip ${name}`);
    console.error("headgate: no ffmpeg with libx264: recorded frame sizes are sent in place of a clip");
    return "recorded";
  }
  renameSync(unfinished, file);
  return file;
}
