// A state in one or two words, with a colour that says the same.
export type Tone = "good" | "attention" | "bad" | "live" | "quiet";

export function StatusPill({ tone, children }: { readonly tone: Tone; readonly children: string }) {
  return (
    <span class="pill" data-tone={tone}>
      {children}
    </span>
  );
}
