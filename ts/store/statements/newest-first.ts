// Positions in lists that begin with the newest row, and among equals follow the id.
import { type RawBuilder, sql } from "kysely";

/** True for rows behind the one with this time in `column`, epoch ms, and this id. The first condition is the range of the
 *  index in which the second is tested. */
export function isBehind(column: string, at: number, id: string): RawBuilder<boolean> {
  const time = sql.ref(column);
  return sql<boolean>`${time} <= ${at} and (${time} < ${at} or id > ${id})`;
}
