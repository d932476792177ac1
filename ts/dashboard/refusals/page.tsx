// Every refused publish and play, with the reason and what to do about it, by time, reason and stream. The filter is part
// of the page's address.
import { useLocation } from "preact-iso/router";
import { REFUSAL_WORDS } from "../../text/refusal-words.ts";
import { NamedStream } from "../lists/named-stream.tsx";
import { PagedTable } from "../lists/paged-table.tsx";
import { TimeFilter } from "../lists/time-filter.tsx";
import { rangeOf, rangeQuery, rangeTexts, type TimeRange } from "../lists/time-range.ts";
import { FormField } from "../parts/form-field.tsx";
import { Empty } from "../parts/states.tsx";
import type { Column } from "../parts/table.tsx";
import { filteredAddress } from "../shell/addresses.ts";
import { answerOf, api } from "../shell/client.ts";
import { usePages } from "../shell/loaded.ts";
import { Page } from "../shell/page.tsx";
import {
  PROTOCOL_WORDS,
  type Refusal,
  RefusalDeliveries,
  RefusalReason,
  RefusedAddress,
  RefusedAt,
} from "./refusal-cells.tsx";
import { StreamField } from "./stream-field.tsx";

const PATH = "/dashboard/refusals";
const REQUESTS = { publish: "Publish", play: "Play" } as const;
const REASONS = (Object.keys(REFUSAL_WORDS) as Refusal["reason"][])
  .map((reason) => [reason, REFUSAL_WORDS[reason].title] as const)
  .toSorted(([, one], [, other]) => one.localeCompare(other));

const COLUMNS: readonly Column<Refusal>[] = [
  { title: "When", isHead: true, cell: RefusedAt },
  { title: "Stream", cell: RefusedStream },
  { title: "What", cell: RefusedRequest },
  { title: "Reason", cell: RefusalReason },
  { title: "Address", cell: RefusedAddress },
  { title: "More", isActions: true, cell: RefusalDeliveries },
];

/** Only values that the API knows. */
interface Filter extends TimeRange {
  readonly reason: Refusal["reason"] | "";
  readonly request: Refusal["request"] | "";
  readonly stream: string;
}

function filterOf(query: Readonly<Record<string, string>>): Filter {
  const { reason = "", request = "", stream = "" } = query;
  const isReason = (given: string): given is Refusal["reason"] => Object.hasOwn(REFUSAL_WORDS, given);
  return {
    ...rangeOf(query),
    reason: isReason(reason) ? reason : "",
    request: request === "publish" || request === "play" ? request : "",
    stream,
  };
}

export function RefusalsPage() {
  const { query, route } = useLocation();
  const filter = filterOf(query);
  const { reason, request, stream, from, to } = filter;
  const refusals = usePages<Refusal>(
    (cursor, signal) =>
      api.GET("/refusal", {
        params: {
          query: {
            ...(cursor === undefined ? {} : { cursor }),
            ...(reason === "" ? {} : { reason }),
            ...(request === "" ? {} : { request }),
            ...(stream === "" ? {} : { stream }),
            ...rangeQuery(filter),
          },
        },
        signal,
      }),
    answerOf,
    [reason, request, stream, from, to],
  );
  const change = (changed: Partial<Filter>) => {
    const { reason, request, stream, ...range } = { ...filter, ...changed };
    route(filteredAddress(PATH, { stream, reason, request, ...rangeTexts(range) }), true);
  };
  const isFiltered = reason !== "" || request !== "" || stream !== "" || from !== null || to !== null;
  return (
    <Page
      title="Refusals"
      lead="Every publish and play that was refused, newest first, and what to do about it. Equal ones within ten minutes are one entry."
      actions={
        <button type="button" onClick={() => void refusals.reload()}>
          Refresh
        </button>
      }
    >
      <search class="filters" aria-label="Refusals">
        <TimeFilter range={{ from, to }} onChange={change} />
        <Choice
          label="Reason"
          all="All reasons"
          value={reason}
          choices={REASONS}
          onChange={(value) => change({ reason: value })}
        />
        <Choice
          label="What"
          all="Both"
          value={request}
          choices={[
            ["publish", "Publishes"],
            ["play", "Plays"],
          ]}
          onChange={(value) => change({ request: value })}
        />
        <StreamField stream={stream} onChange={(value) => change({ stream: value })} />
        {isFiltered && (
          <button type="button" class="quiet" onClick={() => route(PATH, true)}>
            Clear the filter
          </button>
        )}
      </search>
      <PagedTable
        pages={refusals}
        caption="Refusals"
        columns={COLUMNS}
        keyOf={({ id }) => id}
        loading="Loading the refusals …"
        failed="More refusals could not be loaded"
        empty={
          <Empty title={isFiltered ? "No refusals match the filter" : "Nothing was refused"} icon="refusals">
            {isFiltered
              ? "Choose a longer time, or clear the filter."
              : "When a publish or a play is refused, it appears here within two seconds, with the reason."}
          </Empty>
        }
      />
    </Page>
  );
}

interface ChoiceProps<Value extends string> {
  readonly label: string;
  /** Words for no choice. */
  readonly all: string;
  readonly value: Value | "";
  readonly choices: readonly (readonly [value: Value, words: string])[];
  readonly onChange: (value: Value | "") => void;
}

function Choice<Value extends string>({ label, all, value, choices, onChange }: ChoiceProps<Value>) {
  return (
    <FormField label={label}>
      {(field) => (
        <select
          {...field}
          value={value}
          onChange={(event) => onChange(choices.find(([each]) => each === event.currentTarget.value)?.[0] ?? "")}
        >
          <option value="">{all}</option>
          {choices.map(([each, words]) => (
            <option key={each} value={each}>
              {words}
            </option>
          ))}
        </select>
      )}
    </FormField>
  );
}

function RefusedStream({ stream, sent_name, reason }: Refusal) {
  if (stream !== null) return <NamedStream stream={stream} />;
  if (sent_name !== null) {
    return (
      <>
        <span class="nowrap">Unknown name</span>
        <small class="second mono">{sent_name}</small>
      </>
    );
  }
  return <span class="soft">{reason === "unknown_stream" ? "Unknown names" : "None, or several"}</span>;
}

function RefusedRequest({ request, protocol }: Refusal) {
  return (
    <>
      <span class="nowrap">{REQUESTS[request]}</span>
      {protocol !== null && <small class="second">{PROTOCOL_WORDS[protocol]}</small>}
    </>
  );
}
