// The clips of the AAC bench beside those that crates/quality computes: voices by espeak-ng, music of two of Debian's
// packages. Made once per checkout, as raw samples of 48 kHz in stereo.
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, renameSync } from "node:fs";
import { join } from "node:path";
import { root } from "../scripts/build.mjs";

const SECONDS = 6;
const ETR = "/usr/share/games/etr/music";
const BLUPI = "/usr/share/planetblupi/music";
/** A voice, once on the left and a little later on the right, with what a room adds. */
const ROOM = "aresample=48000,aecho=0.8:0.5:23|41:0.25|0.15,pan=stereo|c0=c0|c1=c0,adelay=0|1";

const music = (folder, file, at) => ({ file: join(folder, file), at });
const voice = (name, text) => ({ name, text });
const TEXTS = {
  en: "The north wind and the sun were disputing which was the stronger, when a traveller came along in a warm cloak.",
  de: "Einst stritten sich Nordwind und Sonne, wer von ihnen beiden wohl der Stärkere wäre, als ein Wanderer des Weges kam.",
  fr: "La bise et le soleil se disputaient, chacun assurant qu'il était le plus fort, quand ils ont vu un voyageur.",
};

/** The scored clips; `SETS.tuning` are others, for choosing the encoder's constants. */
const SETS = {
  scored: {
    blupi3: music(BLUPI, "music003.ogg", 30),
    blupi7: music(BLUPI, "music007.ogg", 30),
    freezing: music(ETR, "freezingpoint.ogg", 30),
    race: music(ETR, "race1-jt.ogg", 20),
    english: voice("en", TEXTS.en),
    female: voice("en+f3", TEXTS.en),
    french: voice("fr", TEXTS.fr),
    german: voice("de", TEXTS.de),
  },
  tuning: {
    tuning_blupi0: music(BLUPI, "music000.ogg", 40),
    tuning_blupi4: music(BLUPI, "music004.ogg", 25),
    tuning_blupi5: music(BLUPI, "music005.ogg", 35),
    tuning_blupi9: music(BLUPI, "music009.ogg", 20),
    tuning_options: music(ETR, "options1-jt.ogg", 15),
    tuning_spunky: music(ETR, "spunkyrace-ks.ogg", 15),
    tuning_voice: voice("de+f2", TEXTS.de),
  },
};
/** Speech over music: its two parts. */
const MIXED = { name: "english_over_race", speech: "english", music: "race" };

/** Makes the clips that are missing; returns their folder. */
export function audioClips(set = "scored") {
  if (SETS[set] === undefined) throw new Error(`no clips ${set}: ${Object.keys(SETS).join(" or ")}`);
  const folder = join(root, ".build", `bench-audio-${set}`);
  mkdirSync(folder, { recursive: true });
  const fileOf = (name) => join(folder, `${name}.s16`);
  for (const [name, clip] of Object.entries(SETS[set])) {
    if (existsSync(fileOf(name))) continue;
    if (clip.text === undefined) {
      decode(["-ss", String(clip.at), "-i", clip.file], "[0:a]aresample=48000[out]", fileOf(name));
    } else {
      const input = run("espeak-ng", ["-v", clip.name, "--stdout", clip.text]);
      decode(["-i", "pipe:0"], `[0:a]${ROOM}[out]`, fileOf(name), input);
    }
  }
  if (set === "scored" && !existsSync(fileOf(MIXED.name))) {
    const inputs = [MIXED.speech, MIXED.music].flatMap((name) => [...RAW, "-i", fileOf(name)]);
    decode(inputs, "[1:a]volume=0.4[low];[0:a][low]amix=inputs=2:normalize=0[out]", fileOf(MIXED.name));
  }
  return folder;
}

const RAW = ["-f", "s16le", "-ar", "48000", "-ac", "2"];

/** Padded with silence to the length of a clip. */
function decode(inputs, graph, file, input) {
  const unfinished = `${file}.${process.pid}`;
  const padded = `${graph};[out]apad,atrim=end_sample=${SECONDS * 48_000}[padded]`;
  const output = ["-map", "[padded]", ...RAW, unfinished];
  run("ffmpeg", ["-v", "error", "-y", ...inputs, "-filter_complex", padded, ...output], { input });
  renameSync(unfinished, file);
}

function run(program, args, options = {}) {
  const { status, stdout, error } = spawnSync(program, args, {
    ...options,
    stdio: ["pipe", "pipe", "inherit"],
    maxBuffer: 1 << 28,
  });
  if (status !== 0) throw new Error(`${program} ended with ${status ?? error}`);
  return stdout;
}
