// One cell of the push matrix: a stream is pushed to a healthy upstream and beside it to one with a fault.
import { mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { start, until } from "../support/child.ts";
import { gap, mediaPasses, sessionOf } from "../support/drop-outs.ts";
import { decodeComplaints, type Packet } from "../support/ffmpeg.ts";
import { freePort } from "../support/free-port.ts";
import { startHeadgate } from "../support/headgate.ts";
import { isMonotonic, ofTrack, startsAtKeyframe, tracks } from "../support/judge.ts";
import { startNginxRtmp } from "../support/nginx-rtmp.ts";
import { judge } from "../support/pyav.ts";
import { startResettingProxy } from "../support/resetting-proxy.ts";
import type { Outcome } from "./cell.ts";
import { type Source, source } from "./sources.ts";
import type { RunningUpstream, Upstream } from "./upstreams.ts";

export const faults = ["start", "refuse", "drop", "stall", "restart"] as const;
export type Fault = (typeof faults)[number];

/** A recording that is still being written is read again for this long, ms. */
const WRITTEN_LIMIT_MS = 20_000;
/** An FLV file without a tag. */
const EMPTY_FLV_BYTES = 13;
/** Time until the push sends, and until it sends again (it reconnects after at most 30 s). */
const SENDING_LIMIT_MS = 60_000;

export async function runPushCell(upstream: Upstream, fault: Fault, seconds: number): Promise<Outcome> {
  const media = await source("plain", "avc", seconds);
  const folder = mkdtempSync(join(tmpdir(), "headgate-push-"));
  const port = await freePort();
  const options = { folder, port, refuses: fault === "refuse" };
  const healthy = await startNginxRtmp();
  let sick = await upstream.start(options);
  let proxy = await startResettingProxy(port);
  const name = (await upstream.streamName?.(options)) ?? "s";
  const pushes = [`${healthy.url}/{name}`, `rtmp://127.0.0.1:${proxy.port}/live/${name}`];
  const ours = await startHeadgate({ env: { HEADGATE_UPSTREAM_PUSH: pushes.join(",") } });
  const stream = await ours.newStream();
  const feed = start("ffmpeg", [
    ...["-nostdin", "-v", "error", "-re", "-i", media.file, "-c", "copy"],
    ...["-flvflags", "no_duration_filesize", "-f", "flv", `${ours.rtmp}/${stream}`],
  ]);
  const sendings = () => ours.process.stderr().split(`"msg":"upstream sending"`).length - 1;
  const earlier: string[] = [];
  try {
    await until("the push", () => sendings() >= (fault === "refuse" ? 1 : 2), SENDING_LIMIT_MS);
    if (fault === "drop" || fault === "restart" || fault === "stall") {
      await until("some media", () => sick.recordings().length > 0);
      const session = await until("the session", () => sessionOf(ours, stream));
      await mediaPasses(ours, session, (seconds * 1_000) / 4);
    }
    if (fault === "drop") {
      proxy.reset();
      if (upstream.name.startsWith("ffmpeg")) sick = await again(sick, upstream, options, earlier);
      proxy = await startResettingProxy(port, proxy.port);
    }
    if (fault === "restart") sick = await again(sick, upstream, options, earlier);
    if (fault === "stall") {
      sick.process.kill("SIGSTOP");
      await gap((seconds * 1_000) / 4);
      sick.process.kill("SIGCONT");
    }
    if (fault === "drop" || fault === "restart") await until("the push again", () => sendings() >= 3, SENDING_LIMIT_MS);
    await feed.exit;
    const complaints: string[] = [];
    complaints.push(...(await complete("healthy", () => healthy.recording(stream), media, true)));
    if (fault === "refuse") {
      const isMedia = (file: string) => statSync(file).size > EMPTY_FLV_BYTES;
      if (sick.recordings().some(isMedia)) complaints.push("the upstream that refuses got media");
      if (!/"msg":"upstream lost"/.test(ours.process.stderr()))
        complaints.push("the log does not say that it was refused");
    } else {
      complaints.push(
        ...(await complete(upstream.name, () => sick.recordings().at(-1) ?? null, media, fault === "start")),
      );
    }
    return { complaints, figures: summary(ours.process.stderr()) };
  } finally {
    feed.kill("SIGKILL");
    await ours.stop();
    proxy.reset();
    await sick.stop();
    await healthy.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Kills the upstream and starts another on its port. */
async function again(
  sick: RunningUpstream,
  upstream: Upstream,
  options: Parameters<Upstream["start"]>[0],
  earlier: string[],
): Promise<RunningUpstream> {
  earlier.push(...sick.recordings());
  sick.process.kill("SIGKILL");
  await sick.process.exit;
  await sick.stop();
  return await upstream.start(options);
}

/** Faults of a recording that should end as the source does: from an IDR on, or `whole`. */
async function complete(
  where: string,
  find: () => string | null,
  media: Source,
  whole: boolean,
): Promise<readonly string[]> {
  let complaints: string[] = ["nothing"];
  const look = async () => {
    const file = find();
    const seen = file === null ? null : await judge(file).catch(() => null);
    if (file === null || seen === null) complaints = [`${where}: no recording`];
    else {
      complaints = judgeTail(where, media.content.packets, seen.packets, whole);
      if (complaints.length === 0) complaints.push(...[await decodeComplaints(file)].filter((said) => said !== ""));
    }
    return complaints.length === 0;
  };
  await until(where, look, WRITTEN_LIMIT_MS).catch(() => {});
  return complaints;
}

/** Faults of a recording; unless it must be `whole`, it may have gaps that end at an IDR. */
function judgeTail(where: string, want: readonly Packet[], got: readonly Packet[], whole: boolean): string[] {
  const complaints: string[] = [];
  if (!isMonotonic(got)) complaints.push(`${where}: the clock goes back`);
  if (!startsAtKeyframe(got)) complaints.push(`${where}: does not begin at an IDR`);
  for (const track of tracks) {
    const all = ofTrack(want, track);
    const some = ofTrack(got, track);
    let at = -1;
    for (const packet of some) {
      const found = all.findIndex(({ hash }, index) => index > at && hash === packet.hash);
      if (found === -1) complaints.push(`${where}: ${track} at ${packet.dts} ms was never sent`);
      else if (found !== at + 1 && track === "video" && !packet.isKey) {
        complaints.push(`${where}: continues at ${packet.dts} ms without an IDR`);
      }
      at = Math.max(at, found);
    }
    if (at !== all.length - 1) complaints.push(`${where}: ends before the last ${track} packet`);
    if (whole && some.length !== all.length) complaints.push(`${where}: ${some.length} of ${all.length} ${track}`);
  }
  return complaints.slice(0, 5);
}

/** Every state change of the pushes in the log. */
function summary(log: string): string {
  const changes = [...log.matchAll(/"msg":"upstream (sending|lost)"/g)].map(([, change]) => change);
  return changes.join(", ");
}
