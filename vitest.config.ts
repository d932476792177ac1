// How tests run: real threads and files, so every test file gets a process of its own.
import { defineConfig } from "vitest/config";

export default defineConfig({ test: { include: ["test/**/*.test.ts"], pool: "forks", testTimeout: 10_000 } });
