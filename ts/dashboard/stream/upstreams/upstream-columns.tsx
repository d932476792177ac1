// One upstream in the list: its state, why it fails, and what can be done to it.
import { StatusPill } from "../../parts/status-pill.tsx";
import type { Column } from "../../parts/table.tsx";
import { bytesWords } from "../../parts/time-words.ts";
import { may } from "../../shell/session.ts";
import { MenuButton, type MenuItem } from "../../streams/menu.tsx";
import type { SessionUpstream } from "../../streams/records.ts";
import { CAUSES, SOURCES, STATES } from "./upstream-words.ts";

/** One upstream, whether it is being pushed to or not. */
export interface Row {
  readonly id: string;
  readonly label: string | null;
  readonly url: string;
  readonly maskedKey: string;
  readonly source: SessionUpstream["source"];
  readonly isPaused: boolean;
  /** null: no publish is running. */
  readonly live: SessionUpstream | null;
}

/** What a person can do to a row. */
interface Orders {
  readonly remove: (row: Row) => Promise<void>;
  readonly setPaused: (row: Row, isPaused: boolean) => Promise<void>;
  readonly retry: (row: Row) => Promise<void>;
  readonly test: (row: Row) => void;
}

export function columns(orders: Orders): readonly Column<Row>[] {
  const shown: readonly Column<Row>[] = [
    {
      title: "Upstream",
      isHead: true,
      cell: ({ label, url, maskedKey }) => (
        <>
          {label ?? <span class="mono">{url}</span>}
          <small class="second mono">
            {label !== null && `${url} `}
            {maskedKey !== "" && `key ${maskedKey}`}
          </small>
        </>
      ),
    },
    { title: "State", cell: State },
    { title: "Last error", cell: LastError },
    { title: "Sent", isNumber: true, cell: ({ live }) => (live === null ? "—" : bytesWords(live.bytes_out)) },
    { title: "For", cell: ({ source }) => <span class="soft">{SOURCES[source]}</span> },
  ];
  if (!may("change_upstreams")) return shown;
  const actions: Column<Row> = {
    title: "Actions",
    isActions: true,
    cell: (row) => {
      const items = itemsOf(row, orders);
      return (
        <span class="upstream-actions">
          {isTestable(row) && (
            <button type="button" class="quiet" onClick={() => orders.test(row)}>
              Test<span class="unseen"> {row.label ?? row.url}</span>
            </button>
          )}
          {items.length > 0 && <MenuButton label={`Actions for ${row.label ?? row.url}`} items={() => items} />}
        </span>
      );
    },
  };
  return [...shown, actions];
}

function State({ live, isPaused }: Row) {
  if (isPaused) return <StatusPill tone="quiet">Paused</StatusPill>;
  if (live === null) return <StatusPill tone="quiet">When live</StatusPill>;
  const [tone, words] = STATES[live.state];
  return <StatusPill tone={tone}>{words}</StatusPill>;
}

function LastError({ live }: Row) {
  const { last_cause: cause = null, last_error: error = null, audio_error: audio = null } = live ?? {};
  if (error === null) return audio ?? <span class="soft">none</span>;
  return (
    <>
      {cause !== null && CAUSES[cause]}
      <small class="second">{error}</small>
    </>
  );
}

/** While it is pushed to, a test would take its place there. */
const isTestable = ({ source, live }: Row) => source === "stream" && (live === null || live.state === "paused");

function itemsOf(row: Row, { setPaused, retry, remove }: Orders): readonly MenuItem[] {
  const items: MenuItem[] = [];
  if (row.live?.state === "waiting" || row.live?.state === "refused")
    items.push({ title: "Try again now", icon: "replay", run: () => void retry(row) });
  if (row.source === "stream") {
    const pause: MenuItem = { title: "Pause", icon: "pause", run: () => void setPaused(row, true) };
    const resume: MenuItem = { title: "Resume", icon: "play", run: () => void setPaused(row, false) };
    items.push(row.isPaused ? resume : pause);
  }
  if (row.source !== "deployment")
    items.push({ title: "Remove", icon: "close", run: () => void remove(row), isDanger: true });
  return items;
}
