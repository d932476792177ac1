// A play token that a player has used says so in the list of tokens; one that was refused does not. Real service, ffmpeg.
import { afterAll, beforeAll, expect, test } from "vitest";
import { start, until } from "../support/child.ts";
import { type Broadcast, broadcast } from "../support/ffmpeg.ts";
import { type Headgate, startHeadgate } from "../support/headgate.ts";

interface Stream {
  readonly id: string;
  readonly state: string;
  readonly ingest: { readonly rtmp: { readonly streamname: string } };
}

let headgate: Headgate;
let publisher: Broadcast | undefined;
beforeAll(async () => {
  headgate = await startHeadgate();
}, 90_000);
afterAll(async () => {
  publisher?.kill("SIGKILL");
  await headgate?.stop();
});

const newStream = async () => (await headgate.call("POST", "/stream")) as unknown as Stream;
/** As a player is given it: a name and what is behind it. */
const playName = async ({ id }: Stream) =>
  (await headgate.call("POST", `/stream/${id}/play-token`))["streamname"] as string;
const lastUsed = async ({ id }: Stream) => {
  const [row] = (await headgate.call("GET", `/token?stream=${id}`)) as unknown as { last_used_at: string | null }[];
  return row?.last_used_at;
};
const play = async (name: string) => await start("ffprobe", ["-v", "error", `${headgate.rtmp}/${name}`]).exit;

test("the last use of a play token is that of a player that was let in", async () => {
  await headgate.call("PUT", "/organisation/settings", { play: "token" });
  const [stream, other] = [await newStream(), await newStream()];
  const name = stream.ingest.rtmp.streamname;
  publisher = broadcast(`${headgate.rtmp}/${name}`, { seconds: 120, size: "160x90" });
  await until("it is live", async () => (await headgate.call("GET", `/stream/${stream.id}`))["state"] === "live");
  const [own, ofAnother] = [await playName(stream), await playName(other)];
  expect([await lastUsed(stream), await lastUsed(other)]).toEqual([null, null]);
  await play(`${name}?${ofAnother.split("?")[1]}`);
  await play(own);
  await until("its use is recorded", async () => (await lastUsed(stream)) !== null);
  expect(await lastUsed(other)).toBeNull();
});
