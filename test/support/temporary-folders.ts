// Every folder that tests make in the system's temporary one, and what their programs leave there, is in one folder of
// the run, which is removed when the run ends. The next run removes that of a killed one. It is in memory if there is
// enough: hundreds of stores that wait for a disk at each commit make a run a third longer. What a kill leaves of a
// store is the same there.
import { accessSync, chmodSync, constants, mkdirSync, readdirSync, readFileSync, rmSync, statfsSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { isAlive } from "./is-alive.ts";

const PREFIX = "headgate-tests-";
const MEMORY = "/dev/shm";
/** Several times what a run needs, bytes. */
const ROOM = 4 * 1024 ** 3;

/** Called by vitest before the first test file; the function that it returns is called after the last. */
export function setup(): () => void {
  const { TMPDIR: before } = process.env;
  const system = before === undefined && hasRoom(MEMORY) ? MEMORY : tmpdir();
  for (const name of readdirSync(system)) {
    if (name.startsWith(PREFIX) && !isAlive(Number(name.slice(PREFIX.length)))) remove(join(system, name));
  }
  const folder = join(system, `${PREFIX}${process.pid}`);
  mkdirSync(folder, { recursive: true });
  chmodSync(folder, 0o711); // PostgreSQL works below it as another user
  process.env.TMPDIR = folder; // test processes and their children inherit it
  return () => {
    if (before === undefined) delete process.env.TMPDIR;
    else process.env.TMPDIR = before;
    remove(folder);
  };
}

/** Whether programs may be started from it, and there is enough space. */
function hasRoom(folder: string): boolean {
  try {
    accessSync(folder, constants.W_OK);
    const mounted = readFileSync("/proc/mounts", "utf8")
      .split("\n")
      .find((line) => line.split(" ")[1] === folder);
    const { bavail, bsize } = statfsSync(folder);
    return mounted !== undefined && !/\bnoexec\b/.test(mounted) && bavail * bsize >= ROOM;
  } catch {
    return false;
  }
}

/** A program of a test may still be writing: several attempts. Files of another user are not removed. */
function remove(folder: string): void {
  try {
    rmSync(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
  } catch (error) {
    console.error(`${folder} stays behind: ${String(error)}`);
  }
}
