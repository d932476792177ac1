// The audit log: who changed what, and when, by time, area and person, page after page.
import { useLocation } from "preact-iso/router";
import { NamedStream } from "../lists/named-stream.tsx";
import { loadNames } from "../lists/names.ts";
import { PagedTable } from "../lists/paged-table.tsx";
import { TimeFilter } from "../lists/time-filter.tsx";
import { rangeOf, rangeQuery, rangeTexts } from "../lists/time-range.ts";
import { WhoFilter } from "../lists/who-filter.tsx";
import { FormField } from "../parts/form-field.tsx";
import { Empty } from "../parts/states.tsx";
import { filteredAddress } from "../shell/addresses.ts";
import { answerOf, api, type Records } from "../shell/client.ts";
import { useLoaded, usePages } from "../shell/loaded.ts";
import { Page } from "../shell/page.tsx";
import { TimeText } from "../shell/time-text.tsx";
import { AREAS, actionWords, detailWords } from "./audit-words.ts";

type Entry = Records["AuditEntry"];
const PATH = "/dashboard/audit";

export function AuditPage() {
  const { query, route } = useLocation();
  const { area = "", who = "" } = query;
  const { from, to } = rangeTexts(rangeOf(query));
  const names = useLoaded(loadNames);
  const entries = usePages<Entry>(
    (cursor, signal) =>
      api.GET("/organisation/audit", {
        params: {
          query: {
            ...(cursor === undefined ? {} : { cursor }),
            ...(area in AREAS ? { action: area } : {}),
            ...(who === "" ? {} : { who }),
            ...rangeQuery(rangeOf(query)),
          },
        },
        signal,
      }),
    answerOf,
    [area, who, from, to],
  );
  const filter = (change: Readonly<Record<string, string>>) =>
    route(filteredAddress(PATH, { area, who, from, to, ...change }), true);
  const known = names.value ?? new Map<string, string>();
  return (
    <Page
      title="Audit log"
      lead="Every change and who made it, newest first. Kept for 400 days unless the operator has set another time."
    >
      <search class="filters" aria-label="Audit log">
        <TimeFilter range={rangeOf(query)} onChange={(range) => filter(rangeTexts(range))} />
        <FormField label="What">
          {(field) => (
            <select {...field} value={area} onChange={(event) => filter({ area: event.currentTarget.value })}>
              <option value="">Everything</option>
              {Object.entries(AREAS).map(([value, words]) => (
                <option key={value} value={value}>
                  {words}
                </option>
              ))}
            </select>
          )}
        </FormField>
        <WhoFilter label="Who" who={who} names={known} onChange={(chosen) => filter({ who: chosen })} />
        {[area, who, from, to].some(Boolean) && (
          <button type="button" class="quiet" onClick={() => route(PATH, true)}>
            Clear the filter
          </button>
        )}
      </search>
      <PagedTable
        pages={entries}
        caption="Changes"
        keyOf={({ id }) => id}
        columns={[
          {
            title: "What",
            isHead: true,
            cell: ({ action, stream }) => (
              <>
                {actionWords(action)}
                {stream && <NamedStream stream={stream} />}
              </>
            ),
          },
          { title: "Who", cell: (entry) => whoOf(entry, known) },
          { title: "Details", cell: (entry) => <Details entry={entry} /> },
          { title: "When", cell: ({ at }) => <TimeText at={at} /> },
        ]}
        loading="Loading the audit log …"
        failed="More entries could not be loaded"
        empty={<Empty title="No matching changes" icon="audit" />}
      />
    </Page>
  );
}

function whoOf({ who }: Entry, names: ReadonlyMap<string, string>): string {
  if (who.kind === "operator") return "The operator";
  if (who.id === null) return who.kind === "user" ? "Nobody signed in" : who.kind;
  return names.get(who.id) ?? (who.kind === "key" ? `Key hg_${who.id}_… (revoked)` : "A removed person");
}

function Details({ entry: { subject, detail, request_id: request } }: { readonly entry: Entry }) {
  return (
    <>
      {detailWords(detail).map((words) => (
        <div key={words}>{words}</div>
      ))}
      <details class="ids">
        <summary>Ids</summary>
        <div class="mono">subject {subject}</div>
        {typeof detail.id === "string" && <div class="mono">detail {detail.id}</div>}
        {request !== null && <div class="mono">request {request}</div>}
      </details>
    </>
  );
}
