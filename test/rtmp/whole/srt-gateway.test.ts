// The gateway of docs/recipes.md: an encoder publishes by SRT, and its stream is played by RTMP.
import { readFileSync } from "node:fs";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Child, run, start, until } from "../../support/child.ts";
import { freePort } from "../../support/free-port.ts";
import { type Headgate, startHeadgate } from "../../support/headgate.ts";

/** Also how long an encoder waits for a gateway that has not opened its port yet, ms. */
const ATTEMPT_MS = 3_000;
/** Both ffmpeg read five seconds of the stream before they write. */
const PUBLISHED_LIMIT_MS = 45_000;

let headgate: Headgate;
const children: Child[] = [];

beforeAll(async () => {
  headgate = await startHeadgate();
});
afterAll(async () => {
  for (const child of children) child.kill("SIGKILL");
  await headgate?.stop();
});

test("H.264 and AAC by SRT are published unchanged by ffmpeg", async () => {
  const [, command = ""] = /^```sh\n(ffmpeg .*?)^```$/ms.exec(readFileSync("docs/recipes.md", "utf8")) ?? [];
  const name = await headgate.newStream();
  const port = await freePort(); // of TCP; the one of UDP is as likely free
  const here = command
    .replace("0.0.0.0:9000", `127.0.0.1:${port}`)
    .replace("rtmp://localhost:1935/live/Ab1Cd-9XyZ0", `${headgate.rtmp}/${name}`);
  const gateway = start("sh", ["-c", `exec ${here}`]);
  const pattern = ["-re", "-f", "lavfi", "-i", "testsrc=size=320x180:rate=25", "-f", "lavfi", "-i", "sine"];
  const encoding = ["-c:v", "libx264", "-preset", "ultrafast", "-g", "25", "-pix_fmt", "yuv420p", "-c:a", "aac"];
  const target = `srt://127.0.0.1:${port}?passphrase=at-least-ten-characters&connect_timeout=${ATTEMPT_MS}`;
  const encoder = () => start("ffmpeg", ["-nostdin", "-v", "error", ...pattern, ...encoding, "-f", "mpegts", target]);
  children.push(gateway);
  let publisher: Child | null = null;
  let hasEnded = true;
  const sessions = await until(
    "the publish",
    async () => {
      if (hasEnded) {
        // The gateway may not listen yet.
        publisher = encoder();
        children.push(publisher);
        hasEnded = false;
        publisher.exit.finally(() => (hasEnded = true));
      }
      const all = (await headgate.call("GET", "/session")) as unknown as { protocol: string }[];
      return all.length > 0 ? all : null;
    },
    PUBLISHED_LIMIT_MS,
  );
  expect(sessions, gateway.stderr()).toEqual([expect.objectContaining({ protocol: "rtmp" })]);
  const probe = await run("ffprobe", [
    "-v",
    "error",
    "-show_entries",
    "stream=codec_name",
    "-of",
    "csv=p=0",
    `${headgate.rtmp}/${name}`,
  ]);
  expect(probe.stdout().trim().split("\n").sort()).toEqual(["aac", "h264"]);
  children.at(-1)?.kill("SIGINT");
  expect(await gateway.exit).toBe(0);
});
