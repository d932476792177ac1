// The short form of R8, which needs an idle machine: it runs with nothing beside it. The long one prints its
// figures: `npm run bench -- webhook faults 200`. It runs the build in dist, in a process of its own as in
// production: within the test runner the first timeout takes a tenth of a second and some 20 MB more.
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { expect, test } from "vitest";
import { DEADLINE_MS, type faults, GROWTH_GOAL_MB, SLACK_MS } from "../../../bench/_webhook-faults.mjs";
import { run } from "../../support/child.ts";

const FAULTS = pathToFileURL(join(import.meta.dirname, "..", "..", "..", "bench", "_webhook-faults.mjs")).href;
const PROGRAM = `const { faults } = await import(process.argv[1]);
  console.log(JSON.stringify(await faults(6)));
  process.exit(0);`; // what is late is judged here, with the pauses of the process

test("of thirteen kinds of endpoints only the good one admits, and every decision is made within the deadline and 100 ms", async () => {
  expect([SLACK_MS, GROWTH_GOAL_MB]).toEqual([100, 10]); // R8
  const gateway = await run(process.execPath, ["--input-type=module", "-e", PROGRAM, FAULTS]);
  const lines = gateway.stdout().trim().split("\n");
  const found = JSON.parse(lines.pop() ?? "") as Awaited<ReturnType<typeof faults>>;
  console.log(lines.join("\n"));
  expect(Object.keys(found)).toHaveLength(13);
  for (const [kind, { admitted, slowest, stallMs, grown }] of Object.entries(found)) {
    expect(admitted, kind).toBe(kind === "ok" ? 6 : 0);
    // A pause of the whole process may delay both its timer and its answer.
    expect(slowest - 2 * stallMs, kind).toBeLessThanOrEqual(DEADLINE_MS + SLACK_MS);
    expect(grown, kind).toBeLessThanOrEqual(GROWTH_GOAL_MB);
  }
}, 120_000);
