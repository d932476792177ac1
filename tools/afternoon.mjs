// `node tools/afternoon.mjs [--live 12]`: a service with an afternoon behind it (afternoon/events.mjs), to be asked the
// questions of docs/afternoon.md in its dashboard, until ^C. With --clicks it prints the table of that document instead.
import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { parseArgs } from "node:util";
import { freePort } from "../bench/_servers.mjs";
import { build, root } from "../scripts/build.mjs";
import { haveAnAfternoon } from "./afternoon/events.mjs";
import { QUESTIONS } from "./afternoon/questions.mjs";

const { values } = parseArgs({ options: { live: { type: "string", default: "12" }, clicks: { type: "boolean" } } });
if (values.clicks) {
  for (const { question, clicks } of QUESTIONS) {
    console.log(`| ${question} | ${clicks.length === 0 ? "none" : clicks.join(" → ")} |`);
  }
  process.exit();
}

build();
const password = randomBytes(9).toString("base64url");
const customer = await startCustomer();
const service = await startService();
await service.call("PUT", "/organisation/webhook", { webhook: customer.url });
const live = Number(values.live);
const afternoon = await haveAnAfternoon({ service, customer, password, upstreamPort: await freePort(), live });
console.log(`${service.http}/dashboard/  admin  ${password}\n`);
for (const { question } of QUESTIONS) console.log(question);
await new Promise((resolve) => process.once("SIGINT", resolve).once("SIGTERM", resolve));
afternoon.stop();
service.stop();
customer.close();

/** A customer that answers as it was last told, by plain HTTP: the service is started with --dev. */
async function startCustomer() {
  let next = { status: 200 };
  const server = createServer((request, response) => {
    const { status, headers = {}, body = "" } = next;
    request.resume().once("end", () => response.writeHead(status, headers).end(body));
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const answer = (given) => {
    next = given;
  };
  return { url: `http://127.0.0.1:${server.address().port}/headgate`, answer, close: () => server.close() };
}

async function startService() {
  const dataDir = mkdtempSync(join(tmpdir(), "headgate-afternoon-"));
  const key = `afternoon-${randomBytes(20).toString("hex")}`;
  const child = spawn(process.execPath, ["scripts/headgate.mjs", "serve"], {
    cwd: root,
    stdio: ["ignore", "pipe", "ignore"],
    env: {
      PATH: process.env.PATH,
      HEADGATE_DATA_DIR: dataDir,
      HEADGATE_HTTP_HOST: "127.0.0.1",
      HEADGATE_HTTP_PORT: "0",
      HEADGATE_RTMP_HOST: "127.0.0.1",
      HEADGATE_RTMP_PORT: "0",
      HEADGATE_METRICS_PORT: "0",
      HEADGATE_MEDIA_HOST: "127.0.0.1",
      HEADGATE_MEDIA_PORT: "0",
      HEADGATE_BOOTSTRAP_API_KEY: key,
      HEADGATE_BOOTSTRAP_ADMIN_PASSWORD: password,
      HEADGATE_DRAIN_S: "86400",
      HEADGATE_DEV: "1",
    },
  });
  child.once("exit", () => rmSync(dataDir, { recursive: true, force: true }));
  const line = await new Promise((resolve, reject) => {
    createInterface(child.stdout).once("line", resolve);
    child.once("exit", () => reject(new Error("the service did not start")));
  });
  const { http, rtmp } = JSON.parse(line);
  return {
    http,
    rtmp,
    async call(method, path, body) {
      const response = await fetch(http + path, {
        method,
        headers: { "x-service-apikey": key, "content-type": "application/json", connection: "close" },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
      if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`);
      return await response.json();
    },
    drain: () => child.kill("SIGTERM"),
    stop: () => child.kill("SIGKILL"),
  };
}
