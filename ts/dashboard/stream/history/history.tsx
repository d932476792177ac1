// What happened to the stream, newest first: its broadcasts, why each ended or was denied, and what was refused between
// them. The time is part of the page's address.
import type { ReadonlySignal } from "@preact/signals";
import { useEffect, useState } from "preact/hooks";
import { useLocation } from "preact-iso/router";
import { PagedTable } from "../../lists/paged-table.tsx";
import { TimeFilter } from "../../lists/time-filter.tsx";
import { rangeOf, rangeQuery, rangeTexts } from "../../lists/time-range.ts";
import { Empty } from "../../parts/states.tsx";
import { StatusPill } from "../../parts/status-pill.tsx";
import type { Column } from "../../parts/table.tsx";
import { PROTOCOL_WORDS, RefusalReason, RefusedAt } from "../../refusals/refusal-cells.tsx";
import { addressOf, filteredAddress } from "../../shell/addresses.ts";
import { answerOf, api } from "../../shell/client.ts";
import { usePages } from "../../shell/loaded.ts";
import { Section } from "../../shell/page.tsx";
import { TimeText } from "../../shell/time-text.tsx";
import { tabAddress } from "../stream-tabs.tsx";
import { Timeline } from "../timeline/timeline.tsx";
import { type HistoryRow, mergedPages } from "./merged.ts";
import { Bytes, Media, More, Outcome, Source, State } from "./publish-cells.tsx";

/** Of one page of either list. */
const QUANTITY = 20;

interface HistoryProps {
  readonly streamId: string;
  /** Increases when there is something new. */
  readonly changes: ReadonlySignal<number>;
}

export function History({ streamId, changes }: HistoryProps) {
  const { query: given, route } = useLocation();
  const range = rangeOf(given);
  const { from, to } = rangeTexts(range);
  const path = { id: streamId };
  const query = (cursor: string | undefined) => ({
    quantity: QUANTITY,
    ...(cursor === undefined ? {} : { cursor }),
    ...rangeQuery(range),
  });
  const inputs = [streamId, from, to];
  const history = mergedPages(
    usePages(
      (cursor, signal) => api.GET("/stream/{id}/publish", { params: { path, query: query(cursor) }, signal }),
      answerOf,
      inputs,
    ),
    usePages(
      (cursor, signal) => api.GET("/stream/{id}/refusal", { params: { path, query: query(cursor) }, signal }),
      answerOf,
      inputs,
    ),
  );
  const change = changes.value;
  useEffect(() => {
    if (change > 1) void history.reload();
  }, [change]);
  const [explained, setExplained] = useState<number | null>(null);
  const address = addressOf("streams", streamId);
  const isFiltered = from !== "" || to !== "";
  return (
    <Section
      title="History"
      id="history"
      lead="Every broadcast to this stream, and everything that was denied or refused."
      actions={
        <>
          <a class="button" href={filteredAddress("/dashboard/refusals", { stream: streamId, from, to })}>
            Refusals
          </a>
          <button type="button" onClick={() => void history.reload()}>
            Refresh
          </button>
        </>
      }
      plain
    >
      <search class="filters" aria-label="History">
        <TimeFilter
          range={range}
          onChange={(chosen) => route(filteredAddress(address, { tab: "history", ...rangeTexts(chosen) }), true)}
        />
        {isFiltered && (
          <button type="button" class="quiet" onClick={() => route(tabAddress(streamId, "history"), true)}>
            Clear the filter
          </button>
        )}
      </search>
      <PagedTable
        pages={history}
        caption="History"
        columns={columns(setExplained)}
        keyOf={(row) => (row.kind === "publish" ? row.publish.client_id : row.refusal.id)}
        loading="Loading the history …"
        failed="More of the history could not be loaded"
        empty={
          isFiltered ? (
            <Empty title="Nothing happened at this time" icon="live">
              Choose a longer time, or clear the filter.
            </Empty>
          ) : (
            <Empty title="Nobody has broadcast to it yet" icon="live">
              Broadcasts and refusals appear here, with their reasons.
            </Empty>
          )
        }
      />
      {explained !== null && <Timeline clientId={explained} onClose={() => setExplained(null)} />}
    </Section>
  );
}

function columns(explain: (clientId: number) => void): readonly Column<HistoryRow>[] {
  const soft = <span class="soft">—</span>;
  return [
    {
      title: "When",
      isHead: true,
      cell: (row) => (row.kind === "publish" ? <TimeText at={row.at} /> : <RefusedAt {...row.refusal} />),
    },
    {
      title: "State",
      cell: (row) =>
        row.kind === "publish" ? (
          <State {...row.publish} />
        ) : (
          <StatusPill tone="bad">{row.refusal.request === "play" ? "Play refused" : "Refused"}</StatusPill>
        ),
    },
    {
      title: "Result",
      cell: (row) => (row.kind === "publish" ? <Outcome {...row.publish} /> : <RefusalReason {...row.refusal} />),
    },
    {
      title: "Protocol",
      cell: (row) => {
        if (row.kind === "publish") return <Source {...row.publish} />;
        const { protocol, address } = row.refusal;
        return (
          <>
            {protocol === null ? "—" : PROTOCOL_WORDS[protocol]}
            {address !== null && <small class="second mono nowrap">{address}</small>}
          </>
        );
      },
    },
    { title: "Media", cell: (row) => (row.kind === "publish" ? <Media {...row.publish} /> : soft) },
    { title: "In / out", isNumber: true, cell: (row) => (row.kind === "publish" ? <Bytes {...row.publish} /> : soft) },
    {
      title: "More",
      cell: (row) => row.kind === "publish" && <More publish={row.publish} explain={explain} />,
    },
  ];
}
