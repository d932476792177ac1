// R12: no descriptors, memory or disk space left.
import { countTests } from "./_tests.mjs";

export const title = "256 descriptors, a full and a read-only disk, 300 MB of memory";

const SECONDS = 300;

export const endure = (share) =>
  countTests(["exhaustion"], { EXHAUSTED_S: String(Math.max(3, Math.round(SECONDS * share))) });
