// The result of a test or a replay.
import { StatusPill } from "../parts/status-pill.tsx";
import type { Records } from "../shell/client.ts";
import { longWords, shortWords, toneOf } from "./answer-words.ts";

interface CallResultProps {
  readonly result: Records["WebhookCall"];
  readonly call: Records["Delivery"]["call"];
  /** It went to the second webhook. */
  readonly isCopy?: boolean;
  /** The answer has no effect: explain what it would mean for a real publish. */
  readonly isTest?: boolean;
}

export function CallResult({ result, call, isCopy = false, isTest = false }: CallResultProps) {
  const answer = { ...result, call, is_copy: isCopy };
  const tone = toneOf(answer);
  const long = longWords(answer, call);
  const words = isTest
    ? long.replace("is allowed", "would be allowed").replace("is refused", "would be refused")
    : long;
  return (
    <div class={`note ${tone === "good" || tone === "bad" || tone === "attention" ? tone : ""}`}>
      <p class="row">
        <StatusPill tone={tone}>{shortWords(result)}</StatusPill>
        <span class="soft">after {result.latency_ms} ms</span>
      </p>
      <p>{words}</p>
      {result.reason !== null && <blockquote>{result.reason}</blockquote>}
    </div>
  );
}
