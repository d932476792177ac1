// The state of a stream as a pill, in everyday words.
import { StatusPill, type Tone } from "../parts/status-pill.tsx";
import type { StreamState } from "./records.ts";

const STATES: Readonly<Record<StreamState, readonly [tone: Tone, words: string]>> = {
  created: ["quiet", "New"],
  live: ["live", "Live"],
  ended: ["quiet", "Ended"],
  locked: ["attention", "Locked"],
  deleted: ["quiet", "Deleted"],
};

export function StatePill({ state }: { readonly state: StreamState }) {
  const [tone, words] = STATES[state];
  return <StatusPill tone={tone}>{words}</StatusPill>;
}
