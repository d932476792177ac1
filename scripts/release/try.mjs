// `npm run release -- --try`: what was packed, where nothing was before. Root file systems with little more than Node, the
// packages installed by npm; then, as nobody and with everything read-only but the data directory: `npx headgate serve`, ready
// within 15 s, one RTMP stream in and out. arm64 runs under qemu, in its own time.
import { chmodSync, chownSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { BuildError } from "../build.mjs";
import { providePrograms, toTry } from "../programs.mjs";
import { installRelease } from "./install.mjs";
import { asNobody, NOBODY } from "./nobody.mjs";
import { configuredRegistry } from "./registry.mjs";
import { makeRoot } from "./roots.mjs";
import { trialOf } from "./trial.mjs";

/** From the command to the line that says that it is ready. */
const READY_LIMIT_MS = 15_000;
/** Emulated, it has to be ready at all. */
const EMULATED_LIMIT_MS = 300_000;

/** Prints what was found. Throws when something did not work.
 *  @param {string} release folder
 *  @param {readonly import("./targets.mjs").Target[]} targets
 *  @throws {BuildError} */
export async function tryRelease(release, targets) {
  const missing = providePrograms(toTry);
  if (missing) throw new BuildError(missing);
  if (process.getuid?.() !== 0) throw new BuildError("a trial makes root file systems: it needs root");
  for (const target of targets) {
    const folder = mkdtempSync(join(tmpdir(), "headgate-try-"));
    chmodSync(folder, 0o755);
    try {
      await tryOne(folder, release, target);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  }
}

async function tryOne(folder, release, target) {
  const isOwn = target.cpu === process.arch;
  const root = join(folder, "root");
  const node = makeRoot(root, target);
  const tree = join(root, "srv", "headgate");
  await installRelease({ release, tree, scratch: folder, target, elsewhere: configuredRegistry() });
  const dataDir = join(root, "var", "lib", "headgate");
  mkdirSync(dataDir, { recursive: true });
  chownSync(dataDir, NOBODY, NOBODY);
  const command = isOwn ? inRoot(root, dataDir) : emulated(root, node, tree, dataDir);
  const { readyMs, packets, version } = await trialOf(command, {
    cwd: tree,
    dataDir: isOwn ? "/var/lib/headgate" : dataDir,
    limitMs: isOwn ? READY_LIMIT_MS : EMULATED_LIMIT_MS,
  });
  const found = `${packets.video} video and ${packets.audio} audio packets played`;
  console.log(`${target.name}: ready after ${(readyMs / 1_000).toFixed(1)} s as nobody, version ${version}; ${found}`);
}

/** `npx headgate serve` in the root file system. */
function inRoot(root, dataDir) {
  const script =
    'mount --bind "$0" "$0" && mount --bind "$1" "$1" && mount -t proc none "$0/proc" && mount --bind /dev "$0/dev" && ' +
    'mount -o remount,bind,ro "$0" && exec chroot --userspec=65534:65534 "$0" sh -c "cd /srv/headgate && exec npx headgate serve"';
  return ["unshare", "--mount", "sh", "-c", script, root, dataDir];
}

/** The same under qemu, which finds the libraries of the program in the root file system. */
function emulated(root, node, tree, dataDir) {
  const program = join(tree, "node_modules", "headgate", "deploy", "headgate.mjs");
  return asNobody(["qemu-aarch64-static", "-L", root, node, program, "serve"], dataDir);
}
