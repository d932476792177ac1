// Counters that triggers maintain. On PostgreSQL each connection adds to a shard of its own, because two serializable
// transactions cannot add to one row at the same time; the value is the sum of the shards.

/** The expression that chooses the shard: the embedded store has one connection that writes. */
export const SHARD = { libsql: "0 /* shard */", postgres: "pg_backend_pid() % 1024" } as const;

/** The statement that adds to the counters of a key: column → change. For PostgreSQL the shard has to be replaced. */
export function countedBy(table: string, key: readonly string[], changes: Readonly<Record<string, string>>): string {
  const columns = Object.keys(changes);
  const add = columns.map((column) => `${column} = ${table}.${column} + excluded.${column}`).join();
  const names = KEYS[table]?.join() ?? "";
  return `insert into ${table} (${names}, shard, ${columns.join()})
    values (${key.join()}, ${SHARD.libsql}, ${Object.values(changes).join()})
    on conflict (${names}, shard) do update set ${add}`;
}

/** For PostgreSQL: the trigger that adds the rows of a whole statement. Row by row each would leave a version of the
 *  counter behind, through which the next one has to go. `changes`: column → sum over the rows. */
export function countedAdded(table: string, source: string, changes: Readonly<Record<string, string>>): string[] {
  return countedStatement(
    table,
    source,
    { name: "added", event: "insert", rows: "new table as rows" },
    "rows",
    changes,
  );
}

/** The same for what changes in rows: the columns are sums of columns of the same names. */
export function countedGrown(table: string, source: string, columns: readonly string[]): string[] {
  const names = KEYS[table]?.join() ?? "";
  const before = columns.map((column) => `-${column} as ${column}`).join();
  const rows = `(select ${names}, ${columns.join()} from later union all select ${names}, ${before} from former) as rows`;
  const sums = Object.fromEntries(columns.map((column) => [column, `sum(${column})`]));
  const trigger = { name: "grew", event: "update", rows: "old table as former new table as later" };
  return countedStatement(table, source, trigger, rows, sums);
}

function countedStatement(
  table: string,
  source: string,
  trigger: { readonly name: string; readonly event: string; readonly rows: string },
  from: string,
  changes: Readonly<Record<string, string>>,
): string[] {
  const columns = Object.keys(changes);
  const add = columns.map((column) => `${column} = total.${column} + excluded.${column}`).join();
  const names = KEYS[table]?.join() ?? "";
  return [
    `create function ${table}_${trigger.name}() returns trigger language plpgsql as $$
     begin
       insert into ${table} as total (${names}, shard, ${columns.join()})
       select ${names}, ${SHARD.postgres}, ${Object.values(changes).join()} from ${from} group by ${names}
       on conflict (${names}, shard) do update set ${add};
       return null;
     end $$`,
    `create trigger ${table}_${trigger.name} after ${trigger.event} on "${source}" referencing ${trigger.rows}
     for each statement execute function ${table}_${trigger.name}()`,
  ];
}

const KEYS: Readonly<Record<string, readonly string[]>> = {
  stream_count: ["organisation_id", "state"],
  usage_sum: ["organisation_id", "day"],
};
