// A whole publish by RTMP with real programs: ffmpeg broadcasts, an HTTPS customer decides, nginx-rtmp is the
// upstream, ffprobe plays. And addresses as programs split them and people write them, sent by ffmpeg with exactly these
// values: what the webhook gets, and the words of a refusal.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { run, start, until } from "../support/child.ts";
import { type Customer, startCustomer } from "../support/customer.ts";
import { sessionOf } from "../support/drop-outs.ts";
import { broadcast, decodeComplaints, type Packet, packetsOf } from "../support/ffmpeg.ts";
import { type Headgate, startHeadgate } from "../support/headgate.ts";
import { content, isMonotonic, payloadBytes, startsAtKeyframe } from "../support/judge.ts";
import { type NginxRtmp, startNginxRtmp } from "../support/nginx-rtmp.ts";
import { startResettingProxy } from "../support/resetting-proxy.ts";
import { casesOfRun } from "../support/whole-run.ts";

/** An update is sent 5 s after the publish was accepted, and may be late on a busy machine. */
const BROADCAST_S = 10;

let customer: Customer;
let upstream: NginxRtmp;
let headgate: Headgate;

beforeAll(async () => {
  customer = await startCustomer();
  upstream = await startNginxRtmp();
  headgate = await startHeadgate({
    customer,
    env: {
      HEADGATE_UPSTREAM_PUSH: `${upstream.url}/{name}?{args}`,
      HEADGATE_WEBHOOK_UPDATE_S: "5",
      HEADGATE_LIMITS_API_REQUESTS_PER_SECOND: "0", // tests poll
    },
  });
});
beforeEach(() => customer.answer({ status: 200 }));
afterAll(async () => {
  await headgate?.stop();
  await upstream?.stop();
  await customer?.close();
});

/** A player that retries until the stream is live, then reads to its end. */
async function play(name: string): Promise<readonly Packet[]> {
  const tries = async () => await packetsOf(`${headgate.rtmp}/${name}`).catch(() => null);
  return await until("the stream is live", tries);
}

function doneOf(name: string) {
  return until("publish_done", () => customer.calls("publish_done").find(({ body }) => body.includes(`name=${name}`)));
}

/** Waits until a second of the publish has reached the upstream. */
function someMedia(name: string) {
  return until("some media", async () => {
    const recording = upstream.recording(name);
    return recording !== null && (await packetsOf(recording).catch(() => [])).length > 50;
  });
}

/** Players of the running publish of a stream. */
async function playersOf(name: string): Promise<number> {
  const session = await sessionOf(headgate, name);
  if (session === undefined) return 0;
  const { players } = await headgate.call("GET", `/session/${session.client_id}`);
  return (players as readonly unknown[]).length;
}

function field(body: string, name: string): string | null {
  return new URLSearchParams(body).get(name);
}

describe("an allowed publish", () => {
  let name: string;
  let sent: readonly Packet[];
  let played: readonly Packet[];
  let recording: string;

  beforeAll(async () => {
    name = await headgate.newStream();
    const encoder = broadcast(`${headgate.rtmp}/${name}?passcode=s%2Fx&b=%20y&u=a/b`, {
      seconds: BROADCAST_S,
      gop: 1_000,
      keepsCopy: true,
    });
    played = await play(name);
    expect(await encoder.exit, encoder.stderr()).toBe(0);
    sent = await encoder.sent();
    await doneOf(name);
    recording = await until("the recording", () => upstream.recording(name));
  });

  test("asks the customer with the body of W1", () => {
    const [publish] = customer.calls("publish").filter(({ body }) => body.includes(name));
    const clientId = field(publish?.body ?? "", "clientid");
    expect(publish?.method).toBe("POST");
    expect(publish?.headers["content-type"]).toBe("application/x-www-form-urlencoded");
    expect(publish?.body).toBe(
      `passcode=s%2Fx&b=%20y&u=a/b&call=publish&name=${name}&app=live&addr=127.0.0.1&clientid=${clientId}`,
    );
    expect(clientId).toMatch(/^\d+$/);
  });

  test("sends the customer updates while it runs, with the same arguments and the time", () => {
    const [update] = customer.calls("update_publish").filter(({ body }) => body.includes(name));
    const fixed = `name=${name}&app=live&addr=127.0.0.1&clientid=${field(update?.body ?? "", "clientid")}`;
    expect(update?.body).toMatch(/^passcode=s%2Fx&b=%20y&u=a\/b&call=update_publish&time=[45]&timestamp=\d{4}&/);
    expect(update?.body.endsWith(`&${fixed}`)).toBe(true);
  });

  test("reaches the player and the upstream with every frame", async () => {
    const want = content(sent);
    expect(want.video).toHaveLength(25 * BROADCAST_S);
    expect(content(played)).toEqual(want);
    expect(content(await packetsOf(recording))).toEqual(want);
  });

  test("starts at an IDR, keeps its timestamps in order and decodes without a complaint", async () => {
    const recorded = await packetsOf(recording);
    for (const packets of [played, recorded]) {
      expect(startsAtKeyframe(packets)).toBe(true);
      expect(isMonotonic(packets)).toBe(true);
    }
    expect(await decodeComplaints(recording)).toBe("");
  });

  test("ends with one publish_done whose bytes are those that the player counted", async () => {
    const done = await doneOf(name);
    const bytes = payloadBytes(played);
    const clientId = field(done.body, "clientid");
    // Out: the player and the upstream received the same.
    expect(done.body).toBe(
      `passcode=s%2Fx&b=%20y&u=a/b&call=publish_done&name=${name}&bytes_in=${bytes}&bytes_out=${2 * bytes}` +
        `&app=live&addr=127.0.0.1&clientid=${clientId}`,
    );
    const calls = customer.requests.filter(({ body }) => body.includes(`name=${name}`)).map(({ call }) => call);
    // One update, or two: the second is due when the broadcast ends.
    expect(calls.filter((call, at) => call !== calls[at - 1])).toEqual(["publish", "update_publish", "publish_done"]);
  });
});

test("a denied broadcaster is told why; nothing reaches the upstream and no publish_done follows", async () => {
  customer.answer({ status: 403, body: "Your passcode has expired", headers: { "content-type": "text/plain" } });
  const name = await headgate.newStream();
  const encoder = broadcast(`${headgate.rtmp}/${name}?passcode=old`, { seconds: 20 });
  expect(await encoder.exit).not.toBe(0);
  expect(encoder.stderr()).toContain("Your passcode has expired");
  // Another publish, from start to end: a publish_done of the denied one would have come before this one's.
  customer.answer({ status: 200 });
  const next = await headgate.newStream();
  await broadcast(`${headgate.rtmp}/${next}`, { seconds: 1 }).exit;
  await doneOf(next);
  expect(customer.requests.filter(({ body }) => body.includes(`name=${name}`)).map(({ call }) => call)).toEqual([
    "publish",
  ]);
  expect(upstream.recording(name)).toBeNull();
});

test("a broadcaster of a locked stream is told so, and the customer is not asked", async () => {
  const { id, ingest } = (await headgate.call("POST", "/stream")) as {
    readonly id: string;
    readonly ingest: { readonly rtmp: { readonly streamname: string } };
  };
  const name = ingest.rtmp.streamname;
  await headgate.call("PUT", `/stream/${id}/lock`);
  const encoder = broadcast(`${headgate.rtmp}/${name}`, { seconds: 20 });
  expect(await encoder.exit).not.toBe(0);
  expect(encoder.stderr()).toContain("Stream is locked");
  expect(customer.requests.filter(({ body }) => body.includes(`name=${name}`))).toEqual([]);
});

test("a broadcaster that is killed gets exactly one publish_done", async () => {
  const name = await headgate.newStream();
  // One GOP, so that the player receives all of it however late it joins.
  const encoder = broadcast(`${headgate.rtmp}/${name}`, { seconds: 60, gop: 1_500 });
  const reading = play(name);
  await until("its player", async () => (await playersOf(name)) === 1);
  await someMedia(name);
  encoder.kill("SIGKILL");
  const played = await reading;
  const done = await doneOf(name);
  expect(field(done.body, "bytes_in")).toBe(String(payloadBytes(played)));
  const ours = customer.requests.filter(({ body }) => body.includes(`name=${name}`));
  expect(ours.map(({ call }) => call)).toEqual(["publish", "publish_done"]);
});

test("a connection that is reset gets exactly one publish_done", async () => {
  const name = await headgate.newStream();
  const proxy = await startResettingProxy(Number(new URL(headgate.rtmp).port));
  const encoder = broadcast(`rtmp://127.0.0.1:${proxy.port}/live/${name}`, { seconds: 60 });
  await someMedia(name);
  proxy.reset();
  const done = await doneOf(name);
  expect(Number(field(done.body, "bytes_in"))).toBeGreaterThan(0);
  await encoder.exit;
  const ours = customer.requests.filter(({ body }) => body.includes(`name=${name}`));
  expect(ours.map(({ call }) => call)).toEqual(["publish", "publish_done"]);
});

test("a name that is already live is refused without asking the customer", async () => {
  const name = await headgate.newStream();
  const first = broadcast(`${headgate.rtmp}/${name}`, { seconds: 60 });
  await until("the first publish", () => customer.calls("publish").find(({ body }) => body.includes(name)));
  const second = broadcast(`${headgate.rtmp}/${name}`, { seconds: 60 });
  expect(await second.exit).not.toBe(0);
  expect(customer.calls("publish").filter(({ body }) => body.includes(name))).toHaveLength(1);
  first.kill("SIGTERM");
  await doneOf(name);
});

describe("an address", () => {
  let name: string;
  beforeAll(async () => {
    name = await headgate.newStream();
  });

  function publishTo(app: string, key: string, seconds = 1) {
    const port = new URL(headgate.rtmp.replace("rtmp", "http")).port;
    return start("ffmpeg", [
      ...["-nostdin", "-loglevel", "warning", "-re", "-f", "lavfi", "-i", "testsrc=size=160x90:rate=25"],
      ...["-t", String(seconds), "-c:v", "libx264", "-preset", "ultrafast", "-pix_fmt", "yuv420p", "-f", "flv"],
      ...["-rtmp_app", app, "-rtmp_playpath", key, `rtmp://127.0.0.1:${port}/`],
    ]);
  }

  const forms = [
    ["OBS with multitrack video and the whole address as server", "live/NAME?passcode=x", "?passcode=x", "passcode=x"],
    ["Larix, with the name in the address and as key", "live/NAME", "NAME?passcode=a%2Fb", "passcode=a%2Fb"],
    ["a pasted key with blanks and a line break", "live", " NAME?passcode=x\r\n", "passcode=x"],
    ["a whole URL as key", "Live/", "rtmp://ingest.example:1935/live/NAME?passcode=x", "passcode=x"],
    ["slashes", "/live//", "/NAME/?passcode=/x/", "passcode=/x/"],
    ["Flash Media Server's way", "live/_definst_", "mp4:NAME?passcode=x", "passcode=x"],
    ["an encoded question mark", "live", "NAME%3Fpasscode%3Dx", "passcode=x"],
  ] as const;

  test.each(casesOfRun(forms, 3))(
    "%s",
    async (_, app, key, wanted) => {
      const [before, ended] = [customer.calls("publish").length, customer.calls("publish_done").length];
      const encoder = publishTo(app.replace("NAME", name), key.replace("NAME", name));
      const { body } = await customer.received("publish", before + 1);
      expect(await encoder.exit, encoder.stderr()).toBe(0);
      expect(body).toContain(wanted);
      expect(new URLSearchParams(body).getAll("passcode")).toHaveLength(1);
      expect(new URLSearchParams(body).get("name")).toBe(name);
      await customer.received("publish_done", ended + 1);
    },
    30_000,
  );

  test("a player may write it in the same ways", async () => {
    const encoder = publishTo("live", name, 30);
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
    const encoder = publishTo("live?passcode=x", " ");
    expect(await encoder.exit).not.toBe(0);
    expect(encoder.stderr()).toContain("Stream name is missing: enter it as the stream key");
  }, 30_000);
});
