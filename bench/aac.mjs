// The AAC encoder: `npm run bench -- aac [--model FILE] [--ref COMMAND] [--clips NAME,…] [--rates 128000,64000m,…]
// [--set tuning]`. What it costs, in CPU ms per stream-second, at 128, 96 and 64 kbit/s in stereo and (`m`) 64 in mono.
// With ViSQOL's full-band model also the MOS-LQO of each clip, beside what the former encoder, libxaac, had. With
// COMMAND the same of another encoder, in which {in} is a WAV file, {out} the file to write, of any format that ffmpeg
// reads without its delay, and {bitrate} in bit/s: `ffmpeg -v error -y -i {in} -c:a aac -b:a {bitrate} {out}.m4a`. The
// time a program takes to start is counted. The tuning clips are others, so that constants are not chosen by what is
// scored.
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { root } from "../scripts/build.mjs";
import { providePrograms, toScore } from "../scripts/programs.mjs";
import { audioClips } from "./_audio-clips.mjs";

export function bench(words) {
  const names = ["model", "ref", "clips", "rates"];
  const options = Object.fromEntries([...names, "set"].map((name) => [name, { type: "string" }]));
  const { values } = parseArgs({ args: words, options });
  const missing = providePrograms(toScore);
  if (missing !== null) throw new Error(missing);
  const given = names.flatMap((name) => (values[name] === undefined ? [] : [`--${name}`, values[name]]));
  const crate = [
    "--manifest-path",
    join(root, "crates/quality/Cargo.toml"),
    "--target-dir",
    join(root, "target/quality"),
  ];
  const args = ["run", "--quiet", "--release", "--locked", ...crate, "--", audioClips(values.set), ...given];
  const { status } = spawnSync("cargo", args, { stdio: "inherit" });
  process.exitCode = status ?? 1;
}
