// One stream, in tabs: its preview, condition and upstreams; past publishes; how to broadcast to it; and who has a link.
import { useCallback, useEffect, useMemo, useState } from "preact/hooks";
import { useLocation } from "preact-iso/router";
import { BusyButton } from "../parts/busy-button.tsx";
import { Icon } from "../parts/icons.tsx";
import { Loading, Problem } from "../parts/states.tsx";
import { isHeadgateError } from "../shell/client.ts";
import { tellTheOperator, wordsOfError } from "../shell/errors.ts";
import { Page } from "../shell/page.tsx";
import { may } from "../shell/session.ts";
import { TimeText } from "../shell/time-text.tsx";
import { unlockStream } from "../streams/actions.ts";
import { MenuButton } from "../streams/menu.tsx";
import { actionsOf } from "../streams/menu-items.ts";
import { nameOf, type Stream, type StreamState } from "../streams/records.ts";
import { StatePill } from "../streams/state-pill.tsx";
import { BitrateLimit } from "./bitrate-limit.tsx";
import { EndBroadcast } from "./end-broadcast.tsx";
import { Graphs } from "./graphs.tsx";
import { History } from "./history/history.tsx";
import { Instructions } from "./instructions.tsx";
import { Links } from "./links/links.tsx";
import { Now } from "./now.tsx";
import { Players } from "./players.tsx";
import { Preview } from "./preview.tsx";
import { StreamTabs } from "./stream-tabs.tsx";
import { StreamTags } from "./stream-tags.tsx";
import { StreamTexts } from "./stream-texts.tsx";
import { Upstreams } from "./upstreams/upstreams.tsx";
import { StreamWatch } from "./watch.ts";

const LIST = { href: "/dashboard/streams", title: "Streams" };
const NOT_LIVE: Readonly<Record<Exclude<StreamState, "live">, string>> = {
  created: "Nobody has broadcast to this stream yet. A broadcast appears here as soon as it starts.",
  ended: "The last broadcast has ended. The next one appears here as soon as it starts.",
  locked: "The stream is locked: nobody can broadcast to it until it is unlocked.",
  deleted: "The stream is deleted.",
};

/** Keyed by the id, so that no state of another stream is kept. */
export function StreamPage({ id }: { readonly id: string }) {
  return <OneStream key={id} id={id} />;
}

function OneStream({ id }: { readonly id: string }) {
  const watch = useMemo(() => new StreamWatch(id), [id]);
  useEffect(() => () => watch.close(), [watch]);
  const stream = watch.stream.value;
  const error = watch.error.value;
  if (stream === null && error !== null) return <NotLoaded error={error} again={() => void watch.load()} />;
  if (stream === null || stream.state === "deleted") {
    return (
      <Page title="Stream" back={LIST}>
        {stream === null ? <Loading words="Loading the stream …" /> : <p>This stream is deleted.</p>}
      </Page>
    );
  }
  return <Known stream={stream} watch={watch} />;
}

function NotLoaded({ error, again }: { readonly error: unknown; readonly again: () => void }) {
  const isUnknown = isHeadgateError(error) && (error.status === 404 || error.status === 400);
  return (
    <Page title={isUnknown ? "There is no such stream" : "Stream"} back={LIST}>
      {isUnknown ? (
        <p>It was deleted, belongs to another organisation, or the address is mistyped.</p>
      ) : (
        <Problem title="The stream could not be loaded" again={again}>
          {wordsOfError(error)} {tellTheOperator(error)}
        </Problem>
      )}
    </Page>
  );
}

function Known({ stream, watch }: { readonly stream: Stream; readonly watch: StreamWatch }) {
  const { route } = useLocation();
  const session = watch.session.value;
  const clientId = watch.clientId.value;
  const state = stream.state === "live" || session === null ? stream.state : "live";
  const show = useCallback(
    (next: Stream) => (next.state === "deleted" ? route(LIST.href) : watch.show(next)),
    [watch, route],
  );
  return (
    <Page
      title={nameOf(stream)}
      back={LIST}
      lead={
        <span class="row">
          <StatePill state={state} />
          <StreamTexts stream={stream} show={show} />
          <span>
            Created <TimeText at={stream.created_at} />
          </span>
          <StreamTags stream={stream} show={show} />
        </span>
      }
      actions={<Actions stream={stream} clientId={clientId} show={show} />}
    >
      {watch.connection.value === "lost" && (
        <p class="note attention connection" role="status">
          The connection for live figures is lost. Reconnecting; the figures may be out of date.
        </p>
      )}
      <StreamTabs
        streamId={stream.id}
        state={state}
        contents={{
          live: () => <LiveTab stream={stream} state={state} watch={watch} />,
          history: () => <History streamId={stream.id} changes={watch.changes} />,
          connect: () => <Instructions stream={stream} show={show} />,
          ...(may("create_token") ? { links: () => <Links stream={stream} /> } : {}),
        }}
      />
    </Page>
  );
}

interface LiveTabProps {
  readonly stream: Stream;
  readonly state: StreamState;
  readonly watch: StreamWatch;
}

/** What is needed while it is live, first of all picture, diagnosis and figures. */
function LiveTab({ stream, state, watch }: LiveTabProps) {
  const session = watch.session.value;
  const clientId = watch.clientId.value;
  return (
    <>
      <section class={clientId === null ? "now-grid" : "now-grid live"} aria-label="Now">
        <Preview streamId={stream.id} clientId={clientId} notLive={NOT_LIVE[state === "live" ? "ended" : state]} />
        <Now watch={watch} />
      </section>
      {clientId !== null && <Graphs series={watch.series} />}
      <Upstreams streamId={stream.id} watch={watch} />
      {session !== null && <Players players={session.players} count={watch.players.value} />}
      {session?.protocol === "whip" && may("control_stream") && (
        <BitrateLimit session={session} onChange={(changed) => watch.showSession(changed)} />
      )}
    </>
  );
}

interface ActionsProps {
  readonly stream: Stream;
  readonly clientId: number | null;
  readonly show: (stream: Stream) => void;
}

function Actions({ stream, clientId, show }: ActionsProps) {
  const [ending, setEnding] = useState<number | null>(null);
  const close = useCallback(() => setEnding(null), []);
  return (
    <>
      {stream.state === "locked" && may("control_stream") && (
        <BusyButton class="primary" onPress={() => unlockStream(stream, show)} busy="Unlocking …">
          Unlock
        </BusyButton>
      )}
      {clientId !== null && may("control_stream") && (
        <button type="button" class="danger" onClick={() => setEnding(clientId)}>
          <Icon name="stop" />
          End broadcast
        </button>
      )}
      <MenuButton label={`Actions for ${nameOf(stream)}`} items={() => actionsOf(stream, show)} />
      {ending !== null && <EndBroadcast name={nameOf(stream)} clientId={ending} onClose={close} />}
    </>
  );
}
