// Every reason to refuse a publish or a play. Those of `DenialCause` (denials.ts) are decided by the admission, the others
// by the edge of a protocol or for players. A new one is a row in text/refusal-words.ts.
import { REFUSAL_WORDS, refusalWords } from "../../text/refusal-words.ts";

export type RefusalReason = keyof typeof REFUSAL_WORDS;

export const REFUSAL_REASONS = Object.keys(REFUSAL_WORDS) as [RefusalReason, ...RefusalReason[]];

/** What happened, in a sentence. `status`: of the webhook, if that denied it. */
export const reasonWords = (reason: string, status: number | null = null): string =>
  refusalWords(reason, status).happened;
