// A primary and its synchronous standby: every commit is on both.
import { Client } from "pg";
import { until } from "./child.ts";
import { asked, type PostgresServer, startPostgres } from "./postgres.ts";

export interface PostgresPair {
  readonly primary: PostgresServer;
  readonly standby: PostgresServer;
  /** A new database; its URL names both servers, the primary first. */
  newDatabase(): Promise<string>;
  close(): Promise<void>;
}

export async function startPostgresPair(settings: Readonly<Record<string, string>> = {}): Promise<PostgresPair> {
  const primary = await startPostgres(settings);
  const standby = await startPostgres(settings, primary);
  await asked(primary.url, "alter system set synchronous_standby_names = '*'");
  await asked(primary.url, "select pg_reload_conf()");
  await until("commits wait for the standby", () => isSynchronous(primary.url));
  return {
    primary,
    standby,
    async newDatabase() {
      const url = new URL(await primary.newDatabase());
      const onStandby = new URL(url);
      onStandby.searchParams.set("host", standby.folder);
      const hasIt = () =>
        asked(onStandby.href, "select 1").then(
          () => true,
          () => false,
        );
      await until("the standby has the database, too", hasIt);
      url.searchParams.set("host", `${primary.folder},${standby.folder}`);
      return url.href;
    },
    async close() {
      // Before the primary, which would wait for it.
      await standby.close();
      await primary.close();
    },
  };
}

async function isSynchronous(url: string): Promise<boolean> {
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    const { rows } = await client.query("select 1 from pg_stat_replication where sync_state = 'sync'");
    return rows.length > 0;
  } finally {
    await client.end();
  }
}
