// `headgate usage` and `headgate audit`: what an organisation used, and what was changed in it.
import { askPages } from "../asking.ts";
import type { GivenFlags } from "../flags.ts";
import { MORE, print, table } from "../output.ts";
import { quantityOf } from "../words.ts";

type Row = Readonly<Record<string, unknown>>;

export async function runUsage(flags: GivenFlags): Promise<void> {
  const filter = {
    path: "/organisation/usage",
    query: query(flags, ["from", "to", "stream"]),
    ...quantityOf(flags, 3_100),
  };
  const { first, rows, hasMore } = await askPages(flags, filter, (page: Usage) => page.days);
  const total = Object.entries(first.total).map(([name, value]) => `total ${name}: ${String(value)}`);
  const record = { ...first, days: rows, has_more: hasMore };
  print(flags, record, [...columns(rows), ...total, ...(hasMore ? [MORE] : [])]);
}

export async function runAudit(flags: GivenFlags): Promise<void> {
  const names = ["from", "to", "action", "who"];
  const filter = { path: "/organisation/audit", query: query(flags, names), ...quantityOf(flags, 20) };
  const { rows, hasMore } = await askPages(flags, filter, (page: readonly Entry[]) => page);
  print(flags, rows, [...columns(rows.map(shownEntry)), ...(hasMore ? [MORE] : [])]);
}

interface Entry extends Row {
  readonly at: string;
  readonly who: { readonly kind: string; readonly id: string | null };
  readonly action: string;
  readonly subject: string;
  readonly stream: { readonly name: string; readonly title: string | null } | null;
  readonly detail: object;
}

/** For people: who and which stream in words. The ids of entry and request are in the JSON. */
function shownEntry({ at, who, action, subject, stream, detail }: Entry): Row {
  const title = stream?.title ?? null;
  return {
    at,
    who: who.id === null ? who.kind : `${who.kind} ${who.id}`,
    action,
    subject,
    stream: stream && (title === null ? stream.name : `${stream.name} (${title})`),
    detail,
  };
}

interface Usage {
  readonly total: Row;
  readonly days: readonly Row[];
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
