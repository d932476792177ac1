// The streams of the organisation: live ones first, kept current automatically, filtered by state, tag or a part of the
// name.
// biome-ignore-all lint/a11y/useSemanticElements: a table of which only some rows are there cannot lay itself out
import { useCallback, useEffect, useMemo, useState } from "preact/hooks";
import { useLocation } from "preact-iso/router";
import { heightOf, topsOf } from "../lists/card-heights.ts";
import { Icon } from "../parts/icons.tsx";
import { Empty, Loading, Problem } from "../parts/states.tsx";
import { MoreRows, NothingYet } from "../parts/table.tsx";
import { tellTheOperator, wordsOfError } from "../shell/errors.ts";
import { Page } from "../shell/page.tsx";
import { may } from "../shell/session.ts";
import { CreateStream } from "./create-stream.tsx";
import { openEvents } from "./event-stream.ts";
import { addressWith, Filters, filterOf } from "./filters.tsx";
import { type Changes, LiveRows, type WholePicture } from "./live-rows.ts";
import type { Stream } from "./records.ts";
import { type StreamFilter, StreamList } from "./stream-list.ts";
import { StreamRow } from "./stream-row.tsx";
import { streamSource } from "./stream-source.ts";
import { VirtualList } from "./virtual-list.tsx";

const PHONE = matchMedia("(width < 48rem)");

export function StreamsPage() {
  const { url, route } = useLocation();
  const address = addressWith(filterOf(url));
  const filter = useMemo(() => filterOf(address), [address]);
  const [isCreating, setCreating] = useState(false);
  const { list, live, connection } = useStreams(filter);
  const change = useCallback((next: StreamFilter) => route(addressWith(next), true), [route]);
  const closeDialog = useCallback(() => setCreating(false), []);
  return (
    <Page
      title="Streams"
      lead="A stream is a name to broadcast to. Live streams come first."
      actions={
        may("create_stream") && (
          <button type="button" class="primary" onClick={() => setCreating(true)}>
            <Icon name="add" />
            New stream
          </button>
        )
      }
    >
      <Filters filter={filter} counts={live.counts.value} onChange={change} />
      {connection.value === "lost" && (
        <p class="note attention connection" role="status">
          The connection for live figures is lost. Reconnecting; the figures may be out of date.
        </p>
      )}
      <List list={list} live={live} filter={filter} onFilter={change} open={route} onCreate={() => setCreating(true)} />
      {isCreating && <CreateStream onClose={closeDialog} />}
    </Page>
  );
}

/** The filtered list, kept current by the event stream of the organisation. */
function useStreams(filter: StreamFilter) {
  const live = useMemo(() => new LiveRows(), []);
  const list = useMemo(() => new StreamList(streamSource, filter), [filter]);
  const current = useMemo(() => ({ list }), []);
  current.list = list;
  useEffect(() => {
    void list.more();
    return () => list.close();
  }, [list]);
  const events = useMemo(() => {
    return openEvents("/organisation/events", {
      sessions(whole: WholePicture) {
        live.replace(whole);
        void current.list.reconcile(live.streams());
      },
      changes(changes: Changes) {
        live.change(changes);
        void current.list.statesChanged(changes.streams);
      },
    });
  }, []);
  useEffect(() => () => events.close(), []);
  return { list, live, connection: events.state };
}

interface ListProps {
  readonly list: StreamList;
  readonly live: LiveRows;
  readonly filter: StreamFilter;
  readonly onFilter: (filter: StreamFilter) => void;
  readonly open: (path: string) => void;
  readonly onCreate: () => void;
}

function List({ list, live, filter, onFilter, open, onCreate }: ListProps) {
  const isPhone = usePhone();
  const rows = list.rows.value;
  const tops = useMemo(() => topsOf(rows ?? [], isPhone), [rows, isPhone]);
  const error = list.error.value;
  const more = useCallback(() => void list.more(), [list]);
  const show = useCallback((stream: Stream) => list.put(stream), [list]);
  if (rows === null && error !== null) {
    return (
      <Problem title="The streams could not be loaded" again={() => void list.reload()}>
        {wordsOfError(error)} {tellTheOperator(error)}
      </Problem>
    );
  }
  if (rows === null) return <Loading words="Loading the streams …" />;
  if (rows.length === 0 && list.hasMore.value) {
    return (
      <NothingYet isLoading={list.isLoading.value} problem={error !== null && wordsOfError(error)} onMore={more} />
    );
  }
  if (rows.length === 0) return <NoStreams filter={filter} onFilter={onFilter} onCreate={onCreate} />;
  const onTag = (tag: string) => !filter.tags.includes(tag) && onFilter({ ...filter, tags: [...filter.tags, tag] });
  return (
    <>
      <div
        class="stream-table"
        role="table"
        aria-label="Streams"
        aria-rowcount={list.hasMore.value ? -1 : rows.length + 1}
      >
        <div role="rowgroup" class="stream-heads">
          {/* biome-ignore lint/a11y/useFocusableInteractive: a row of headings, nothing to press */}
          <div role="row" class="stream-row" aria-rowindex={1}>
            {["State", "Name", "Tags", "Video", "Bitrate", "Players", "Last change"].map((title) => (
              // biome-ignore lint/a11y/useFocusableInteractive: as above
              <div key={title} role="columnheader">
                {title}
              </div>
            ))}
            {/* biome-ignore lint/a11y/useFocusableInteractive: as above */}
            <div role="columnheader">
              <span class="unseen">Actions</span>
            </div>
          </div>
        </div>
        <VirtualList
          count={rows.length}
          tops={tops}
          onEnd={more}
          row={(index) => {
            const stream = rows[index];
            if (stream === undefined) return null;
            return (
              <StreamRow
                key={stream.id}
                stream={stream}
                live={live.of(stream.id)}
                index={index}
                top={tops[index] ?? 0}
                height={heightOf(stream, isPhone)}
                show={show}
                onTag={onTag}
                open={open}
              />
            );
          }}
        />
      </div>
      {error !== null ? (
        <Problem title="More streams could not be loaded" again={more}>
          {wordsOfError(error)}
        </Problem>
      ) : (
        list.hasMore.value && <MoreRows isLoading={list.isLoading.value} onMore={more} />
      )}
    </>
  );
}

function NoStreams({ filter, onFilter, onCreate }: Pick<ListProps, "filter" | "onFilter" | "onCreate">) {
  const isFiltered = filter.state !== null || filter.tags.length > 0 || filter.search !== "";
  if (isFiltered) {
    return (
      <Empty
        title="No matching streams"
        icon="search"
        actions={
          <button type="button" onClick={() => onFilter({ state: null, tags: [], search: "" })}>
            Show all streams
          </button>
        }
      >
        No stream has this state and these tags and contains this text.
      </Empty>
    );
  }
  return (
    <Empty
      title="No streams yet"
      icon="streams"
      actions={
        may("create_stream") && (
          <button type="button" class="primary" onClick={onCreate}>
            Create the first stream
          </button>
        )
      }
    >
      Create one, copy its address into OBS, ffmpeg or a browser, and you are live.
    </Empty>
  );
}

function usePhone(): boolean {
  const [isPhone, setPhone] = useState(PHONE.matches);
  useEffect(() => {
    const update = () => setPhone(PHONE.matches);
    PHONE.addEventListener("change", update);
    return () => PHONE.removeEventListener("change", update);
  }, []);
  return isPhone;
}
