// The long form of the matrices: cells that wait most of their time run beside each other.
import { defineConfig } from "vitest/config";

export default defineConfig({
  test: { include: ["test/matrix/*.matrix.ts"], pool: "forks", maxWorkers: 1, maxConcurrency: 3, hookTimeout: 120_000 },
});
