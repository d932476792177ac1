// `headgate capture`: the running service records a publish to a file. `headgate replay`: replays such a file locally,
// without any service.
import { type FileHandle, open, rm } from "node:fs/promises";
import { setTimeout as pause } from "node:timers/promises";
import { ConfigInvalid } from "../errors.ts";
import type { ReplayOutcome } from "../media/captures.ts";
import { reasonOf } from "../reason.ts";
import { ask, fetchTo, ServiceAnswered } from "./asking.ts";
import type { GivenFlags } from "./flags.ts";
import { print, printLine } from "./output.ts";
import { wanted } from "./words.ts";

/** How often the service is polled for the end of the capture, ms. */
const POLL_MS = 500;
/** Polls in a row without an answer after which the command ends without the capture: a minute if each fails at once. */
const FAILED_POLLS_LIMIT = 120;

/** From the response of POST /capture. */
interface ShownCapture {
  readonly id: string;
  readonly client_id: number | null;
  readonly state: string;
  readonly reason: string | null;
  readonly bytes: number;
  readonly frames: number;
  readonly denied: { readonly times: number; readonly cause: string; readonly client_id: number | null } | null;
}

export async function runCapture(words: readonly string[], flags: GivenFlags): Promise<void> {
  const next = typeof flags.next === "string" ? flags.next : null;
  const [which, path] = next === null ? words : [null, words[0]];
  const target = wanted(path, "the file to write");
  const client = next === null ? clientIdOf(wanted(which ?? undefined, "the client id")) : null;
  // First of all: a path that cannot be written must not cost a capture.
  const file = await created(target);
  let isSaved = false;
  try {
    const begun = (await ask(flags, "POST", "/capture", {
      ...(next === null ? { client_id: client } : { stream: next }),
      ...(typeof flags.seconds === "number" ? { seconds: flags.seconds } : {}),
      media: flags.withoutMedia !== true,
    })) as ShownCapture;
    const one = await saved(flags, begun, file);
    isSaved = one.bytes > 0;
    const said = isSaved ? `${target}: ${one.bytes} bytes, ${one.frames} frames` : "Nothing was captured";
    print(flags, one, [`${said}; the capture ended with ${one.reason}.`]);
  } finally {
    await file.close();
    if (!isSaved) await rm(target, { force: true });
  }
}

/** Throws `ConfigInvalid` when the file exists or cannot be created. */
async function created(target: string): Promise<FileHandle> {
  try {
    return await open(target, "wx", 0o600);
  } catch (cause) {
    throw new ConfigInvalid(`${target} cannot be created: ${reasonOf(cause)}`, { cause });
  }
}

/** Waits for the end of a capture and saves its bytes. */
async function saved(flags: GivenFlags, begun: ShownCapture, file: FileHandle): Promise<ShownCapture> {
  const path = `/capture/${begun.id}`;
  let isStopped = false;
  const stop = () => {
    isStopped = true;
    void ask(flags, "DELETE", path).catch(() => {});
  };
  if (!flags.json) console.log("Capturing until the publish ends or ^C.");
  process.once("SIGINT", stop); // a second one ends the command, as everywhere
  let one = begun;
  try {
    while (one.state !== "ended") {
      await pause(POLL_MS);
      const before = one.denied?.times ?? 0;
      one = await stateOf(flags, path, () => isStopped);
      if (!flags.json && one.denied !== null && one.denied.times > before) printLine(deniedLine(one.denied));
    }
    if (one.bytes > 0) await fetchTo(flags, `${path}/file`, file);
  } catch (error) {
    if (!(error instanceof ServiceAnswered)) throw error;
    const where = `The capture is ${begun.id}: GET ${path} returns its state, and GET ${path}/file its bytes.`;
    throw new ServiceAnswered(`${error.message}\n${where}`, error.status, { cause: error });
  } finally {
    process.off("SIGINT", stop);
  }
  return one;
}

/** Asks again while there is no answer, unless somebody has stopped the capture: it continues meanwhile. */
async function stateOf(flags: GivenFlags, path: string, isStopped: () => boolean): Promise<ShownCapture> {
  for (let failed = 1; ; failed += 1) {
    try {
      return (await ask(flags, "GET", path)) as ShownCapture;
    } catch (error) {
      const mayPass = error instanceof ServiceAnswered && (error.status === null || error.status >= 500);
      if (!mayPass || isStopped() || failed >= FAILED_POLLS_LIMIT) throw error;
      await pause(POLL_MS);
    }
  }
}

function deniedLine({ cause, client_id: clientId }: NonNullable<ShownCapture["denied"]>): string {
  const why = clientId === null ? "" : `: headgate explain ${clientId}`;
  return `A publish was denied (${cause})${why}. Waiting for the next one.`;
}

export async function runReplay([file]: readonly string[], flags: GivenFlags): Promise<void> {
  const path = wanted(file, "the file to play");
  const outcome = await played(path, typeof flags.flv === "string" ? flags.flv : null);
  print(flags, outcome, linesOf(outcome));
}

async function played(path: string, flv: string | null): Promise<ReplayOutcome> {
  const { replayCapture } = await import("../media.ts");
  try {
    return replayCapture(path, flv);
  } catch (error) {
    throw new ConfigInvalid(`${path} cannot be played: ${reasonOf(error)}`, { cause: error });
  }
}

function linesOf(outcome: ReplayOutcome): string[] {
  const { whip, media, fromMiddle, tracks, hash, frames, end, finished, fault, compared, skipped, difference } =
    outcome;
  const seconds = (ms: number) => `${(ms / 1_000).toFixed(3)} s`;
  const requests = whip
    ? [
        `Packets    ${outcome.lost ?? 0} lost, ${outcome.nacks ?? 0} requested again, ${outcome.recovered ?? 0} recovered; ` +
          `${outcome.plis ?? 0} keyframes requested`,
      ]
    : [];
  return [
    `${whip ? "WHIP" : "RTMP"}, ${fromMiddle ? "from mid-publish" : "from the first byte"}, ${media ? "with" : "without"} media; captured until ${finished ?? "the file was cut off"}`,
    ...tracks.map((track) => {
      const first = track.firstKeyframeMs;
      const keyframes = first === null ? "" : `, ${track.keyframes} keyframes, the first at ${seconds(first)}`;
      return (
        `${track.codec.padEnd(10)} ${track.frames} frames, ${track.bytes} bytes, ${seconds(track.firstMs)} to ${seconds(track.lastMs)}` +
        `${keyframes}; ${track.holes} gaps, ${track.stepsBack} timestamps going back`
      );
    }),
    ...requests,
    `End        ${end ?? "none: the publish continued"}`,
    `Output     ${frames} messages, hash ${hash}`,
    ...(fault === null ? [] : [`Damaged    ${fault}`]),
    difference === null
      ? `Same outcome as the live publish: ${compared} frames compared${skipped > 0 ? `, ${skipped} before the first keyframe skipped` : ""}.`
      : `Different from the live publish: ${difference}.`,
  ];
}

function clientIdOf(word: string): number {
  if (!/^\d{1,16}$/.test(word)) throw new ConfigInvalid(`${word} is not a client id: headgate sessions ls`);
  return Number(word);
}
