// Bytes in and out by day and stream: a graph, tables, and the complete data as CSV.
import { useState } from "preact/hooks";
import { useLocation } from "preact-iso/router";
import { FormField } from "../parts/form-field.tsx";
import { Graph } from "../parts/graph.tsx";
import { Empty } from "../parts/states.tsx";
import { Table } from "../parts/table.tsx";
import { Tabs } from "../parts/tabs.tsx";
import { bytesWords, counted } from "../parts/time-words.ts";
import { addressOf, filteredAddress } from "../shell/addresses.ts";
import { api, pageOf, type Records } from "../shell/client.ts";
import { timeNow } from "../shell/clock.ts";
import { useLoaded } from "../shell/loaded.ts";
import { LoadedView } from "../shell/loaded-view.tsx";
import { Page, Section } from "../shell/page.tsx";
import { byDay, byStream, dayIn, dayOf, firstDayOf, type UsageRow } from "./usage-sums.ts";

/** Most rows summed here; the CSV has all of them. */
const ROWS_LIMIT = 50_000;
const PAGE_ROWS = 10_000;
const STREAMS_SHOWN = 100;
const SPANS = [7, 30, 90, 365] as const;
const PATH = "/dashboard/usage";

interface UsageQuery {
  from: string;
  to: string;
  quantity: number;
  stream?: string;
  cursor?: string;
}
interface Span {
  readonly from: string;
  readonly to: string;
  readonly stream: string;
}
type Usage = Omit<Records["Usage"], "days" | "next"> & {
  readonly rows: readonly UsageRow[];
  readonly isCut: boolean;
};

export function UsagePage() {
  const { query, route } = useLocation();
  const today = dayOf(timeNow());
  const { from: first, to: last, stream = "" } = query;
  const to = dayIn(last) ?? today;
  const span: Span = { from: dayIn(first) ?? firstDayOf(30, to), to, stream };
  /** Index of the open table: it stays open for other days. */
  const [table, setTable] = useState(0);
  const usage = useLoaded((signal) => loadUsage(span, signal), [span.from, span.to, span.stream]);
  const choose = (change: Partial<Span>) => route(filteredAddress(PATH, { ...span, ...change }), true);
  const csv = `/organisation/usage?${new URLSearchParams({
    format: "csv",
    from: span.from,
    to: span.to,
    ...(span.stream === "" ? {} : { stream: span.stream }),
  })}`;
  return (
    <Page
      title="Usage"
      lead="Audio and video bytes received from encoders and sent to upstreams and players. Days are in UTC."
      actions={
        <a class="button" href={csv} download={`usage-${span.from}-${span.to}.csv`}>
          Download as CSV
        </a>
      }
    >
      <search class="filters" aria-label="Usage">
        <FormField label="From">
          {(field) => (
            <input
              {...field}
              type="date"
              value={span.from}
              max={span.to}
              onChange={(event) => choose({ from: event.currentTarget.value })}
            />
          )}
        </FormField>
        <FormField label="To">
          {(field) => (
            <input
              {...field}
              type="date"
              value={span.to}
              min={span.from}
              max={today}
              onChange={(event) => choose({ to: event.currentTarget.value })}
            />
          )}
        </FormField>
        <div class="row">
          {SPANS.map((days) => (
            <button
              key={days}
              type="button"
              class="quiet"
              aria-pressed={span.to === today && span.from === firstDayOf(days, today)}
              onClick={() => choose({ from: firstDayOf(days, today), to: today })}
            >
              {days} days
            </button>
          ))}
          {span.stream !== "" && (
            <button type="button" class="quiet" onClick={() => choose({ stream: "" })}>
              All streams
            </button>
          )}
        </div>
      </search>
      <LoadedView of={usage} words="Adding up the usage …">
        {(value) => <UsageView usage={value} table={table} onTable={setTable} />}
      </LoadedView>
    </Page>
  );
}

interface UsageViewProps {
  readonly usage: Usage;
  readonly table: number;
  readonly onTable: (table: number) => void;
}

function UsageView({ usage, table, onTable }: UsageViewProps) {
  const { total, rows, from, to, isCut } = usage;
  const days = byDay(rows, from, to);
  const streams = byStream(rows);
  if (rows.length === 0) {
    return (
      <Empty title="Nothing was broadcast on these days" icon="usage">
        Choose other days, or wait for the first broadcast: a running one is counted within ten seconds.
      </Empty>
    );
  }
  return (
    <>
      <dl class="sums">
        <div>
          <dt>Received</dt>
          <dd>{bytesWords(total.bytes_in)}</dd>
        </div>
        <div>
          <dt>Sent</dt>
          <dd>{bytesWords(total.bytes_out)}</dd>
        </div>
        <div>
          <dt>Streams</dt>
          <dd>{streams.length.toLocaleString()}</dd>
        </div>
      </dl>
      {isCut && (
        <p class="note attention section">
          Graph and tables show only the first {ROWS_LIMIT.toLocaleString()} rows. The sums above and the CSV cover
          everything.
        </p>
      )}
      <Section title="By day">
        <Graph
          kind="columns"
          inUtc
          label={`Bytes received and sent on each day from ${from} to ${to}. The table below has the numbers.`}
          times={days.map(({ day }) => Date.parse(`${day}T00:00:00Z`))}
          series={[
            { title: "Received", colour: "--graph-1", values: days.map(({ bytes_in }) => bytes_in || null) },
            { title: "Sent", colour: "--graph-2", values: days.map(({ bytes_out }) => bytes_out || null) },
          ]}
          words={bytesWords}
          height={220}
        />
      </Section>
      <Tabs
        label="Tables"
        first={table}
        onOpen={onTable}
        tabs={[
          { title: "By stream", content: <StreamsTable streams={streams} /> },
          {
            title: "By day",
            content: (
              <Table
                caption="Usage by day"
                rows={days.filter(({ bytes_in, bytes_out }) => bytes_in + bytes_out > 0).toReversed()}
                keyOf={({ day }) => day}
                columns={[
                  { title: "Day", isHead: true, cell: ({ day }) => day },
                  { title: "Received", isNumber: true, cell: (row) => bytesWords(row.bytes_in) },
                  { title: "Sent", isNumber: true, cell: (row) => bytesWords(row.bytes_out) },
                ]}
              />
            ),
          },
        ]}
      />
    </>
  );
}

function StreamsTable({ streams }: { readonly streams: ReturnType<typeof byStream> }) {
  return (
    <>
      <Table
        caption="Usage by stream"
        rows={streams.slice(0, STREAMS_SHOWN)}
        keyOf={({ stream }) => stream}
        columns={[
          {
            title: "Stream",
            isHead: true,
            cell: ({ stream, streamname }) => (
              <a class="mono" href={addressOf("streams", stream)}>
                {streamname}
              </a>
            ),
          },
          { title: "Received", isNumber: true, cell: (row) => bytesWords(row.bytes_in) },
          { title: "Sent", isNumber: true, cell: (row) => bytesWords(row.bytes_out) },
        ]}
      />
      {streams.length > STREAMS_SHOWN && (
        <p class="help below">
          The {STREAMS_SHOWN} with the most bytes; {counted(streams.length - STREAMS_SHOWN, "more stream")} in the CSV.
        </p>
      )}
    </>
  );
}

async function loadUsage({ from, to, stream }: Span, signal: AbortSignal): Promise<Usage> {
  const rows: UsageRow[] = [];
  let cursor: string | null = null;
  for (;;) {
    const query: UsageQuery = { from, to, quantity: PAGE_ROWS };
    if (stream !== "") query.stream = stream;
    if (cursor !== null) query.cursor = cursor;
    const { page, next } = await pageOf(api.GET("/organisation/usage", { params: { query }, signal }));
    rows.push(...page.days);
    cursor = next;
    if (cursor === null || rows.length >= ROWS_LIMIT) {
      return { from: page.from, to: page.to, total: page.total, rows, isCut: cursor !== null };
    }
  }
}
