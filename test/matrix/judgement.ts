// Checks of a cell's results.
import { until } from "../support/child.ts";
import type { CustomerRequest } from "../support/customer.ts";
import { decodeComplaints, type Packet } from "../support/ffmpeg.ts";
import { isMonotonic, ofTrack, payloadBytes, startsAtKeyframe, tracks } from "../support/judge.ts";
import type { NginxRtmp } from "../support/nginx-rtmp.ts";
import { type Judged, judge } from "../support/pyav.ts";
import { beginningOf, type Condition } from "./conditions.ts";
import type { Publisher } from "./publishers.ts";
import type { Source } from "./sources.ts";

interface Case {
  readonly media: Source;
  readonly publisher: Publisher;
  readonly condition: Condition;
}

/** A program that encodes under load sends fewer pictures than its rate says; at least this share has to
 *  arrive. */
const ENCODED_AT_LEAST = 0.5;
/** Packets that a subscriber of a stream without video may miss at its start, where there is no IDR. */
const SOUND_MISSED_LIMIT = 60;
/** Rounding of a clock in ms on its way through a container. */
const ROUNDING_MS = 2;

/** The customer's log of a publish that was accepted (W1, W7, W8, W17). */
export function acceptedCalls(requests: readonly CustomerRequest[], { media, publisher, condition }: Case): string[] {
  const complaints: string[] = [];
  const calls = requests.map(({ call }) => call).join(" ");
  if (!/^publish( update_publish)* publish_done$/.test(calls)) complaints.push(`hook log: ${calls}`);
  const fields = requests.map(({ body }) => new URLSearchParams(body));
  if (new Set(fields.map((of) => of.get("clientid"))).size !== 1) complaints.push("client ids differ");
  for (const { call, body } of requests) {
    if (!body.startsWith(`${publisher.sends(condition.arguments)}&call=${call}&`))
      complaints.push(`${call} changes the arguments: ${body}`);
  }
  const bytesIn = Number(fields.at(-1)?.get("bytes_in"));
  const sent = payloadBytes(media.content.packets);
  const isExact = publisher.copies && !publisher.isHasty && media.codecs === "avc";
  if (isExact ? bytesIn !== sent : !(bytesIn > 0)) complaints.push(`bytes_in ${bytesIn}, sent ${sent}`);
  for (const update of fields.filter((of) => of.get("call") === "update_publish")) {
    const timestamp = Number(update.get("timestamp"));
    const offset = beginningOf(condition, media.seconds);
    const newest = offset + (media.seconds + 1) * 1_000;
    const isInside = timestamp > offset && (timestamp <= newest || !publisher.copies);
    if (!isInside) complaints.push(`update says timestamp ${timestamp}, the clock ran ${offset}–${newest}`);
  }
  return complaints;
}

/** The player's packets: from an IDR on, without a gap to the end. */
export function play(of: Case & { readonly seen: Judged; readonly log: string }): string[] {
  const { seen, media, publisher, condition, log } = of;
  const complaints = wellFormed("player", seen.packets, media);
  complaints.push(...seen.complaints.map((text) => `player: ${text}`));
  const want = media.content;
  for (const track of tracks) {
    if (want.codecs[track] !== seen.codecs[track]) {
      complaints.push(`player: ${track} is ${seen.codecs[track]}, sent as ${want.codecs[track]}`);
    }
  }
  const keepsTime = !(publisher.remakesClock && media.kind === "b-frames");
  if (publisher.copies) complaints.push(...sameEnd("player", want.packets, seen.packets, media, keepsTime));
  else {
    const pictures = Number(/Total frames output: (\d+)/.exec(log)?.[1]);
    const got = ofTrack(seen.packets, "video").length;
    if (got > pictures || got < ENCODED_AT_LEAST * media.seconds * 25) complaints.push(`player: ${got} of ${pictures}`);
  }
  if (condition.media === "sps change" && Object.keys(seen.pictures).length !== 2) {
    complaints.push(`player: pictures of ${Object.keys(seen.pictures).join(", ")}`);
  }
  if (condition.media === "b-frames" && !seen.packets.some(({ compositionMs }) => compositionMs > 0)) {
    complaints.push("player: no composition time");
  }
  return complaints;
}

/** The upstream's recording: everything. */
export async function record(
  of: Case & { readonly upstream: NginxRtmp; readonly name: string },
): Promise<{ readonly complaints: string[]; readonly recorded: Judged }> {
  const { media, publisher, condition, upstream, name } = of;
  // nginx-rtmp does not list HEVC and is sent none; the player has been checked.
  if (media.codecs === "hevc")
    return { complaints: [], recorded: { packets: [], pictures: {}, complaints: [], codecs: {} } };
  const recording = await until("the recording", () => upstream.recording(name));
  // Closed, with everything that nginx had in its buffers.
  await until("the end of the push", () => upstream.hasEnded(name));
  // nginx-rtmp's recorder writes 0 for everything 2^31 ms after the headers; the player's clock has been
  // checked.
  const keepsTime = condition.crossingMs < 2 ** 31;
  const isTimed = keepsTime && !(publisher.remakesClock && media.kind === "b-frames");
  const recorded = await judge(recording);
  const complaints = wellFormed("upstream", recorded.packets, media);
  const want = media.content.packets;
  if (media.codecs === "avc" && keepsTime) {
    const said = await decodeComplaints(recording);
    if (said !== "") complaints.push(`upstream: ${said.slice(0, 500)}`);
  }
  // Opus becomes AAC for an upstream that does not list it; a stream without audio gets silence (R5).
  const comparable = (packets: readonly Packet[]) =>
    media.codecs === "opus" || media.kind === "no audio" ? ofTrack(packets, "video") : packets;
  if (publisher.copies) {
    complaints.push(...sameEnd("upstream", comparable(want), comparable(recorded.packets), media, isTimed));
    const missed = want.length - recorded.packets.length;
    const isWhole =
      condition.hookMs === 0 &&
      !publisher.isHasty &&
      media.kind !== "no video" &&
      media.kind !== "no audio" &&
      media.codecs === "avc";
    if (isWhole && missed !== 0) complaints.push(`upstream: ${missed} packets are missing`);
  }
  return { complaints, recorded };
}

function wellFormed(where: string, packets: readonly Packet[], media: Source): string[] {
  const complaints: string[] = [];
  if (packets.length === 0) complaints.push(`${where}: nothing came`);
  if (!isMonotonic(packets)) complaints.push(`${where}: the clock goes back`);
  if (media.kind !== "no video" && !startsAtKeyframe(packets)) complaints.push(`${where}: does not begin at an IDR`);
  return complaints;
}

/** Whether `got` equals the end of `want`, packet by packet, with the same distances in time. */
function sameEnd(
  where: string,
  want: readonly Packet[],
  got: readonly Packet[],
  media: Source,
  keepsTime = true,
): string[] {
  const complaints: string[] = [];
  for (const track of tracks) {
    const all = ofTrack(want, track);
    const some = ofTrack(got, track);
    const end = all.slice(all.length - some.length);
    const wrong = some.findIndex((packet, at) => packet.hash !== end[at]?.hash);
    if (wrong !== -1 || some.length > all.length) {
      complaints.push(`${where}: ${track} packet ${wrong} of ${some.length} is not what was sent (${all.length})`);
      continue;
    }
    const shift = (some[0]?.dts ?? 0) - (end[0]?.dts ?? 0);
    const late = some.find((packet, at) => Math.abs(packet.dts - (end[at]?.dts ?? 0) - shift) > ROUNDING_MS);
    if (late && keepsTime) complaints.push(`${where}: ${track} changes its time at ${late.dts} ms`);
    const missedLimit = media.kind === "no video" ? SOUND_MISSED_LIMIT : all.length / 2;
    if (all.length - some.length > missedLimit) complaints.push(`${where}: ${some.length} of ${all.length} ${track}`);
  }
  return complaints;
}

/** For the table. */
export function figures(seen: Judged, recorded: Judged, done: CustomerRequest): string {
  const counts = (of: Judged) => tracks.map((track) => ofTrack(of.packets, track).length).join("+");
  const first = seen.packets[0]?.dts ?? 0;
  return (
    `player ${counts(seen)}, upstream ${counts(recorded)}, from ${first} ms, ` +
    `bytes_in ${new URLSearchParams(done.body).get("bytes_in")}`
  );
}
