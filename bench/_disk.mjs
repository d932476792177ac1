// How long the disk takes to make a page durable, measured continuously: a reference for a store's slow commits.
import { open, rm } from "node:fs/promises";
import { join } from "node:path";
import { wait } from "./_webhook.mjs";

const EVERY_MS = 50;
const PAGE = Buffer.alloc(4_096);

/** Measures until `stop`, which resolves with the times, ms. */
export async function watchDisk(folder) {
  const path = join(folder, "disk-probe");
  const file = await open(path, "w");
  const times = [];
  let stopped = false;
  const trying = (async () => {
    while (!stopped) {
      const startedAt = performance.now();
      await file.write(PAGE, 0, PAGE.length, 0);
      await file.sync();
      times.push(performance.now() - startedAt);
      await wait(EVERY_MS);
    }
  })();
  return {
    async stop() {
      stopped = true;
      await trying;
      await file.close();
      await rm(path, { force: true });
      return times;
    },
  };
}
