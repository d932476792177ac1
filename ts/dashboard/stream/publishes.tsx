// Past publishes of the stream: duration, bytes, why each ended, and why one was denied.
import type { ReadonlySignal } from "@preact/signals";
import { useEffect, useState } from "preact/hooks";
import { Empty, Problem } from "../parts/states.tsx";
import { StatusPill, type Tone } from "../parts/status-pill.tsx";
import { type Column, MoreRows, Table } from "../parts/table.tsx";
import { bytesWords, durationWords } from "../parts/time-words.ts";
import { filteredAddress } from "../shell/addresses.ts";
import { answerOf, api } from "../shell/client.ts";
import { wordsOfError } from "../shell/errors.ts";
import { usePages } from "../shell/loaded.ts";
import { LoadedView } from "../shell/loaded-view.tsx";
import { Section } from "../shell/page.tsx";
import { may } from "../shell/session.ts";
import { TimeText } from "../shell/time-text.tsx";
import type { Publish } from "../streams/records.ts";
import { audioWords, videoWords } from "./now.tsx";
import { Timeline } from "./timeline/timeline.tsx";

/** Of one page. */
const QUANTITY = 20;

const STATES: Readonly<Record<Publish["state"], readonly [Tone, string]>> = {
  asking: ["attention", "Asking"],
  denied: ["bad", "Denied"],
  live: ["live", "Live"],
  ended: ["quiet", "Ended"],
};

interface PublishesProps {
  readonly streamId: string;
  /** Increases when there is something new. */
  readonly changes: ReadonlySignal<number>;
}

export function Publishes({ streamId, changes }: PublishesProps) {
  const pages = usePages(
    (cursor, signal) =>
      api.GET("/stream/{id}/publish", {
        params: { path: { id: streamId }, query: { quantity: QUANTITY, ...(cursor ? { cursor } : {}) } },
        signal,
      }),
    answerOf,
    [streamId],
  );
  const change = changes.value;
  useEffect(() => {
    if (change > 1) void pages.reload();
  }, [change]);
  const { rows: value, error, reload } = pages;
  const [explained, setExplained] = useState<number | null>(null);
  return (
    <Section title="History" lead="Every broadcast to this stream, and every one that was denied." plain>
      <LoadedView of={{ value, error, reload }} words="Loading the history …">
        {(rows) =>
          rows.length === 0 ? (
            <Empty title="Nobody has broadcast to it yet" icon="live">
              Broadcasts and denials appear here, with their reasons.
            </Empty>
          ) : (
            <>
              <Table
                caption="History"
                columns={columns(setExplained)}
                rows={rows}
                keyOf={({ client_id }) => client_id}
              />
              {error !== null && (
                <Problem title="More of the history could not be loaded">{wordsOfError(error)}</Problem>
              )}
              {pages.hasMore && <MoreRows isLoading={pages.isLoading} onMore={() => void pages.more()} />}
            </>
          )
        }
      </LoadedView>
      {explained !== null && <Timeline clientId={explained} onClose={() => setExplained(null)} />}
    </Section>
  );
}

function columns(explain: (clientId: number) => void): readonly Column<Publish>[] {
  return [
    { title: "When", isHead: true, cell: ({ asked_at }) => <TimeText at={asked_at} /> },
    {
      title: "State",
      cell: ({ state }) => {
        const [tone, words] = STATES[state];
        return <StatusPill tone={tone}>{words}</StatusPill>;
      },
    },
    { title: "Result", cell: Outcome },
    { title: "Protocol", cell: Source },
    { title: "Media", cell: Media },
    { title: "In / out", isNumber: true, cell: Bytes },
    { title: "More", cell: (publish) => <More publish={publish} explain={explain} /> },
  ];
}

interface MoreProps {
  readonly publish: Publish;
  readonly explain: (clientId: number) => void;
}

/** Its timeline and webhook deliveries. */
function More({ publish: { client_id }, explain }: MoreProps) {
  return (
    <>
      <button type="button" class="quiet small" onClick={() => explain(client_id)}>
        Timeline<span class="unseen"> of the publish {client_id}</span>
      </button>
      {may("view_deliveries") && (
        <a class="second" href={filteredAddress("/dashboard/deliveries", { clientid: String(client_id) })}>
          Deliveries<span class="unseen"> of the publish {client_id}</span>
        </a>
      )}
    </>
  );
}

function Outcome({ denial, end_words, accepted_at, ended_at, dropped_frames }: Publish) {
  if (denial !== null) {
    return (
      <>
        <span class="said">{denial.reason}</span>
        <small class="second">{causeWords(denial.cause)}</small>
      </>
    );
  }
  if (accepted_at === null) return <span class="soft">Waiting for your webhook's answer.</span>;
  if (ended_at === null) return <span class="soft">Running.</span>;
  return (
    <>
      {end_words ?? "It ended."}
      <small class="second">
        After {durationWords(Date.parse(ended_at) - Date.parse(accepted_at))}
        {dropped_frames !== null &&
          dropped_frames > 0 &&
          `, ${dropped_frames.toLocaleString()} frames dropped on the way out`}
      </small>
    </>
  );
}

function Source({ protocol, address, continues }: Publish) {
  return (
    <>
      {protocol === null ? "—" : protocol === "whip" ? "WHIP" : "RTMP"}
      {address !== null && <small class="second mono">{address}</small>}
      {continues !== null && <small class="second">Took over from the lost publish {continues}</small>}
    </>
  );
}

function Media({ video, audio }: Publish) {
  if (video === null && audio === null) return <span class="soft">—</span>;
  return (
    <>
      {videoWords(video)}
      <small class="second">{audioWords(audio)}</small>
    </>
  );
}

function Bytes({ state, bytes_in, bytes_out }: Publish) {
  if (state === "denied" || state === "asking") return <span class="soft">—</span>;
  return `${bytesWords(bytes_in)} / ${bytesWords(bytes_out)}`;
}

/** Who or what denied the publish. */
function causeWords(cause: string): string {
  const words: Readonly<Record<string, string>> = {
    rejected_by_customer: "Your webhook denied it.",
    customer_unreachable: "Your webhook could not be reached.",
    locked_stream: "The stream was locked.",
    refused_after_end: "The stream was refused for a while after it was ended.",
    already_live: "The stream was live already.",
    organisation_disabled: "The organisation is not enabled.",
    token_required: "It had no valid token for the stream.",
    key_missing: "It had no publish key.",
    key_wrong: "Its publish key was wrong, or had been renewed.",
    reserved_field: "Its custom arguments use a reserved name.",
    malformed_name: "Its stream name is not valid.",
    stopped: "It was ended while your webhook was being called.",
    stopping: "The service was stopping.",
    full: "The server was full.",
    too_many_streams: "Your organisation had reached its limit of live streams.",
    too_much_bitrate: "Your live streams had reached the bitrate limit of your organisation.",
    too_many_setups: "Too many of your streams were starting at once.",
    store_unavailable: "The store of this Headgate did not answer.",
    internal_error: "An internal error of this Headgate.",
  };
  return words[cause] ?? `Denied: ${cause.replaceAll("_", " ")}.`;
}
