// What happens on the afternoon of tools/afternoon.mjs: thirty streams, refusals of five kinds, a webhook that fails, an
// upstream that dies, ends for different reasons, and at last a node that drains. By ffmpeg and the API of a real service.
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** @typedef {{
 *    call(method: string, path: string, body?: unknown): Promise<unknown>;
 *    readonly http: string;
 *    readonly rtmp: string;
 *    drain(): void | Promise<void>;
 *  }} AfternoonService */

const STREAMS = 30;
/** Of the person who locks a stream and ends a broadcast.
 *  @type {string} */
export const ADA = "ada@customer.example";
export const SUBSCRIPTION = "Your subscription ended on 31 May";
export const FAULT = "the subscriptions cannot be read: database is away";
export const ALARM = "Fire alarm in the hall";
/** A name that no stream has. */
export const WRONG_NAME = "Hall6-withAWrongLetter";
/** How long any state is waited for, ms. */
const WAIT_LIMIT_MS = 60_000;

/**
 * Returns when all of it has happened and can be read. `service`: `call`, `http`, `rtmp`, and `drain`, which lets it take
 * no new publish; `customer.answer` sets what the webhook answers from then on; `live`: how many of the halls without a
 * story broadcast; `upstreamPort`: a free one. The encoders run until `stop`.
 *  @type {(options: {
 *    readonly service: AfternoonService;
 *    readonly customer: {
 *      answer(next: { readonly status: number; readonly body?: string; readonly headers?: Readonly<Record<string, string>> }): void;
 *    };
 *    readonly password: string;
 *    readonly upstreamPort: number;
 *    readonly live: number;
 *  }) => Promise<{ stop(): void }>} */
export async function haveAnAfternoon({ service, customer, password, upstreamPort, live }) {
  const folder = mkdtempSync(join(tmpdir(), "headgate-afternoon-"));
  const clip = join(folder, "clip.flv");
  const programs = new Set();
  const ffmpeg = (...words) => {
    const child = spawn("ffmpeg", ["-nostdin", "-v", "error", ...words], { stdio: "ignore" });
    programs.add(child);
    const exit = new Promise((resolve) => child.once("exit", resolve).once("error", resolve));
    return { kill: () => child.kill("SIGKILL"), exit: exit.then(() => programs.delete(child)) };
  };
  const stop = () => {
    for (const child of programs) child.kill("SIGKILL");
    rmSync(folder, { recursive: true, force: true });
  };
  try {
    const picture = ["-f", "lavfi", "-i", "testsrc=size=160x90:rate=25", "-f", "lavfi", "-i", "sine"];
    const codecs = ["-t", "4", "-c:v", "libx264", "-preset", "ultrafast", "-bf", "0", "-g", "25", "-c:a", "aac"];
    await ffmpeg(...picture, ...codecs, "-pix_fmt", "yuv420p", "-f", "flv", clip).exit;
    const broadcast = (name) =>
      ffmpeg("-re", "-stream_loop", "-1", "-i", clip, "-c", "copy", "-f", "flv", `${service.rtmp}/${name}`);
    await tell({ service, customer, password, upstreamPort, live, ffmpeg, broadcast });
    return { stop };
  } catch (error) {
    stop();
    throw error;
  }
}

async function tell({ service, customer, password, upstreamPort, live, ffmpeg, broadcast }) {
  const { call } = service;
  const streams = [];
  for (let number = 1; number <= STREAMS; number += 1) {
    streams.push(await call("POST", "/stream", { title: `Hall ${number}` }));
  }
  const hall = (number) => streams[number - 1];
  const nameOf = (number) => hall(number).ingest.rtmp.streamname;
  const isLive = (number) =>
    until(`hall ${number} is live`, async () => (await call("GET", `/stream/${hall(number).id}`)).state === "live");
  const sessionOf = async (number) =>
    (await call("GET", "/session")).find(({ streamname }) => streamname === nameOf(number));
  await call("POST", "/organisation/user", { email: ADA, role: "administrator", password });
  const ada = await signIn(service, password);

  // Most broadcast all afternoon.
  for (let number = 20; number < 20 + live; number += 1) broadcast(nameOf(number));
  const upstream = ffmpeg(
    "-listen",
    "1",
    "-f",
    "flv",
    "-i",
    `rtmp://127.0.0.1:${upstreamPort}/live/hall-2`,
    "-f",
    "null",
    "-",
  );
  await call("POST", `/stream/${hall(2).id}/upstream`, { url: `rtmp://127.0.0.1:${upstreamPort}/live/hall-2` });
  const [, , third, fifth] = [1, 2, 3, 5].map((number) => broadcast(nameOf(number)));
  for (const number of [1, 2, 3, 5]) await isLive(number);

  // Refusals: a locked stream, no publish key, a name that no stream has, a second encoder.
  await ada("PUT", `/stream/${hall(7).id}/lock`);
  await call("PUT", `/stream/${hall(8).id}/key`, { publish_key: true });
  await Promise.all([nameOf(7), nameOf(8), WRONG_NAME, nameOf(1)].map((name) => broadcast(name).exit));

  // The webhook denies one, and fails for a while.
  customer.answer({ status: 403, body: SUBSCRIPTION, headers: { "content-type": "text/plain" } });
  await broadcast(nameOf(9)).exit;
  customer.answer({ status: 500, body: FAULT, headers: { "content-type": "text/plain" } });
  await broadcast(nameOf(11)).exit;
  customer.answer({ status: 200 });

  // An upstream dies, Ada ends a broadcast, and a broadcaster loses its connection.
  const upstreamIs = (...states) =>
    until(`the upstream of hall 2 is ${states}`, async () =>
      states.includes((await sessionOf(2))?.upstreams[0]?.state),
    );
  await upstreamIs("sending");
  upstream.kill();
  await upstreamIs("waiting", "refused");
  await ada("PUT", `/stream/${hall(3).id}/stop`, { reason: ALARM, refuse_s: 30 });
  fifth.kill();
  await Promise.all([third.exit, fifth.exit]);

  // At last the node drains.
  await service.drain();
  await broadcast(nameOf(13)).exit;
  await until("all of it is recorded", async () => {
    const reasons = (await call("GET", "/refusal")).map(({ reason }) => reason);
    const ended = await call("GET", `/stream/${hall(5).id}/publish`);
    return (
      ["locked_stream", "key_missing", "unknown_stream", "already_live", "stopping"].every((each) =>
        reasons.includes(each),
      ) && ended[0]?.state === "ended"
    );
  });
}

/** Returns a function that calls the API as Ada. */
async function signIn({ http }, password) {
  const json = { "content-type": "application/json" };
  const login = await fetch(`${http}/login`, {
    method: "POST",
    headers: json,
    body: JSON.stringify({ email: ADA, password }),
  });
  const cookie = login.headers
    .getSetCookie()
    .map((each) => each.split(";")[0])
    .join("; ");
  const { csrf_token } = await (await fetch(`${http}/me`, { headers: { cookie } })).json();
  return async (method, path, body = {}) => {
    const headers = { ...json, cookie, "x-csrf-token": csrf_token };
    const response = await fetch(http + path, { method, headers, body: JSON.stringify(body) });
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`);
  };
}

async function until(what, isSo) {
  const ends = Date.now() + WAIT_LIMIT_MS;
  while (!(await isSo())) {
    if (Date.now() > ends) throw new Error(`${what}: not within ${WAIT_LIMIT_MS} ms`);
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
}
