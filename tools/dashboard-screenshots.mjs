// `node tools/dashboard-screenshots.mjs FOLDER [PAGE …]`: a screenshot of every page of the dashboard, in both colour
// schemes, on a desktop (1440x900) and a phone (390x844), from a real service with a customer, streams, people and a history.
import { spawn } from "node:child_process";
import { mkdirSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import Database from "libsql";
import { chromium } from "playwright-core";
import { PNG } from "pngjs";
import { build } from "../scripts/build.mjs";
import { SHOTS } from "./dashboard-shots.mjs";
import { startLocalService } from "./local-service.mjs";

const CHROMIUM = "/usr/bin/chromium";
const PASSWORD = "correct horse battery staple";
const SIZES = { desktop: { width: 1440, height: 900 }, phone: { width: 390, height: 844 } };

const [folder, ...wanted] = process.argv.slice(2);
if (folder === undefined) {
  console.error("usage: node tools/dashboard-screenshots.mjs FOLDER [PAGE …]");
  process.exit(2);
}

build();
mkdirSync(folder, { recursive: true });
const customer = await startCustomer();
const service = await startService();
try {
  const browser = await chromium.launch({ executablePath: CHROMIUM, args: ["--no-sandbox", "--disable-gpu"] });
  const known = await furnish();
  for (const [size, viewport] of Object.entries(SIZES)) {
    for (const colorScheme of ["light", "dark"]) await shoot(browser, { size, viewport, colorScheme, known });
  }
  await browser.close();
} finally {
  service.stop();
  customer.close();
}

async function shoot(browser, { size, viewport, colorScheme, known }) {
  const context = await browser.newContext({ viewport, colorScheme, reducedMotion: "reduce" });
  const page = await context.newPage();
  let isSignedIn = false;
  for (const { name, path, act, signedOut = false } of SHOTS) {
    if (wanted.length > 0 && !wanted.includes(name)) continue;
    if (!signedOut && !isSignedIn) {
      await page.request.post(`${service.http}/login`, { data: { email: "admin", password: PASSWORD } });
      isSignedIn = true;
    }
    await page.goto(service.http + (typeof path === "function" ? path(known) : path));
    await page.waitForSelector("h1");
    await page.waitForLoadState("networkidle", { timeout: 3_000 }).catch(() => {}); // never with an event stream open
    if (act) await act(page, known);
    await page.evaluate("scrollTo(0, 0)");
    const file = join(folder, `${name}-${size}-${colorScheme}.png`);
    const isOpen = await page.evaluate("document.querySelector('dialog[open]') !== null");
    await page.screenshot({ path: file, fullPage: !isOpen });
    console.log(file);
  }
  await context.close();
}

/** A customer that denies a publish without the passcode. Plain HTTP: the service is started with --dev. */
async function startCustomer() {
  const server = createServer(async (request, response) => {
    let body = "";
    for await (const part of request) body += part;
    const event = new URLSearchParams(body);
    const isRefused = event.get("call") === "publish" && event.get("passcode") !== "s3cret";
    response.writeHead(isRefused ? 403 : 200, { "content-type": "text/plain" });
    response.end(isRefused ? "Your subscription ended on 31 May" : "");
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${server.address().port}/headgate?key=s3cret`,
    close: () => server.close(),
  };
}

/** A service, and the encoders that publish to it. */
async function startService() {
  const local = await startLocalService({ password: PASSWORD, drainS: 0 });
  const encoders = [];
  return {
    ...local,
    encoders,
    stop() {
      for (const encoder of encoders) encoder.kill("SIGKILL");
      local.stop();
    },
  };
}

/** Four weeks of broadcasts, written to the store as the service would have. */
function rememberUsage(organisation, streams) {
  const store = new Database(join(service.dataDir, "headgate.db"), { timeout: 5_000 });
  const insert = store.prepare(
    'insert into "usage" (stream_id, day, organisation_id, bytes_in, bytes_out) values (?, ?, ?, ?, ?)',
  );
  for (let ago = 1; ago <= 28; ago += 1) {
    const day = new Date(Date.now() - ago * 86_400_000).toISOString().slice(0, 10);
    for (const [index, { id }] of streams.entries()) {
      if ((ago * 7 + index * 5) % 9 < 3) continue;
      const bytes = Math.round(4e9 * (1 + Math.sin(ago + index)) * (index === 0 ? 2 : 1)) + 1e8;
      insert.run(id, day, organisation, bytes, Math.round(bytes * 1.6));
    }
  }
  store.close();
}

/** A disc on nothing, as many logos are. */
function logo() {
  const png = new PNG({ width: 240, height: 80 });
  for (let at = 0; at < 240 * 80; at += 1) {
    const [x, y] = [at % 240, Math.floor(at / 240)];
    const isInside = Math.hypot(x - 40, y - 40) < 38 || (x > 90 && y > 30 && y < 50);
    png.data.set(isInside ? [200, 40, 60, 255] : [0, 0, 0, 0], at * 4);
  }
  return PNG.sync.write(png);
}

/** Creates a history, so that no page is empty: what the pages of SHOTS look up by name. */
async function furnish() {
  const { call, rtmp, encoders } = service;
  await call("PUT", "/organisation/webhook", { webhook: customer.url });
  await call("POST", "/organisation/webhook/secret");
  await call("PUT", "/organisation/webhook/copies", { webhook: `${customer.url}&copies=1`, events: "all" });
  await call("PUT", "/organisation/logo", { png: logo().toString("base64") });
  for (const [email, role] of [
    ["ada@customer.example", "administrator"],
    ["ben@customer.example", "user"],
    ["carla@customer.example", "readonly"],
  ]) {
    await call("POST", "/organisation/user", { email, role, password: PASSWORD });
  }
  const expires_at = new Date(Date.now() + 86_400_000 * 20).toISOString();
  await call("POST", "/organisation/key", { role: "user", label: "Website", expires_at });
  await call("POST", "/organisation/key", { role: "readonly", label: "Statistics", scope_tag: "studio-1" });
  const streams = [];
  for (const tags of [["studio-1", "main"], ["studio-1", "backup"], ["studio-2"], ["outdoor"], []]) {
    streams.push(await call("POST", "/stream", { tags }));
  }
  for (const [label, key] of [
    ["Main channel", "main-key-01"],
    [null, "other-key-1"],
  ]) {
    const url = `rtmp://127.0.0.1:1/live/${key}`;
    for (const { id } of streams.slice(0, 2)) await call("POST", `/stream/${id}/upstream`, { url, label });
  }
  const [, second] = await call("GET", `/stream/${streams[0].id}/upstream`);
  await call("PUT", `/stream/${streams[0].id}/upstream/${second.id}/pause`);
  await call("POST", `/stream/${streams[0].id}/play-token`);
  await call("POST", "/webcaster", {
    streamname: `${streams[1].ingest.rtmp.streamname}?passcode=s3cret`,
    ingesturl: rtmp,
  });
  const publish = (stream, passcode) => {
    const address = `${rtmp}/${stream.ingest.rtmp.streamname}?passcode=${passcode}`;
    const source = "testsrc2=size=640x360:rate=25";
    const words = ["-v", "error", "-re", "-f", "lavfi", "-i", source, "-f", "lavfi", "-i", "sine", "-c:v", "libx264"];
    const rest = ["-preset", "ultrafast", "-tune", "zerolatency", "-g", "50", "-pix_fmt", "yuv420p", "-c:a", "aac"];
    const encoder = spawn("ffmpeg", [...words, ...rest, "-f", "flv", address], { stdio: "ignore" });
    encoders.push(encoder);
    return encoder;
  };
  const refused = (stream, passcode) => new Promise((resolve) => publish(stream, passcode).once("exit", resolve));
  await refused(streams[2], "wrong");
  publish(streams[0], "s3cret");
  await call("PUT", `/stream/${streams[3].id}/lock`);
  for (let times = 0; times < 3; times += 1) await refused(streams[3], "s3cret");
  await refused(streams[2], "s3cret&clientid=7");
  await refused({ ingest: { rtmp: { streamname: "Ab1Cd-guessedByNobody" } } }, "s3cret");
  const { id } = await call("GET", "/organisation");
  rememberUsage(id, streams);
  for (let tries = 0; tries < 100; tries += 1) {
    const sessions = await call("GET", "/session");
    if (sessions.length > 0) break;
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
  const deliveries = await call("GET", "/organisation/webhook/deliveries");
  const denied = deliveries.find(({ status }) => status === 403);
  return { streams, live: streams[0], denied };
}
