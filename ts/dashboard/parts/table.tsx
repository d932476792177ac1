// A table of records: rows with headings on wide screens, one card for each on phones.
import type { ComponentChildren } from "preact";

export interface Column<Row> {
  readonly title: string;
  readonly cell: (row: Row) => ComponentChildren;
  /** Numbers stand at the right. */
  readonly isNumber?: boolean;
  /** Buttons: their heading is for screen readers alone. */
  readonly isActions?: boolean;
  /** The one that names the row. */
  readonly isHead?: boolean;
}

interface TableProps<Row> {
  /** What it lists, for screen readers. */
  readonly caption: string;
  readonly columns: readonly Column<Row>[];
  readonly rows: readonly Row[];
  readonly keyOf: (row: Row) => string | number;
}

export function Table<Row>({ caption, columns, rows, keyOf }: TableProps<Row>) {
  return (
    <div class="table">
      <table>
        <caption class="unseen">{caption}</caption>
        <thead>
          <tr>
            {columns.map(({ title, isNumber, isActions }) => (
              <th key={title} scope="col" class={isNumber ? "number" : undefined}>
                {isActions ? <span class="unseen">{title}</span> : title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={keyOf(row)}>
              {columns.map(({ title, cell, isNumber, isActions, isHead }) => {
                const look = [isNumber ? "number" : "", isActions ? "row-actions" : ""].filter(Boolean).join(" ");
                const content = cell(row);
                return isHead ? (
                  <th key={title} scope="row">
                    {content}
                  </th>
                ) : (
                  <td key={title} class={look || undefined} data-title={isActions ? undefined : title}>
                    <div>{content}</div>
                  </td>
                );
              })}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** Below a list that has more than it shows. */
export function MoreRows({ isLoading, onMore }: { readonly isLoading: boolean; readonly onMore: () => void }) {
  return (
    <p class="more">
      <button type="button" aria-disabled={isLoading} onClick={onMore}>
        {isLoading ? "Loading more …" : "Show more"}
      </button>
    </p>
  );
}
