// One build at a time per checkout: a second one waits, and then finds everything done.
import { linkSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** A cold build takes minutes; after this the wait fails with a message. */
const WAIT_LIMIT_MS = 30 * 60_000;
const LOOK_EVERY_MS = 200;

/** Runs `act` while no other process holds the lock in `folder`. */
export function withLock(folder, act) {
  mkdirSync(folder, { recursive: true });
  const lock = join(folder, "lock");
  const until = Date.now() + WAIT_LIMIT_MS;
  let hasSaid = false;
  while (!take(lock)) {
    if (Date.now() > until) throw new Error(`another build keeps ${lock} locked`);
    if (!hasSaid) console.error("headgate: waiting for another build to finish");
    hasSaid = true;
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, LOOK_EVERY_MS);
  }
  try {
    return act();
  } finally {
    rmSync(lock, { force: true });
  }
}

function take(lock) {
  try {
    writeFileSync(lock, String(process.pid), { flag: "wx" });
    return true;
  } catch (error) {
    if (error.code !== "EEXIST") throw error;
    if (!isAlive(lock)) removeStale(lock);
    return false;
  }
}

/** Of several waiting processes only one moves a stale lock away; one that moved a live lock by mistake puts it
 *  back. */
function removeStale(lock) {
  const moved = `${lock}.${process.pid}`;
  try {
    renameSync(lock, moved);
    if (isAlive(moved)) linkSync(moved, lock);
  } catch (error) {
    if (error.code !== "ENOENT" && error.code !== "EEXIST") throw error;
  }
  rmSync(moved, { force: true });
}

/** Whether the owner of the lock still runs: a killed build leaves its lock behind. */
function isAlive(lock) {
  try {
    const pid = Number(readFileSync(lock, "utf8"));
    if (pid === 0) return true;
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error.code === "EPERM";
  }
}
