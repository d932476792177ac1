// `npm run whip-conformance` against the whole service: every row of RFC 9725 that can be tested from
// outside.
import { afterAll, beforeAll, expect, test } from "vitest";
import { start } from "../support/child.ts";
import { type Customer, startCustomer } from "../support/customer.ts";
import { type Headgate, startHeadgate } from "../support/headgate.ts";

/** Ours has no extensions, supports both trickle and restart, and the slow rows are enabled by flags. */
const NOT_APPLICABLE = ["E17", "S3b", "S5", "E25b"];
/** They are never contacted: only the Link headers are checked. */
const ICE_SERVERS: Readonly<Record<string, string>> = {
  HEADGATE_ICE_SERVERS: "stun:stun.example:3478,turn:turn.example:3478?transport=udp",
  HEADGATE_ICE_TURN_SECRET: "a shared secret of the TURN servers",
};
const RUN_LIMIT_MS = 90_000;

interface Row {
  readonly id: string;
  readonly level: "must" | "should" | "may";
  readonly outcome: "met" | "unmet" | "not applicable";
  readonly seen: string;
}

let customer: Customer;
let headgate: Headgate;
let rows: readonly Row[];
let exitCode: number | string;

beforeAll(async () => {
  customer = await startCustomer();
  headgate = await startHeadgate({ customer, env: ICE_SERVERS });
  const url = headgate.whip(await headgate.newStream());
  const run = start(process.execPath, ["tools/whip-conformance.mjs", url, "--json"]);
  exitCode = await run.exit;
  expect(run.stderr()).toBe("");
  rows = run
    .stdout()
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as Row);
}, RUN_LIMIT_MS);
afterAll(async () => {
  await headgate?.stop();
  await customer?.close();
});

test("every row is met, except those that are listed", () => {
  const others = rows.filter(({ outcome }) => outcome !== "met").map(({ id }) => id);
  const seen = rows.filter(({ outcome }) => outcome === "unmet").map((row) => `${row.id}: ${row.seen}`);
  expect(others, seen.join("\n")).toStrictEqual(rows.map(({ id }) => id).filter((id) => NOT_APPLICABLE.includes(id)));
});

test("a MUST that is unmet makes it fail", () => {
  const isUnmet = rows.some(({ level, outcome }) => level === "must" && outcome === "unmet");
  expect(exitCode).toBe(isUnmet ? 1 : 0);
});

test("every publish it made has ended with one publish_done", async () => {
  const published = customer.calls("publish").length;
  expect(published).toBeGreaterThan(20);
  await customer.received("publish_done", published);
  expect(customer.calls("publish_done")).toHaveLength(published);
});
