// Why a stream could not go live, with real programs: ffmpeg by RTMP, Chromium and Pion by WHIP. What the API, the command
// line and the log say about it.
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from "vitest";
import { startPages } from "../support/broadcast-page.ts";
import { type BroadcastStage, openBroadcastStage, withoutPages } from "../support/broadcast-stage.ts";
import { start, until } from "../support/child.ts";
import { command } from "../support/command.ts";
import { broadcast } from "../support/ffmpeg.ts";
import { startHeadgate } from "../support/headgate.ts";
import { publishByPion } from "../support/whip-clients.ts";
import { casesOfRun, inWholeRun, isWholeRun } from "../support/whole-run.ts";

/** A browser, an encoder and the service share the machine with other load. */
vi.setConfig({ testTimeout: 90_000 });
const PASS_CODE = "s3cretPassCode";
const OFFER = "test/fixtures/offers/chromium-156.sdp";

interface Refused {
  readonly at: string;
  readonly reason: string;
  readonly protocol: string;
  readonly address: string | null;
  readonly stream: { readonly id: string; readonly name: string } | null;
  readonly sent_name: string | null;
  readonly count: number;
}
interface Stream {
  readonly id: string;
  readonly name: string;
}

let stage: BroadcastStage;
beforeAll(async () => {
  const env = { HEADGATE_LIMITS_API_REQUESTS_PER_SECOND: "0" };
  // Only the whole run starts Chromium: that its page shows a refusal is in the tests of the page.
  stage = await openBroadcastStage(env, isWholeRun ? startPages : withoutPages);
}, 90_000);
afterEach(async () => {
  await stage.reset();
  await change({ require_token: false, publish_key: false });
});
afterAll(() => stage?.close());

const call = (method: string, path: string, body?: unknown) => stage.headgate.call(method, path, body);
const change = (settings: object) => call("PUT", "/organisation/settings", settings);
const refusals = async (query: string) => (await call("GET", `/refusal${query}`)) as unknown as readonly Refused[];

async function newStream(): Promise<Stream> {
  const { id, ingest } = (await call("POST", "/stream")) as {
    readonly id: string;
    readonly ingest: { readonly rtmp: { readonly streamname: string } };
  };
  return { id, name: ingest.rtmp.streamname };
}

const byRtmp = async (name: string, args = `?passcode=${PASS_CODE}`) => {
  const encoder = broadcast(`${stage.headgate.rtmp}/${name}${args}`, { seconds: 20, size: "160x90" });
  expect(await encoder.exit).not.toBe(0);
};
const byPion = async (name: string, args = `?passcode=${PASS_CODE}`) => {
  await expect(publishByPion()(stage.headgate.whip(`${name}${args}`), 3, "320x180")).rejects.toThrow();
};
const byChromium = async (name: string, args = `?passcode=${PASS_CODE}`) => {
  const { page, ...one } = await stage.open("/broadcast");
  await one.press();
  await one.reaches("ready");
  await page.fill("#name", `${name}${args}`);
  await one.press();
  await until("the words", async () => (await one.says("#alerts")) !== "");
};

/** Waits for the only row, and compares it with the log. */
async function isFound(query: string, expected: Partial<Refused>, name: string | null): Promise<void> {
  const [row, ...others] = await until("a row", async () => {
    const rows = (await refusals(query)).filter(({ sent_name }) => sent_name === (expected.sent_name ?? null));
    return rows.length > 0 && rows;
  });
  expect(others).toEqual([]);
  expect(row).toMatchObject({ address: "127.0.0.1", ...expected });
  expect(Math.abs(Date.parse(row?.at ?? "") - Date.now())).toBeLessThan(60_000);
  const nameHash = createHash("sha256")
    .update(name ?? "")
    .digest("hex")
    .slice(0, 16);
  const lines = stage.headgate.process
    .stderr()
    .split("\n")
    .filter((line) => line.includes(nameHash));
  const [line] = lines.filter((each) => each.includes('"msg":"publish denied"'));
  expect(JSON.parse(line ?? "{}")).toMatchObject({
    ...{ cause: expected.reason, protocol: expected.protocol, address: "127.0.0.1" },
    ...(expected.stream && { stream: expected.stream.id }),
  });
}

type Case = [what: string, reason: string, arrange: (stream: Stream) => Promise<unknown>, args?: string];

const REFUSALS: readonly Case[] = [
  ["a locked stream", "locked_stream", ({ id }) => call("PUT", `/stream/${id}/lock`)],
  ["a stream without its token", "token_required", () => change({ require_token: true })],
  ["a stream without its key", "key_missing", ({ id }) => call("PUT", `/stream/${id}/key`, { publish_key: true })],
  [
    "a stream with a wrong key",
    "key_wrong",
    ({ id }) => call("PUT", `/stream/${id}/key`, { publish_key: true }),
    `?key=${PASS_CODE}`,
  ],
  ["a reserved argument", "reserved_field", async () => {}, `?clientid=7&passcode=${PASS_CODE}`],
  [
    "a stream that was ended a moment ago",
    "refused_after_end",
    ({ id }) => call("PUT", `/stream/${id}/stop`, { reason: "Off air", refuse_s: 60 }),
  ],
];

const PROGRAMS = [
  ["ffmpeg", "rtmp", byRtmp, 3],
  ["Pion", "whip", byPion, 3],
  ["Chromium", "whip", byChromium, 3],
] as const;

describe.each(isWholeRun ? PROGRAMS : PROGRAMS.slice(0, 2))("%s by %s", (_, protocol, publish, every) => {
  test.each<Case>(casesOfRun(REFUSALS, every))(
    "is found with its reason when it asks for %s",
    async (_what, reason, arrange, args) => {
      const stream = await newStream();
      await arrange(stream);
      await publish(stream.name, args);
      await isFound(`?stream=${stream.id}`, { reason, protocol, stream, sent_name: null }, stream.name);
      expect(await call("GET", `/stream/${stream.id}/refusal`)).toMatchObject([{ reason, stream }]);
    },
  );

  test("is found with the name it sent when no stream has it", async () => {
    const name = `nobody-${protocol}-${publish.name}`;
    await publish(name);
    const expected = { reason: "unknown_stream", protocol, stream: null, sent_name: name };
    await isFound("?reason=unknown_stream", expected, name);
  });
});

inWholeRun("a publish at a full node is a row of its stream", async () => {
  const full = await startHeadgate({ env: { HEADGATE_LIMITS_MEMORY_MB: "1" } });
  const ready = async () => (await (await fetch(`${full.metrics}/readyz`)).text()).includes("full: ");
  await until("full", ready);
  const name = await full.newStream();
  await broadcast(`${full.rtmp}/${name}`, { seconds: 20, size: "160x90" }).exit;
  await expect(publishByPion()(full.whip(name), 3, "320x180")).rejects.toThrow();
  const rows = await until("two rows", async () => {
    const found = (await full.call("GET", "/refusal?reason=full")) as unknown as readonly Refused[];
    return found.length === 2 && found;
  });
  expect(rows.map(({ protocol }) => protocol).toSorted()).toEqual(["rtmp", "whip"]);
  expect(rows.map(({ stream }) => stream?.name)).toEqual([name, name]);
  expect(full.process.stderr().match(/"cause":"full".*"stream":"/g)).toHaveLength(2);
  await full.stop();
});

describe("at the command line", () => {
  const words = (...said: string[]) => command(said, stage.headgate.env);
  const json = async (...said: string[]) => JSON.parse(await stage.headgate.command(said));

  test("refusals prints the records of the API, and as a table what people ask for", async () => {
    const stream = await newStream();
    await call("PUT", `/stream/${stream.id}/lock`);
    await byRtmp(stream.name);
    await until("a row", async () => (await refusals(`?stream=${stream.id}`)).length > 0);
    expect(await json("refusals", "--quantity", "500")).toEqual(await refusals("?quantity=500"));
    expect(await json("refusals", "--reason", "key_wrong")).toEqual(await refusals("?reason=key_wrong"));
    expect(await json("refusals", "--request", "play")).toEqual([]);
    const [{ at }] = (await refusals(`?stream=${stream.id}`)) as [Refused];
    expect(await json("refusals", "--to", at, "--quantity", "500")).toEqual(await refusals(`?to=${at}&quantity=500`));
    const { code, out } = await words("refusals", "--reason", "locked_stream");
    expect([code, out]).toEqual([0, expect.stringContaining("The stream is locked.")]);
    expect(out).toMatch(new RegExp(`^${at} .*publish +rtmp +${stream.name} +127\\.0\\.0\\.1 `, "m"));
    expect(out).not.toContain(PASS_CODE);
  });

  test("stream refusals and stream publishes print the history of one stream, by name or id", async () => {
    const stream = await newStream();
    const other = await newStream();
    for (const { id } of [stream, other]) await call("PUT", `/stream/${id}/lock`);
    for (const { name } of [stream, other]) await byRtmp(name);
    await call("PUT", `/stream/${stream.id}/unlock`);
    stage.customer.answer({ status: 403, headers: { "content-type": "text/plain" }, body: "Not today\n" });
    await byRtmp(stream.name);
    const ofApi = await until("both", async () => {
      const rows = await refusals(`?stream=${stream.id}`);
      return rows.length === 2 && rows;
    });
    expect(ofApi.map(({ reason }) => reason)).toEqual(["rejected_by_customer", "locked_stream"]);
    for (const which of [stream.name, stream.id]) {
      expect(await json("stream", "refusals", which)).toEqual(ofApi);
      expect(await json("stream", "publishes", which)).toEqual(await call("GET", `/stream/${stream.id}/publish`));
    }
    const { out } = await words("stream", "refusals", stream.name);
    expect(out).toMatch(/Your webhook denied it \(status 403\)\. +Not today/);
    expect(out).not.toContain(other.name);
    expect((await words("stream", "publishes", stream.name)).out).toMatch(/denied +rtmp +127\.0\.0\.1/);
  });

  test.each([
    [["refusals", "--reason", "nonsense"], "--reason must be one of malformed_name, "],
    [["refusals", "--from", "yesterday"], "--from must be a time such as"],
    [["refusals", "--request", "watch"], "--request must be publish or play"],
    [["refusals", "--quantity", "0"], "--quantity must be 1 to"],
    [["stream", "refusals", "nobody"], "there is no stream nobody"],
    [["stream", "publishes"], "the stream's name or id"],
  ])("%j says what is wrong", async (said, message) => {
    const { code, err } = await words(...said);
    expect([code, err]).toEqual([2, expect.stringContaining(message)]);
  });
});

test("whoever guesses names is slowed, and the stream that cannot go live for it has a row", async () => {
  const stream = await newStream();
  const offer = { method: "POST", headers: { "content-type": "application/sdp" }, body: readFileSync(OFFER, "utf8") };
  for (let n = 0; n < 25; n += 1) await fetch(stage.headgate.whip(`guess${n}`), offer);
  // Those by WHIP are counted with them.
  for (let n = 0; n < (isWholeRun ? 25 : 2); n += 1) await byRtmpQuickly(`guess${n}`);
  await byRtmp(stream.name);
  await isFound(`?stream=${stream.id}`, { reason: "too_many_names", protocol: "rtmp", stream }, stream.name);
});

/** ffmpeg copies nothing that must be encoded. */
async function byRtmpQuickly(name: string): Promise<void> {
  const source = ["-f", "lavfi", "-i", "anullsrc", "-t", "1", "-c:a", "aac", "-f", "flv"];
  await start("ffmpeg", ["-nostdin", "-loglevel", "error", ...source, `${stage.headgate.rtmp}/${name}`]).exit;
}
