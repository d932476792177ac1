// Addresses as programs split them and people write them, sent by ffmpeg with exactly these values: what the webhook gets,
// and the words of a refusal.
import { afterAll, beforeAll, expect, test } from "vitest";
import { run, start, until } from "../support/child.ts";
import { type Customer, startCustomer } from "../support/customer.ts";
import { sessionOf } from "../support/drop-outs.ts";
import { type Headgate, startHeadgate } from "../support/headgate.ts";

let customer: Customer;
let headgate: Headgate;
let name: string;

beforeAll(async () => {
  customer = await startCustomer();
  headgate = await startHeadgate({ customer });
  name = await headgate.newStream();
}, 90_000);
afterAll(async () => {
  await headgate?.stop();
  await customer?.close();
});

function publish(app: string, key: string, seconds = 1) {
  const port = new URL(headgate.rtmp.replace("rtmp", "http")).port;
  return start("ffmpeg", [
    ...["-nostdin", "-loglevel", "warning", "-re", "-f", "lavfi", "-i", "testsrc=size=160x90:rate=25"],
    ...["-t", String(seconds), "-c:v", "libx264", "-preset", "ultrafast", "-pix_fmt", "yuv420p", "-f", "flv"],
    ...["-rtmp_app", app, "-rtmp_playpath", key, `rtmp://127.0.0.1:${port}/`],
  ]);
}

test.each([
  ["OBS with multitrack video and the whole address as server", "live/NAME?passcode=x", "?passcode=x", "passcode=x"],
  ["Larix, with the name in the address and as key", "live/NAME", "NAME?passcode=a%2Fb", "passcode=a%2Fb"],
  ["a pasted key with blanks and a line break", "live", " NAME?passcode=x\r\n", "passcode=x"],
  ["a whole URL as key", "Live/", "rtmp://ingest.example:1935/live/NAME?passcode=x", "passcode=x"],
  ["slashes", "/live//", "/NAME/?passcode=/x/", "passcode=/x/"],
  ["Flash Media Server's way", "live/_definst_", "mp4:NAME?passcode=x", "passcode=x"],
  ["an encoded question mark", "live", "NAME%3Fpasscode%3Dx", "passcode=x"],
])(
  "%s",
  async (_, app, key, wanted) => {
    const before = customer.calls("publish").length;
    const encoder = publish(app.replace("NAME", name), key.replace("NAME", name));
    const { body } = await customer.received("publish", before + 1);
    expect(await encoder.exit, encoder.stderr()).toBe(0);
    expect(body).toContain(wanted);
    expect(new URLSearchParams(body).getAll("passcode")).toHaveLength(1);
    expect(new URLSearchParams(body).get("name")).toBe(name);
    await customer.received("publish_done", before + 1);
  },
  30_000,
);

test("a player may write it in the same ways", async () => {
  const encoder = publish("live", name, 30);
  await until("it is live", () => sessionOf(headgate, name));
  const port = new URL(headgate.rtmp.replace("rtmp", "http")).port;
  const words = [
    "-v",
    "error",
    "-show_entries",
    "stream=codec_name",
    "-rtmp_app",
    `live/${name}`,
    "-rtmp_playpath",
    name,
  ];
  const played = await run("ffprobe", [...words, `rtmp://127.0.0.1:${port}/`]);
  expect(played.stdout()).toContain("h264");
  encoder.kill("SIGINT");
  await encoder.exit;
});

test("a publish without a name says where it belongs", async () => {
  const encoder = publish("live?passcode=x", " ");
  expect(await encoder.exit).not.toBe(0);
  expect(encoder.stderr()).toContain("Stream name is missing: enter it as the stream key");
}, 30_000);
