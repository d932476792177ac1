// A copy of the checkout with a vitest that stays running: runs tests there with one file changed, or with none.
import { fork, spawnSync } from "node:child_process";
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { root } from "../../scripts/build.mjs";

const COPIED = ["ts", "test", "scripts", "bench", "tools", "docs", "package.json", "tsconfig.json", "README.md"];
/** Limit until vitest is ready, ms. */
const START_LIMIT_MS = 120_000;

/** `linesFolder`: where each test file's executed lines are written; without it they are not recorded. */
export function openRunner(linesFolder = "") {
  const copy = mkdtempSync(join(tmpdir(), "headgate-mutants-"));
  for (const name of COPIED) cpSync(join(root, name), join(copy, name), { recursive: true });
  symlinkSync(join(root, "node_modules"), join(copy, "node_modules"));
  let child = null;
  /** Files that differ from the previous run. */
  let changed = [];
  const end = () => {
    // The whole group, because test processes in an endless loop would outlive their parent.
    if (child !== null) spawnSync("kill", ["-KILL", "--", `-${child.pid}`]);
    child = null;
  };
  const close = () => {
    end();
    rmSync(copy, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
  };
  process.on("exit", close);

  /** The child's next message; null if there is none within `limitMs`, in which case the child is ended. */
  function answer(limitMs) {
    return new Promise((resolve) => {
      const settle = (value) => {
        clearTimeout(timer);
        child?.removeAllListeners();
        if (value === null) end();
        resolve(value);
      };
      const timer = setTimeout(() => settle(null), limitMs);
      child.once("message", settle);
      child.once("exit", () => settle(null));
    });
  }

  return {
    /** Runs `specs` with `fault` or with none: `{ red, took }`, or null if that took longer than `limitMs`. */
    async run(specs, limitMs, fault = null) {
      if (child === null) {
        child = fork(join(copy, "tools/mutants/test-process.mjs"), [], {
          cwd: copy,
          detached: true,
          stdio: ["ignore", "ignore", process.env.MUTANTS_DEBUG ? "inherit" : "ignore", "ipc"],
          env: { ...process.env, MUTANTS_LINES: linesFolder },
        });
        if ((await answer(START_LIMIT_MS)) === null) throw new Error("vitest does not start");
      }
      const path = fault && join(copy, fault.file);
      const whole = fault && readFileSync(path, "utf8");
      if (fault) writeFileSync(path, fault.apply(whole));
      child.send({ changed: fault ? [...changed, fault.file] : changed, specs });
      const said = await answer(limitMs);
      if (fault) writeFileSync(path, whole);
      changed = fault ? [fault.file] : [];
      return said;
    },
    close() {
      process.off("exit", close);
      close();
    },
  };
}
