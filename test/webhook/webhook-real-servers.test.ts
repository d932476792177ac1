// Customers' servers as real programs that close kept connections after a second, just when the next call comes: no call
// is lost.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pino } from "pino";
import { afterAll, afterEach, expect, test } from "vitest";
import { createWebhook, type Webhook } from "../../ts/publish/webhook/call.ts";
import { type Child, start, until } from "../support/child.ts";
import { freePort } from "../support/free-port.ts";
import { pause } from "../support/pause.ts";
import { python } from "../support/pyav.ts";

const CALLERS = 10;
const CALLS_EACH = 15;
/** After this long the servers close an idle connection. */
const KEPT_MS = 1_000;

const folder = mkdtempSync(join(tmpdir(), "headgate-servers-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
let server: Child;
let webhook: Webhook;
afterEach(async () => {
  await webhook.close();
  server.kill("SIGKILL");
  await server.exit;
});

test("uvicorn", async () => {
  const port = await freePort();
  const words = ["--app-dir", "test/fixtures", "--port", String(port), "--timeout-keep-alive", String(KEPT_MS / 1_000)];
  await callsAreAnswered(start(python(), ["-m", "uvicorn", "customer_asgi:app", ...words]), port);
}, 90_000);

test("nginx", async () => {
  const port = await freePort();
  writeFileSync(
    join(folder, "nginx.conf"),
    `daemon off; master_process off; error_log ${folder}/error.log; pid ${folder}/pid; events {}
     http { access_log off; keepalive_timeout 1s; client_body_temp_path ${folder}/body;
       server { listen 127.0.0.1:${port}; location / { return 200; } } }`,
  );
  const words = ["-p", folder, "-c", join(folder, "nginx.conf"), "-e", join(folder, "start.log")];
  await callsAreAnswered(start("/usr/sbin/nginx", words), port);
}, 90_000);

test("PHP", async () => {
  const port = await freePort();
  writeFileSync(join(folder, "index.php"), "<?php http_response_code(200);");
  await callsAreAnswered(start("php", ["-S", `127.0.0.1:${port}`, "-t", folder]), port);
}, 90_000);

async function callsAreAnswered(started: Child, port: number): Promise<void> {
  server = started;
  webhook = createWebhook({ webhookCa: null, dev: true, log: pino({ level: "silent" }), clock: { now: Date.now } });
  let calls = 0;
  const post = () => {
    calls += 1;
    return webhook.post({
      ...{ organisationId: "one", url: `http://127.0.0.1:${port}/`, id: `msg_${calls}`, keys: [Buffer.alloc(32, 1)] },
      ...{ body: Buffer.from("call=publish&name=cam"), deadlineMs: 5_000, retryConnection: false },
      event: { call: "publish", clientId: 1, name: "cam", attempt: 1 },
    });
  };
  await until("the server answers", async () => (await post()).outcome === "answered", 30_000);
  const caller = async (at: number) => {
    const failed = [];
    for (let call = 0; call < CALLS_EACH; call += 1) {
      const answer = await post();
      if (answer.outcome !== "answered") failed.push(answer);
      await pause(KEPT_MS - 5 + ((at + call) % CALLERS)); // just before and after the server closes the connection
    }
    return failed;
  };
  const failed = await Promise.all(Array.from({ length: CALLERS }, (_, at) => caller(at)));
  expect(failed.flat()).toEqual([]);
}
