// Every folder that tests make in the system's temporary one, and what their programs leave there, lives in one folder of
// the run, which goes when the run ends. A run that was killed is cleaned up after by the next one.
import { chmodSync, mkdirSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const PREFIX = "headgate-tests-";

/** Called by vitest before the first test file; what it returns is called after the last. */
export function setup(): () => void {
  const system = tmpdir();
  for (const name of readdirSync(system)) {
    if (name.startsWith(PREFIX) && !isAlive(Number(name.slice(PREFIX.length)))) remove(join(system, name));
  }
  const folder = join(system, `${PREFIX}${process.pid}`);
  mkdirSync(folder, { recursive: true });
  chmodSync(folder, 0o711); // PostgreSQL works below it as a user of its own
  process.env.TMPDIR = folder; // test processes and their children inherit it
  return () => {
    process.env.TMPDIR = system;
    remove(folder);
  };
}

/** Some program of a test may be writing its last words: several tries. What another user left is not ours to remove. */
function remove(folder: string): void {
  try {
    rmSync(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
  } catch (error) {
    console.error(`${folder} stays behind: ${String(error)}`);
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}
