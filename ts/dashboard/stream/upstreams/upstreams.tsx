// Where the stream is pushed to: its own upstreams, and while it is live also those added only for this broadcast and
// the operator's. State and last error are live.
import { useState } from "preact/hooks";
import { confirm } from "../../parts/confirm.tsx";
import { Icon } from "../../parts/icons.tsx";
import { Empty } from "../../parts/states.tsx";
import { Table } from "../../parts/table.tsx";
import { say, sayProblem } from "../../parts/toasts.tsx";
import { answerOf, api } from "../../shell/client.ts";
import { wordsOfError } from "../../shell/errors.ts";
import { useLoaded } from "../../shell/loaded.ts";
import { LoadedView } from "../../shell/loaded-view.tsx";
import { Section } from "../../shell/page.tsx";
import { may } from "../../shell/session.ts";
import type { SessionUpstream, StreamUpstream } from "../../streams/records.ts";
import type { StreamWatch } from "../watch.ts";
import { AddUpstream } from "./add-upstream.tsx";
import { TestUpstream } from "./test-upstream.tsx";
import { columns, type Row } from "./upstream-columns.tsx";

export function Upstreams({ streamId, watch }: { readonly streamId: string; readonly watch: StreamWatch }) {
  const [isAdding, setAdding] = useState(false);
  const [tested, setTested] = useState<Row | null>(null);
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
        loaded.change((upstreams) => upstreams.filter(({ id }) => id !== row.id));
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
  const setPaused = async (row: Row, isPaused: boolean) => {
    try {
      const params = { path: { id: streamId, upstream_id: row.id } };
      const changed = await answerOf(
        isPaused
          ? api.PUT("/stream/{id}/upstream/{upstream_id}/pause", { params })
          : api.PUT("/stream/{id}/upstream/{upstream_id}/resume", { params }),
      );
      loaded.change((upstreams) => upstreams.map((of) => (of.id === changed.id ? changed : of)));
      await watch.loadSession();
      say(isPaused ? "The upstream is paused" : "The upstream is resumed");
    } catch (error) {
      sayProblem(wordsOfError(error));
    }
  };
  const retry = async (row: Row) => {
    try {
      const path = { id: streamId, upstream_id: row.id };
      await answerOf(api.POST("/stream/{id}/upstream/{upstream_id}/retry", { params: { path } }));
      await watch.loadSession();
      say("The upstream is tried now");
    } catch (error) {
      sayProblem(wordsOfError(error));
    }
  };
  const orders = { remove, setPaused, retry, test: setTested };
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
          return <Table caption="Upstreams" rows={rows} keyOf={({ id }) => id} columns={columns(orders)} />;
        }}
      </LoadedView>
      {tested !== null && <TestUpstream streamId={streamId} upstream={tested} onClose={() => setTested(null)} />}
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
  const rowOf = (upstream: StreamUpstream | SessionUpstream, source: SessionUpstream["source"]): Row => ({
    id: upstream.id,
    label: upstream.label,
    url: upstream.url,
    maskedKey: upstream.masked_key,
    source,
    isPaused: "paused" in upstream && upstream.paused,
    live: live.find((of) => of.id === upstream.id) ?? null,
  });
  const known = new Set(upstreams.map(({ id }) => id));
  const others = live.filter(({ id, source }) => !known.has(id) && source !== "stream");
  return [...upstreams.map((of) => rowOf(of, "stream")), ...others.map((of) => rowOf(of, of.source))];
}

function questionOf({ label, url, source, live }: Row) {
  const stops = live === null ? "Nothing is pushed there from now on." : "The push of the running broadcast ends now.";
  const again = source === "stream" ? " To add it again, you need its full address with the stream key." : "";
  return { title: `Remove ${label ?? url}?`, text: `${stops}${again}`, does: "Remove upstream" };
}
