// `headgate upstreams …`: those of a running publish, by its client id, and those of a stream, by its id, which is a UUID.
import { ask } from "./asking.ts";
import { UPSTREAM_VERBS } from "./command-flags.ts";
import type { GivenFlags } from "./flags.ts";
import { print, table } from "./output.ts";
import { unknownVerb, wanted } from "./words.ts";

/** From the record of a session or a stream. */
interface ShownUpstream {
  readonly id: string;
  readonly label: string | null;
  readonly url: string;
  readonly masked_key: string;
  readonly source?: string;
  readonly state: string | null;
  readonly paused?: boolean;
  readonly last_error: string | null;
  readonly last_cause: string | null;
}

interface Tested {
  readonly outcome: "ok" | "failed";
  readonly steps: readonly { readonly step: string; readonly ms: number; readonly outcome: string }[];
  readonly cause: string | null;
  readonly detail: string | null;
}

export async function runUpstreams(words: readonly string[], flags: GivenFlags): Promise<void> {
  const [verb, whose, what] = words;
  const session = () => `/session/${encodeURIComponent(wanted(whose, "the client id"))}`;
  const stream = () => `/stream/${encodeURIComponent(wanted(whose, "the stream's id"))}/upstream`;
  const one = () => `${stream()}/${encodeURIComponent(wanted(what, "the upstream's id"))}`;
  const isSession = whose === undefined || /^\d+$/.test(whose);
  const all = () => (isSession ? `${session()}/upstream` : stream());
  switch (verb) {
    case "ls": {
      const answer = await ask(flags, "GET", isSession ? session() : stream());
      const upstreams = isSession ? (answer as { readonly upstreams: readonly ShownUpstream[] }).upstreams : answer;
      return print(flags, upstreams, linesOf(upstreams as readonly ShownUpstream[]));
    }
    case "add": {
      const label = typeof flags.label === "string" ? flags.label : null;
      const body = { url: wanted(what, "the RTMP URL"), label };
      return print(flags, await ask(flags, "POST", all(), body), [
        isSession ? "The stream is now pushed there too." : "The stream is pushed there whenever it is live.",
      ]);
    }
    case "rm": {
      const id = encodeURIComponent(wanted(what, "the upstream's id"));
      return print(flags, await ask(flags, "DELETE", `${all()}/${id}`), ["The push has ended."]);
    }
    case "pause":
      return print(flags, await ask(flags, "PUT", `${one()}/pause`), ["Nothing is pushed there until it is resumed."]);
    case "resume":
      return print(flags, await ask(flags, "PUT", `${one()}/resume`), ["The stream is pushed there again."]);
    case "retry":
      return print(flags, await ask(flags, "POST", `${one()}/retry`), ["The upstream is tried at once."]);
    case "test": {
      const tested = (await ask(flags, "POST", `${one()}/test`)) as Tested;
      print(flags, tested, testLines(tested));
      if (tested.outcome === "failed") process.exitCode = 1; // for scripts
      return;
    }
    default:
      throw unknownVerb("upstreams", verb, UPSTREAM_VERBS);
  }
}

function linesOf(upstreams: readonly ShownUpstream[]): readonly string[] {
  const rows = upstreams.map((of) => [
    ...[of.id, of.label, of.url, of.masked_key, of.source ?? "stream", of.paused === true ? "paused" : of.state],
    ...[of.last_cause, of.last_error],
  ]);
  return table([["id", "label", "url", "key", "source", "state", "cause", "last error"], ...rows]);
}

function testLines({ steps, cause, detail }: Tested): readonly string[] {
  const rows = steps.map(({ step, ms, outcome }) => [step, `${ms} ms`, outcome]);
  const end = cause === null ? "The upstream has accepted the test picture." : `It failed (${cause}): ${detail ?? ""}`;
  return [...table([["step", "time", "outcome"], ...rows]), end];
}
