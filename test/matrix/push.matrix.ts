// Every kind of upstream under every fault: the long form, `npm run matrix -- push [filter]`.
import { describe, expect, test } from "vitest";
import { faults, runPushCell } from "./push-cell.ts";
import { report } from "./report.ts";
import { upstreams } from "./upstreams.ts";

const SECONDS = Number(process.env.HEADGATE_MATRIX_SECONDS ?? 20);
const CELL_LIMIT_MS = 240_000 + SECONDS * 2_000;

for (const upstream of upstreams) {
  describe.concurrent(upstream.name, () => {
    for (const fault of faults) {
      const reason = upstream.cannot[fault];
      test(`${upstream.name}: ${fault}`, { timeout: CELL_LIMIT_MS }, async () => {
        const cell = { row: upstream.name, column: fault };
        if (reason !== undefined) return report({ ...cell, verdict: "cannot", said: reason });
        const { complaints, figures } = await runPushCell(upstream, fault, SECONDS).catch((error: Error) => ({
          complaints: [error.message],
          figures: "",
        }));
        const hasPassed = complaints.length === 0;
        report({
          ...cell,
          verdict: hasPassed ? "passed" : "FAILED",
          said: hasPassed ? figures : complaints.join("; "),
        });
        expect(complaints).toEqual([]);
      });
    }
  });
}
