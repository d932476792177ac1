// Every publishing program under every condition: the long form, `npm run matrix -- rtmp [filter]`.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { runCell } from "./cell.ts";
import { conditions } from "./conditions.ts";
import { type House, openHouse } from "./house.ts";
import { publishers } from "./publishers.ts";
import { report } from "./report.ts";

const SECONDS = Number(process.env.HEADGATE_MATRIX_SECONDS ?? 20);
/** Start, end and waits of a cell, in addition to its media. */
const CELL_LIMIT_MS = 180_000 + SECONDS * 2_000;

let house: House;
beforeAll(async () => {
  house = await openHouse();
});
afterAll(async () => await house?.close());

for (const publisher of publishers) {
  describe.concurrent(publisher.name, () => {
    for (const condition of conditions) {
      const reason = publisher.cannot[condition.name];
      test(`${publisher.name}: ${condition.name}`, { timeout: CELL_LIMIT_MS }, async () => {
        const cell = { row: publisher.name, column: condition.name };
        if (reason !== undefined) return report({ ...cell, verdict: "cannot", said: reason });
        const { complaints, figures } = await runCell(house, publisher, condition, SECONDS).catch((error: Error) => ({
          complaints: [error.message],
          figures: "",
        }));
        const verdict = complaints.length === 0 ? "passed" : "FAILED";
        report({ ...cell, verdict, said: complaints.length === 0 ? figures : complaints.join("; ") });
        expect(complaints).toEqual([]);
      });
    }
  });
}
