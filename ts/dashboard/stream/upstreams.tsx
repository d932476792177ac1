// Where the stream is pushed to: its own upstreams, and while it is live also those added only for this broadcast and
// the operator's. State and last error are live.
import { useState } from "preact/hooks";
import { confirm } from "../parts/confirm.tsx";
import { Icon } from "../parts/icons.tsx";
import { Empty } from "../parts/states.tsx";
import { StatusPill, type Tone } from "../parts/status-pill.tsx";
import { type Column, Table } from "../parts/table.tsx";
import { bytesWords } from "../parts/time-words.ts";
import { say, sayProblem } from "../parts/toasts.tsx";
import { answerOf, api } from "../shell/client.ts";
import { wordsOfError } from "../shell/errors.ts";
import { useLoaded } from "../shell/loaded.ts";
import { LoadedView } from "../shell/loaded-view.tsx";
import { Section } from "../shell/page.tsx";
import { may } from "../shell/session.ts";
import type { SessionUpstream, StreamUpstream } from "../streams/records.ts";
import { AddUpstream } from "./add-upstream.tsx";
import type { StreamWatch } from "./watch.ts";

type Source = SessionUpstream["source"];

/** One upstream, whether it is being pushed to or not. */
interface Row {
  readonly id: string;
  readonly label: string | null;
  readonly url: string;
  readonly maskedKey: string;
  readonly source: Source;
  /** null: no publish is running. */
  readonly live: SessionUpstream | null;
}

const STATES: Readonly<Record<SessionUpstream["state"], readonly [Tone, string]>> = {
  sending: ["good", "Sending"],
  connecting: ["quiet", "Connecting"],
  waiting: ["attention", "Retrying soon"],
  refused: ["bad", "Refused"],
};

const SOURCES: Readonly<Record<Source, string>> = {
  stream: "every broadcast",
  session: "this broadcast only",
  deployment: "set by the operator",
  own: "named by the broadcaster",
};

export function Upstreams({ streamId, watch }: { readonly streamId: string; readonly watch: StreamWatch }) {
  const [isAdding, setAdding] = useState(false);
  const loaded = useLoaded(
    (signal) => answerOf(api.GET("/stream/{id}/upstream", { params: { path: { id: streamId } }, signal })),
    [streamId],
  );
  const session = watch.session.value;
  const add = (
    <button type="button" onClick={() => setAdding(true)}>
      <Icon name="add" />
      Add upstream
    </button>
  );
  const remove = async (row: Row) => {
    if (!(await confirm(questionOf(row)))) return;
    try {
      if (row.source === "stream") {
        const path = { id: streamId, upstream_id: row.id };
        await answerOf(api.DELETE("/stream/{id}/upstream/{upstream_id}", { params: { path } }));
        if (loaded.value !== null) loaded.set(loaded.value.filter(({ id }) => id !== row.id));
      } else if (session !== null) {
        const path = { client_id: session.client_id, id: row.id };
        const { upstreams } = await answerOf(api.DELETE("/session/{client_id}/upstream/{id}", { params: { path } }));
        watch.showSession({ upstreams });
      }
      say("The upstream is removed");
    } catch (error) {
      sayProblem(wordsOfError(error));
    }
  };
  return (
    <Section
      title="Upstreams"
      lead="RTMP servers that the stream is pushed to while it is live."
      actions={may("change_upstreams") && add}
      plain
    >
      <LoadedView of={loaded} words="Loading the upstreams …">
        {(upstreams) => {
          const rows = rowsOf(upstreams, session?.upstreams ?? []);
          if (rows.length === 0) {
            return (
              <Empty title="No upstreams" icon="live">
                Add the address of another service, such as a CDN or a video platform, and every broadcast is pushed to
                it.
              </Empty>
            );
          }
          return <Table caption="Upstreams" rows={rows} keyOf={({ id }) => id} columns={columns(remove)} />;
        }}
      </LoadedView>
      {isAdding && (
        <AddUpstream
          streamId={streamId}
          clientId={session?.client_id ?? null}
          onAdded={() => void Promise.all([loaded.reload(), watch.loadSession()])}
          onClose={() => setAdding(false)}
        />
      )}
    </Section>
  );
}

/** The stream's own upstreams first, then those of the running publish alone. */
function rowsOf(upstreams: readonly StreamUpstream[], live: readonly SessionUpstream[]): readonly Row[] {
  const rowOf = ({ id, label, url, masked_key: maskedKey }: StreamUpstream | SessionUpstream, source: Source): Row => ({
    id,
    label,
    url,
    maskedKey,
    source,
    live: live.find((of) => of.id === id) ?? null,
  });
  const known = new Set(upstreams.map(({ id }) => id));
  const others = live.filter(({ id, source }) => !known.has(id) && source !== "stream");
  return [...upstreams.map((of) => rowOf(of, "stream")), ...others.map((of) => rowOf(of, of.source))];
}

function columns(remove: (row: Row) => void): readonly Column<Row>[] {
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
    {
      title: "State",
      cell: ({ live }) => {
        if (live === null) return <StatusPill tone="quiet">When live</StatusPill>;
        const [tone, words] = STATES[live.state];
        return <StatusPill tone={tone}>{words}</StatusPill>;
      },
    },
    {
      title: "Last error",
      cell: ({ live }) => live?.last_error ?? live?.audio_error ?? <span class="soft">none</span>,
    },
    { title: "Sent", isNumber: true, cell: ({ live }) => (live === null ? "—" : bytesWords(live.bytes_out)) },
    { title: "For", cell: ({ source }) => <span class="soft">{SOURCES[source]}</span> },
  ];
  if (!may("change_upstreams")) return shown;
  return [
    ...shown,
    {
      title: "Remove",
      isActions: true,
      cell: (row) =>
        row.source !== "deployment" && (
          <button type="button" class="quiet" onClick={() => remove(row)}>
            Remove<span class="unseen"> {row.label ?? row.url}</span>
          </button>
        ),
    },
  ];
}

function questionOf({ label, url, source, live }: Row) {
  const stops = live === null ? "Nothing is pushed there from now on." : "The push of the running broadcast ends now.";
  const again = source === "stream" ? " To add it again, you need its full address with the stream key." : "";
  return { title: `Remove ${label ?? url}?`, text: `${stops}${again}`, does: "Remove upstream" };
}
