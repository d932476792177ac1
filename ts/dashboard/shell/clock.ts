// The only module of the dashboard that reads the clock. Everything else takes the time from here, or as an argument.
import { signal } from "@preact/signals";

/** How often displayed times are refreshed, ms. */
const STEP_MS = 10_000;

/** Epoch ms, exact. */
export const timeNow = (): number => Date.now();

const current = signal(timeNow());
setInterval(() => (current.value = timeNow()), STEP_MS);

/** Epoch ms, updated every 10 s; components that read `value` while rendering are rendered again then. */
export const now: { readonly value: number } = current;
