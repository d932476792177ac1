// `headgate usage` and `headgate audit`: what an organisation used, and what was changed in it.
import { ask } from "../asking.ts";
import type { GivenFlags } from "../flags.ts";
import { print, table } from "../output.ts";

type Row = Readonly<Record<string, unknown>>;

export async function runUsage(flags: GivenFlags): Promise<void> {
  const usage = (await ask(flags, "GET", `/organisation/usage?${query(flags, ["from", "to", "stream"])}`)) as {
    readonly total: Row;
    readonly days: readonly Row[];
  };
  const total = Object.entries(usage.total).map(([name, value]) => `total ${name}: ${String(value)}`);
  print(flags, usage, [...columns(usage.days), ...total]);
}

export async function runAudit(flags: GivenFlags): Promise<void> {
  const filter = query(flags, ["from", "to", "action", "who", "quantity"]);
  const entries = (await ask(flags, "GET", `/organisation/audit?${filter}`)) as readonly Row[];
  print(flags, entries, columns(entries));
}

function query(flags: GivenFlags, names: readonly string[]): URLSearchParams {
  const query = new URLSearchParams();
  for (const name of names) if (flags[name] !== undefined) query.set(name, String(flags[name]));
  return query;
}

/** The members of records of one kind as columns. */
function columns(records: readonly Row[]): readonly string[] {
  const names = Object.keys(records[0] ?? {});
  if (names.length === 0) return ["none"];
  const text = (value: unknown) =>
    value === null || value === undefined ? null : typeof value === "object" ? JSON.stringify(value) : String(value);
  return table([names, ...records.map((record) => names.map((name) => text(record[name])))]);
}
