// All links and tokens of the organisation, by time and by who created them: what to revoke when somebody leaves. The filter
// is part of the page's address.
import { useLocation } from "preact-iso/router";
import { loadNames } from "../lists/names.ts";
import { TimeFilter } from "../lists/time-filter.tsx";
import { rangeOf, rangeQuery, rangeTexts } from "../lists/time-range.ts";
import { WhoFilter } from "../lists/who-filter.tsx";
import { Empty } from "../parts/states.tsx";
import { filteredAddress } from "../shell/addresses.ts";
import { answerOf, api } from "../shell/client.ts";
import { useLoaded, usePages } from "../shell/loaded.ts";
import { Page } from "../shell/page.tsx";
import { may } from "../shell/session.ts";
import { type Token, TokenTable } from "./token-table.tsx";

const PATH = "/dashboard/links";

export function LinksPage() {
  const { query, route } = useLocation();
  const { who = "" } = query;
  const range = rangeOf(query);
  const { from, to } = rangeTexts(range);
  const isAdministrator = may("manage_users") && may("manage_keys");
  const names = useLoaded(async (signal) => (isAdministrator ? await loadNames(signal) : new Map<string, string>()));
  const tokens = usePages<Token>(
    (cursor, signal) =>
      api.GET("/token", {
        params: {
          query: {
            ...(cursor === undefined ? {} : { cursor }),
            ...(who === "" ? {} : { who }),
            ...rangeQuery(range),
          },
        },
        signal,
      }),
    answerOf,
    [who, from, to],
  );
  const known = names.value ?? new Map<string, string>();
  const filter = (change: Readonly<Record<string, string>>) =>
    route(filteredAddress(PATH, { who, from, to, ...change }), true);
  const isFiltered = [who, from, to].some(Boolean);
  return (
    <Page
      title="Links"
      lead="Every broadcast link, web token and address for players that was created, newest first, until 30 days after it expires. New ones are created on the page of a stream."
      actions={
        <button type="button" onClick={() => void tokens.reload()}>
          Refresh
        </button>
      }
    >
      <search class="filters" aria-label="Links">
        <TimeFilter range={range} onChange={(chosen) => filter(rangeTexts(chosen))} />
        {isAdministrator && (
          <WhoFilter label="Created by" who={who} names={known} onChange={(chosen) => filter({ who: chosen })} />
        )}
        {isFiltered && (
          <button type="button" class="quiet" onClick={() => route(PATH, true)}>
            Clear the filter
          </button>
        )}
      </search>
      <TokenTable
        tokens={tokens}
        hasStreams
        empty={
          <Empty title={isFiltered ? "No links match the filter" : "No links or tokens yet"} icon="link">
            {isFiltered
              ? "Choose a longer time, or clear the filter."
              : "Those that are created on the page of a stream, or by your programs, appear here."}
          </Empty>
        }
      />
    </Page>
  );
}
