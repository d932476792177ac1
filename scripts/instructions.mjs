// `node scripts/instructions.mjs [--write]`: counts by valgrind the instructions that a video frame and its audio cost
// in the media core, without sockets, and those of the AAC encoder; the result does not depend on how busy the machine is.
// More than instructions.json records is a regression, unless the change updates it (`--write`).
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { BuildError, root } from "./build.mjs";
import { providePrograms, toCount } from "./programs.mjs";

/** Allowed excess over the recorded count, percent. */
const LIMIT_PERCENT = 3;
/** Video frames of the two runs whose difference is counted: what precedes the first frame is in both. */
const FEW = 100;
const MANY = 1_600;
/** What is counted, with the test program that does it and the unit of its count. */
const PATHS = [
  ...["rtmp_to_a_push", "rtmp_to_twenty_players", "whip_to_a_push_of_opus"].map((path) => ({
    path,
    program: "headgate_ingest",
    test: `switchboard::tests::instructions::${path}`,
    unit: "a picture",
  })),
  ...Object.entries({
    aac_frame_of_stereo: "a frame of 1024 samples",
    aac_frame_of_mono: "a frame of 1024 samples",
    aac_frame_of_equal_channels: "a frame of 1024 samples",
    aac_frame_of_silence: "a frame of 1024 samples",
    aac_encoder: "an encoder made",
  }).map(([path, unit]) => ({ path, program: "headgate_aac", test: `instruction_tests::${path}`, unit })),
  ...["aac_of_a_stereo_packet", "aac_of_a_mono_packet"].map((path) => ({
    path,
    program: "headgate_transcode",
    test: `tests::instructions::${path}`,
    unit: "a packet of 20 ms",
  })),
];
const RECORD = join(root, "scripts/instructions.json");

try {
  const missing = providePrograms(toCount);
  if (missing) throw new BuildError(missing);
  process.exitCode = compare(count()) ? 0 : 1;
} catch (error) {
  if (!(error instanceof BuildError)) throw error;
  console.error(`headgate: ${error.message}`);
  process.exitCode = 1;
}

/** Instructions per unit, by path. */
function count() {
  const binaries = buildTests();
  return Object.fromEntries(
    PATHS.map(({ path, program, test }) => {
      const binary = binaries.get(program);
      const difference = instructionsOf(binary, test, MANY) - instructionsOf(binary, test, FEW);
      return [path, Math.round(difference / (MANY - FEW))];
    }),
  );
}

function compare(counted) {
  const compiler = spawnSync("rustc", ["--version"], { encoding: "utf8" }).stdout.trim();
  const machine = machineOf();
  if (process.argv.includes("--write")) {
    writeFileSync(RECORD, `${JSON.stringify({ compiler, machine, pictures: counted }, null, 2)}\n`);
    return true;
  }
  const recorded = existsSync(RECORD) ? JSON.parse(readFileSync(RECORD, "utf8")) : { pictures: {} };
  const isComparable = recorded.compiler === compiler && recorded.machine === machine;
  if (!isComparable) console.error(`  recorded with ${recorded.compiler} on ${recorded.machine}: not compared`);
  let isWithin = true;
  for (const { path, unit } of PATHS) {
    const instructions = counted[path];
    const before = recorded.pictures[path];
    const percent = (instructions / before - 1) * 100;
    const change = `${percent > 0 ? "+" : ""}${percent.toFixed(1)} %`;
    console.error(`  ${path}: ${instructions} instructions ${unit} (${before} recorded, ${change})`);
    if (isComparable && !(percent <= LIMIT_PERCENT)) isWithin = false;
  }
  return isWithin;
}

/** What determines the code paths of the C library and of the cipher: other machines give other counts. */
function machineOf() {
  const flags = /^flags\s*:(.*)$/m.exec(readFileSync("/proc/cpuinfo", "utf8"))?.[1]?.split(" ") ?? [];
  const used = ["aes", "pclmulqdq", "avx2", "bmi2", "erms"].filter((flag) => flags.includes(flag));
  return [process.arch, ...used, `glibc ${process.report.getReport().header.glibcVersionRuntime}`].join(" ");
}

/** Builds the media core's unit tests; `npm test` runs the same programs. Returns them by name. */
function buildTests() {
  const args = ["test", "--profile", "tests", "--locked", "--workspace", "--no-run", "--message-format=json"];
  const built = spawnSync("cargo", args, {
    cwd: root,
    encoding: "utf8",
    stdio: ["ignore", "pipe", "inherit"],
    maxBuffer: 1 << 28,
  });
  if (built.status !== 0) throw new BuildError("the tests of the media core do not build");
  const messages = built.stdout
    .split("\n")
    .filter(Boolean)
    .map((line) => JSON.parse(line));
  const programs = messages.filter(({ target, executable, profile }) => {
    return executable && profile.test && target.kind.includes("lib");
  });
  return new Map(programs.map(({ target, executable }) => [target.name, executable]));
}

function instructionsOf(binary, name, pictures) {
  const valgrind = ["--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null", binary];
  const test = ["--exact", name, "--test-threads=1"];
  const { status, stdout, stderr } = spawnSync("valgrind", [...valgrind, ...test], {
    encoding: "utf8",
    env: { ...process.env, PICTURES: String(pictures) },
  });
  const counted = /I\s+refs:\s+([\d,]+)/.exec(stderr);
  if (status !== 0 || !counted || !/ 1 passed/.test(stdout)) {
    throw new BuildError(`${name} was not counted: ${stdout}${stderr}`);
  }
  return Number(counted[1].replaceAll(",", ""));
}
