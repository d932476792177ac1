// The short form of `npm run rehearse`: the day of an operator, from the installation to the removal.
import { expect } from "vitest";
import { rehearseDay } from "../../../tools/rehearse/day.mjs";
import { inWholeRun } from "../../support/whole-run.ts";

inWholeRun(
  "an operator's day loses no frame, and no port refuses a connection",
  async () => {
    const { wrong, log, refused, frames, database } = await rehearseDay({ reloads: 2, streams: 1 });
    expect([wrong, wrong.length > 0 ? log : []]).toEqual([[], []]);
    expect(refused).toBe(0);
    expect(frames).toBeGreaterThan(0);
    expect(database.refused).toBe(0);
    expect(database.frames).toBeGreaterThan(0);
  },
  600_000,
);
