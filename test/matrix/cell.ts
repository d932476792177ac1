// One cell: a program publishes under a condition, and the result is checked: frames, clock, IDR, decoding,
// the customer's log.

import { inTime } from "../../ts/in-time.ts";
import { until } from "../support/child.ts";
import { watch } from "../support/pyav.ts";
import { beginningOf, type Condition, DENIAL } from "./conditions.ts";
import type { House } from "./house.ts";
import { acceptedCalls, figures, play, record } from "./judgement.ts";
import { ffmpeg, type Publisher, type Running } from "./publishers.ts";
import { type Source, source } from "./sources.ts";

export interface Outcome {
  /** Faults; empty when the cell has passed. */
  readonly complaints: readonly string[];
  /** What was measured, for the table. */
  readonly figures: string;
}

/** How long a program may take to start, and to end, beyond the media's own length, ms. */
const SLACK_MS = 60_000;

export async function runCell(
  house: House,
  publisher: Publisher,
  condition: Condition,
  seconds: number,
): Promise<Outcome> {
  // Some programs' clocks run while they wait: the remaining length counts.
  const media = await source(condition.media, publisher.codecs, seconds + 2 * (condition.hookMs / 1_000));
  const name = await house.newStream();
  const offsetS = beginningOf(condition, seconds) / 1_000;
  const publish = () => publisher.publish(`${house.rtmp}/${name}?${condition.arguments}`, media, offsetS, condition);
  switch (condition.fate) {
    case "accepted":
      return await accepted({ house, publisher, condition, name, media, publish });
    case "denied":
      return await denied({ house, publisher, name, publish });
    case "duplicate":
      return await duplicate({ house, publisher, name, seconds, publish });
  }
}

async function accepted(cell: {
  readonly house: House;
  readonly publisher: Publisher;
  readonly condition: Condition;
  readonly name: string;
  readonly media: Source;
  publish(): Promise<Running>;
}): Promise<Outcome> {
  const { house, publisher, condition, name, media } = cell;
  house.decide(name, () => ({ status: 200, afterMs: condition.hookMs }));
  const viewer = watch(`${house.rtmp}/${name}`, SLACK_MS / 1_000);
  const program = await cell.publish();
  try {
    await house.hears(name, "publish", SLACK_MS);
    // A program that runs until it is ended runs for the media's length.
    const limit = condition.hookMs + media.seconds * 1_000;
    await inTime(publisher.copies ? limit + SLACK_MS : limit, program.ended, null);
    if (!publisher.copies) await program.stop();
    const done = await house.hears(name, "publish_done", SLACK_MS);
    const seen = await viewer.seen;
    const judged = await record({ upstream: house.upstream, name, media, publisher, condition });
    const complaints = [
      ...acceptedCalls(house.heard(name), { condition, media, publisher }),
      ...play({ seen, media, publisher, condition, log: program.log() }),
      ...judged.complaints,
    ];
    return { complaints, figures: figures(seen, judged.recorded, done) };
  } catch (error) {
    throw new Error(`${(error as Error).message}; ${publisher.name} said: ${program.log().slice(-1_500)}`);
  } finally {
    viewer.stop();
    await program.stop();
  }
}

async function denied(cell: {
  readonly house: House;
  readonly publisher: Publisher;
  readonly name: string;
  publish(): Promise<Running>;
}): Promise<Outcome> {
  const { house, publisher, name } = cell;
  house.decide(name, () => ({ status: 403, body: DENIAL, headers: { "content-type": "text/plain" } }));
  const { said, complaints } = await refused(publisher, cell.publish, DENIAL);
  const calls = house.heard(name).map(({ call }) => call);
  if (calls.length === 0 || calls.some((call) => call !== "publish")) complaints.push(`hook log ${calls.join(" ")}`);
  if (house.upstream.recording(name) !== null) complaints.push("media reached the upstream");
  return { complaints, figures: said };
}

async function duplicate(cell: {
  readonly house: House;
  readonly publisher: Publisher;
  readonly name: string;
  readonly seconds: number;
  publish(): Promise<Running>;
}): Promise<Outcome> {
  const { house, publisher, name, seconds } = cell;
  // The live one: long enough for a slow program to connect and be refused.
  const media = await source("plain", "avc", seconds + 10);
  const condition = {
    name: "first",
    media: "plain",
    fate: "accepted",
    arguments: "a=1",
    hookMs: 0,
    crossingMs: 0,
  } as const;
  const first = await ffmpeg.publish(`${house.rtmp}/${name}?a=1`, media, 0, condition);
  try {
    await house.hears(name, "publish");
    await until("the first is live", () => house.upstream.recording(name));
    const { said, complaints } = await refused(publisher, cell.publish, "live");
    await inTime(media.seconds * 1_000 + SLACK_MS, first.ended, null);
    await house.hears(name, "publish_done");
    const judged = await record({ upstream: house.upstream, name, media, publisher: ffmpeg, condition });
    const calls = acceptedCalls(house.heard(name), { condition, media, publisher: ffmpeg });
    return { complaints: [...complaints, ...calls, ...judged.complaints], figures: said };
  } finally {
    await first.stop();
  }
}

/** Lets the program be refused; returns its message, and the faults in it. */
async function refused(
  publisher: Publisher,
  publish: () => Promise<Running>,
  description: string,
): Promise<{ said: string; complaints: string[] }> {
  const program = await publish();
  try {
    const { pattern, description: isShown } = publisher.showsRefusal;
    const look = () => pattern.exec(program.log())?.[0];
    const said = await until("a refusal", look, SLACK_MS).catch((error: Error) => {
      throw new Error(`${error.message}; ${publisher.name} said: ${program.log().slice(-1_500)}`);
    });
    const complaints: string[] = [];
    if (isShown && !said.includes(description)) complaints.push(`shows another reason: ${said}`);
    return { said: said.trim(), complaints };
  } finally {
    await program.stop();
  }
}
