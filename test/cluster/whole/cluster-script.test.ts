// `npm run cluster`: its printed commands work, with a real balancer by its rules, and ^C leaves nothing
// behind.
import { existsSync } from "node:fs";
import { dirname } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Child, run, start, until } from "../../support/child.ts";
import { type Broadcast, broadcast } from "../../support/ffmpeg.ts";
import { freePort } from "../../support/free-port.ts";

const START_LIMIT_MS = 180_000;

interface Ready {
  readonly nodes: readonly {
    readonly name: string;
    readonly pid: number;
    readonly http: string;
    readonly rtmp: string;
  }[];
  readonly apiKey: string;
  readonly databaseUrl: string;
  readonly rules: string;
}

let cluster: Child;
let ready: Ready;
let balancer: Child | null = null;
let ports: { readonly http: number; readonly rtmp: number };
const broadcasts: Broadcast[] = [];

beforeAll(async () => {
  ports = { http: await freePort(), rtmp: await freePort() };
  const words = ["2", "--http-port", String(ports.http), "--rtmp-port", String(ports.rtmp)];
  cluster = start(process.execPath, ["tools/cluster.mjs", ...words]);
  const line = () =>
    cluster
      .stdout()
      .split("\n")
      .find((text) => text.startsWith('{"ready":true'));
  ready = JSON.parse(
    await until("the cluster is ready", line, START_LIMIT_MS).catch((error: Error) => {
      throw new Error(`${error.message}; it said ${cluster.stderr().slice(-2_000)}`);
    }),
  ) as Ready;
}, START_LIMIT_MS + 10_000);
afterAll(async () => {
  for (const each of broadcasts) each.kill("SIGKILL");
  balancer?.kill("SIGKILL");
  cluster?.kill("SIGINT");
  await cluster?.exit;
});

async function call(http: string, method: string, path: string): Promise<unknown> {
  const headers = { "x-service-apikey": ready.apiKey, connection: "close" };
  return await (await fetch(http + path, { method, headers })).json();
}

async function newStream(http: string): Promise<string> {
  const stream = (await call(http, "POST", "/stream")) as { ingest: { rtmp: { streamname: string } } };
  return stream.ingest.rtmp.streamname;
}

function publish(url: string): void {
  broadcasts.push(broadcast(url, { seconds: 600, size: "160x90" }));
}

/** Publishes of each node, as the other nodes learn with its heartbeats. */
async function publishes(): Promise<readonly number[]> {
  const { cluster: nodes } = (await call(ready.nodes[0]?.http ?? "", "GET", "/deployment")) as {
    cluster: readonly { readonly publishes: number }[];
  };
  return nodes.map((node) => node.publishes);
}

const arePublishes = (...expected: readonly number[]) =>
  until(`publishes are ${expected}`, async () => String(await publishes()) === String(expected), 60_000, 200);

test("one key works on every node, and each accepts publishes", async () => {
  for (const { http, rtmp } of ready.nodes) publish(`${rtmp}/${await newStream(http)}`);
  await arePublishes(1, 1);
}, 90_000);

test("the balancer's rules are valid, and keep new publishes off a draining node", async () => {
  await run("/usr/sbin/haproxy", ["-c", "-f", ready.rules]);
  balancer = start("/usr/sbin/haproxy", ["-db", "-f", ready.rules]);
  const http = `http://127.0.0.1:${ports.http}`;
  await until("the balancer serves", async () => (await fetch(`${http}/openapi.json`).catch(() => null))?.ok);
  const names = [await newStream(http), await newStream(http)];
  const env = { ...process.env, HEADGATE_DATABASE_URL: ready.databaseUrl };
  await run(process.execPath, ["scripts/headgate.mjs", "nodes", "drain", "node-1"], { env });
  const readiness = async () => balancer?.stderr().includes("Server rtmp_ready/node-1 is DOWN");
  await until("the balancer knows", readiness);
  for (const name of names) publish(`rtmp://127.0.0.1:${ports.rtmp}/live/${name}`);
  await arePublishes(1, 3);
}, 120_000);

test("^C stops everything and leaves nothing behind", async () => {
  const sockets = new URL(ready.databaseUrl).searchParams.get("host") ?? "";
  expect(existsSync(sockets)).toBe(true);
  cluster.kill("SIGINT");
  expect(await cluster.exit).toBe(0);
  for (const { pid } of ready.nodes) expect(() => process.kill(pid, 0)).toThrow("ESRCH");
  expect([dirname(ready.rules), sockets].filter(existsSync)).toEqual([]);
}, 60_000);

test("an invalid number of nodes is refused", async () => {
  for (const words of [["0"], ["many"], ["2", "3"], ["--fast"]]) {
    const child = start(process.execPath, ["tools/cluster.mjs", ...words]);
    expect([words, await child.exit]).toEqual([words, 2]);
  }
});
