// The filter of the list of streams: state with counts, text, tags. It is part of the page's URL, so that it can be
// shared and survives a reload.
import { useEffect, useState } from "preact/hooks";
import { FormField } from "../parts/form-field.tsx";
import { Icon } from "../parts/icons.tsx";
import type { Counts } from "./records.ts";
import type { StreamFilter } from "./stream-list.ts";

/** Pause after a keystroke before the service is queried, ms. */
const TYPING_MS = 250;
/** The service's limit, characters. */
const SEARCH_LIMIT = 100;
const STATES = [
  [null, "All"],
  ["live", "Live"],
  ["created", "New"],
  ["ended", "Ended"],
  ["locked", "Locked"],
] as const satisfies readonly (readonly [StreamFilter["state"], string])[];

/** Parses the filter in a URL; unknown values are ignored. */
export function filterOf(address: string): StreamFilter {
  const query = new URL(address, "http://dashboard").searchParams;
  const state = STATES.find(([name]) => name !== null && name === query.get("state"))?.[0] ?? null;
  const tags = [...new Set(query.getAll("tag").filter(Boolean))].sort();
  return { state, tags, search: (query.get("search") ?? "").slice(0, SEARCH_LIMIT) };
}

/** The URL of the page with this filter. */
export function addressWith({ state, tags, search }: StreamFilter): string {
  const query = new URLSearchParams();
  if (state !== null) query.set("state", state);
  for (const tag of tags) query.append("tag", tag);
  if (search !== "") query.set("search", search);
  const text = query.toString();
  return text === "" ? "/dashboard/streams" : `/dashboard/streams?${text}`;
}

interface FiltersProps {
  readonly filter: StreamFilter;
  readonly counts: Counts | null;
  readonly onChange: (filter: StreamFilter) => void;
}

export function Filters({ filter, counts, onChange }: FiltersProps) {
  const { state, tags, search } = filter;
  const [typed, setTyped] = useState(search);
  useEffect(() => setTyped(search), [search]);
  useEffect(() => {
    if (typed.trim() === search) return;
    const timer = setTimeout(() => onChange({ ...filter, search: typed.trim() }), TYPING_MS);
    return () => clearTimeout(timer);
  }, [typed]);
  const countOf = (name: StreamFilter["state"]) => {
    if (counts === null) return null;
    return name === null || name === undefined
      ? counts.created + counts.live + counts.ended + counts.locked
      : counts[name];
  };
  return (
    <div class="filters stream-filters">
      {/* biome-ignore lint/a11y/useSemanticElements: buttons of one choice, no fieldset */}
      <div class="states" role="group" aria-label="State">
        {STATES.map(([name, title]) => (
          <button
            key={title}
            type="button"
            aria-pressed={state === name}
            onClick={() => onChange({ ...filter, state: name })}
          >
            {title}
            {countOf(name) !== null && <span class="count">{countOf(name)?.toLocaleString()}</span>}
          </button>
        ))}
      </div>
      <FormField label={<span class="unseen">Search</span>}>
        {(field) => (
          <div class="search">
            <Icon name="search" />
            <input
              {...field}
              type="search"
              placeholder="Name, title or tag"
              maxLength={SEARCH_LIMIT}
              autocomplete="off"
              autocapitalize="off"
              spellcheck={false}
              value={typed}
              onInput={(event) => setTyped(event.currentTarget.value)}
            />
          </div>
        )}
      </FormField>
      {tags.map((tag) => (
        <button
          key={tag}
          type="button"
          class="chosen-tag"
          onClick={() => onChange({ ...filter, tags: tags.filter((other) => other !== tag) })}
        >
          <span class="unseen">No longer only streams with the tag </span>
          {tag}
          <Icon name="close" />
        </button>
      ))}
    </div>
  );
}
