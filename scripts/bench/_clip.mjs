// The clip that honest publishers send: 20 s of 720p25 by x264 at 2 Mbit/s with a keyframe every two seconds, and AAC.
import { spawnSync } from "node:child_process";
import { existsSync, renameSync } from "node:fs";
import { join } from "node:path";
import { root } from "../build.mjs";

/** Made once a checkout, where builds keep their stamps. Without ffmpeg the generator has recorded sizes. */
export function clipFile() {
  const file = join(root, ".build", "bench-clip.flv");
  if (existsSync(file)) return file;
  const words = (text) => text.split(" ");
  const { status } = spawnSync("ffmpeg", [
    ...words("-nostdin -v error -y -f lavfi -i testsrc2=size=1280x720:rate=25,noise=alls=12:allf=t"),
    ...words("-f lavfi -i sine=frequency=440:sample_rate=48000 -t 20"),
    ...words("-c:v libx264 -preset veryfast -g 50 -keyint_min 50 -sc_threshold 0 -pix_fmt yuv420p"),
    ...words("-b:v 2M -maxrate 2M -bufsize 2M -c:a aac -b:a 128k -ac 2 -f flv"),
    `${file}.new`,
  ]);
  if (status !== 0) {
    console.error("headgate: no ffmpeg with libx264: recorded frame sizes are sent in place of a clip");
    return "recorded";
  }
  renameSync(`${file}.new`, file);
  return file;
}
