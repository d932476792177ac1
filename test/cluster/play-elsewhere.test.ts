// Players of streams that are live on another node, and other nodes that play: who is asked, and what the
// media core is told.
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { ElsewhereLive } from "../../ts/publish/players.ts";
import { openStage, STREAM, type Stage } from "../support/publishing.ts";

const PLAYER = "198.51.100.9";
const SOURCE = { clientId: 71, url: `rtmp://node-2.example/live/${STREAM}?headgate-node=abc`, address: "192.0.2.2" };
const LIVE = { ...SOURCE, organisationId: "org1", streamId: `stream ${STREAM}` };

let stage: Stage;
let live: ElsewhereLive | null | Error;
let asked: string[];
let requests = 100_000;

beforeEach(async () => {
  live = LIVE;
  asked = [];
  const otherNodes = {
    async elsewhere(name: string) {
      asked.push(name);
      if (live instanceof Error) throw live;
      return live;
    },
    isNode: (name: string, custom: Uint8Array | null) =>
      name === STREAM && Buffer.from(custom ?? []).toString() === "headgate-node=held",
  };
  stage = await openStage({ webhook: null, ca: null, otherNodes });
});
afterEach(() => stage.close());

/** The media core's answer about a player of `STREAM`. */
async function ask(clientId: number | null, custom: string | null = null) {
  requests += 1;
  const request = requests;
  const [name, bytes] = [Buffer.from(STREAM), custom === null ? null : Buffer.from(custom)];
  stage.publishing.handle({ kind: "play_requested", request, name, clientId, arguments: bytes, address: PLAYER });
  return await stage.answered(request);
}

/** The source that the media core is told for a pull. */
async function locate(pull: number) {
  stage.publishing.handle({ kind: "source_wanted", pull, name: Buffer.from(STREAM), clientId: LIVE.clientId });
  // Everything is sent by the time of the next answer.
  await ask(null);
  const told = stage.media.commands.filter((each) => each.command === "dial_pull");
  return told.filter((each) => each.pull === pull).map(({ source }) => source);
}

const ended = (player: number) => ({ kind: "play_ended", player, bytesOut: 0, droppedFrames: 0 }) as const;

describe("a player of a name that is not live on this node", () => {
  test("is served from the node where the stream is live", async () => {
    expect(await ask(null)).toEqual({ command: "pull", request: requests, ...SOURCE });
    expect(asked).toEqual([STREAM]);
    expect(stage.log()).toContain('"source":"192.0.2.2"');
    expect(stage.log()).not.toContain("headgate-node");
    stage.publishing.handle(ended(requests));
    expect(stage.log()).toContain('"msg":"player ended"');
  });

  test("is refused as an unknown stream when it is live nowhere, and no player starts", async () => {
    live = null;
    expect(await ask(null)).toMatchObject({ command: "deny", code: "bad_name", description: "No such stream" });
    expect(stage.log()).not.toContain("player started");
  });

  test("is subject to the play rule of the stream's organisation", async () => {
    await stage.change({ play: "addresses", play_addresses: ["203.0.113.0/24"] });
    expect(await ask(null)).toMatchObject({ command: "deny", description: "This address may not play the stream" });
  });

  test("is refused while its node cannot be determined", async () => {
    live = new Error("the database is gone");
    expect(await ask(null)).toMatchObject({ command: "deny", code: "denied", description: "Internal error" });
  });

  test("is refused when the media core cannot use the other node's address", async () => {
    stage.media.pull = () => {
      throw new Error("not an IP address");
    };
    expect(await ask(null)).toMatchObject({ command: "deny", code: "denied", description: "Internal error" });
  });
});

describe("another node", () => {
  test("plays what is published here, whatever the organisation's rule, and is not counted", async () => {
    const clientId = await stage.allowed(STREAM);
    await stage.change({ play: "token" });
    expect(await ask(clientId, "headgate-node=held")).toMatchObject({ command: "allow_play", counted: false });
    expect(await ask(clientId, "headgate-node=forged")).toMatchObject({ command: "deny", code: "denied" });
    await stage.change({ play: "open" });
    expect(await ask(clientId, "headgate-node=forged")).toMatchObject({ command: "allow_play", counted: true });
  });

  test.each(["headgate-node=held", "headgate-node=forged", "x=1&headgate-node="])(
    "or a player that claims to be one by %s gets nothing that would have to be pulled",
    async (custom) => {
      expect(await ask(null, custom)).toMatchObject({ command: "deny", code: "bad_name" });
      expect(asked).toEqual([]);
    },
  );
});

describe("a pull that lost its connection", () => {
  test("is told where its publish is now", async () => {
    expect(await locate(5)).toEqual([SOURCE]);
  });

  test("ends when that publish is live nowhere, or another one has its name", async () => {
    live = null;
    expect(await locate(5)).toEqual([null]);
    live = { ...LIVE, clientId: 72 };
    expect(await locate(6)).toEqual([null]);
  });

  test("gets no answer while its node cannot be determined", async () => {
    live = new Error("the database is gone");
    expect(await locate(5)).toEqual([]);
  });
});

test("the end of a pull is logged, and what its players received is counted", async () => {
  const [name, detail] = [Buffer.from(STREAM), "closed by the source"];
  const end = { clientId: 71, reason: "lost", detail, bytesIn: 10, bytesOut: 20 } as const;
  stage.publishing.handle({ kind: "pull_ended", name, ...end });
  const line = stage
    .log()
    .split("\n")
    .find((each) => each.includes('"msg":"pull ended"'));
  expect(JSON.parse(line ?? "{}")).toMatchObject(end);
  expect(await stage.metrics.registry.metrics()).toContain('headgate_media_bytes_total{direction="out"} 20\n');
});
