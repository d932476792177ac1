// The delivery log of the webhook with the outcome of each call, filtered by event, stream name, publish and failure.

import { useState } from "preact/hooks";
import { useLocation } from "preact-iso/router";
import { FormField } from "../parts/form-field.tsx";
import { Empty, Problem } from "../parts/states.tsx";
import { StatusPill } from "../parts/status-pill.tsx";
import { type Column, MoreRows, NothingYet, Table } from "../parts/table.tsx";
import { addressOf, filteredAddress } from "../shell/addresses.ts";
import { answerOf, api, type Records } from "../shell/client.ts";
import { wordsOfError } from "../shell/errors.ts";
import { usePages } from "../shell/loaded.ts";
import { LoadedView } from "../shell/loaded-view.tsx";
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
  const { call = "", name = "", clientid = "", failed = "" } = query;
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
          },
        },
        signal,
      }),
    answerOf,
    [call, name, clientid, failed],
  );
  const filter = (change: Readonly<Record<string, string>>) =>
    route(filteredAddress(PATH, { call, name, clientid, failed, ...change }), true);
  const isFiltered = [call, name, clientid, failed].some(Boolean);
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
      <LoadedView
        of={{ value: deliveries.rows, error: deliveries.error, reload: deliveries.reload }}
        words="Loading the deliveries …"
      >
        {(rows) =>
          rows.length === 0 && deliveries.hasMore ? (
            <NothingYet
              isLoading={deliveries.isLoading}
              problem={deliveries.error !== null && wordsOfError(deliveries.error)}
              onMore={() => void deliveries.more()}
            />
          ) : rows.length === 0 ? (
            <Empty title={isFiltered ? "No deliveries match the filter" : "Nothing was sent yet"} icon="deliveries">
              {isFiltered
                ? "The stream name must be the full name, without the question mark and what follows it."
                : "As soon as somebody publishes, the calls to your webhook and its answers appear here."}
            </Empty>
          ) : (
            <>
              <Table caption="Deliveries" columns={COLUMNS} rows={rows} keyOf={({ id }) => id} />
              {deliveries.error !== null && (
                <Problem title="More deliveries could not be loaded">{wordsOfError(deliveries.error)}</Problem>
              )}
              {deliveries.hasMore && (
                <MoreRows isLoading={deliveries.isLoading} onMore={() => void deliveries.more()} />
              )}
            </>
          )
        }
      </LoadedView>
    </Page>
  );
}

interface TextFilterProps {
  readonly label: string;
  readonly value: string;
  readonly isNumber?: boolean;
  readonly onChange: (value: string) => void;
}

/** Takes effect on Enter, or when the field loses focus. */
function TextFilter({ label, value, isNumber = false, onChange }: TextFilterProps) {
  const [given, setGiven] = useState<string | null>(null);
  const done = () => {
    if (given !== null && given.trim() !== value) onChange(given.trim());
    setGiven(null);
  };
  return (
    <FormField label={label}>
      {(field) => (
        <input
          {...field}
          type="text"
          inputMode={isNumber ? "numeric" : "text"}
          autocomplete="off"
          spellcheck={false}
          value={given ?? value}
          onInput={(event) => setGiven(event.currentTarget.value)}
          onKeyDown={(event) => event.key === "Enter" && done()}
          onBlur={done}
        />
      )}
    </FormField>
  );
}
