// Tests run real programs: few at a time, each file in a process of its own. A browser that encodes 720p needs the
// machine for itself, or it shrinks its picture: those files come last, one by one.
import { defineConfig } from "vitest/config";

const common = { pool: "forks", testTimeout: 30_000, hookTimeout: 60_000 } as const;
const browsers = ["test/whip-publish.test.ts", "test/whip-switch.test.ts"];

export default defineConfig({
  test: {
    projects: [
      {
        test: {
          ...common,
          name: "together",
          include: ["test/**/*.test.ts"],
          exclude: browsers,
          maxWorkers: 2,
          sequence: { groupOrder: 0 },
        },
      },
      { test: { ...common, name: "alone", include: browsers, maxWorkers: 1, sequence: { groupOrder: 1 } } },
    ],
  },
});
