// `headgate demo`: the shortest proof that it works. A service of its own on loopback, with a store that is thrown away, and a
// test picture that ffmpeg publishes; prints where to see it, until ^C. Then nothing of it is left.
import { type ChildProcess, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { readProgramEnvironment } from "../config.ts";
import { ConfigInvalid, ServiceError } from "../errors.ts";
import { inTime } from "../in-time.ts";
import { reasonOf } from "../reason.ts";
import type { GivenFlags } from "./flags.ts";
import { print } from "./output.ts";

/** How long the service may take until it is ready, ms; and how often it is asked whether the test picture is live. */
const READY_LIMIT_MS = 60_000;
const POLLS_LIMIT = 200;
const POLL_MS = 100;
/** How long each program gets to end by itself, ms. */
const END_LIMIT_MS = 10_000;
/** Characters of a program's messages that are kept, the newest. */
const MESSAGES_LIMIT = 4_000;
/** The longest time that can be asked for: a day, s. */
const SECONDS_LIMIT = 86_400;
const END_SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

class DemoFailed extends ServiceError {
  readonly code = "demo_failed";
}

/** A program of the demonstration. */
interface Program {
  readonly process: ChildProcess;
  /** Resolves with the reason when it ends, or could not be started. */
  readonly ended: Promise<string>;
  /** Its latest messages. */
  messages(): string;
}

/** What the service says when it is ready. */
interface Ready {
  readonly http: string;
  readonly rtmp: string;
}

/** Resolves after ^C, SIGTERM or SIGHUP, or after `--seconds`, when everything has ended. Throws `DemoFailed`. */
export async function runDemo(flags: GivenFlags): Promise<void> {
  const { seconds } = flags;
  const isTime = seconds === undefined || (typeof seconds === "number" && seconds >= 0 && seconds <= SECONDS_LIMIT);
  if (!isTime) throw new ConfigInvalid(`--seconds must be a number from 0 to ${SECONDS_LIMIT}`);
  const interrupted = new Promise<null>((resolve) => {
    for (const signal of END_SIGNALS) process.on(signal, () => resolve(null));
  });
  const folder = await mkdtemp(join(tmpdir(), "headgate-demo-")).catch((error: unknown) => {
    throw new DemoFailed(`no folder for its store (${reasonOf(error)}): TMPDIR names another`);
  });
  const programs: Program[] = [];
  const over = new AbortController();
  try {
    const failure = await Promise.race([interrupted, demonstrate(flags, folder, programs, over.signal)]);
    if (failure !== null) throw new DemoFailed(failure);
  } finally {
    over.abort();
    // The encoder first: its publish ends as any other.
    for (const program of programs.toReversed()) await end(program);
    await rm(folder, { recursive: true, force: true });
  }
}

/** Resolves with the reason when it cannot go on, with null when its time is over. Starts no program once it is `over`. */
async function demonstrate(
  flags: GivenFlags,
  folder: string,
  programs: Program[],
  over: AbortSignal,
): Promise<string | null> {
  const [key, password] = [`demo-${randomBytes(24).toString("hex")}`, randomBytes(12).toString("base64url")];
  if (flags.json !== true) console.log("Starting …");
  const service = begin(process.execPath, [...process.execArgv, process.argv[1] ?? "", "serve"], {
    ...readProgramEnvironment(),
    ...Object.fromEntries(["HTTP", "RTMP", "MEDIA", "METRICS", "NODE"].map((name) => [`HEADGATE_${name}_PORT`, "0"])),
    ...Object.fromEntries(["HTTP", "RTMP", "MEDIA", "METRICS"].map((name) => [`HEADGATE_${name}_HOST`, "127.0.0.1"])),
    HEADGATE_DATA_DIR: folder,
    HEADGATE_DRAIN_S: "0",
    HEADGATE_DEV: "1",
    HEADGATE_LOG_LEVEL: "warn",
    HEADGATE_BOOTSTRAP_API_KEY: key,
    HEADGATE_BOOTSTRAP_ADMIN_PASSWORD: password,
  });
  programs.push(service);
  const failed = service.ended.then((why) => {
    throw new DemoFailed(`the service has ended (${why})\n${service.messages()}`);
  });
  failed.catch(() => {}); // it is noticed below, or the demonstration is over
  const { http, rtmp } = await Promise.race([failed, readyLine(service.process)]);

  const call = async <T>(method: string, path: string, body?: object): Promise<T> => {
    const headers = { "x-service-apikey": key, "content-type": "application/json" };
    const response = await fetch(http + path, { method, headers, ...(body && { body: JSON.stringify(body) }) });
    if (!response.ok) throw new DemoFailed(`${method} ${path}: ${response.status} ${await response.text()}`);
    return (await response.json()) as T;
  };
  const [test, browser] = await Promise.all(
    ["Test picture", "From the browser"].map(async (title) => {
      const { id, ingest } = await call<{
        readonly id: string;
        readonly ingest: { readonly rtmp: { readonly streamname: string } };
      }>("POST", "/stream", { title });
      return { id, name: ingest.rtmp.streamname };
    }),
  );
  if (test === undefined || browser === undefined) throw new DemoFailed("no stream could be created");
  const { data } = await call<{ readonly data: { readonly token: string } }>("POST", "/webcaster", {
    streamname: browser.name,
    ingesturl: rtmp,
  });

  const play = `${rtmp}/${test.name}`;
  over.throwIfAborted();
  const encoder = begin("ffmpeg", testPicture(play), readProgramEnvironment());
  programs.push(encoder);
  const isLive = await Promise.race([failed, encoder.ended.then(() => false), live(call)]);
  const shown = {
    http,
    rtmp,
    api_key: key,
    password,
    stream: test.name,
    live: isLive,
    dashboard: `${http}/dashboard/streams/${test.id}`,
    play,
    broadcast: `${http}/broadcast#token=${data.token}`,
  };
  if (flags.json === true) console.log(JSON.stringify(shown));
  else print(flags, shown, linesOf(shown, isLive ? null : await whyNot(encoder)));
  if (typeof flags.seconds === "number") return await Promise.race([failed, pause(flags.seconds * 1_000, null)]);
  if (!isLive) return await failed;
  return await Promise.race([failed, encoder.ended.then((why) => `ffmpeg has ended (${why})\n${encoder.messages()}`)]);
}

function linesOf(
  shown: Readonly<Record<"http" | "api_key" | "password" | "dashboard" | "play" | "broadcast" | "stream", string>>,
  missing: string | null,
): readonly string[] {
  const see =
    missing === null
      ? [
          "A test picture is live. See it:",
          `  ${shown.dashboard}`,
          `      sign in as admin, with the password ${shown.password}`,
          `  ffplay ${shown.play}`,
        ]
      : [
          `There is no test picture: ${missing}. Publish with an encoder of yours, and see it in the dashboard:`,
          `  ${shown.play}`,
          `  ${shown.dashboard}`,
          `      sign in as admin, with the password ${shown.password}`,
        ];
  return [
    ...["", ...see],
    ...["", "Broadcast your camera, as another stream:", `  ${shown.broadcast}`],
    ...["", "Ask the API, and read the guide:"],
    `  curl ${shown.http}/session -H 'x-service-apikey: ${shown.api_key}'`,
    `  ${shown.http}/docs`,
    ...["", "Only this machine can reach it, and nothing is kept. ^C ends it."],
  ];
}

/** One program, which shows no messages of its own. */
function begin(command: string, words: readonly string[], env: Readonly<Record<string, string | undefined>>): Program {
  const process = spawn(command, words, { env, stdio: ["ignore", "pipe", "pipe"] });
  let messages = "";
  process.stderr.setEncoding("utf8").on("data", (text: string) => {
    messages = (messages + text).slice(-MESSAGES_LIMIT);
  });
  const ended = once(process, "close").then(
    ([code, signal]) => `${String(code ?? signal)}`,
    (error: NodeJS.ErrnoException) => (error.code === "ENOENT" ? `${command} is not installed` : error.message),
  );
  return { process, ended, messages: () => messages.trim() };
}

async function end({ process, ended }: Program): Promise<void> {
  process.kill("SIGTERM");
  if ((await inTime(END_LIMIT_MS, ended, null)) !== null) return;
  process.kill("SIGKILL");
  await ended;
}

/** The one line that the service prints where its output is not a terminal. */
async function readyLine({ stdout }: ChildProcess): Promise<Ready> {
  const read = async () => {
    let text = "";
    stdout?.setEncoding("utf8");
    for await (const more of stdout ?? []) {
      text += String(more);
      if (text.includes("\n")) break;
    }
    return JSON.parse(text) as Ready;
  };
  const ready = await inTime(READY_LIMIT_MS, read(), null);
  if (ready === null) throw new DemoFailed("the service was not ready in time");
  return ready;
}

/** Whether something is live, in time. */
async function live(call: <T>(method: string, path: string) => Promise<T>): Promise<boolean> {
  for (let polls = 0; polls < POLLS_LIMIT; polls += 1) {
    const sessions = await call<readonly { readonly video: unknown }[]>("GET", "/session");
    if (sessions.some(({ video }) => video !== null)) return true;
    await pause(POLL_MS);
  }
  return false;
}

async function whyNot(encoder: Program): Promise<string> {
  const why = await inTime(0, encoder.ended, "it was not live in time");
  const [line = ""] = encoder.messages().split("\n").slice(-1);
  return `${/^\d+$/.test(why) ? "ffmpeg has ended" : why}${line === "" ? "" : ` (${line})`}`;
}

/** Moving colours and a tone, at 1280x720 and 25 frames per second. */
const testPicture = (url: string) => [
  ...["-hide_banner", "-loglevel", "error", "-nostdin", "-re"],
  ...[
    "-f",
    "lavfi",
    "-i",
    "testsrc2=size=1280x720:rate=25",
    "-f",
    "lavfi",
    "-i",
    "sine=frequency=440:sample_rate=48000",
  ],
  ...[
    "-c:v",
    "libx264",
    "-preset",
    "veryfast",
    "-tune",
    "zerolatency",
    "-pix_fmt",
    "yuv420p",
    "-g",
    "50",
    "-b:v",
    "2M",
  ],
  ...["-c:a", "aac", "-b:a", "128k", "-f", "flv", url],
];
