// The audit log: who changed what, and when, by area and page after page.
import { useLocation } from "preact-iso/router";
import { FormField } from "../parts/form-field.tsx";
import { Empty, Problem } from "../parts/states.tsx";
import { MoreRows, NothingYet, Table } from "../parts/table.tsx";
import { filteredAddress } from "../shell/addresses.ts";
import { answerOf, api, type Records } from "../shell/client.ts";
import { wordsOfError } from "../shell/errors.ts";
import { useLoaded, usePages } from "../shell/loaded.ts";
import { LoadedView } from "../shell/loaded-view.tsx";
import { Page } from "../shell/page.tsx";
import { TimeText } from "../shell/time-text.tsx";
import { AREAS, actionWords, detailWords } from "./audit-words.ts";

type Entry = Records["AuditEntry"];
const PATH = "/dashboard/audit";

export function AuditPage() {
  const { query, route } = useLocation();
  const { area = "", who = "" } = query;
  const names = useLoaded(loadNames);
  const entries = usePages<Entry>(
    (cursor, signal) =>
      api.GET("/organisation/audit", {
        params: {
          query: {
            ...(cursor === undefined ? {} : { cursor }),
            ...(area in AREAS ? { action: area } : {}),
            ...(who === "" ? {} : { who }),
          },
        },
        signal,
      }),
    answerOf,
    [area, who],
  );
  const filter = (change: { readonly area?: string; readonly who?: string }) =>
    route(filteredAddress(PATH, { area, who, ...change }), true);
  const known = names.value ?? new Map<string, string>();
  return (
    <Page
      title="Audit log"
      lead="Every change and who made it, newest first. Kept for 400 days unless the operator has set another time."
    >
      <search class="filters" aria-label="Audit log">
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
        <FormField label="Who">
          {(field) => (
            <select {...field} value={who} onChange={(event) => filter({ who: event.currentTarget.value })}>
              <option value="">Anybody</option>
              {who !== "" && !known.has(who) && <option value={who}>{who}</option>}
              {[...known].map(([id, name]) => (
                <option key={id} value={id}>
                  {name}
                </option>
              ))}
            </select>
          )}
        </FormField>
        {(area !== "" || who !== "") && (
          <button type="button" class="quiet" onClick={() => route(PATH, true)}>
            Clear the filter
          </button>
        )}
      </search>
      <LoadedView
        of={{ value: entries.rows, error: entries.error, reload: entries.reload }}
        words="Loading the audit log …"
      >
        {(rows) =>
          rows.length === 0 && entries.hasMore ? (
            <NothingYet
              isLoading={entries.isLoading}
              problem={entries.error !== null && wordsOfError(entries.error)}
              onMore={() => void entries.more()}
            />
          ) : rows.length === 0 ? (
            <Empty title="No matching changes" icon="audit" />
          ) : (
            <>
              <Table
                caption="Changes"
                rows={rows}
                keyOf={({ id }) => id}
                columns={[
                  { title: "What", isHead: true, cell: ({ action }) => actionWords(action) },
                  { title: "Who", cell: (entry) => whoOf(entry, known) },
                  { title: "Details", cell: (entry) => <Details entry={entry} /> },
                  { title: "When", cell: ({ at }) => <TimeText at={at} /> },
                ]}
              />
              {entries.error !== null && (
                <Problem title="More entries could not be loaded">{wordsOfError(entries.error)}</Problem>
              )}
              {entries.hasMore && <MoreRows isLoading={entries.isLoading} onMore={() => void entries.more()} />}
            </>
          )
        }
      </LoadedView>
    </Page>
  );
}

function whoOf({ who }: Entry, names: ReadonlyMap<string, string>): string {
  if (who.kind === "operator") return "The operator";
  if (who.id === null) return who.kind;
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
        {request !== null && <div class="mono">request {request}</div>}
      </details>
    </>
  );
}

/** Names of people and keys by their ids. */
async function loadNames(signal: AbortSignal): Promise<ReadonlyMap<string, string>> {
  const [people, keys] = await Promise.all([
    answerOf(api.GET("/organisation/user", { signal })),
    answerOf(api.GET("/organisation/key", { signal })),
  ]);
  return new Map([
    ...people.map(({ id, email }): [string, string] => [id, email]),
    ...keys.map(({ id, label }): [string, string] => [id, label === null ? `Key hg_${id}_…` : `Key “${label}”`]),
  ]);
}
