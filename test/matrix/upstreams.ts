// The servers a push goes to, each as its users run it, and the recordings they make of a stream.
import { randomBytes } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { createConnection } from "node:net";
import { join } from "node:path";
import { type Child, start, until } from "../support/child.ts";
import { freePort } from "../support/free-port.ts";
import { startHeadgate } from "../support/headgate.ts";
import { startNginxRtmp } from "../support/nginx-rtmp.ts";

/** A server on its port; after it was killed and started again it is a new one. */
export interface RunningUpstream {
  readonly process: Child;
  /** Files that it recorded, the oldest first. */
  recordings(): readonly string[];
  /** The recording has to be read before it ends. */
  stop(): Promise<void>;
}

export interface Upstream {
  readonly name: string;
  /** Unsupported faults, with the reason. */
  readonly cannot: Readonly<Record<string, string>>;
  /** Starts it on `port` for one stream; `folder` is kept from one start to the next. */
  start(options: {
    readonly folder: string;
    readonly port: number;
    readonly refuses: boolean;
  }): Promise<RunningUpstream>;
  /** Name under which it accepts, or refuses, the stream; without it any name will do. */
  streamName?(options: { readonly folder: string; readonly refuses: boolean }): Promise<string>;
}

const nginx: Upstream = {
  name: "nginx-rtmp",
  cannot: {},
  async start({ port, refuses }) {
    const server = await startNginxRtmp({ port, refuses });
    const recordings = () => server.recordings().flatMap((name) => server.recording(name.replace(/\.flv$/, "")) ?? []);
    return { process: server.process, recordings, stop: server.stop };
  },
};

const nodeMediaServer: Upstream = {
  name: "Node-Media-Server 4",
  cannot: {},
  async start({ folder, port, refuses }) {
    const records = join(folder, "records");
    mkdirSync(records, { recursive: true });
    const config = {
      ...{ bind: "127.0.0.1", rtmp: { port }, http: { port: await freePort() }, webadmin: { enable: false } },
      ...{ auth: { play: false, publish: refuses, secret: "s" }, store: { path: join(folder, "store") } },
      record: { auto: true, path: records },
    };
    writeFileSync(join(folder, "config.json"), JSON.stringify(config));
    const program = "node_modules/node-media-server/bin/app.js";
    const server = start(process.execPath, [program, "--config", join(folder, "config.json"), "--no-admin"]);
    await listens(port, server);
    return plain(server, () => filesIn(join(records, "live")));
  },
};

/** Accepts one publish and ends with it. */
const ffmpegListen: Upstream = {
  name: "ffmpeg -listen 1",
  cannot: { refuse: "takes whoever comes" },
  async start({ folder, port }) {
    const number = filesIn(folder).length;
    const file = join(folder, `${number}.flv`);
    const url = `rtmp://127.0.0.1:${port}/live/s`;
    const server = start("ffmpeg", ["-nostdin", "-v", "warning", "-listen", "1", "-i", url, "-c", "copy", file]);
    // It accepts one connection: checking whether it listens would use it up.
    return plain(server, () => (existsSync(folder) ? filesIn(folder) : []));
  },
};

/** A second Headgate, which pushes on to an nginx that records. */
const headgate: Upstream = {
  name: "Headgate",
  cannot: {},
  async start({ folder, port }) {
    const records = await startNginxRtmp();
    const server = await ownStream(folder, port, `${records.url}/{name}`);
    return {
      process: server.process,
      recordings: () => records.recordings().flatMap((file) => records.recording(file.replace(/\.flv$/, "")) ?? []),
      async stop() {
        server.process.kill("SIGCONT");
        server.process.kill("SIGTERM");
        await server.process.exit;
        await records.stop();
      },
    };
  },
  streamName: async ({ folder, refuses }) => (refuses ? "nobody" : (streams.get(folder)?.streamname ?? "")),
};

const streams = new Map<string, { readonly streamname: string; readonly key: string }>();

/** Starts Headgate on its previous data directory; the first time a stream is created in it. */
async function ownStream(folder: string, port: number, push: string) {
  const known = streams.get(folder);
  const key = known?.key ?? `test-${randomBytes(24).toString("hex")}`;
  const url = await startHeadgate({
    env: {
      ...{ HEADGATE_DATA_DIR: join(folder, "data"), HEADGATE_RTMP_PORT: String(port) },
      ...{ HEADGATE_BOOTSTRAP_API_KEY: key, HEADGATE_UPSTREAM_PUSH: push },
    },
  });
  if (known) return url;
  const answer = await fetch(`${url.http}/stream`, { method: "POST", headers: { "x-service-apikey": key } });
  const { ingest } = (await answer.json()) as { ingest: { rtmp: { streamname: string } } };
  streams.set(folder, { streamname: ingest.rtmp.streamname, key });
  return url;
}

export const upstreams: readonly Upstream[] = [nginx, nodeMediaServer, ffmpegListen, headgate];

function plain(server: Child, recordings: () => readonly string[]): RunningUpstream {
  return {
    process: server,
    recordings,
    async stop() {
      server.kill("SIGCONT");
      server.kill("SIGTERM");
      const last = setTimeout(() => server.kill("SIGKILL"), 5_000);
      await server.exit;
      clearTimeout(last);
    },
  };
}

/** FLV files in a folder and those inside it, by name. */
function filesIn(folder: string): readonly string[] {
  if (!existsSync(folder)) return [];
  const names = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith(".flv"));
  return names.sort().map((name) => join(folder, name));
}

async function listens(port: number, server: Child): Promise<void> {
  const tries = () =>
    new Promise<boolean>((resolve) => {
      const socket = createConnection({ host: "127.0.0.1", port });
      socket
        .once("error", () => resolve(false))
        .once("connect", () => {
          socket.destroy();
          resolve(true);
        });
    });
  await until(`port ${port} (${server.stderr().slice(-500)})`, tries, 30_000);
}
