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
  const columns = Object.keys(changes);
  const add = columns.map((column) => `${column} = total.${column} + excluded.${column}`).join();
  const names = KEYS[table]?.join() ?? "";
  return [
    `create function add_to_${table}() returns trigger language plpgsql as $$
     begin
       insert into ${table} as total (${names}, shard, ${columns.join()})
       select ${names}, ${SHARD.postgres}, ${Object.values(changes).join()} from added group by ${names}
       on conflict (${names}, shard) do update set ${add};
       return null;
     end $$`,
    `create trigger ${table}_added after insert on "${source}" referencing new table as added
     for each statement execute function add_to_${table}()`,
  ];
}

const KEYS: Readonly<Record<string, readonly string[]>> = {
  stream_count: ["organisation_id", "state"],
  usage_sum: ["organisation_id", "day"],
};
