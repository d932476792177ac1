// A list that is loaded page after page: its table, and what is shown while it is loading, when it is empty, and when
// it or a further page cannot be loaded.
import type { ComponentChildren } from "preact";
import { Problem } from "../parts/states.tsx";
import { type Column, MoreRows, NothingYet, Table } from "../parts/table.tsx";
import { wordsOfError } from "../shell/errors.ts";
import type { Pages } from "../shell/loaded.ts";
import { LoadedView } from "../shell/loaded-view.tsx";

interface PagedTableProps<Row> {
  readonly pages: Omit<Pages<Row>, "change">;
  /** Description of the list, for screen readers. */
  readonly caption: string;
  readonly columns: readonly Column<Row>[];
  readonly keyOf: (row: Row) => string | number;
  /** "Loading the deliveries …" */
  readonly loading: string;
  /** "More deliveries could not be loaded" */
  readonly failed: string;
  /** Shown in place of an empty list. */
  readonly empty: ComponentChildren;
}

export function PagedTable<Row>({ pages, caption, columns, keyOf, loading, failed, empty }: PagedTableProps<Row>) {
  const { rows: value, error, isLoading, hasMore, reload } = pages;
  const onMore = () => void pages.more();
  return (
    <LoadedView of={{ value, error, reload }} words={loading}>
      {(rows) => {
        if (rows.length === 0 && hasMore) {
          return <NothingYet isLoading={isLoading} problem={error !== null && wordsOfError(error)} onMore={onMore} />;
        }
        if (rows.length === 0) return empty;
        return (
          <>
            <Table caption={caption} columns={columns} rows={rows} keyOf={keyOf} />
            {error !== null && <Problem title={failed}>{wordsOfError(error)}</Problem>}
            {hasMore && <MoreRows isLoading={isLoading} onMore={onMore} />}
          </>
        );
      }}
    </LoadedView>
  );
}
