// Whole publishes by RTMP and by WHIP, with custom arguments, keys, tokens and secrets of every kind, against
// a service that logs everything at level debug: the log contains none of them.
import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { Writable } from "node:stream";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createLog } from "../../ts/log.ts";
import { until } from "../support/child.ts";
import { type Customer, startCustomer } from "../support/customer.ts";
import { broadcast } from "../support/ffmpeg.ts";
import { type Headgate, startHeadgate } from "../support/headgate.ts";
import { publishByWerift } from "../support/werift.ts";

const PASSWORD = `password${randomBytes(12).toString("hex")}`;
const secret = (what: string) => `${what}${randomBytes(12).toString("hex")}`;

let customer: Customer;
let headgate: Headgate;

beforeAll(async () => {
  customer = await startCustomer();
  headgate = await startHeadgate({
    customer,
    env: {
      HEADGATE_LOG_LEVEL: "debug",
      HEADGATE_LOG_FORMAT: "json",
      HEADGATE_WEBHOOK_UPDATE_S: "5",
      HEADGATE_BOOTSTRAP_ADMIN_PASSWORD: PASSWORD,
    },
  });
}, 60_000);
afterAll(async () => {
  await headgate?.stop();
  await customer?.close();
});

type Line = Record<string, unknown>;
const lines = (): Line[] =>
  headgate.process
    .stderr()
    .split("\n")
    .filter((line) => line.startsWith("{"))
    .map((line) => JSON.parse(line));
const ends = () => lines().filter(({ msg }) => msg === "publish ended").length;
const part = (sdp: string, name: string) => new RegExp(`^a=${name}:(.+?)\r?$`, "m").exec(sdp)?.[1] ?? "";

test("at debug the log contains calls, steps and offers of whole publishes, and no secret", async () => {
  const { call } = headgate;
  const [passcode, userPassword, upstreamKey] = [secret("code"), secret("pass"), secret("up")];
  const newStream = async () => {
    const { id, ingest } = (await call("POST", "/stream")) as { id: string; ingest: { rtmp: { streamname: string } } };
    return { id, name: ingest.rtmp.streamname };
  };
  const [byRtmp, byWhip, byToken] = [await newStream(), await newStream(), await newStream()];
  const { secret: signing } = (await call("POST", "/organisation/webhook/secret")) as { secret: string };
  const { key } = (await call("POST", "/organisation/key", { role: "user" })) as { key: string };
  const upstream = `rtmp://127.0.0.1:9/live/${upstreamKey}`;
  await call("POST", `/stream/${byRtmp.id}/upstream`, { url: upstream });
  const person = { email: "ada@customer.example", password: userPassword, role: "user" };
  await call("POST", "/organisation/user", person);
  const login = await fetch(`${headgate.http}/login`, { method: "POST", body: JSON.stringify(person) });
  const session = login.headers.get("set-cookie")?.split(";")[0]?.split("=")[1] ?? "no session";
  const { csrf_token: pageToken } = (await login.json()) as { csrf_token: string };
  await fetch(`${headgate.http}/stream`, { headers: { "x-service-apikey": key } });
  await fetch(`${headgate.http}/stream`, { headers: { cookie: `__Host-headgate=${session}` } });

  const encoder = broadcast(`${headgate.rtmp}/${byRtmp.name}?passcode=${passcode}`, { seconds: 7 });
  await publishByWerift(headgate.whip(`${byWhip.name}?passcode=${passcode}`), 2, "320x240");

  const streamname = `${byToken.name}?passcode=${passcode}`;
  const subject = { streamname, ingesturl: headgate.rtmp };
  const { data } = (await call("POST", "/webcaster", subject)) as { data: { token: string } };
  await call("POST", "/webcaster/verify", { token: data.token });
  const golden = readFileSync("test/fixtures/offers/chromium-156.sdp", "utf8");
  const [ufrag, pwd] = [secret("ufrag"), secret("pwd")];
  const offer = golden
    .replace(/^a=ice-ufrag:.*$/gm, `a=ice-ufrag:${ufrag}`)
    .replace(/^a=ice-pwd:.*$/gm, `a=ice-pwd:${pwd}`);
  const headers = { "content-type": "application/sdp", authorization: `Bearer ${data.token}` };
  const opened = await fetch(`${headgate.http}/p/webrtc`, { method: "POST", headers, body: offer });
  const answer = await opened.text();
  expect(opened.status, answer).toBe(201);
  const location = opened.headers.get("location") ?? "";
  await fetch(location, { method: "PATCH", headers: { "content-type": "text/plain", "if-match": "*" }, body: ufrag });
  expect((await fetch(location, { method: "DELETE" })).status).toBe(200);
  await encoder.exit;
  await until("all publishes have ended", () => ends() === 3, 30_000);
  await customer.received("publish_done", 3);
  await until("the last call is logged", () => lines().filter(({ call: of }) => of === "publish_done").length === 3);

  const told = (msg: string, about: Line) => expect(lines()).toContainEqual(expect.objectContaining({ msg, ...about }));
  for (const event of ["publish", "update_publish", "publish_done"])
    told("webhook called", { call: event, status: 200 });
  for (const protocol of ["rtmp", "whip"]) told("publish request decided", { outcome: "allowed", protocol });
  const offers = lines().filter(({ msg }) => msg === "WHIP offer");
  expect(offers).toHaveLength(2);
  expect(offers[1]).toMatchObject({ answered: [{ kind: "audio" }, { kind: "video" }] });

  const secrets: Record<string, string> = {
    passcode,
    "bootstrap key": headgate.apiKey,
    "API key": key.split("_")[2] ?? "",
    "web token": data.token.split(".")[1] ?? "",
    "signature of the web token": data.token.split(".")[2] ?? "",
    "password of admin": PASSWORD,
    "password of a person": userPassword,
    session,
    "page token": pageToken,
    "query of the webhook": "webhook-secret",
    "path of the webhook": "/hook",
    "webhook secret": signing.slice("whsec_".length),
    "key of an upstream": upstreamKey,
    "session URL": new URL(location).pathname.split("/").at(-1) ?? "",
    "entity tag": opened.headers.get("etag")?.replaceAll('"', "") ?? "",
    "ufrag of the offer": ufrag,
    "pwd of the offer": pwd,
    "fingerprint of the offer": part(offer, "fingerprint").split(" ")[1] ?? "",
    "ufrag of the answer": part(answer, "ice-ufrag"),
    "pwd of the answer": part(answer, "ice-pwd"),
    "fingerprint of the answer": part(answer, "fingerprint").split(" ")[1] ?? "",
    ...Object.fromEntries([byRtmp, byWhip, byToken].map(({ name }, at) => [`stream name ${at}`, name])),
    ...Object.fromEntries(
      customer.requests.map(({ headers: sent }, at) => [`signature ${at}`, String(sent["webhook-signature"]).slice(3)]),
    ),
  };
  expect(Object.entries(secrets).filter(([, value]) => value.length < 4)).toEqual([]);
  const log = headgate.process.stderr();
  const found = Object.entries(secrets).filter(([, value]) => log.includes(value));
  expect(found.map(([what]) => what)).toEqual([]);
}, 120_000);

test("the log of an error contains its message and code, and not the data it concerned", async () => {
  let text = "";
  const to = new Writable({
    write(chunk, _, done) {
      text += chunk;
      done();
    },
  });
  const log = await createLog({ level: "info", format: "json" }, false, to);
  const cause = Object.assign(new Error("no such row"), { code: "23505", detail: "Key (name)=(s3cret) exists" });
  log.error({ err: new Error("the store said no", { cause }) }, "failed");
  try {
    new URL("s3cret");
  } catch (err) {
    log.error({ err }, "failed");
  }
  expect(text).toMatch(/the store said no.*no such row/);
  expect(text).toMatch(/ERR_INVALID_URL/);
  expect(text).not.toContain("s3cret");
});
