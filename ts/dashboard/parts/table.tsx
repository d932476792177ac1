// A table of records: rows with headings on wide screens, one card for each record on phones.
import type { ComponentChildren } from "preact";
import { Empty } from "./states.tsx";

export interface Column<Row> {
  readonly title: string;
  readonly cell: (row: Row) => ComponentChildren;
  /** Numbers are right-aligned. */
  readonly isNumber?: boolean;
  /** Buttons: their heading is only for screen readers. */
  readonly isActions?: boolean;
  /** The column that names the row. */
  readonly isHead?: boolean;
}

interface TableProps<Row> {
  /** Description of the list, for screen readers. */
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
                const className = [isNumber ? "number" : "", isActions ? "row-actions" : ""].filter(Boolean).join(" ");
                const content = cell(row);
                return isHead ? (
                  <th key={title} scope="row">
                    {content}
                  </th>
                ) : (
                  <td key={title} class={className || undefined} data-title={isActions ? undefined : title}>
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

interface NothingYetProps {
  readonly isLoading: boolean;
  /** Why it could not be searched further, if so. */
  readonly problem: ComponentChildren;
  readonly onMore: () => void;
}

/** Shown in place of a filtered list of which only a part was looked at, without success. */
export function NothingYet({ isLoading, problem, onMore }: NothingYetProps) {
  return (
    <Empty
      title="Nothing found so far"
      icon="search"
      actions={
        <button type="button" aria-disabled={isLoading} onClick={onMore}>
          {isLoading ? "Searching further …" : "Search further"}
        </button>
      }
    >
      {problem || "The newest entries were searched; older ones may match."}
    </Empty>
  );
}

/** Shown below a list with further entries. */
export function MoreRows({ isLoading, onMore }: { readonly isLoading: boolean; readonly onMore: () => void }) {
  return (
    <p class="more">
      <button type="button" aria-disabled={isLoading} onClick={onMore}>
        {isLoading ? "Loading more …" : "Show more"}
      </button>
    </p>
  );
}
