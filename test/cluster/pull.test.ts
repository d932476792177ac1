// Any node plays any stream: what is published at one node is played from another with real programs. ffmpeg
// and FFmpeg 8 broadcast, ffprobe (which does not support Opus over RTMP) and FFmpeg 8 (which does) play.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { source } from "../matrix/sources.ts";
import { start, until } from "../support/child.ts";
import { type Broadcast, broadcast, packetsOf } from "../support/ffmpeg.ts";
import { content, isMonotonic, ofTrack, startsAtKeyframe } from "../support/judge.ts";
import { type Node, startNode } from "../support/nodes.ts";
import { python, watch } from "../support/pyav.ts";
import { startResettingProxy } from "../support/resetting-proxy.ts";
import { inWholeRun } from "../support/whole-run.ts";

/** How long a player of a pull waits at most for the first frame, and how long a pull continues without
 *  players, ms. */
const PULL_LIMIT_MS = 5_000;
const SECONDS = 6;

let here: Node;
let there: Node;
let streams = 0;

beforeAll(async () => {
  here = await startNode();
  there = await startNode();
});
beforeEach(() => {
  here.finds(() => null);
  there.finds((name) => here.live(name));
});
afterAll(async () => {
  await here?.stop();
  await there?.stop();
});

function newStream(): Promise<string> {
  streams += 1;
  return here.newStream(`Ab1Cd-pull${streams}`);
}

/** A stream from ffmpeg that is live at the first node. */
async function live(seconds = SECONDS): Promise<{ name: string; clientId: number; encoder: Broadcast }> {
  const name = await newStream();
  const encoder = broadcast(`${here.rtmp}/${name}`, { seconds, gop: 1_000 });
  const clientId = await until("the stream is live", () => here.live(name)?.clientId);
  // Its headers and first frames have arrived.
  await until("some media", () => (here.media.snapshot(clientId)?.videoFrames ?? 0) > 5);
  return { name, clientId, encoder };
}

/** Plays until the stream ends. */
const play = (node: Node, name: string) => packetsOf(`${node.rtmp}/${name}`);

/** ffprobe's output for a refused play. */
async function refusal(node: Node, name: string): Promise<string> {
  const words = await packetsOf(`${node.rtmp}/${name}`).then(
    () => "it plays",
    (error: Error) => error.message,
  );
  return words.replaceAll(node.rtmp, "").replace(/ @ 0x\w+/g, "");
}

const pullOf = (node: Node, name: string) => node.media.pulls().find((pull) => pull.name === name);
const endsOf = (node: Node, clientId: number) => node.lines("pull ended").filter((line) => line.clientId === clientId);

describe("a stream of H.264 and AAC that is published at one node", () => {
  test("is played from another frame for frame, over one connection, until it ends", async () => {
    const { name, clientId, encoder } = await live();
    const atSource = play(here, name);
    const first = play(there, name);
    await until("the pull", () => pullOf(there, name)?.state === "playing");
    const second = play(there, name);
    await until("both players", () => pullOf(there, name)?.players === 2);
    expect(pullOf(there, name)).toMatchObject({ clientId, url: here.rtmp });
    await until("the source's own player", () => here.media.players(clientId).length === 1);
    const plays = here.lines("player started").filter((line) => line.clientId === clientId);
    expect(plays.filter(({ node }) => node === true)).toHaveLength(1);
    expect(await encoder.exit, encoder.stderr()).toBe(0);

    const want = content(await atSource);
    expect(want.video.length).toBeGreaterThan(100);
    expect(content(await first)).toEqual(want);
    expect(content(await second)).toEqual(want);
    const [ended] = await until("the end of the pull", () => endsOf(there, clientId).slice(0, 1));
    expect(ended).toMatchObject({ reason: "source_ended" });
    // Counted once: here what the player of this node received, there what the two of that node did.
    const { bytesIn, bytesOut } = ended as { bytesIn: number; bytesOut: number };
    expect(bytesOut).toBe(2 * bytesIn);
    const publish = await until("the end", () =>
      here.lines("publish ended").find((line) => line.clientId === clientId),
    );
    expect(publish).toMatchObject({ bytesIn, bytesOut: bytesIn });
    expect(there.media.pulls()).toEqual([]);
    expect(there.lines("publish started")).toEqual([]);
  });

  inWholeRun("is pulled until five seconds after its last player has left", async () => {
    const { name, clientId, encoder } = await live(60);
    const player = watch(`${there.rtmp}/${name}`, 0);
    await until("the player", () => pullOf(there, name)?.players === 1);
    player.stop();
    await until("the player is gone", () => pullOf(there, name)?.players === 0);
    const left = performance.now();
    await until("the end of the pull", () => endsOf(there, clientId).length > 0);
    expect(performance.now() - left).toBeGreaterThan(PULL_LIMIT_MS - 1_000);
    expect(endsOf(there, clientId)).toMatchObject([{ reason: "unread" }]);
    expect(here.publishing.running().map((publish) => publish.clientId)).toContain(clientId);
    encoder.kill("SIGKILL");
    await encoder.exit;
  });

  test("continues for its players when the connection between the nodes breaks", async () => {
    const proxy = await startResettingProxy(Number(new URL(here.rtmp).port));
    there.finds((name) => here.live(name, `rtmp://127.0.0.1:${proxy.port}`));
    const { name, encoder } = await live();
    const [atSource, far] = [play(here, name), play(there, name)];
    await until("some media", () => (pullOf(there, name)?.bytesOut ?? 0) > 50_000);
    proxy.drop();
    expect(await encoder.exit, encoder.stderr()).toBe(0);
    expect(content(await far)).toEqual(content(await atSource));
    proxy.reset();
  });

  inWholeRun("is pulled over TLS when its address says so", async () => {
    there.finds((name) => here.live(name, here.rtmpsOrigin));
    const { name, encoder } = await live();
    const [atSource, far] = [play(here, name), play(there, name)];
    await until("the pull", () => pullOf(there, name)?.url === `${here.rtmpsOrigin}/live`);
    expect(await encoder.exit, encoder.stderr()).toBe(0);
    expect(content(await far)).toEqual(content(await atSource));
  });

  test("can be previewed where it is pulled", async () => {
    const { name, clientId, encoder } = await live(60);
    const player = watch(`${there.rtmp}/${name}`, 0);
    await until("the player", () => pullOf(there, name)?.state === "playing");
    const preview = there.media.openPreview(clientId, () => {});
    const data = await until("its bytes", () => preview?.read().data);
    expect(Buffer.from(data.subarray(0, 3)).toString()).toBe("FLV");
    preview?.close();
    player.stop();
    encoder.kill("SIGKILL");
    await encoder.exit;
  });
});

inWholeRun("Opus is passed to players that list it, and made AAC for the others at their node", async () => {
  const clip = await source("plain", "opus", SECONDS);
  const name = await newStream();
  const url = `${here.rtmp}/${name}`;
  const publisher = start(python(), ["test/fixtures/publish.py", clip.file, url]);
  await until("the stream is live", () => here.live(name));
  const atSource = watch(url, 10);
  const far = watch(`${there.rtmp}/${name}`, 10);
  const aac = play(there, name);
  await until("its transcoder", () => there.media.transcoders() === 1);
  expect(here.media.transcoders()).toBe(0);
  expect(await publisher.exit, publisher.stderr()).toBe(0);
  const [want, seen] = [await atSource.seen, await far.seen];
  expect(seen.codecs).toEqual({ video: "h264", audio: "opus" });
  expect(content(seen.packets)).toEqual(content(want.packets));
  const heard = await aac;
  expect(ofTrack(heard, "audio").length).toBeGreaterThan(100);
  expect(isMonotonic(heard) && startsAtKeyframe(heard)).toBe(true);
});

describe("a name", () => {
  test("that is live nowhere is refused as on a single node", async () => {
    const name = await newStream();
    const words = await refusal(here, name);
    expect(words).toContain("No such stream");
    expect(await refusal(there, name)).toBe(words);
  });

  test("that is live elsewhere is refused by its organisation's rule before anything is pulled", async () => {
    const { name, encoder } = await live(60);
    await there.change({ play: "token" });
    expect(await refusal(there, name)).toContain("A play token for this stream is required");
    await there.change({ play: "open" });
    expect(there.media.pulls().map((pull) => pull.name)).not.toContain(name);
    encoder.kill("SIGKILL");
    await encoder.exit;
  });

  test("that each node believes to be on the other is refused: no node pulls a pull", async () => {
    const name = await newStream();
    const clientId = 1_000_007;
    const about = { clientId, organisationId: "org1", streamId: `stream ${name}`, address: "127.0.0.1" };
    here.finds(() => ({ ...about, url: `${there.rtmp}/${name}?headgate-node=of-these-tests` }));
    there.finds(() => ({ ...about, url: `${here.rtmp}/${name}?headgate-node=of-these-tests` }));
    expect(await refusal(there, name)).toContain("No such stream");
    expect(endsOf(there, clientId)).toMatchObject([{ reason: "refused" }]);
    expect(endsOf(here, clientId)).toEqual([]);
    // Nor for a player that only claims to be a node.
    expect(await refusal(here, `${name}?headgate-node=forged`)).toContain("No such stream");
    expect(endsOf(here, clientId)).toEqual([]);
  });

  test("that is published where it is being pulled ends the pull there", async () => {
    const { name, clientId, encoder } = await live(60);
    await there.newStream(name);
    const far = play(there, name);
    await until("the pull", () => pullOf(there, name)?.state === "playing");
    const moved = broadcast(`${there.rtmp}/${name}`, { seconds: 60 });
    await until("the end of the pull", () => endsOf(there, clientId)[0]?.reason === "published_here");
    // Its players are disconnected, like those of a replaced publish.
    expect(isMonotonic(await far)).toBe(true);
    await until("the publish", () => there.live(name));
    for (const child of [encoder, moved]) {
      child.kill("SIGKILL");
      await child.exit;
    }
  });
});
