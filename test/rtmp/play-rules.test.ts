// Who may play: the organisation's rule, the operator's networks, and a line in the log for each player.
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { openStage, STREAM, type Stage } from "../support/publishing.ts";

const PLAYER = "198.51.100.9";
const claims = { streamname: STREAM, exp: 0, nbf: 0, iat: 0, iss: "", jti: "", revision: 0, org: "Ab1Cd" };

let stage: Stage;
let clientId: number;
let players = 100_000;

beforeEach(async () => {
  stage = await openStage({ webhook: null, ca: null, settings: { playAllow: ["198.51.100.0/24", "2001:db8::/32"] } });
  clientId = await stage.allowed(STREAM);
});
afterEach(() => stage.close());

/** The media core's answer about a player. */
async function ask(custom: string | null, { address = PLAYER, publish = clientId } = {}) {
  players += 1;
  const bytes = custom === null ? null : Buffer.from(custom);
  const request = players;
  const name = Buffer.from(STREAM);
  stage.publishing.handle({ kind: "play_requested", request, name, clientId: publish, arguments: bytes, address });
  return await stage.answered(request);
}

describe("a player", () => {
  test("plays by the name alone where nothing else is set", async () => {
    expect(await ask(null)).toMatchObject({ command: "allow_play" });
    expect(await ask("token=whatever")).toMatchObject({ command: "allow_play" });
  });

  test("of a publish that has just ended is refused as an unknown stream", async () => {
    expect(await ask(null, { publish: 4 })).toMatchObject({ command: "deny", code: "bad_name" });
  });

  test.each([
    ["203.0.113.7", "deny"],
    ["::ffff:203.0.113.7", "deny"],
    ["::ffff:198.51.100.200", "allow_play"],
    ["2001:db8::7", "allow_play"],
    ["2001:db9::7", "deny"],
  ])("at %s is checked against the operator's networks first", async (address, command) => {
    expect(await ask(null, { address })).toMatchObject({ command });
  });

  test.each([
    ["198.51.100.9", "allow_play"],
    ["198.51.100.10", "deny"],
    ["2001:db8::1", "allow_play"],
    ["2001:db8:1::1", "deny"],
  ])("at %s is checked against the organisation's addresses", async (address, command) => {
    await stage.change({ play: "addresses", play_addresses: ["198.51.100.9", "2001:db8::/48"] });
    expect(await ask("token=a.b.c", { address })).toMatchObject({ command });
  });

  test.each([
    ["of the stream", { ...claims }, "allow_play"],
    ["of another stream", { ...claims, streamname: "Ab1Cd-other" }, "deny"],
  ])("with a play token %s gets %o: %s", async (_, held, command) => {
    await stage.change({ play: "token" });
    stage.tokens.verifyForPlay = async (token) => {
      expect(token).toBe("a.b.c");
      return held;
    };
    expect(await ask("x=1&token=a.b.c")).toMatchObject({ command });
  });

  test("without a play token, or with an invalid one, is refused with a reason", async () => {
    await stage.change({ play: "token" });
    for (const custom of [null, "", "token=", "token=a.b.c", "Token=a.b.c"]) {
      expect(await ask(custom)).toMatchObject({
        command: "deny",
        code: "denied",
        description: "A play token for this stream is required",
      });
    }
  });
});

describe("while the store cannot be read", () => {
  test("the last rule that was read applies, and without one nobody plays", async () => {
    expect(await ask(null)).toMatchObject({ command: "allow_play" });
    await stage.change({ play: "token" });
    await ask(null);
    stage.clock.ms += 60_000;
    await stage.db.schema.alterTable("organisation_setting").renameTo("gone").execute();
    expect(await ask(null)).toMatchObject({ command: "deny", description: "A play token for this stream is required" });
    await stage.db.schema.alterTable("gone").renameTo("organisation_setting").execute();
  });
});

describe("the log", () => {
  const lines = (message: string): Record<string, unknown>[] =>
    stage
      .log()
      .split("\n")
      .filter((line) => line.includes(`"msg":"${message}"`))
      .map((line) => JSON.parse(line));

  test("says when a player began and ended, of which stream, from where, and how much it received", async () => {
    await ask("token=secret");
    stage.clock.ms += 5_400;
    stage.publishing.handle({ kind: "play_ended", player: players, bytesOut: 7, droppedFrames: 2 });
    const who = { clientId, organisation: "org1", stream: `stream ${STREAM}`, player: players, address: PLAYER };
    expect(lines("player started")).toMatchObject([who]);
    expect(lines("player ended")).toMatchObject([{ ...who, seconds: 5, bytesOut: 7, droppedFrames: 2 }]);
    expect(stage.log()).not.toContain("secret");
  });

  test("says why a player was refused", async () => {
    await ask(null, { address: "203.0.113.7" });
    await stage.change({ play: "token" });
    await ask(null);
    expect(lines("player denied").map(({ cause }) => cause)).toEqual(["address", "token_required"]);
  });

  test("lists refused connections, and only counts them beyond a limit", () => {
    const refused = { kind: "connection_refused", address: PLAYER, code: "app", detail: "it asked for another app" };
    for (let n = 0; n < 100; n += 1) stage.publishing.handle({ ...refused, kind: "connection_refused" });
    expect(lines("RTMP connection refused")).toHaveLength(30);
    expect(lines("RTMP connection refused")[0]).toMatchObject({ address: PLAYER, code: "app" });
    stage.clock.ms += 60_000;
    stage.publishing.handle({ ...refused, kind: "connection_refused" });
    expect(lines("more RTMP connections were refused than are logged one by one")).toMatchObject([{ omitted: 70 }]);
    expect(lines("RTMP connection refused")).toHaveLength(31);
  });
});
