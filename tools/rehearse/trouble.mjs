// What goes wrong around a service whose streams go on: its disk is full, its clock steps, its database is away.
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { wait } from "../../bench/_webhook.mjs";
import { until } from "./watch.mjs";

const DISK_BYTES = 48_000_000;
/** How long each trouble lasts, ms. */
const LASTS_MS = 5_000;
/** New work is done this soon after it, ms. */
const SOON_MS = 30_000;
/** Offsets of the clock from the true time, one after another. */
const CLOCK_STEPS = ["+3600", "-7200", "+34560000", "+0"];

/** Trouble of a store: while `begin`s effect lasts, new work is refused in words, and after `end` it is done. */
export async function storeTrouble(service, { what, begin, end, wrong }) {
  await begin();
  await until(`not ready: ${what}`, async () => /^not ready: /.test(await service.readiness()));
  await until(`a new stream is refused: ${what}`, async () => (await service.call("POST", "/stream")).status === 503);
  await wait(LASTS_MS);
  await end();
  const endedAt = performance.now();
  await service.serves();
  await until(
    `a new stream is made after: ${what}`,
    async () => (await service.call("POST", "/stream")).status === 200,
  );
  const tookMs = Math.round(performance.now() - endedAt);
  await service.tryPublish(what);
  if (tookMs > SOON_MS) wrong.push(`${what}: it took ${tookMs} ms until new work was done`);
}

/** A small disk of its own at `folder`; null where we may not mount. */
export function smallDisk(folder) {
  if (process.getuid?.() !== 0) return null;
  mkdirSync(folder);
  execFileSync("mount", ["-t", "tmpfs", "-o", `size=${DISK_BYTES},mode=700`, "tmpfs", folder]);
  const filler = join(folder, "filler");
  return {
    fill() {
      for (let size = DISK_BYTES; size >= 1; size = Math.floor(size / 2)) {
        try {
          writeFileSync(filler, Buffer.alloc(size), { flag: "a" });
        } catch {}
      }
    },
    free: () => rmSync(filler),
    unmount: () => execFileSync("umount", ["--lazy", folder]),
  };
}

/** A clock that a service with `environment` reads, by libfaketime; what measures durations goes on as it is, as when
 *  a machine's clock is set. */
export function steppedClock(file) {
  const library = readdirSync("/usr/lib")
    .map((entry) => join("/usr/lib", entry, "faketime", "libfaketimeMT.so.1"))
    .find(existsSync);
  const set = (offset) => writeFileSync(file, `${offset}\n`);
  set("+0");
  return {
    environment: {
      ...{ LD_PRELOAD: library, FAKETIME_TIMESTAMP_FILE: file, FAKETIME_NO_CACHE: "1", NO_FAKE_STAT: "1" },
      ...{ FAKETIME_DONT_FAKE_MONOTONIC: "1", FAKETIME_DONT_RESET: "1" },
    },
    /** Steps it, and tries the service at each offset. */
    async step(service, wrong) {
      for (const offset of CLOCK_STEPS) {
        set(offset);
        await wait(LASTS_MS);
        const { status } = await service.call("GET", "/stream");
        if (status !== 200) wrong.push(`a key with the clock at ${offset}: ${status}`);
        await service.tryPublish(`the clock went to ${offset} s`);
      }
    },
  };
}
