// How `npm run mutants` runs the tests: each file in its own process, one at a time, stopping after a failed
// one.
import { defineConfig } from "vitest/config";

// biome-ignore lint/style/noDefaultExport: vitest takes its configuration from there
export default defineConfig({
  test: {
    globalSetup: "test/support/temporary-folders.ts",
    include: ["test/**/*.test.ts"],
    setupFiles: process.env.MUTANTS_LINES ? ["tools/mutants/executed-lines.mjs"] : [],
    pool: "forks",
    maxWorkers: 1,
    testTimeout: 30_000,
    hookTimeout: 60_000,
    retry: 0,
    bail: process.env.MUTANTS_LINES ? 0 : 1,
    watch: false,
  },
});
