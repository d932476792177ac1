// Short forms of the tests of load, faults and attacks that no other file has: `npm run endure -- R2 …` runs
// them at full volume. Their parts are tested apart: packets of strangers and odd ones (R15, R16) in
// crates/whip/tests/hostile.rs, a new port and an outage (R5) in crates/whip/tests/session/moving.rs and webcaster-live.
import { describe, expect, test } from "vitest";
import { endure as churn } from "../../../bench/endure/churn.mjs";
import { endure as halfOpen } from "../../../bench/endure/half-open.mjs";
import { endure as mutations } from "../../../bench/endure/mutations.mjs";
import { endure as sessions } from "../../../bench/endure/sessions.mjs";
import { endure as strangers } from "../../../bench/endure/strangers.mjs";
import { endure as upstreams } from "../../../bench/endure/upstreams.mjs";

const SHARE = 0.003;
const LIMIT_MS = 240_000;

describe.concurrent("a service of its own", () => {
  test("delivers the end of every publish once, however it ended (R2)", () => holds(churn), LIMIT_MS);
  test("frees what incomplete connections used, and honest streams lose nothing (R3)", () => holds(halfOpen), LIMIT_MS);
  test("keeps a session through three seconds without network and a new port (R5)", () => holds(sessions), LIMIT_MS);
  test(
    "reconnects to an upstream that failed, and other upstreams lose nothing (R6)",
    () => holds(upstreams),
    LIMIT_MS,
  );
  test("tolerates packets that no encoder sends (R15)", () => holds(mutations), LIMIT_MS);
  test("does not answer unauthenticated packets, and connects a real client (R16)", () => holds(strangers), LIMIT_MS);
});

async function holds(row: (share: number) => Promise<{ figures: object; faults: string[] }>): Promise<void> {
  const { figures, faults } = await row(SHARE);
  expect({ ...figures, faults }).toEqual({ ...figures, faults: [] });
}
