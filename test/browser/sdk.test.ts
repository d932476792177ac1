// /sdk: how pages load the browser client, how large it is, and what it does without a browser.
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { gzipSync } from "node:zlib";
import { afterAll, beforeAll, expect, test } from "vitest";
import { packWebcaster } from "../../scripts/webcaster-package.mjs";
import { type Gateway, openGateway } from "../support/gateway.ts";
import { inWholeRun } from "../support/whole-run.ts";

/** Of the script as transferred. */
const SIZE_LIMIT_BYTES = 15_000;

let gateway: Gateway;
beforeAll(async () => {
  gateway = await openGateway();
});
afterAll(() => gateway.close());

const get = (path: string, headers: Record<string, string> = {}) => gateway.app.request(path, { headers });

interface Manifest {
  readonly version: string;
  readonly files: Readonly<Record<string, { readonly url: string; readonly integrity: string }>>;
}
const manifest = async () => (await (await get("/sdk/manifest.json")).json()) as Manifest;

test.each(["webcaster.js", "webcaster.mjs"])("%s is at most 15 kB as transferred", async (name) => {
  const answer = await get(`/sdk/${name}`, { "accept-encoding": "gzip" });
  const size = (await answer.arrayBuffer()).byteLength;
  console.log(`browser client ${name}: ${size} bytes gzip`);
  expect(answer.headers.get("content-encoding")).toBe("gzip");
  expect(size).toBeLessThanOrEqual(SIZE_LIMIT_BYTES);
});

test("a stable address is revalidated after minutes, and not sent again when nothing changed", async () => {
  const first = await get("/sdk/webcaster.js");
  expect(first.status).toBe(200);
  expect(first.headers.get("content-type")).toBe("text/javascript; charset=utf-8");
  expect(first.headers.get("cache-control")).toBe("public, max-age=300");
  const etag = first.headers.get("etag") ?? "";
  const again = await get("/sdk/webcaster.js", { "if-none-match": `"other", ${etag}` });
  expect(again.status).toBe(304);
  expect(await again.text()).toBe("");
  expect(again.headers.get("etag")).toBe(etag);
});

test("an address with a hash is cached forever, and its integrity is the file's", async () => {
  const { files, version } = await manifest();
  expect(version).toMatch(/^\d+\.\d+\.\d+/);
  expect(Object.keys(files)).toEqual(expect.arrayContaining(["webcaster.js", "webcaster.mjs"]));
  for (const [name, { url, integrity }] of Object.entries(files)) {
    const answer = await get(url);
    expect(answer.status, name).toBe(200);
    expect(answer.headers.get("cache-control")).toBe("public, max-age=31536000, immutable");
    const body = Buffer.from(await answer.arrayBuffer());
    expect(`sha384-${createHash("sha384").update(body).digest("base64")}`).toBe(integrity);
  }
});

test("an address of an older release redirects to the stable one, any other is unknown", async () => {
  const old = await get("/sdk/webcaster-0123456789abcdef.mjs");
  expect([old.status, old.headers.get("location")]).toEqual([302, "/sdk/webcaster.mjs"]);
  for (const path of ["/sdk/other.js", "/sdk/other-0123456789abcdef.js", "/sdk/..%2fapp.js", "/sdk/webcaster"]) {
    expect((await get(path)).status, path).toBe(404);
  }
});

test("pages of any origin may load it, and browsers treat it only as a script", async () => {
  for (const path of ["/sdk/webcaster.js", "/sdk/webcaster.mjs", "/sdk/manifest.json"]) {
    const { headers } = await get(path, { origin: "https://page.example" });
    expect(headers.get("access-control-allow-origin"), path).toBe("*");
    expect(headers.get("cross-origin-resource-policy")).toBe("cross-origin");
    expect(headers.get("x-content-type-options")).toBe("nosniff");
  }
});

test.each([
  ["gzip, br", "gzip"],
  ["br", null],
  ["gzip;q=0, br", null],
  ["gzip;q=0.5", "gzip"],
  ["", null],
])("a browser that accepts %j gets %s", async (accepted, coding) => {
  const answer = await get("/sdk/webcaster.js", { "accept-encoding": accepted });
  expect(answer.headers.get("content-encoding")).toBe(coding);
  expect(answer.headers.get("vary")).toBe("accept-encoding");
  const plain = readFileSync("dist/sdk/webcaster.js");
  const sent = Buffer.from(await answer.arrayBuffer());
  expect(sent.equals(coding === null ? plain : gzipSync(plain, { level: 9 }))).toBe(true);
});

const wrong: readonly [what: string, config: object, says: string][] = [
  ["no service", { streamName: "N" }, "serverUrl"],
  ["a service that is no URL", { serverUrl: "headgate", streamName: "N" }, "serverUrl"],
  ["another scheme", { serverUrl: "rtmp://host/live", streamName: "N" }, "serverUrl"],
  ["neither stream nor token", { serverUrl: "https://host" }, "streamName or auth.token"],
  ["an empty token", { serverUrl: "https://host", auth: { token: "" } }, "auth.token"],
  ["a bitrate of 0", { inputCfg: { broadcastCfg: { maxVideoBitrateBps: 0 } } }, "maxVideoBitrateBps"],
  ["a frame rate as text", { inputCfg: { mediaStreamCfg: { maxFramerate: "25" } } }, "maxFramerate"],
  ["half a resolution", { inputCfg: { mediaStreamCfg: { resolution: [1280] } } }, "resolution"],
  ["no media at all", { inputCfg: { mediaStreamCfg: { audioVideoOnly: "none" } } }, "audioVideoOnly"],
  ["no tries", { reconnect: { maxRetries: 0 } }, "reconnect.maxRetries"],
];
test.each(wrong)("a configuration with %s is refused by its name", async (_, config, says) => {
  const { Webcaster } = await import(pathToFileURL(resolve("dist/sdk/webcaster.mjs")).href);
  const complete =
    "streamName" in config || "serverUrl" in config ? config : { serverUrl: "https://h", streamName: "N", ...config };
  expect(() => new Webcaster(complete)).toThrow(
    expect.objectContaining({ code: 1001, message: expect.stringContaining(says) }),
  );
});

inWholeRun(
  "the package installs without a registry, and its declarations compile in a strict program",
  async () => {
    const folder = mkdtempSync(join(tmpdir(), "headgate-webcaster-"));
    const tarball = await packWebcaster(folder);
    writeFileSync(join(folder, "package.json"), JSON.stringify({ name: "page", private: true, type: "module" }));
    const emptyCache = ["--offline", "--cache", join(folder, "cache")];
    execFileSync("npm", ["install", ...emptyCache, "--no-audit", "--no-fund", "--silent", tarball], { cwd: folder });
    const program = `
import { encodeStreamName, type Metrics, Webcaster, WebcasterError } from "headgate-webcaster";
const webcaster = new Webcaster({ serverUrl: "https://h", streamName: encodeStreamName("N", { a: "b c" }), reconnect: true });
webcaster.onMetrics = ({ video }: Metrics) => console.log(video?.bitrateBps);
webcaster.onError = (error: WebcasterError) => console.log(error.code);
console.log(webcaster.state, encodeStreamName("N", { a: "b c" }));
`;
    writeFileSync(join(folder, "main.ts"), program);
    const words = ["--strict", "--target", "es2022", "--module", "nodenext", "--lib", "es2023,dom"];
    execFileSync(process.execPath, [resolve("node_modules/ts7/bin/tsc"), ...words, "main.ts"], { cwd: folder });
    const output = execFileSync(process.execPath, ["main.js"], { cwd: folder }).toString();
    expect(output.trim()).toBe("idle N%3Fa%3Db%2520c");
  },
  120_000,
);
