// What a statement reads, as the store itself explains it: https://sqlite.org/eqp.html, and PostgreSQL's EXPLAIN
// (FORMAT JSON).
import { CompiledQuery, type Kysely } from "kysely";
import { ON_POSTGRES } from "./stores.ts";

export interface Step {
  readonly table: string;
  /** `whole table`, `whole index x` (up to a limit), or `index x` for a part that is looked up; `sorted` if rows are
   *  sorted after all of them have been read, which names no table. */
  readonly reads: string;
}

/** The statement is not executed. */
export async function stepsOf<DB>(db: Kysely<DB>, { sql, parameters }: CompiledQuery): Promise<readonly Step[]> {
  if (!ON_POSTGRES) {
    const plan = await db.executeQuery<{ detail: string }>(
      CompiledQuery.raw(`explain query plan ${sql}`, [...parameters]),
    );
    return plan.rows.flatMap(({ detail }) => libsqlStep(detail));
  }
  const explain = CompiledQuery.raw(`explain (format json) ${sql}`, [...parameters]);
  const { rows } = await db.executeQuery<{ "QUERY PLAN": readonly { readonly Plan: PostgresNode }[] }>(explain);
  return rows.flatMap((row) => row["QUERY PLAN"].flatMap(({ Plan }) => [...postgresSteps(Plan)]));
}

function libsqlStep(detail: string): Step[] {
  if (/^USE TEMP B-TREE FOR (ORDER|GROUP) BY/.test(detail)) return [{ table: "", reads: "sorted" }];
  const [, how, table, index] = /^(SCAN|SEARCH) (\S+)(?: USING (?:COVERING )?INDEX (\S+))?/.exec(detail) ?? [];
  if (table === undefined) return [];
  if (how === "SEARCH") return [{ table, reads: `index ${index ?? "rowid"}` }];
  return [{ table, reads: index === undefined ? "whole table" : `whole index ${index}` }];
}

interface PostgresNode {
  readonly "Node Type": string;
  readonly "Relation Name"?: string;
  readonly "Index Name"?: string;
  readonly "Index Cond"?: string;
  readonly Plans?: readonly PostgresNode[];
}

function* postgresSteps(node: PostgresNode): Generator<Step> {
  const { "Node Type": type, "Relation Name": table = "", "Index Name": index } = node;
  if (/Sort/.test(type)) yield { table: "", reads: "sorted" };
  if (type === "Seq Scan") yield { table, reads: "whole table" };
  if (index !== undefined) yield { table, reads: `${node["Index Cond"] === undefined ? "whole " : ""}index ${index}` };
  for (const below of node.Plans ?? []) yield* postgresSteps(below);
}
