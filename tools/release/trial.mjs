// One run of an installed Headgate: until it is ready, one RTMP stream in and out by ffmpeg, and its end.
import { spawn } from "node:child_process";
import { once } from "node:events";

const API_KEY = "trial-of-the-packages-0123456789";
const STREAM_S = 10;
/** How long ffprobe may read, and the service may take to stop, ms. */
const WATCH_LIMIT_MS = 60_000;
const STOP_LIMIT_MS = 60_000;
/** Part of a stream of 10 s is sent before the player has joined; fewer packets than this count as no stream. */
const PACKETS_AT_LEAST = 50;

/** `dataDir`: as the service sees it. Rejects if something does not work, with the service's output.
 *  @param {readonly string[]} command
 *  @param {{ cwd: string, dataDir: string, limitMs: number }} options
 *  @returns {Promise<{ readyMs: number, packets: { video: number, audio: number }, version: string }>} */
export async function trialOf([program = "", ...args], { cwd, dataDir, limitMs }) {
  const ports = ["HTTP", "RTMP", "MEDIA", "METRICS", "NODE"].map((name) => [`HEADGATE_${name}_PORT`, "0"]);
  const env = {
    PATH: process.env.PATH,
    HOME: "/nonexistent",
    HEADGATE_DATA_DIR: dataDir,
    HEADGATE_DRAIN_S: "0",
    HEADGATE_HTTP_HOST: "127.0.0.1",
    HEADGATE_RTMP_HOST: "127.0.0.1",
    HEADGATE_BOOTSTRAP_API_KEY: API_KEY,
    HEADGATE_LIMITS_LOAD_PERCENT: "0",
    ...Object.fromEntries(ports),
  };
  const started = performance.now();
  const service = spawn(program, args, { cwd, env, stdio: ["ignore", "pipe", "pipe"], detached: true });
  const said = { out: "", err: "" };
  service.stdout.on("data", (text) => {
    said.out += text;
  });
  service.stderr.on("data", (text) => {
    said.err += text;
  });
  const exit = once(service, "close");
  try {
    const line = await until(() => /^\{"ready":true.*\}$/m.exec(said.out)?.[0], limitMs, service);
    const readyMs = performance.now() - started;
    const { http, rtmp, metrics, version } = JSON.parse(line);
    if (!(await fetch(`${metrics}/readyz`)).ok) throw new Error("/readyz does not say that it is ready");
    const made = await fetch(`${http}/stream`, { method: "POST", headers: { "x-service-apikey": API_KEY } });
    const { ingest } = await made.json();
    const packets = await inAndOut(`${rtmp}/${ingest.rtmp.streamname}`, () => said.err.includes("publish started"));
    process.kill(-service.pid, "SIGTERM");
    // The service's log shows how it ended: the shell that started it may end by the signal itself.
    await within(exit, STOP_LIMIT_MS, "it does not stop");
    if (!said.err.includes('"state":"stopped"')) throw new Error("it did not stop cleanly");
    return { readyMs, packets, version };
  } catch (error) {
    throw new Error(`${error instanceof Error ? error.message : error}\n${said.out}${said.err}`);
  } finally {
    if (service.exitCode === null && service.signalCode === null) process.kill(-service.pid, "SIGKILL");
  }
}

/** Publishes to an address, plays from it, and counts the packets received. */
async function inAndOut(url, runs) {
  const inputs = "-f lavfi -i testsrc=size=320x180:rate=25 -f lavfi -i sine=sample_rate=48000".split(" ");
  const codecs = "-c:v libx264 -preset ultrafast -tune zerolatency -g 50 -pix_fmt yuv420p -c:a aac -f flv".split(" ");
  const words = ["-nostdin", "-loglevel", "error", "-re", ...inputs, "-t", String(STREAM_S), ...codecs, url];
  const encoder = spawn("ffmpeg", words, { stdio: ["ignore", "ignore", 2] });
  const encoded = once(encoder, "close");
  try {
    await until(runs, WATCH_LIMIT_MS, encoder);
    const fields = ["-v", "error", "-show_entries", "packet=codec_type", "-of", "csv=p=0", url];
    const player = spawn("ffprobe", fields, { stdio: ["ignore", "pipe", 2] });
    let text = "";
    player.stdout.on("data", (more) => {
      text += more;
    });
    await within(once(player, "close"), WATCH_LIMIT_MS, "the player does not end");
    const [code] = await encoded;
    if (code !== 0) throw new Error(`the encoder ended with ${code}`);
    const count = (track) => text.split("\n").filter((line) => line === track).length;
    const packets = { video: count("video"), audio: count("audio") };
    if (Math.min(packets.video, packets.audio) < PACKETS_AT_LEAST)
      throw new Error(`only ${packets.video} video and ${packets.audio} audio packets were played`);
    return packets;
  } finally {
    encoder.kill("SIGKILL");
  }
}

async function until(look, limitMs, child) {
  const deadline = performance.now() + limitMs;
  for (;;) {
    const found = look();
    if (found) return found;
    if (child.exitCode !== null) throw new Error(`it ended with ${child.exitCode}`);
    if (performance.now() > deadline) throw new Error(`not within ${limitMs / 1_000} s`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

async function within(promise, limitMs, otherwise) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(otherwise)), limitMs);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}
