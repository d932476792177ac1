// docs/broadcasting.md: its page, its backend and its calls run as written, in Chromium against the real
// service; its tables match the code. Only what a reader replaces too is replaced: addresses, the key, the
// stream's name.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { ERRORS } from "../../../ts/webcaster/pure/errors.ts";
import { next, type StateEvent, type WebcasterState } from "../../../ts/webcaster/pure/state.ts";
import { encodeStreamName } from "../../../ts/webcaster/pure/stream-name.ts";
import { type Child, start, until } from "../../support/child.ts";
import { type Chromium, startChromium } from "../../support/chromium.ts";
import { type Customer, startCustomer } from "../../support/customer.ts";
import { freePort } from "../../support/free-port.ts";
import { type Headgate, startHeadgate } from "../../support/headgate.ts";

const DOCUMENT = readFileSync("docs/broadcasting.md", "utf8");
const folder = mkdtempSync(join(tmpdir(), "headgate-broadcasting-"));
let customer: Customer;
let headgate: Headgate;
let chromium: Chromium;
let backend: Child | null = null;

beforeAll(async () => {
  customer = await startCustomer();
  headgate = await startHeadgate({ customer });
  chromium = await startChromium();
}, 120_000);
afterAll(async () => {
  await chromium?.close();
  backend?.kill("SIGKILL");
  await headgate?.stop();
  await customer?.close();
  rmSync(folder, { recursive: true, force: true });
});

/** The one example in a language that contains `having`. */
function example(language: string, having: string): string {
  const all = [...DOCUMENT.matchAll(/^```(\w+)\n(.*?)^```$/gms)].map(([, name, code = ""]) => ({ name, code }));
  const found = all.filter(({ name, code }) => name === language && code.includes(having));
  expect(found, `${language} with ${having}`).toHaveLength(1);
  return found[0]?.code ?? "";
}

test("the twenty lines broadcast, with a token from the backend and its custom arguments; then every documented call works while live", async () => {
  const name = await headgate.newStream();
  const port = await freePort();
  const ours = (text: string) =>
    text
      .replaceAll("https://headgate.example", headgate.http)
      .replaceAll("rtmp://headgate.example/live", headgate.rtmp)
      .replaceAll("Ab1Cd-9XyZ0", name)
      .replace("listen(3000)", `listen(${port}, () => console.log("listens"))`);
  // What the calls while live require of the page.
  const page = ours(example("html", "<!doctype html>"))
    .replace("{ Webcaster }", "{ Webcaster, DeviceUtils }")
    .replace("</script>", "Object.assign(window, { webcaster, DeviceUtils });</script>");
  writeFileSync(join(folder, "page.html"), page);
  writeFileSync(join(folder, "backend.mjs"), ours(example("js", "createServer")));
  const env = { PATH: process.env.PATH, KEY: headgate.apiKey };
  backend = start(process.execPath, ["backend.mjs"], { cwd: folder, env });
  await until("the backend listens", () => backend?.stdout().includes("listens"));

  const tab = await chromium.context.newPage();
  await tab.goto(`http://127.0.0.1:${port}/`);
  const says = () => tab.evaluate("document.getElementById('says').value");
  await until("it is ready", async () => (await says()) === "ready", 60_000);
  await tab.click("#start");
  await until("it is live", async () => (await says()) === "live", 60_000);
  const { body } = await customer.received("publish");
  expect(body).toMatch(new RegExp(`^passcode=s3cret&call=publish&name=${name}&`));

  await tab.evaluate(`(async () => { ${example("js", "setUpstreamQuality")} })()`);
  await until("smaller video", async () => {
    const height = `webcaster.getMediaStream() && new Promise((resolve) => {
      webcaster.onMetrics = ({ video }) => resolve(video?.height);
    })`;
    return (await tab.evaluate(height)) === 360;
  });
  expect(await tab.evaluate("webcaster.isMuted()")).toEqual({ audio: true, video: false });
  await tab.click("#stop");
  await until("it is ready again", async () => (await says()) === "ready", 30_000);
  await until("publish_done", () => customer.calls("publish_done")[0]);
  expect(customer.calls("publish")).toHaveLength(1);
}, 180_000);

test("the backend goes on after a refusal", async () => {
  const port = await freePort();
  const code = example("js", "createServer")
    .replaceAll("https://headgate.example", headgate.http)
    .replace("listen(3000)", `listen(${port}, () => console.log("listens"))`);
  writeFileSync(join(folder, "refused.mjs"), code);
  const refused = start(process.execPath, ["refused.mjs"], {
    cwd: folder,
    env: { PATH: process.env.PATH, KEY: "wrong" },
  });
  await until("the backend listens", () => refused.stdout().includes("listens"));
  for (let times = 0; times < 2; times += 1) {
    expect((await fetch(`http://127.0.0.1:${port}/web-token`)).status).toBe(502);
  }
  expect(refused.stderr()).toContain("no web token: Provided APIKey is not valid");
  refused.kill("SIGKILL");
  await refused.exit;
}, 60_000);

test("the page is no longer than it claims", () => {
  const lines = example("html", "<!doctype html>").trim().split("\n");
  expect(lines.filter((line) => line.trim() !== "").length).toBeLessThanOrEqual(23);
});

test("custom arguments reach the webhook as the page describes", () => {
  const [code = "", comment = ""] = example("js", "encodeStreamName").split("\n");
  const encoded = new Function("encodeStreamName", `${code}; return streamName;`)(encodeStreamName) as string;
  const custom = decodeURIComponent(encoded).split("?")[1] ?? "";
  expect(comment).toContain(`begins with ${custom}`);
});

test("the table of errors matches the code", () => {
  const rows = [...DOCUMENT.matchAll(/^\| (\d{4}) \| `(\w+)` \| (.*) \|$/gm)].map(([, code, name, says]) => [
    name,
    [Number(code), says],
  ]);
  expect(Object.fromEntries(rows)).toEqual(ERRORS);
});

test("the diagram of the states matches the code", () => {
  const drawn = [...DOCUMENT.matchAll(/^ {4}(\w+) --> (\w+): (\w+)$/gm)].map(
    ([, from, to, event]) => `${from} ${event} ${to}`,
  );
  const states = [...new Set(drawn.flatMap((line) => [line.split(" ")[0], line.split(" ")[2]]))] as WebcasterState[];
  const events = [...new Set(drawn.map((line) => line.split(" ")[1]))] as StateEvent[];
  const coded = states.flatMap((from) =>
    events.flatMap((event) => (next(from, event) === null ? [] : [`${from} ${event} ${next(from, event)}`])),
  );
  expect(drawn.toSorted()).toEqual(coded.toSorted());
});
