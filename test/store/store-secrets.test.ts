// Secrets of every kind are passed to a running service in every way; none of them is in a log, a metric, an
// error or the store. Nor in a core dump: there is none.
import { randomBytes } from "node:crypto";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect, test } from "vitest";
import { until } from "../support/child.ts";
import { broadcast } from "../support/ffmpeg.ts";
import { startHeadgate } from "../support/headgate.ts";

let folder = "";
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const planted = (what: string) => `${what}${randomBytes(12).toString("hex")}`;

test("planted secrets appear nowhere, and core dumps are off", async () => {
  folder = mkdtempSync(join(tmpdir(), "headgate-secrets-"));
  const secrets = {
    key: planted("key"),
    password: planted("pass"),
    passcode: planted("code"),
    token: planted("eyJ"),
    body: planted("body"),
    query: planted("query"),
    cookie: planted("cookie"),
    upstream: planted("up"),
  };
  const headgate = await startHeadgate({
    env: {
      HEADGATE_DATA_DIR: join(folder, "data"),
      HEADGATE_BOOTSTRAP_ADMIN_PASSWORD: secrets.password,
      HEADGATE_LOG_LEVEL: "trace",
      HEADGATE_LOG_FORMAT: "json",
    },
  });
  const { metrics } = JSON.parse(
    headgate.process
      .stdout()
      .split("\n")
      .find((line) => line.startsWith("{")) ?? "",
  ) as {
    metrics: string;
  };
  const answers: string[] = [];
  async function call(
    method: string,
    path: string,
    body: unknown = undefined,
    key: string = headgate.apiKey,
  ): Promise<string> {
    const response = await fetch(`${headgate.http}${path}`, {
      method,
      headers: {
        "x-service-apikey": key,
        authorization: `Bearer ${secrets.token}`,
        cookie: `__Host-headgate=${secrets.cookie}`,
      },
      ...(body === undefined ? {} : { body: typeof body === "string" ? body : JSON.stringify(body) }),
    });
    const text = await response.text();
    answers.push(text);
    return text;
  }
  const name = await headgate.newStream();
  const broken = `{"webhook": "https://${secrets.body}`;
  const described = JSON.parse(await call("GET", "/openapi.json")) as {
    paths: Record<string, Record<string, unknown>>;
  };
  // Every route that exists, with a wrong key, a wrong body and a secret as query.
  for (const [path, methods] of Object.entries(described.paths)) {
    const place = `${path.replaceAll(/\{\w+\}/g, secrets.query)}?passcode=${secrets.query}`;
    for (const method of Object.keys(methods).filter((each) =>
      ["get", "put", "post", "delete", "patch"].includes(each),
    )) {
      const hasBody = !["get", "delete"].includes(method);
      await call(method.toUpperCase(), place, hasBody ? broken : undefined, secrets.key);
      await call(
        method.toUpperCase(),
        place,
        hasBody ? { name: secrets.body, token: secrets.token, url: secrets.body } : undefined,
      );
    }
  }
  await call("POST", "/webcaster", {
    streamname: `${name}?passcode=${secrets.passcode}`,
    ingesturl: "rtmp://in.example/live",
  });
  await call("POST", "/webcaster/verify", { token: secrets.token });
  await call("POST", "/login", { email: "admin", password: secrets.body });
  const query = `stream_name=${name}%3Fpasscode%3D${secrets.passcode}&stream_url=rtmp://${secrets.query}.example/live`;
  await call("POST", `/p/webrtc?${query}`, `v=0 ${secrets.body}`);
  await call("PUT", "/organisation/webhook", { webhook: `https://user:${secrets.body}@customer.example/` });

  const encoder = broadcast(`${headgate.rtmp}/${name}?passcode=${secrets.passcode}`, { seconds: 2 });
  await encoder.exit;
  await until("the publish is over", () => headgate.process.stderr().includes("publish ended"));

  const limits = readFileSync(`/proc/${headgate.process.pid}/limits`, "utf8");
  expect(limits).toMatch(/^Max core file size +0 +0 /m);
  const shown = await (await fetch(`${metrics}/metrics`)).text();
  expect(await headgate.stop()).toBe(0);
  const places: Record<string, string> = {
    log: headgate.process.stderr(),
    stdout: headgate.process.stdout(),
    metrics: shown,
  };
  const found = Object.entries({ ...secrets, "api key": headgate.apiKey }).flatMap(([what, secret]) =>
    Object.entries(places)
      .filter(([, text]) => text.includes(secret))
      .map(([place]) => `${what} in ${place}`),
  );
  expect(found).toEqual([]);
  // Values sent by a caller are not returned either, except those that an answer is about.
  for (const what of ["key", "password", "cookie"] as const) {
    expect(answers.filter((answer) => answer.includes(secrets[what])).map((answer) => `${what}: ${answer}`)).toEqual(
      [],
    );
  }
  for (const file of readdirSync(join(folder, "data"))) {
    const bytes = readFileSync(join(folder, "data", file)).toString("latin1");
    for (const what of ["key", "password", "token", "cookie"] as const)
      expect([file, what, bytes.includes(secrets[what])]).toEqual([file, what, false]);
    expect([file, bytes.includes(headgate.apiKey)]).toEqual([file, false]);
  }
}, 120_000);
