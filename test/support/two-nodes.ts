// Several services on one PostgreSQL database, as nodes of a deployment: wired as usual, without ports, each with a
// media core that only records its calls and a clock that tests set. They share a key file, as nodes do.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pino } from "pino";
import { joinCluster } from "../../ts/cluster/membership.ts";
import { loadConfig } from "../../ts/config.ts";
import { createService, type Service } from "../../ts/service.ts";
import { openStore, type Store } from "../../ts/store/open.ts";
import { RecordingMedia } from "./recording-media.ts";

export interface Node {
  readonly db: Store["db"];
  readonly service: Service;
  readonly media: RecordingMedia;
  /** Everything logged so far, as text. */
  log(): string;
  call(
    method: string,
    path: string,
    options?: { readonly key?: string; readonly body?: object; readonly headers?: Readonly<Record<string, string>> },
  ): Promise<{ readonly status: number; readonly body: unknown; readonly headers: Headers }>;
}

export interface Nodes {
  readonly clock: { ms: number; now(): number };
  readonly dataDir: string;
  /** Starts another node. `dataDir`: if it must not share that of the others. */
  add(env?: Readonly<Record<string, string>>, dataDir?: string): Promise<Node>;
  close(): Promise<void>;
}

/** On a database without rows, without nodes. */
export async function openNodes(databaseUrl: string): Promise<Nodes> {
  const folder = mkdtempSync(join(tmpdir(), "headgate-nodes-"));
  const clock = { ms: 1_767_225_600_000, now: () => clock.ms };
  const closings: (() => Promise<void>)[] = [];
  let places = 0;

  return {
    clock,
    dataDir: folder,
    async add(env = {}, dataDir = folder) {
      const lines: string[] = [];
      const { config } = loadConfig({
        env: {
          HEADGATE_DATA_DIR: dataDir,
          HEADGATE_DATABASE_URL: databaseUrl,
          HEADGATE_LIMITS_API_REQUESTS_PER_SECOND: "0",
          ...env,
        },
      });
      const media = new RecordingMedia();
      places += 1;
      const name = `node ${places}`;
      const store = await openStore({ dataDir, databaseUrl, node: { name } });
      closings.push(() => store.close());
      const log = pino({ level: "info" }, { write: (line: string) => void lines.push(line) });
      const member = await joinCluster({ db: store.lifeline, name, version: "test", log });
      const service = await createService(config, {
        db: store.db,
        reads: store.reads,
        clock,
        log,
        member,
        media: () => media,
      });
      closings.push(() => service.stop());
      return {
        db: store.db,
        service,
        media,
        log: () => lines.join(""),
        async call(method, path, { key, body, headers } = {}) {
          const response = await service.app.request(
            `http://node.example${path}`,
            {
              method,
              headers: { ...(key === undefined ? {} : { "x-service-apikey": key }), ...headers },
              ...(body === undefined ? {} : { body: JSON.stringify(body) }),
            },
            { incoming: { socket: { remoteAddress: "203.0.113.7", remotePort: 1, remoteFamily: "IPv4" } } },
          );
          return { status: response.status, headers: response.headers, body: await response.json() };
        },
      };
    },
    async close() {
      for (const close of closings.reverse()) await close();
      rmSync(folder, { recursive: true });
    },
  };
}
