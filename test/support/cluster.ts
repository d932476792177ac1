// Several nodes of one service as an operator runs them: processes on one PostgreSQL, with one key file.
import { randomBytes } from "node:crypto";
import { copyFileSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Client } from "pg";
import { run } from "./child.ts";
import type { Customer } from "./customer.ts";
import { type Headgate, startHeadgate } from "./headgate.ts";
import { startPostgres } from "./postgres.ts";

export interface Cluster {
  /** By place: `a`, `b`, `c`. */
  readonly nodes: readonly Headgate[];
  /** Restarts the node at a place after its process has ended. */
  restart(place: number): Promise<void>;
  /** Queries the database. */
  query<Row extends object>(text: string): Promise<readonly Row[]>;
  close(): Promise<void>;
}

const NAMES = ["a", "b", "c", "d", "e"];

export async function startCluster(options: {
  readonly nodes: number;
  readonly customer: Customer;
  readonly env?: Readonly<Record<string, string>>;
  /** Further settings for the node at a place. */
  readonly envOf?: (place: number) => Readonly<Record<string, string>>;
}): Promise<Cluster> {
  const server = await startPostgres({ max_connections: "100" });
  const databaseUrl = await server.newDatabase();
  const folder = mkdtempSync(join(tmpdir(), "headgate-cluster-"));
  const apiKey = `test-${randomBytes(24).toString("hex")}`;
  writeFileSync(join(folder, "ca.pem"), options.customer.ca);
  const nodes: Headgate[] = [];

  async function startNode(place: number): Promise<Headgate> {
    const name = NAMES[place] ?? String(place);
    const dataDir = join(folder, name);
    const first = join(folder, NAMES[0] ?? "", "headgate.key");
    if (place > 0) {
      await run("mkdir", ["-p", dataDir]);
      copyFileSync(first, join(dataDir, "headgate.key"));
    }
    return await startHeadgate({
      env: {
        HEADGATE_DATA_DIR: dataDir,
        HEADGATE_DATABASE_URL: databaseUrl,
        HEADGATE_BOOTSTRAP_API_KEY: apiKey,
        HEADGATE_WEBHOOK_CA: join(folder, "ca.pem"),
        HEADGATE_NODE_NAME: name,
        HEADGATE_NODE_HOST: "127.0.0.1",
        HEADGATE_LIMITS_API_REQUESTS_PER_SECOND: "0", // tests poll
        ...options.env,
        ...options.envOf?.(place),
      },
    });
  }

  for (let place = 0; place < options.nodes; place += 1) nodes.push(await startNode(place));
  await nodes[0]?.call("PUT", "/organisation/webhook", { webhook: options.customer.url });
  return {
    nodes,
    async restart(place) {
      nodes[place] = await startNode(place);
    },
    async query<Row extends object>(text: string) {
      const client = new Client({ connectionString: databaseUrl });
      await client.connect();
      try {
        return (await client.query<Row>(text)).rows;
      } finally {
        await client.end();
      }
    },
    async close() {
      await Promise.all(nodes.map((node) => node.stop()));
      await server.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
