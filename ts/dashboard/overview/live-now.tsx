// What is live at present, from the event stream of the organisation: how many, those that need attention and why, and
// the upstreams that do not receive their stream.
import { useEffect, useMemo } from "preact/hooks";
import { StatusPill } from "../parts/status-pill.tsx";
import { counted } from "../parts/time-words.ts";
import { addressOf } from "../shell/addresses.ts";
import { Section } from "../shell/page.tsx";
import { TimeText } from "../shell/time-text.tsx";
import { openEvents } from "../streams/event-stream.ts";
import { type Changes, LiveRows, type WholePicture } from "../streams/live-rows.ts";
import type { Finding, LiveRow } from "../streams/records.ts";
import { needAttention, upstreamsOf } from "./sums.ts";

/** Streams listed in one section. */
const ROWS_LIMIT = 10;

interface Live {
  readonly rows: LiveRows;
  readonly isLost: boolean;
}

export function useLive(): Live {
  const rows = useMemo(() => new LiveRows(), []);
  const events = useMemo(
    () =>
      openEvents("/organisation/events", {
        sessions: (whole: WholePicture) => rows.replace(whole),
        changes: (changes: Changes) => rows.change(changes),
      }),
    [rows],
  );
  useEffect(() => () => events.close(), [events]);
  return { rows, isLost: events.state.value === "lost" };
}

export function LiveNow({ rows, isLost }: Live) {
  const counts = rows.counts.value;
  const live = rows.onAir.value;
  const found = needAttention(live);
  return (
    <Section title="Live now" actions={<a href="/dashboard/streams?state=live">All live</a>}>
      {isLost && (
        <p class="note attention" role="status">
          The connection for live figures is lost. Reconnecting; the figures may be out of date.
        </p>
      )}
      <p class="figure" data-figure="live">
        <strong>{counts === null ? "–" : live.length.toLocaleString()}</strong>{" "}
        <span>
          {counts !== null && (live.length === 1 ? "stream is live" : "streams are live")}
          {found.length > 0 && `, ${found.length.toLocaleString()} ${found.length === 1 ? "needs" : "need"} attention`}
        </span>
      </p>
      {counts !== null && live.length > 0 && found.length === 0 && (
        <p class="row">
          <StatusPill tone="good">All is well</StatusPill>
        </p>
      )}
      <StreamList
        rows={found}
        findingsOf={({ findings = [] }) => findings.filter(({ severity }) => severity !== "note")}
      />
    </Section>
  );
}

export function UpstreamsNow({ rows }: Live) {
  const { connected, down, rows: affected } = upstreamsOf(rows.onAir.value);
  const isUsed = connected + down > 0;
  return (
    <Section title="Upstreams">
      <p class="figure" data-figure="upstreams">
        <strong class={down > 0 ? "failing" : undefined}>{down.toLocaleString()}</strong>{" "}
        <span>
          down
          {isUsed
            ? `, ${connected.toLocaleString()} ${connected === 1 ? "receives its stream" : "receive their streams"}`
            : ": no live stream has an upstream"}
        </span>
      </p>
      <StreamList
        rows={affected}
        findingsOf={({ findings = [] }) => findings.filter(({ code }) => code === "upstream_down")}
        hasAdvice
      />
    </Section>
  );
}

interface StreamListProps {
  readonly rows: readonly LiveRow[];
  /** What is said about each. */
  readonly findingsOf: (row: LiveRow) => readonly Finding[];
  /** Whether what helps is shown, with the cause. */
  readonly hasAdvice?: boolean;
}

function StreamList({ rows, findingsOf, hasAdvice = false }: StreamListProps) {
  if (rows.length === 0) return null;
  const others = rows.length - ROWS_LIMIT;
  return (
    <>
      <ul class="overview-list">
        {rows.slice(0, ROWS_LIMIT).map((row) => (
          <li key={row.client_id}>
            <a class="mono" href={addressOf("streams", row.stream)}>
              {row.streamname}
            </a>
            <ul>
              {findingsOf(row).map(({ code, since, words, severity, advice }) => (
                <li key={`${code} ${since} ${words}`} class="condition" data-tone={severity}>
                  {words}{" "}
                  <small class="soft">
                    since <TimeText at={since} />
                  </small>
                  {hasAdvice && <small class="second">{advice}</small>}
                </li>
              ))}
            </ul>
          </li>
        ))}
      </ul>
      {others > 0 && <p class="soft">and {counted(others, "more stream")}</p>}
    </>
  );
}
