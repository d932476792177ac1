// Any node answers for any publish: every command through a node that does not run it; and a publish and its backup, which
// run on the same node, to which every other node forwards a switch.
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { until } from "../support/child.ts";
import { type Cluster, startCluster } from "../support/cluster.ts";
import { type Customer, startCustomer } from "../support/customer.ts";
import { type Broadcast, broadcast, type Packet, packetsOf } from "../support/ffmpeg.ts";
import type { Headgate } from "../support/headgate.ts";
import { ofTrack } from "../support/judge.ts";
import { casesOfRun, inWholeRun } from "../support/whole-run.ts";

let customer: Customer;
let cluster: Cluster;
let broadcasts: Broadcast[] = [];
let captures: string;
beforeAll(async () => {
  customer = await startCustomer();
  captures = mkdtempSync(join(tmpdir(), "headgate-captures-"));
  cluster = await startCluster({
    nodes: 2,
    customer,
    env: { HEADGATE_CAPTURE_DIRECTORY: captures, HEADGATE_LOG_LEVEL: "debug" },
  });
}, 180_000);
afterEach(() => {
  for (const each of broadcasts) each.kill("SIGKILL");
  broadcasts = [];
});
afterAll(async () => {
  await cluster?.close();
  await customer?.close();
  rmSync(captures, { recursive: true, force: true });
});

interface Session {
  readonly client_id: number;
  readonly stream: string;
  readonly streamname: string;
  readonly upstreams: readonly { readonly id: string; readonly url: string }[];
}

const [a, b] = [() => cluster.nodes[0] as Headgate, () => cluster.nodes[1] as Headgate];
const done = (name: string) => customer.calls("publish_done").filter(({ body }) => body.includes(name));

/** A stream that is live on node A, as reported by B. */
async function live(): Promise<Session> {
  const name = await b().newStream();
  const each = broadcast(`${a().rtmp}/${name}`, { seconds: 600, size: "160x90" });
  broadcasts.push(each);
  const found = async () =>
    ((await b().call("GET", "/session")) as unknown as Session[]).find(({ streamname }) => streamname === name);
  return await until("B knows of it", found, 60_000);
}

async function asked(method: string, path: string, body?: object) {
  const response = await fetch(b().http + path, {
    method,
    headers: { "x-service-apikey": b().apiKey, "content-type": "application/json" },
    ...(body && { body: JSON.stringify(body) }),
  });
  return { status: response.status, body: (await response.json()) as unknown, headers: response.headers };
}

describe("through a node that does not run it", () => {
  test("a request keeps its trace", async () => {
    const { client_id: id } = await live();
    const trace_id = "4bf92f3577b34da6a3ce929d0e0e4736";
    const headers = { "x-service-apikey": b().apiKey, traceparent: `00-${trace_id}-00f067aa0ba902b7-01` };
    expect((await fetch(`${b().http}/session/${id}`, { headers })).status).toBe(200);
    const answered = (node: Headgate) =>
      node.process
        .stderr()
        .split("\n")
        .filter((line) => line.includes(trace_id) && line.includes("request answered"));
    await until("both have logged it", () => answered(a()).length === 1 && answered(b()).length === 1);
  });

  test("an upstream is paused, tested for longer than other questions take, and resumed", async () => {
    const { stream } = await live();
    const silent = createServer(() => {});
    await new Promise<void>((resolve) => silent.listen(0, "127.0.0.1", resolve));
    const { port } = silent.address() as { readonly port: number };
    const { body } = await asked("POST", `/stream/${stream}/upstream`, { url: `rtmp://127.0.0.1:${port}/live/key` });
    const path = `/stream/${stream}/upstream/${(body as { readonly id: string }).id}`;
    expect((await asked("POST", `${path}/test`)).status).toBe(409);
    expect((await asked("PUT", `${path}/pause`)).body).toMatchObject({ paused: true, state: "paused" });
    expect(await asked("POST", `${path}/test`)).toMatchObject({ status: 200, body: { cause: "timed_out" } });
    expect((await asked("PUT", `${path}/resume`)).body).toMatchObject({ paused: false, state: "connecting" });
    silent.close();
  });

  test("a publish is shown, measured, and gets upstreams while it runs", async () => {
    const { client_id: id, stream } = await live();
    expect(await b().call("GET", `/session/${id}`)).toMatchObject({ client_id: id, protocol: "rtmp" });
    expect(await b().call("GET", `/session/${id}/history`)).toMatchObject({ step_ms: 5_000 });
    expect(await b().call("GET", `/session/${id}/timeline`)).toMatchObject({ state: "live", is_watched: true });
    const url = "rtmp://127.0.0.1:1/live/key";
    const added = (await b().call("POST", `/session/${id}/upstream`, { url })) as unknown as Session;
    expect(added.upstreams).toMatchObject([{ url: "rtmp://127.0.0.1:1/live" }]);
    const [upstream] = added.upstreams;
    expect(await b().call("DELETE", `/session/${id}/upstream/${upstream?.id}`)).toMatchObject({ upstreams: [] });
    const stored = (await b().call("POST", `/stream/${stream}/upstream`, { url })) as { id: string };
    expect(await a().call("GET", `/session/${id}`)).toMatchObject({ upstreams: [{ id: stored.id, source: "stream" }] });
    await b().call("DELETE", `/stream/${stream}/upstream/${stored.id}`);
    expect(await a().call("GET", `/session/${id}`)).toMatchObject({ upstreams: [] });
    expect(await asked("PUT", `/session/${id}/bitrate`, { max_bitrate_kbps: 500 })).toMatchObject({ status: 400 });
    await b().call("POST", `/session/${id}/kick`);
    await until("its end", () => broadcasts.at(-1)?.stderr().length !== 0);
  });

  const endings: readonly (readonly [what: string, method: string, path: (of: Session) => string])[] = [
    ["kicked", "POST", (of: Session) => `/session/${of.client_id}/kick`],
    ["stopped", "PUT", (of: Session) => `/stream/${of.stream}/stop`],
    ["locked", "PUT", (of: Session) => `/stream/${of.stream}/lock`],
    ["deleted", "DELETE", (of: Session) => `/stream/${of.stream}`],
  ];

  test.each(casesOfRun(endings, 2))("a publish is %s", async (_, method, path) => {
    const session = await live();
    expect(await asked(method, path(session))).toMatchObject({ status: 200 });
    await until("its end", () => done(session.streamname).length === 1);
    expect(await asked("GET", `/session/${session.client_id}`)).toMatchObject({ status: 404 });
  });

  test("a publish is captured where it runs, and the file can be downloaded", async () => {
    const { client_id } = await live();
    const begun = await b().call("POST", "/capture", { client_id });
    expect(begun).toMatchObject({ client_id, state: "running" });
    const path = `/capture/${begun.id}`;
    await until("something is captured", async () => Number((await b().call("GET", path)).frames) > 25);
    await b().call("DELETE", path);
    const ended = await until("its end", async () => {
      const one = await b().call("GET", path);
      return one.state === "ended" && one;
    });
    expect(ended).toEqual(await a().call("GET", path));
    const file = await fetch(`${b().http}${path}/file`, { headers: { "x-service-apikey": b().apiKey } });
    const bytes = Buffer.from(await file.arrayBuffer());
    expect([bytes.subarray(0, 6).toString(), bytes.length]).toEqual(["HGCAPT", ended.bytes]);
    expect(await asked("POST", "/capture", { client_id: client_id + 1_000_000 })).toMatchObject({ status: 404 });
  });

  test("its numbers arrive as events, in the list and on its own page, and its preview as FLV", async () => {
    const { client_id: id, stream } = await live();
    const headers = { "x-service-apikey": b().apiKey };
    for (const query of ["", `?stream=${stream}`]) {
      const controller = new AbortController();
      const { body } = await fetch(`${b().http}/organisation/events${query}`, { headers, signal: controller.signal });
      let text = "";
      const reader = body?.pipeThrough(new TextDecoderStream()).getReader();
      while (!text.includes(`"client_id":${id}`)) text += (await reader?.read())?.value ?? "";
      controller.abort();
    }
    const controller = new AbortController();
    const preview = await fetch(`${b().http}/live/${stream}.flv`, { headers, signal: controller.signal });
    const first = await preview.body?.getReader().read();
    expect(
      Buffer.from(first?.value ?? [])
        .subarray(0, 3)
        .toString(),
    ).toBe("FLV");
    controller.abort();
  });

  test("the port between nodes refuses requests that no node has signed", async () => {
    const [{ status }] = (await cluster.query<{ status: string }>(
      "select status from node order by epoch limit 1",
    )) as [{ status: string }];
    const { channel } = JSON.parse(status) as { channel: string };
    for (const path of ["/rows?organisation=x", "/passed-on/session", "/"]) {
      expect((await fetch(channel + path)).status).toBe(403);
    }
  });
});

inWholeRun(
  "a stream is played frame for frame on a node that does not publish it, and its bytes count there",
  async () => {
    const name = await a().newStream();
    const encoder = broadcast(`${a().rtmp}/${name}`, { seconds: 8, gop: 1_000, size: "160x90" });
    broadcasts.push(encoder);
    await until("it has media", async () => {
      const sessions = (await a().call("GET", "/session")) as unknown as { streamname: string; bytes_in: number }[];
      return sessions.some((of) => of.streamname === name && of.bytes_in > 0);
    });
    const [here, there] = await Promise.all([a(), b()].map((node) => packetsOf(`${node.rtmp}/${name}`)));
    const hashes = (packets: readonly Packet[] = []) => ofTrack(packets, "video").map(({ hash }) => hash);
    expect(hashes(there).length).toBeGreaterThan(100);
    expect(hashes(there)).toEqual(hashes(here));
    const end = await until("its end", () => done(name)[0]);
    const bytes = (packets: readonly Packet[] = []) => packets.reduce((sum, of) => sum + of.bytes, 0);
    // One player here, one there; traffic between the nodes is not counted.
    const out = Number(new URLSearchParams(end.body).get("bytes_out"));
    expect(out).toBeGreaterThan(1.05 * bytes(here));
    expect(out).toBeLessThan(2.1 * bytes(here));
    // A player that only claims to be a node is refused.
    await expect(packetsOf(`${b().rtmp}/${name}?headgate-node=1.2.3`)).rejects.toThrow();
  },
  60_000,
);

inWholeRun(
  "ending a publish of a node that does not answer returns 503, and is done when the node is back",
  async () => {
    const [kicked, locked] = [await live(), await live()];
    a().process.kill("SIGSTOP");
    try {
      const answers = [
        await asked("POST", `/session/${kicked.client_id}/kick`, { reason: "Off air" }),
        await asked("PUT", `/stream/${locked.stream}/lock`),
      ];
      for (const answer of answers) {
        expect(answer).toMatchObject({ status: 503, body: { error: { code: 9503 } } });
        expect(Number(answer.headers.get("retry-after"))).toBeGreaterThan(0);
      }
    } finally {
      a().process.kill("SIGCONT");
    }
    for (const { streamname } of [kicked, locked]) await until("its end", () => done(streamname).length === 1, 20_000);
    const [publish] = (await b().call("GET", `/stream/${kicked.stream}/publish`)) as unknown as {
      end: object | null;
    }[];
    expect(publish?.end).toMatchObject({ code: "ended_by_api", reason: "Off air", who: { kind: "key" } });
    const streams = (await b().call("GET", `/stream?search=${locked.streamname}`)) as unknown as { state: string }[];
    expect(streams).toMatchObject([{ state: "locked" }]);
  },
);

interface PairSession {
  readonly client_id: number;
  readonly streamname: string;
  readonly backup: boolean;
  readonly on_air: boolean;
  readonly bytes_in: number;
}

function send(node: Headgate, name: string): Broadcast {
  const each = broadcast(`${node.rtmp}/${name}`, { seconds: 600, size: "160x90", gop: 25 });
  broadcasts.push(each);
  return each;
}

const liveOf = (name: string, backup: boolean) =>
  until(`${backup ? "backup" : "publish"} of ${name}`, async () => {
    const all = (await b().call("GET", "/session")) as unknown as PairSession[];
    return all.find((of) => of.streamname === name && of.backup === backup && of.bytes_in > 0);
  });

test("a backup on another node is refused with the reason, and one on the stream's own node can be switched to from any node", {
  timeout: 180_000,
}, async () => {
  const stream = (await a().call("POST", "/stream")) as { id: string; ingest: { rtmp: { streamname: string } } };
  const name = stream.ingest.rtmp.streamname;
  send(a(), name);
  const main = await liveOf(name, false);
  const refused = send(b(), `${name}?backup=1`);
  expect(await refused.exit).not.toBe(0);
  expect(refused.stderr()).toContain("live on another server of the service: publish its backup there");
  expect(customer.calls("publish").filter(({ body }) => body.includes(name))).toHaveLength(1);
  send(a(), `${name}?backup=1`);
  const backup = await liveOf(name, true);
  expect([main.on_air, backup.on_air]).toEqual([true, false]);
  const switched = await until("the backup is on air", async () => {
    const answer = await b().call("PUT", `/stream/${stream.id}/switch`, { to: backup.client_id });
    return answer.on_air === true ? answer : null;
  });
  expect(switched).toEqual({ client_id: backup.client_id, on_air: true });
  const [now, then] = [await liveOf(name, false), await liveOf(name, true)];
  expect([now.on_air, then.on_air]).toEqual([false, true]);
});
