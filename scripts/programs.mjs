// The programs that building and testing need, their purpose, and the Debian package of each. On Debian as root missing
// ones are installed; elsewhere the command that installs them is printed.
import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { realCmake } from "./build-tools.mjs";

/** @typedef {{ name: string, package: string, use: string, isThere: () => boolean }} Program */

const onPath = (name) => () =>
  (process.env.PATH ?? "").split(delimiter).some((folder) => existsSync(join(folder, name)));
const file = (path) => () => existsSync(path);
/** Debian installs the servers of all versions side by side, outside of the path. */
const hasPostgres = () => {
  const folder = "/usr/lib/postgresql";
  return existsSync(folder) && readdirSync(folder).some((version) => existsSync(join(folder, version, "bin/postgres")));
};
/** Debian packages the modules for virtual environments separately. */
const hasPython = () => spawnSync("python3", ["-c", "import ensurepip, venv"]).status === 0;
/** A file in the library folder of this machine's architecture. */
const library = (path) => () =>
  readdirSync("/usr/lib").some((entry) => entry.endsWith("-linux-gnu") && existsSync(join("/usr/lib", entry, path)));
const gstreamer = (plugin) => library(`gstreamer-1.0/libgst${plugin}.so`);
/** Files in a subfolder of one of Debian's library folders. */
const hasLibraries = (folder, ...names) => {
  const places = existsSync("/usr/lib") ? readdirSync("/usr/lib").filter((entry) => entry.endsWith("-linux-gnu")) : [];
  return names.every((name) => places.some((place) => existsSync(join("/usr/lib", place, folder, name))));
};
const hasGstreamer =
  (...names) =>
  () =>
    hasLibraries("gstreamer-1.0", ...names);
const hasObsPlugins = () => hasLibraries("obs-plugins", "obs-outputs.so", "obs-x264.so");
const hasSoftwareGl = () => hasLibraries("dri", "swrast_dri.so");
const hasRack = () => {
  const folder = "/usr/share/rubygems-integration/all/specifications";
  return existsSync(folder) && readdirSync(folder).some((name) => name.startsWith("rack-"));
};
const rtmpModule = "/usr/lib/nginx/modules/ngx_rtmp_module.so";

/** @type {readonly Program[]} */
export const toBuild = [
  { name: "cc", package: "build-essential", use: "links the media core", isThere: onPath("cc") },
  { name: "make", package: "build-essential", use: "builds libopus", isThere: onPath("make") },
  { name: "cmake", package: "cmake", use: "builds libopus", isThere: () => realCmake() !== null },
];

/** @type {readonly Program[]} */
export const toCount = [
  { name: "valgrind", package: "valgrind", use: "counts instructions", isThere: onPath("valgrind") },
];

/** @type {readonly Program[]} */
export const toTest = [
  { name: "ffmpeg", package: "ffmpeg", use: "publishes, plays, judges", isThere: onPath("ffmpeg") },
  { name: "ffprobe", package: "ffmpeg", use: "judges streams", isThere: onPath("ffprobe") },
  { name: "nginx", package: "nginx-light", use: "the upstream", isThere: file("/usr/sbin/nginx") },
  {
    name: "nginx's RTMP module",
    package: "libnginx-mod-rtmp",
    use: "the upstream",
    isThere: file(rtmpModule),
  },
  { name: "chromium", package: "chromium", use: "publishes by WHIP", isThere: onPath("chromium") },
  {
    name: "Chromium without a window",
    package: "chromium-headless-shell",
    use: "opens pages",
    isThere: onPath("chromium-headless-shell"),
  },
  { name: "PostgreSQL", package: "postgresql", use: "the other store", isThere: hasPostgres },
  {
    name: "libfaketime",
    package: "libfaketime",
    use: "steps the clock of a rehearsal",
    isThere: library("faketime/libfaketimeMT.so.1"),
  },
  {
    name: "HAProxy",
    package: "haproxy",
    use: "balances nodes, sends PROXY headers",
    isThere: file("/usr/sbin/haproxy"),
  },
  { name: "promtool", package: "prometheus", use: "tests the alert rules", isThere: onPath("promtool") },
  { name: "openssl", package: "openssl", use: "test certificates", isThere: onPath("openssl") },
  { name: "php", package: "php-cli", use: "reads webhook bodies", isThere: onPath("php") },
  {
    name: "Rack",
    package: "ruby-rack",
    use: "reads webhook bodies",
    isThere: hasRack,
  },
  { name: "go", package: "golang-go", use: "reads webhook bodies, builds a client", isThere: onPath("go") },
  { name: "GStreamer's webrtcbin", package: "gstreamer1.0-plugins-bad", use: "WHIP", isThere: gstreamer("webrtc") },
  { name: "GStreamer's ICE", package: "gstreamer1.0-nice", use: "WHIP", isThere: gstreamer("nice") },
  { name: "GStreamer's RTP", package: "gstreamer1.0-plugins-good", use: "WHIP", isThere: gstreamer("rtp") },
  { name: "GStreamer's Opus", package: "gstreamer1.0-plugins-base", use: "WHIP", isThere: gstreamer("opus") },
  { name: "GStreamer's x264", package: "gstreamer1.0-plugins-ugly", use: "WHIP", isThere: gstreamer("x264") },
  {
    name: "GStreamer for Python",
    package: "python3-gst-1.0",
    use: "WHIP",
    isThere: file("/usr/lib/python3/dist-packages/gi/overrides/Gst.py"),
  },
  {
    name: "webrtcbin for Python",
    package: "gir1.2-gst-plugins-bad-1.0",
    use: "WHIP",
    isThere: library("girepository-1.0/GstWebRTC-1.0.typelib"),
  },
  {
    name: "nginx's stream module",
    package: "libnginx-mod-stream",
    use: "ends TLS before the upstream",
    isThere: file("/usr/lib/nginx/modules/ngx_stream_module.so"),
  },
  { name: "GStreamer", package: "gstreamer1.0-tools", use: "publishes", isThere: onPath("gst-launch-1.0") },
  {
    name: "GStreamer's FLV muxer",
    package: "gstreamer1.0-plugins-good",
    use: "publishes",
    isThere: hasGstreamer("libgstflv.so"),
  },
  {
    name: "GStreamer's RTMP sinks",
    package: "gstreamer1.0-plugins-bad",
    use: "publish, by two stacks",
    isThere: hasGstreamer("libgstrtmp2.so", "libgstrtmp.so", "libgstvideoparsersbad.so"),
  },
  { name: "OBS", package: "obs-studio", use: "publishes", isThere: onPath("obs") },
  { name: "OBS's codecs and outputs", package: "obs-plugins", use: "publishes", isThere: hasObsPlugins },
  { name: "Xvfb", package: "xvfb", use: "a screen for OBS", isThere: onPath("Xvfb") },
  { name: "software OpenGL", package: "libgl1-mesa-dri", use: "draws for OBS", isThere: hasSoftwareGl },
  { name: "systemd-analyze", package: "systemd", use: "checks the unit", isThere: onPath("systemd-analyze") },
  { name: "buildah", package: "buildah", use: "builds the container image", isThere: onPath("buildah") },
  { name: "Python", package: "python3-venv", use: "peers written in Python", isThere: hasPython },
];

/** For trying a release in separate root file systems. @type {readonly Program[]} */
export const toTry = [
  ...toTest.filter(({ name }) => ["ffmpeg", "ffprobe"].includes(name)),
  { name: "mmdebstrap", package: "mmdebstrap", use: "makes a bare Debian", isThere: onPath("mmdebstrap") },
  { name: "qemu", package: "qemu-user-static", use: "runs arm64", isThere: onPath("qemu-aarch64-static") },
];

/** For measuring beside other servers. @type {readonly Program[]} */
export const toMeasure = [
  ...toTest.filter(({ name }) => ["ffmpeg", "nginx", "nginx's RTMP module"].includes(name)),
  { name: "perf", package: "linux-perf", use: "counts system calls", isThere: onPath("perf") },
];

/** For the clips of the AAC bench and their scores. @type {readonly Program[]} */
export const toScore = [
  ...toTest.filter(({ name }) => name === "ffmpeg"),
  { name: "espeak-ng", package: "espeak-ng", use: "speaks", isThere: onPath("espeak-ng") },
  ...Object.entries({
    "extremetuxracer-data": "games/etr/music/race1-jt.ogg",
    "planetblupi-music-ogg": "planetblupi/music/music003.ogg",
  }).map(([name, path]) => ({ name, package: name, use: "music", isThere: file(join("/usr/share", path)) })),
];

/** Packages of missing programs, without duplicates, in the order of the table.
 *  @param {readonly Program[]} programs */
export function missingPackages(programs) {
  return [...new Set(programs.filter((p) => !p.isThere()).map((p) => p.package))];
}

/** Checks that the programs are installed; on Debian as root it installs them.
 *  @param {readonly Program[]} programs
 *  @returns {string | null} the message for the user if something is still missing */
export function providePrograms(programs) {
  const packages = missingPackages(programs);
  if (packages.length === 0) return null;
  if (canInstall()) install(packages);
  const missing = programs.filter((program) => !program.isThere());
  if (missing.length === 0) return null;
  const rows = missing.map((program) => `  ${program.name}: ${program.use}`).join("\n");
  const command = `apt-get install --no-install-recommends ${missingPackages(programs).join(" ")}`;
  return `missing:\n${rows}\nOn Debian, as root: ${command}`;
}

function canInstall() {
  return process.getuid?.() === 0 && existsSync("/etc/debian_version");
}

/** Installs packages without starting their services. */
function install(packages) {
  const policy = "/usr/sbin/policy-rc.d";
  const isOurs = !existsSync(policy);
  if (isOurs) writeFileSync(policy, "#!/bin/sh\nexit 101\n", { mode: 0o755 });
  console.error(`headgate: installing ${packages.join(", ")}`);
  const env = { ...process.env, DEBIAN_FRONTEND: "noninteractive" };
  const run = (...args) => spawnSync("apt-get", args, { env, stdio: ["ignore", 2, 2] });
  try {
    run("update", "-qq");
    run("install", "-y", "-qq", "--no-install-recommends", ...packages);
  } finally {
    if (isOurs && readFileSync(policy, "utf8").includes("101")) rmSync(policy);
  }
}
