// `headgate explain CLIENT_ID`: what happened to one publish, line by line, from a running service.
import { ask, ServiceAnswered } from "./asking.ts";
import type { GivenFlags } from "./flags.ts";
import { print } from "./output.ts";
import { wanted } from "./words.ts";

/** The message when there is no such publish. */
const NOT_KEPT =
  "Publishes are kept for retention.publishes_days. A request that was rejected before the webhook was called has no client " +
  "id: headgate stream refusals NAME, or publish denied in the log, says why.";

/** From the response of GET /session/{client_id}/timeline. */
interface ShownTimeline {
  readonly client_id: number;
  readonly stream: string;
  readonly state: string;
  readonly protocol: string | null;
  readonly trace_id: string | null;
  readonly is_watched: boolean;
  readonly moments: readonly { readonly at: string; readonly offset_ms: number; readonly text: string }[];
  /** Absent from a service of an older version. */
  readonly findings?: readonly { readonly words: string; readonly advice: string }[];
}

export async function runExplain([clientId]: readonly string[], flags: GivenFlags): Promise<void> {
  const path = `/session/${encodeURIComponent(wanted(clientId, "the client id"))}/timeline`;
  const timeline = (await ask(flags, "GET", path).catch((error: unknown) => {
    const isUnknown = error instanceof ServiceAnswered && error.status === 404;
    throw isUnknown ? new ServiceAnswered(`${error.message}\n${NOT_KEPT}`, error.status) : error;
  })) as ShownTimeline;
  print(flags, timeline, linesOf(timeline));
}

function linesOf({
  client_id,
  stream,
  state,
  protocol,
  trace_id,
  is_watched,
  moments,
  findings = [],
}: ShownTimeline): string[] {
  const offsets = moments.map(({ offset_ms }) => `+${(offset_ms / 1_000).toFixed(3)} s`);
  const width = Math.max(0, ...offsets.map(({ length }) => length));
  const by = protocol === null ? "" : ` by ${protocol.toUpperCase()}`;
  return [
    `Publish ${client_id} of stream ${stream}${by}, ${state}${trace_id === null ? "" : `; trace ${trace_id}`}`,
    `Began ${moments[0]?.at ?? "at an unknown time"}`,
    "",
    ...moments.map(({ text }, index) => `${(offsets[index] ?? "").padStart(width)}  ${text}`),
    ...(findings.length === 0 ? [] : ["", "What is wrong now:"]),
    ...findings.map(({ words, advice }) => `  ${words}. ${advice}`),
    ...(is_watched || state === "denied" || state === "asking" ? [] : ["", "No details of its media were recorded."]),
  ];
}
