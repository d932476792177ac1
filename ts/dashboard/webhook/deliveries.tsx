// The delivery log of the webhook with the outcome of each call, filtered by time, event, stream name, publish and failure.
import { useLocation } from "preact-iso/router";
import { PagedTable } from "../lists/paged-table.tsx";
import { TextFilter } from "../lists/text-filter.tsx";
import { TimeFilter } from "../lists/time-filter.tsx";
import { rangeOf, rangeQuery, rangeTexts } from "../lists/time-range.ts";
import { FormField } from "../parts/form-field.tsx";
import { Empty } from "../parts/states.tsx";
import { StatusPill } from "../parts/status-pill.tsx";
import type { Column } from "../parts/table.tsx";
import { addressOf, filteredAddress } from "../shell/addresses.ts";
import { answerOf, api, type Records } from "../shell/client.ts";
import { usePages } from "../shell/loaded.ts";
import { Page } from "../shell/page.tsx";
import { TimeText } from "../shell/time-text.tsx";
import { CALL_WORDS, shortWords, toneOf } from "./answer-words.ts";

type Delivery = Records["Delivery"];
type Call = Delivery["call"];

const PATH = "/dashboard/deliveries";
const COLUMNS: readonly Column<Delivery>[] = [
  {
    title: "Event",
    isHead: true,
    cell: ({ id, call }) => (
      <a class="nowrap" href={addressOf("deliveries", id)}>
        {CALL_WORDS[call]}
      </a>
    ),
  },
  { title: "Answer", cell: (delivery) => <StatusPill tone={toneOf(delivery)}>{shortWords(delivery)}</StatusPill> },
  { title: "Reason", cell: ({ reason }) => reason ?? <span class="soft">–</span> },
  { title: "Stream name", cell: ({ name }) => <span class="mono">{name}</span> },
  { title: "Client id", cell: ({ clientid }) => <span class="mono">{clientid}</span> },
  { title: "Took", isNumber: true, cell: (delivery) => `${delivery.latency_ms} ms` },
  { title: "Attempts", isNumber: true, cell: ({ attempts }) => attempts },
  { title: "When", cell: (delivery) => <TimeText at={delivery.last_at} /> },
];

export function DeliveriesPage() {
  const { query, route } = useLocation();
  const { call = "", name = "", clientid = "", failed = "", copies = "" } = query;
  const { from, to } = rangeTexts(rangeOf(query));
  const isCall = (given: string): given is Call => given in CALL_WORDS;
  const deliveries = usePages<Delivery>(
    (cursor, signal) =>
      api.GET("/organisation/webhook/deliveries", {
        params: {
          query: {
            ...(cursor === undefined ? {} : { cursor }),
            ...(isCall(call) ? { call } : {}),
            ...(name === "" ? {} : { name }),
            ...(/^\d{1,15}$/.test(clientid) ? { clientid: Number(clientid) } : {}),
            ...(failed === "true" ? { failed: "true" as const } : {}),
            ...(copies === "true" ? { copies: "true" as const } : {}),
            ...rangeQuery(rangeOf(query)),
          },
        },
        signal,
      }),
    answerOf,
    [call, name, clientid, failed, copies, from, to],
  );
  const filter = (change: Readonly<Record<string, string>>) =>
    route(filteredAddress(PATH, { call, name, clientid, failed, copies, from, to, ...change }), true);
  const isFiltered = [call, name, clientid, failed, copies, from, to].some(Boolean);
  return (
    <Page
      title="Deliveries"
      lead="Calls to your webhook in the last 30 days, newest first: every publish and its end, every failure, and the latest successful update of each publish."
      actions={
        <button type="button" onClick={() => void deliveries.reload()}>
          Refresh
        </button>
      }
    >
      <search class="filters" aria-label="Deliveries">
        <TimeFilter range={rangeOf(query)} onChange={(range) => filter(rangeTexts(range))} />
        <FormField label="Sent to">
          {(field) => (
            <select {...field} value={copies} onChange={(event) => filter({ copies: event.currentTarget.value })}>
              <option value="">The webhook</option>
              <option value="true">The second address</option>
            </select>
          )}
        </FormField>
        <FormField label="Event">
          {(field) => (
            <select {...field} value={call} onChange={(event) => filter({ call: event.currentTarget.value })}>
              <option value="">All</option>
              {Object.entries(CALL_WORDS).map(([value, words]) => (
                <option key={value} value={value}>
                  {words}
                </option>
              ))}
            </select>
          )}
        </FormField>
        <FormField label="Outcome">
          {(field) => (
            <select {...field} value={failed} onChange={(event) => filter({ failed: event.currentTarget.value })}>
              <option value="">All</option>
              <option value="true">Refused or failed</option>
            </select>
          )}
        </FormField>
        <TextFilter label="Stream name" value={name} onChange={(given) => filter({ name: given })} />
        <TextFilter
          label="Client id"
          value={clientid}
          isNumber
          onChange={(given) => filter({ clientid: given.replaceAll(/\D/g, "") })}
        />
        {isFiltered && (
          <button type="button" class="quiet" onClick={() => route(PATH, true)}>
            Clear the filter
          </button>
        )}
      </search>
      <PagedTable
        pages={deliveries}
        caption="Deliveries"
        columns={COLUMNS}
        keyOf={({ id }) => id}
        loading="Loading the deliveries …"
        failed="More deliveries could not be loaded"
        empty={
          <Empty title={isFiltered ? "No deliveries match the filter" : "Nothing was sent yet"} icon="deliveries">
            {isFiltered
              ? "The stream name must be the full name, without the question mark and what follows it."
              : "As soon as somebody publishes, the calls to your webhook and its answers appear here."}
          </Empty>
        }
      />
    </Page>
  );
}
