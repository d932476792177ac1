// A broadcast that somebody ended stays ended, and its broadcaster is told who and why: /broadcast, the browser client
// and v5 in Chromium, and ffmpeg by RTMP, which is kept out for as long as the end says. The matrix of ends and answers
// is in whip-ended.test.ts.
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { type BroadcastStage, openBroadcastStage } from "../../support/broadcast-stage.ts";
import { until } from "../../support/child.ts";
import { broadcast } from "../../support/ffmpeg.ts";
import { pause } from "../../support/pause.ts";
import { inWholeRun } from "../../support/whole-run.ts";

/** A browser with three encoders, and the service, share the machine with other load. */
vi.setConfig({ testTimeout: 120_000 });
/** Longer than the first pause of a client that reconnects. */
const RETRY_PAUSE_MS = 4_000;
const LIMIT_MS = 40_000;
const PASSWORD = "correct horse battery staple";
const SMALL = {
  mediaStreamCfg: { resolution: [320, 180], maxFramerate: 10 },
  broadcastCfg: { maxVideoBitrateBps: 150_000 },
};

let stage: BroadcastStage;
/** Signed in to the dashboard. */
let person: Readonly<Record<string, string>>;

beforeAll(async () => {
  // The shortest interval of update_publish.
  stage = await openBroadcastStage({ HEADGATE_WEBHOOK_UPDATE_S: "5" });
  const { headgate } = stage;
  const email = "ada@example.org";
  await headgate.call("POST", "/organisation/user", { email, password: PASSWORD, role: "administrator" });
  const headers = { "content-type": "application/json", origin: headgate.http };
  const body = JSON.stringify({ email, password: PASSWORD });
  const login = await fetch(`${headgate.http}/login`, { method: "POST", headers, body });
  const { csrf_token } = (await login.json()) as { csrf_token: string };
  const cookie = (login.headers.get("set-cookie") ?? "").split(";")[0] ?? "";
  person = { ...headers, cookie, "x-csrf-token": csrf_token };
}, 120_000);
afterAll(() => stage?.close());

interface Client {
  readonly stream: { readonly id: string; readonly name: string; readonly token: string };
  /** Live, or what it shows after an end. */
  isLive(): Promise<boolean>;
  shown(): Promise<string>;
}

async function newStream(): Promise<Client["stream"]> {
  const { id, ingest } = (await stage.headgate.call("POST", "/stream")) as {
    id: string;
    ingest: { rtmp: { streamname: string } };
  };
  const { streamname: name } = ingest.rtmp;
  return { id, name, token: await stage.newToken(name) };
}

/** What each client shows of an end: a title for who, and the reason as it was given. */
async function openAll(): Promise<Readonly<Record<"page" | "client" | "v5", Client>>> {
  const text = JSON.stringify;
  const [own, ofClient, ofV5] = [await newStream(), await newStream(), await newStream()];
  const [page, client, v5] = await Promise.all([
    stage.open(`/broadcast#token=${own.token}`),
    stage.open("/broadcast", { bypassCSP: true }),
    stage.open("/broadcast", { bypassCSP: true }),
  ]);
  const goLive = async () => {
    await page.press();
    await page.reaches("ready");
    await page.press();
  };
  const startClient = () =>
    client.page.evaluate(`(async () => {
    const { Webcaster } = await import("/sdk/webcaster.mjs");
    const webcaster = new Webcaster({
      serverUrl: location.origin, auth: { token: ${text(ofClient.token)} }, reconnect: true, inputCfg: ${text(SMALL)},
    });
    Object.assign(window, { webcaster, errors: [] });
    webcaster.onError = (error) => errors.push(error.message);
    await webcaster.setup();
    await webcaster.startBroadcast();
  })()`);
  const startV5 = () =>
    v5.page.evaluate(`(async () => {
    const { RtcUser } = await import("/sdk/rtcuser.mjs");
    const user = new RtcUser();
    user.setConfig({ width: 320, height: 180, framerate: 10, videoBitrate: 150_000 });
    Object.assign(window, { user, errors: [], statuses: [] });
    user.on("BroadcastStatus", ({ data }) => statuses.push(data.status));
    user.on("BroadcastError", ({ data }) => errors.push(data.ended?.final ? data.message : "not final: " + data.message));
    await user.signIn({ server: location.origin, jwt: ${text(ofV5.token)} });
    await user.startBroadcast({ jwt: ${text(ofV5.token)} });
  })()`);
  await Promise.all([goLive(), startClient(), startV5()]);
  const run = (of: typeof client, expression: string) => of.page.evaluate(expression) as Promise<string>;
  const all = {
    page: {
      stream: own,
      isLive: async () => (await run(page, "document.body.dataset.stage")) === "live",
      shown: () => page.says("#alerts"),
    },
    client: {
      stream: ofClient,
      isLive: async () => (await run(client, "webcaster.state")) === "live",
      shown: () => run(client, "errors.join()"),
    },
    v5: {
      stream: ofV5,
      isLive: async () =>
        (await run(v5, "errors.length === 0 && statuses.includes('connected') ? 'live' : ''")) === "live",
      shown: () => run(v5, "errors.join()"),
    },
  };
  for (const each of Object.values(all)) await until("it is live", each.isLive, LIMIT_MS);
  return all;
}

const publishesOf = ({ name }: Client["stream"]) =>
  stage.customer.calls("publish").filter(({ body }) => body.includes(`name=${name}&`)).length;

/** Client id of its publish; null for none. */
async function sessionOf({ id }: Client["stream"]): Promise<number | null> {
  const sessions = (await stage.headgate.call("GET", "/session")) as unknown as { client_id: number; stream: string }[];
  return sessions.find(({ stream: of }) => of === id)?.client_id ?? null;
}

const ENDS: Readonly<Record<string, (stream: Client["stream"]) => Promise<unknown>>> = {
  async "the dashboard"(of) {
    const kick = `${stage.headgate.http}/session/${await sessionOf(of)}/kick`;
    const body = JSON.stringify({ reason: "Shown to you", refuse_s: 30 });
    expect((await fetch(kick, { method: "POST", headers: person, body })).status).toBe(200);
  },
  "the API": ({ id }) => stage.headgate.call("PUT", `/stream/${id}/stop`, { reason: "Shown to you" }),
  async "the customer's 403"() {
    const said = { status: 403, body: "Shown to you\n", headers: { "content-type": "text/plain" } };
    stage.customer.answer(({ call }) => (call === "update_publish" ? said : { status: 200 }));
  },
  "a revocation": ({ token }) => stage.headgate.call("POST", "/webcaster/revoke", { token }),
  "a lock": ({ id }) => stage.headgate.call("PUT", `/stream/${id}/lock`),
};
const SHOWN: Readonly<Record<string, { readonly page: RegExp; readonly client: RegExp }>> = {
  "the dashboard": { page: /The organiser ended.*Shown to you/, client: /^Ended by a person: Shown to you$/ },
  "the API": { page: /The organiser ended.*Shown to you/, client: /^Ended through the API: Shown to you$/ },
  "the customer's 403": { page: /server ended.*Shown to you/, client: /^Ended by the customer: Shown to you$/ },
  "a revocation": { page: /This link was withdrawn/, client: /^Token revoked: Token revoked$/ },
  "a lock": { page: /This stream is locked/, client: /^Stream was locked: Stream was locked$/ },
};

async function staysEnded(by: string): Promise<void> {
  const clients = await openAll();
  const all = Object.values(clients);
  for (const { stream: of } of all) await ENDS[by]?.(of);
  for (const [name, client] of Object.entries(clients)) {
    const expected = SHOWN[by]?.[name === "page" ? "page" : "client"] ?? /never/;
    await until(`${name} shows it`, async () => (await client.shown()) !== "", LIMIT_MS);
    expect(await client.shown(), name).toMatch(expected);
  }
  await pause(RETRY_PAUSE_MS); // absence cannot be awaited
  for (const client of all) expect([await client.isLive(), publishesOf(client.stream)]).toEqual([false, 1]);
  await stage.reset();
}

const title = (by: string) => `after an end by ${by}, page, client and v5 show who and why, and stay ended`;
test.concurrent(title("the dashboard"), () => staysEnded("the dashboard"));

test.concurrent("an encoder that an end refuses stays out for as long, with the reason in its log, and is then let in", async () => {
  const of = await newStream();
  const { headgate } = stage;
  const address = { name: of.name, seconds: 60 };
  const first = broadcastTo(address);
  await until("it is live", () => sessionOf(of), LIMIT_MS);
  const refusedUntil = Date.now() + 10_000;
  await headgate.call("PUT", `/stream/${of.id}/stop`, { reason: "Shown to you", refuse_s: 10 });
  await first.exit;
  expect(first.stderr()).toMatch(/Shown to you|Broken pipe|Connection reset|error/i);
  const refused = broadcastTo(address);
  await refused.exit;
  expect(refused.stderr()).toMatch(/Shown to you \(refused for another \d+ s\)/);
  expect(publishesOf(of)).toBe(1);
  const letIn = async () => {
    const next = broadcastTo(address);
    await Promise.race([next.exit, until("it is asked", () => publishesOf(of) === 2)]);
    return publishesOf(of) === 2 && next;
  };
  const last = await until("it is let in", letIn, LIMIT_MS);
  expect(Date.now()).toBeGreaterThanOrEqual(refusedUntil);
  await until("it is live again", () => sessionOf(of), LIMIT_MS);
  last.kill("SIGKILL");
  await last.exit;

  function broadcastTo({ name, seconds }: typeof address) {
    return broadcast(`${headgate.rtmp}/${name}`, { seconds });
  }
});

// The same words by others are in whip-ended.test.ts and broadcast-words.test.ts.
for (const by of ["the customer's 403", "a revocation", "the API", "a lock"])
  inWholeRun(title(by), () => staysEnded(by));
