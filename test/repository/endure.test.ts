// Short forms of the tests of load, faults and attacks that no other file has: `npm run endure -- R2 …` runs
// them at full volume. Those of the whole run have their parts tested apart, such as R15 and R16 in crates/whip/tests/hostile.rs.
import { describe, expect, test } from "vitest";
import { endure as churn } from "../../bench/endure/churn.mjs";
import { endure as halfOpen } from "../../bench/endure/half-open.mjs";
import { endure as mutations } from "../../bench/endure/mutations.mjs";
import { endure as sessions } from "../../bench/endure/sessions.mjs";
import { endure as strangers } from "../../bench/endure/strangers.mjs";
import { endure as upstreams } from "../../bench/endure/upstreams.mjs";
import { inWholeRun } from "../support/whole-run.ts";

const SHARE = 0.003;
const LIMIT_MS = 240_000;

describe.concurrent("a service of its own", () => {
  inWholeRun("delivers the end of every publish once, however it ended (R2)", () => holds(churn), LIMIT_MS);
  inWholeRun(
    "frees what incomplete connections used, and honest streams lose nothing (R3)",
    () => holds(halfOpen),
    LIMIT_MS,
  );
  test("keeps a session through three seconds without network and a new port (R5)", () => holds(sessions), LIMIT_MS);
  inWholeRun(
    "reconnects to an upstream that failed, and other upstreams lose nothing (R6)",
    () => holds(upstreams),
    LIMIT_MS,
  );
  inWholeRun("tolerates packets that no encoder sends (R15)", () => holds(mutations), LIMIT_MS);
  inWholeRun(
    "does not answer unauthenticated packets, and connects a real client (R16)",
    () => holds(strangers),
    LIMIT_MS,
  );
});

async function holds(row: (share: number) => Promise<{ figures: object; faults: string[] }>): Promise<void> {
  const { figures, faults } = await row(SHARE);
  expect({ ...figures, faults }).toEqual({ ...figures, faults: [] });
}
