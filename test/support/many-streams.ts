// A service of thousands of streams, hundreds of them live, for the dashboard alone: everything comes from a real
// service except the list of streams and the events, which are generated here. No media flows.
import { createServer, request, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { LiveRow, Stream } from "../../ts/dashboard/streams/records.ts";

export interface ManyStreams {
  readonly http: string;
  close(): Promise<void>;
}

/** `service`: URL of the real one. The first `live` of `count` streams are live; all their figures change each
 *  second. */
export async function startManyStreams(
  service: string,
  { count, live }: { readonly count: number; readonly live: number },
): Promise<ManyStreams> {
  const idOf = (index: number) => `00000000-0000-4000-8000-${String(index).padStart(12, "0")}`;
  const streams = Array.from({ length: count }, (_, index): Stream => {
    const streamname = `Ab1Cd-${String(index).padStart(5, "0")}`;
    const created_at = new Date(Date.UTC(2026, 0, 1) - index * 60_000).toISOString();
    const rtmp = { url: "rtmp://ingest.example:1935/live", streamname };
    const state = index < live ? "live" : index % 2 ? "ended" : "created";
    const whip = { url: `https://ingest.example/p/webrtc?stream_name=${streamname}` };
    return {
      id: idOf(index),
      state,
      ...{ streamgroup: idOf(index), type: "low-latency", webrtc: true, transcoding: false },
      ...{ created_at, updated_at: created_at },
      ...{ title: null, external_id: null, hold_s: null, publish_key: null, refused_until: null },
      tags: [`studio-${index % 40}`, "main"],
      ingest: { rtmp: { ...rtmp, stream_key: streamname }, rtmps: null, whip, key: null },
      playout: { rtmp: [{ url: rtmp.url, streamname, type: "live" }], hls: [], web: [] },
    };
  });
  const rowOf = (index: number, tick: number): LiveRow => ({
    ...{
      client_id: index + 1,
      stream: idOf(index),
      streamname: streams[index]?.ingest.rtmp.streamname ?? "",
      protocol: "rtmp",
      on_air: true,
    },
    ...{
      accepted_at: "2026-01-01T00:00:00.000Z",
      bitrate_kbps: 2_000 + ((index * 7 + tick * 13) % 500),
      fps: 24 + (tick % 3),
    },
    ...{ video: { codec: "h264", width: 1_280, height: 720 }, audio: { codec: "aac" }, players: tick % 9 },
    ...{
      upstreams: { connected: 1, failing: 0 },
      loss_percent: null,
      rtt_ms: 20,
      condition: index % 9 ? "good" : "attention",
      findings: [],
    },
  });
  const counts = { created: Math.ceil((count - live) / 2), live, ended: Math.floor((count - live) / 2), locked: 0 };
  const indices = Array.from({ length: live }, (_, index) => index);

  const events = (response: ServerResponse) => {
    response.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-store" });
    const say = (name: string, said: unknown) => response.write(`event: ${name}\ndata: ${JSON.stringify(said)}\n\n`);
    say("sessions", { at: Date.now(), counts, sessions: indices.map((index) => rowOf(index, 0)) });
    let tick = 0;
    const timer = setInterval(() => {
      tick += 1;
      const changed = indices.map((index) => {
        const { client_id, bitrate_kbps, fps, players } = rowOf(index, tick);
        return { client_id, bitrate_kbps, fps, players };
      });
      say("changes", { at: Date.now(), changed, gone: [], streams: [] });
    }, 1_000);
    response.once("close", () => clearInterval(timer));
  };
  const list = (response: ServerResponse, query: URLSearchParams) => {
    const [from, quantity] = [Number(query.get("cursor") ?? 0), Number(query.get("quantity") ?? 50)];
    const next = from + quantity;
    const cursor = next < count ? { "x-next-cursor": String(next) } : {};
    response.writeHead(200, { "content-type": "application/json", ...cursor });
    response.end(JSON.stringify(streams.slice(from, next)));
  };
  const server = createServer((asked, response) => {
    const { pathname, searchParams } = new URL(asked.url ?? "/", service);
    if (pathname === "/organisation/events") return events(response);
    if (pathname === "/stream") return list(response, searchParams);
    const passed = request(service + asked.url, { method: asked.method, headers: asked.headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(response);
    });
    passed.once("error", () => response.destroy());
    asked.pipe(passed);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    http: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
