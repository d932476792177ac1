// A state in one or two words, with a matching colour.
import type { Tone } from "./tone.ts";

export type { Tone };

export function StatusPill({ tone, children }: { readonly tone: Tone; readonly children: string }) {
  return (
    <span class="pill" data-tone={tone}>
      {children}
    </span>
  );
}
