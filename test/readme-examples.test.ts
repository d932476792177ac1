// The examples of README.md and docs run as they stand there: commands by a shell, programs by Node. Only what a reader
// replaces as well is replaced: addresses, the key, the stream's name.
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { Webhook } from "standardwebhooks";
import ts from "typescript";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Child, start, until } from "./support/child.ts";
import { testCertificates } from "./support/customer.ts";
import { freePort } from "./support/free-port.ts";
import { type Headgate, startHeadgate } from "./support/headgate.ts";
import { trustFile } from "./support/trust-file.ts";

const SECRET = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
const certificates = testCertificates();
const folder = mkdtempSync(join(tmpdir(), "headgate-readme-"));
let headgate: Headgate;
let customer: Child | null = null;

beforeAll(async () => {
  headgate = await startHeadgate({ env: { HEADGATE_WEBHOOK_CA: trustFile(certificates.ca) } });
});
afterAll(async () => {
  customer?.kill("SIGKILL");
  await headgate?.stop();
});

/** The one example of a document in a language that says `having`. */
function example(document: string, language: string, having: string): string {
  const text = readFileSync(document, "utf8");
  const all = [...text.matchAll(/^```(\w+)\n(.*?)^```$/gms)].map(([, name, code = ""]) => ({ name, code }));
  const found = all.filter(({ name, code }) => name === language && code.includes(having));
  expect(found, `${document}: ${language} with ${having}`).toHaveLength(1);
  return found[0]?.code ?? "";
}

/** What a shell prints that runs lines of an example. */
function shell(lines: string): string {
  const here = lines.replaceAll("localhost:8080", new URL(headgate.http).host);
  return execFileSync("bash", ["--norc", "-ec", here], {
    env: { PATH: process.env.PATH, KEY: headgate.apiKey },
    stdio: "pipe",
  }).toString();
}

/** An example in TypeScript as a module, run. */
async function module(name: string, code: string): Promise<Record<string, unknown>> {
  const { outputText } = ts.transpileModule(code, { compilerOptions: { module: ts.ModuleKind.ESNext } });
  writeFileSync(join(folder, name), outputText);
  return (await import(pathToFileURL(join(folder, name)).href)) as Record<string, unknown>;
}
const built = (path: string) => pathToFileURL(resolve("dist", path)).href;

test("README: a stream is made, the customer's program allows by passcode, ffmpeg publishes or reads why not", async () => {
  const port = await freePort();
  writeFileSync(join(folder, "key.pem"), certificates.key);
  writeFileSync(join(folder, "cert.pem"), certificates.cert);
  writeFileSync(
    join(folder, "customer.mjs"),
    example("README.md", "js", "createServer").replace("listen(443)", `listen(${port}, () => console.log("listens"))`),
  );
  customer = start(process.execPath, ["customer.mjs"], { cwd: folder });
  await until("the customer's program", () => customer?.stdout().includes("listens"));
  const webhook = `https://localhost:${port}/headgate`;
  const set = example("README.md", "sh", "-X PUT").replace("https://customer.example/headgate", webhook);
  expect(JSON.parse(shell(set))).toMatchObject({ webhook });

  const make = example("README.md", "sh", "localhost:8080/stream").replace(/^KEY=.*\n/, "");
  const { ingest } = JSON.parse(shell(make)) as { ingest: { rtmp: { streamname: string } } };
  const address = `${headgate.rtmp}/${ingest.rtmp.streamname}`;
  const [encoder = ""] = example("README.md", "sh", "ffmpeg -re").split(/^ffplay/m);
  const publish = (passcode: string) => {
    const ours = encoder.replace("rtmp://localhost:1935/live/Ab1Cd-9XyZ0", address).replace("s3cret", passcode);
    return start("bash", ["--norc", "-c", `exec ${ours.trim()}`]);
  };
  const refused = publish("wrong");
  expect(await refused.exit).not.toBe(0);
  expect(refused.stderr()).toContain("Wrong passcode");
  const allowed = publish("s3cret");
  await until(
    "the publish is live",
    async () => {
      const sessions = (await headgate.call("GET", "/session")) as unknown as { streamname: string }[];
      return sessions.some(({ streamname }) => streamname === ingest.rtmp.streamname);
    },
    60_000,
  );
  allowed.kill("SIGKILL");
}, 120_000);

test("README: the broadcast link carries a token that holds, to a page that is there", async () => {
  const name = await headgate.newStream();
  const link = shell(example("README.md", "sh", "/broadcast#token=").replace("Ab1Cd-9XyZ0", name)).trim();
  expect(link).toMatch(new RegExp(`^${headgate.http.replace("127.0.0.1", "\\S+")}/broadcast#token=`));
  const token = link.split("#token=")[1] ?? "";
  expect(await headgate.call("POST", "/webcaster/verify", { token })).toMatchObject({ success: true });
  expect((await fetch(link)).status).toBe(200);
});

test("docs/management.md: the client's example", async () => {
  const code = example("docs/management.md", "ts", "createHeadgateClient")
    .replace("https://headgate.example", headgate.http)
    .replace("process.env.KEY!", `"${headgate.apiKey}"`)
    .replace(/from "[^"]+"/, `from "${built("client/index.js")}"`)
    .replace("https://customer.example/publish", "https://localhost/publish");
  const { stream } = await module("client.mjs", `${code}\nexport { stream };`);
  expect(stream).toMatchObject({ tags: ["studio-1"] });
});

test("docs/webhook.md: a complete customer", async () => {
  const code = example("docs/webhook.md", "ts", "export default")
    .replace(/from "[^"]+"/, `from "${built("client/webhook.js")}"`)
    .replace("whsec_…", SECRET);
  const receiver = (await module("receiver.mjs", code)).default as { fetch(request: Request): Promise<Response> };
  const ask = async (passcode: string, signed: string) => {
    const body = `passcode=${passcode}&call=publish&name=Ab1Cd-9XyZ0&app=live&addr=203.0.113.7&clientid=1`;
    const at = new Date();
    const headers = {
      "webhook-id": "msg_1",
      "webhook-timestamp": String(Math.floor(at.getTime() / 1_000)),
      "webhook-signature": new Webhook(signed).sign("msg_1", at, body),
    };
    return (await receiver.fetch(new Request("https://customer.example/", { method: "POST", headers, body }))).status;
  };
  expect([await ask("s3cret", SECRET), await ask("wrong", SECRET)]).toEqual([200, 403]);
  await expect(ask("s3cret", SECRET.replace("AAEC", "BBEC"))).rejects.toThrow("no signature of this secret");
});
