// Play tokens and web tokens are valid only for their own purpose.
import { afterEach, beforeEach, expect, test } from "vitest";
import { openStage, STREAM, type Stage } from "../support/publishing.ts";

let stage: Stage;
beforeEach(async () => {
  stage = await openStage({ webhook: null, ca: null });
});
afterEach(() => stage.close());

test("a play token is valid only for playing, a web token only for publishing", async () => {
  const { tokens, clock } = stage;
  const exp = clock.ms / 1_000 + 60;
  const play = await tokens.issueForPlay({ streamname: STREAM, exp, org: "Ab1Cd" });
  const web = await tokens.issue({
    streamname: STREAM,
    ingesturl: "rtmp://in.example/live",
    exp,
    nbf: null,
    org: null,
  });
  expect(await tokens.verifyForPlay(play)).toMatchObject({ streamname: STREAM });
  expect(await tokens.verify(web)).toMatchObject({ streamname: STREAM, ingesturl: "rtmp://in.example/live" });
  await expect(tokens.verifyForPlay(web)).rejects.toThrow("jwt malformed");
  await expect(tokens.verify(play)).rejects.toThrow("jwt malformed");
  for (const token of [play, web]) expect((await tokens.verifyAny(token)).streamname).toBe(STREAM);
});
