// The examples of README.md and docs run as written: commands by a shell, programs by Node. Only what a
// reader replaces too is replaced: addresses, the key, the stream's name.
import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { connect } from "node:tls";
import { pathToFileURL } from "node:url";
import { Webhook } from "standardwebhooks";
import ts from "typescript";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Child, start, until } from "../support/child.ts";
import { command } from "../support/command.ts";
import { testCertificates } from "../support/customer.ts";
import { freePort } from "../support/free-port.ts";
import { type Headgate, startHeadgate } from "../support/headgate.ts";
import { trustFile } from "../support/trust-file.ts";
import { inWholeRun } from "../support/whole-run.ts";

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

/** Commands at the start of a line of an example, or of code in a sentence. */
const COMMANDS = /(?:^|`)(?:[A-Z_]+=\S+ )*headgate ([a-z]\w*)([^`\n|#;]*)/gm;

/** The one example of a document in a language that contains `having`. */
function example(document: string, language: string, having: string): string {
  const text = readFileSync(document, "utf8");
  const all = [...text.matchAll(/^```(\w+)\n(.*?)^```$/gms)].map(([, name, code = ""]) => ({ name, code }));
  const found = all.filter(({ name, code }) => name === language && code.includes(having));
  expect(found, `${document}: ${language} with ${having}`).toHaveLength(1);
  return found[0]?.code ?? "";
}

/** The output of a shell that runs the lines of an example. */
function shell(lines: string): string {
  const { host, port } = new URL(headgate.http);
  const here = lines.replaceAll("localhost:8080", host).replaceAll("localhost:9464", new URL(headgate.metrics).host);
  const definition = `headgate() { "${process.execPath}" scripts/headgate.mjs "$@"; }`;
  return execFileSync("bash", ["--norc", "-ec", `${definition}\n${here}`], {
    env: { PATH: process.env.PATH, KEY: headgate.apiKey, HEADGATE_HTTP_PORT: port, HEADGATE_HTTP_HOST: "127.0.0.1" },
    stdio: "pipe",
  }).toString();
}

interface Stream {
  readonly id: string;
  readonly ingest: { readonly rtmp: { readonly streamname: string } };
}

/** An example in TypeScript, executed as a module. */
async function module(name: string, code: string): Promise<Record<string, unknown>> {
  const { outputText } = ts.transpileModule(code, { compilerOptions: { module: ts.ModuleKind.ESNext } });
  writeFileSync(join(folder, name), outputText);
  return (await import(pathToFileURL(join(folder, name)).href)) as Record<string, unknown>;
}
const built = (path: string) => pathToFileURL(resolve("dist", path)).href;

test("README and webhook: a stream is created, the customer's program allows by passcode, ffmpeg publishes or shows why not", async () => {
  const port = await freePort();
  writeFileSync(join(folder, "key.pem"), certificates.key);
  writeFileSync(join(folder, "cert.pem"), certificates.cert);
  writeFileSync(
    join(folder, "customer.mjs"),
    example("docs/webhook.md", "js", "createServer").replace(
      "listen(443)",
      `listen(${port}, () => console.log("listens"))`,
    ),
  );
  customer = start(process.execPath, ["customer.mjs"], { cwd: folder });
  await until("the customer's program", () => customer?.stdout().includes("listens"));
  const webhook = `https://localhost:${port}/headgate`;
  // A request that is cut off costs the program nothing.
  const cut = connect({ port, host: "localhost", rejectUnauthorized: false });
  cut.write("POST / HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100\r\n\r\ncall=", () => cut.destroy());
  await once(cut, "close");
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

test("docs/first-broadcast.md: the broadcast link contains a valid token and leads to an existing page", async () => {
  const name = await headgate.newStream();
  const link = shell(example("docs/first-broadcast.md", "sh", "/broadcast#token=").replace("Ab1Cd-9XyZ0", name)).trim();
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
  const foreign = SECRET.replace("AAEC", "BBEC");
  expect([await ask("s3cret", SECRET), await ask("wrong", SECRET), await ask("s3cret", foreign)]).toEqual([
    200, 403, 401,
  ]);
});

test("docs/first-broadcast.md: each step, from creating the stream to its timeline", async () => {
  const document = "docs/first-broadcast.md";
  await headgate.call("DELETE", "/organisation/webhook");
  const make = example(document, "sh", "localhost:8080/stream -H").replace(/^KEY=.*\n/, "");
  const { id, ingest } = JSON.parse(shell(make)) as Stream;
  const address = `${headgate.rtmp}/${ingest.rtmp.streamname}`;
  const here = (code: string) => code.replaceAll("rtmp://localhost:1935/live/Ab1Cd-9XyZ0", address);
  const upstream = example(document, "sh", "/upstream").replace("STREAM_ID", id);
  expect(JSON.parse(shell(upstream))).toMatchObject({ url: expect.stringMatching(/^rtmp:\/\/upstream\.example/) });
  const encoder = start("bash", ["--norc", "-c", `exec ${here(example(document, "sh", "ffmpeg -re")).trim()}`]);
  const [sessions = "", explain = ""] = example(document, "sh", "localhost:8080/session").trim().split("\n");
  const running = async () => {
    const all = JSON.parse(shell(sessions)) as { streamname: string; client_id: number }[];
    return all.find(({ streamname }) => streamname === ingest.rtmp.streamname)?.client_id;
  };
  const clientId = await until("the publish is live", running, 60_000);
  const [probe = ""] = here(example(document, "sh", "ffplay")).split(/^ffplay/m);
  expect(shell(probe)).toMatch(/codec_name=h264[\s\S]*codec_name=aac|codec_name=aac[\s\S]*codec_name=h264/);
  encoder.kill("SIGKILL");
  await until("it has ended", async () => (await running()) === undefined, 60_000);
  expect(shell(explain.replace("CLIENT_ID", String(clientId)))).toContain("by RTMP, ended");
}, 180_000);

test("docs/security-model.md: settings, a token for a broadcaster and one for a player", async () => {
  const document = "docs/security-model.md";
  const { id } = (await headgate.call("POST", "/stream")) as unknown as Stream;
  const settings = { require_token: true, play: "token" };
  expect(JSON.parse(shell(example(document, "sh", "/organisation/settings")))).toMatchObject(settings);
  const [broadcaster = "", player = ""] = example(document, "sh", "play-token").split(/^(?=curl .*play-token)/m);
  expect(JSON.parse(shell(broadcaster))).toMatchObject({ data: { token: expect.any(String) } });
  expect(JSON.parse(shell(player.replace("STREAM_ID", id)))).toMatchObject({
    streamname: expect.stringContaining("token="),
  });
  await headgate.call("PUT", "/organisation/settings", { require_token: false, play: "open" });
});

test("docs/runbook.md, docs/operating.md: the diagnostic commands, and a key for nodes", () => {
  const [doctor = "", ready = ""] = example("docs/runbook.md", "sh", "/readyz").split("\n");
  const own = `HEADGATE_DATA_DIR="${join(folder, "nowhere")}" HEADGATE_MEDIA_PORT=0`;
  expect(shell(`${own} ${doctor.replace(/#.*/, "")} || true`)).toContain("checks found nothing wrong");
  expect(shell(ready).trim()).toBe("ready");
  const [key = ""] = example("docs/operating.md", "sh", "basenc").split("\n");
  const text = shell(key.replace("> headgate.key", ""));
  expect(text).toMatch(/^[\w-]{43}$/);
  expect(Buffer.from(text, "base64url")).toHaveLength(32);
});

inWholeRun("docs/operating.md: a backup with its key, and its restoration", () => {
  const data = join(folder, "operated");
  shell(`headgate init --data-dir ${data}`);
  mkdirSync(join(folder, "backup"));
  mkdirSync(join(folder, "safe"));
  const lines = example("docs/operating.md", "sh", "headgate restore")
    .replaceAll(/\/(backup|safe)\//g, `${folder}/$1/`)
    .replace("--key", `--data-dir ${data} --key`)
    .replace("/var/lib/headgate", join(folder, "restored"));
  expect(shell(lines)).toContain("holds the store of");
  expect(existsSync(join(folder, "restored", "headgate.db"))).toBe(true);
});

test("every placeholder of an example is named on its page, and explained", () => {
  const placeholders =
    /hg_…|whsec_…|msg_…|\$KEY|STREAM_ID|CLIENT_ID|PASSWORD|\b[\w-]+\.example\b|Ab1Cd-9XyZ0|\b100482\b/g;
  const [, table = ""] = readFileSync("docs/README.md", "utf8").split("## Placeholders");
  const wrong: string[] = [];
  for (const document of ["README.md", ...readdirSync("docs", { recursive: true }).map((name) => `docs/${name}`)]) {
    if (!document.endsWith(".md") || document === "docs/README.md") continue;
    const text = readFileSync(document, "utf8");
    const examples = [...text.matchAll(/^```.*?^```$/gms)].map(([example]) => example).join("");
    const used = new Set([...examples.matchAll(placeholders)].map(([name]) => name));
    const [note = ""] = /replace the\s\[placeholders\]\(\S*README\.md#placeholders\):.*?\.\n\n/s.exec(text) ?? [];
    for (const name of used) if (!note.includes(`\`${name}\``)) wrong.push(`${document}: ${name} is not named`);
    for (const name of used) if (!table.includes(`\`${name}\``)) wrong.push(`${name} is not explained`);
  }
  expect(wrong).toEqual([]);
});

test("every headgate command and flag in the documents exists", async () => {
  const helpOf = async (...words: string[]) => (await command([...words, "--help"], { PATH: process.env.PATH })).out;
  const verbs = await helpOf();
  const helps = new Map<string, string>();
  const wrong: string[] = [];
  for (const document of [
    "README.md",
    ...readdirSync("docs")
      .filter((name) => name.endsWith(".md"))
      .map((name) => `docs/${name}`),
  ]) {
    const text = readFileSync(document, "utf8");
    for (const [, verb = "", rest = ""] of text.matchAll(COMMANDS)) {
      if (!new RegExp(`^ +${verb} `, "m").test(verbs)) wrong.push(`${document}: headgate ${verb}`);
      const help = helps.get(verb) ?? (await helpOf(verb));
      helps.set(verb, help);
      for (const [flag] of rest.matchAll(/--[a-z][a-z-]*/g))
        if (!help.includes(flag)) wrong.push(`${document}: ${verb} ${flag}`);
    }
    for (const [path] of text.matchAll(/\bdeploy\/[\w./-]*\w/g))
      if (!existsSync(path)) wrong.push(`${document}: ${path}`);
  }
  expect(wrong).toEqual([]);
});
