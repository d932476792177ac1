// The long form of the matrices: cells, which wait most of their time, run concurrently.
import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    globalSetup: "test/support/temporary-folders.ts",
    include: ["test/matrix/*.matrix.ts"],
    pool: "forks",
    maxWorkers: 1,
    maxConcurrency: 4,
    hookTimeout: 120_000,
  },
});
