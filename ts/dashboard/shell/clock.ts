// The one place of the dashboard that reads the clock. Everything else takes the time from here, or as an argument.
import { signal } from "@preact/signals";

/** How often what shows the time is renewed, ms. */
const STEP_MS = 10_000;

/** Epoch ms, exact. */
export const timeNow = (): number => Date.now();

const current = signal(timeNow());
setInterval(() => (current.value = timeNow()), STEP_MS);

/** Epoch ms, renewed every 10 s; who reads `value` while rendering is rendered again then. */
export const now: { readonly value: number } = current;
