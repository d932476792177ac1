// `npm run release -- --try`: tries the packages on systems without anything else. Root file systems with little more
// than Node, the packages installed by npm without a network; then, as nobody and with everything read-only except the
// data directory: `headgate serve`, ready within 15 s, one RTMP stream in and out. arm64 runs under qemu with a longer
// limit.
import { chmodSync, chownSync, copyFileSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { BuildError } from "../../scripts/build.mjs";
import { providePrograms, toTry } from "../../scripts/programs.mjs";
import { installPackage } from "./install.mjs";
import { NOBODY } from "./nobody.mjs";
import { makeRoot } from "./roots.mjs";
import { ownTarget } from "./targets.mjs";
import { trialOf } from "./trial.mjs";

/** From the command to the log line that reports it ready. */
const READY_LIMIT_MS = 15_000;
/** When emulated, it only has to become ready at all. */
const EMULATED_LIMIT_MS = 300_000;

/** Prints the results. Throws if something did not work.
 *  @param {readonly { archive: string }[]} packages of a release
 *  @param {readonly import("./targets.mjs").Target[]} targets
 *  @throws {BuildError} */
export async function tryRelease(packages, targets) {
  const missing = providePrograms(toTry);
  if (missing) throw new BuildError(missing);
  if (process.getuid?.() !== 0) throw new BuildError("a trial makes root file systems: it needs root");
  for (const target of targets) {
    const folder = mkdtempSync(join(tmpdir(), "headgate-try-"));
    chmodSync(folder, 0o755);
    try {
      const { archive } = packages.find((each) => each.archive.endsWith(`${target.name}.tgz`));
      await tryOne(folder, archive, target);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  }
}

async function tryOne(folder, archive, target) {
  const isOwn = target.cpu === process.arch;
  const root = join(folder, "root");
  const node = makeRoot(root, target);
  const tree = join(root, "srv", "headgate");
  // npm rejects the package of another platform, which this machine's npm cannot tell from its own.
  const more = target.name === ownTarget().name ? [] : ["--force"];
  const { code, said, asked, tookMs } = installPackage({ archive, tree, scratch: join(folder, "npm"), more });
  if (code !== 0) throw new BuildError(`${target.name}: npm ended with ${code}:\n${said}`);
  if (asked.length > 0)
    throw new BuildError(`${target.name}: the installation asked the network for ${asked.join(", ")}`);
  const dataDir = join(root, "var", "lib", "headgate");
  mkdirSync(dataDir, { recursive: true });
  chownSync(dataDir, NOBODY, NOBODY);
  const words = isOwn ? ["/srv/headgate/node_modules/.bin/headgate", "serve"] : emulated(root, node);
  const { readyMs, packets, version } = await trialOf(inRoot(root, dataDir, words), {
    cwd: tree,
    dataDir: "/var/lib/headgate",
    limitMs: isOwn ? READY_LIMIT_MS : EMULATED_LIMIT_MS,
  });
  const found = `${packets.video} video and ${packets.audio} audio packets played`;
  console.log(`${target.name}: installed in ${(tookMs / 1_000).toFixed(1)} s without a network`);
  console.log(`${target.name}: ready after ${(readyMs / 1_000).toFixed(1)} s as nobody, version ${version}; ${found}`);
}

/** A command in the root file system, as nobody. */
function inRoot(root, dataDir, words) {
  const script =
    'root="$0" data="$1"; shift; ' +
    'mount --bind "$root" "$root" && mount --bind "$data" "$data" && mount -t proc none "$root/proc" && ' +
    'mount --bind /dev "$root/dev" && mount -o remount,bind,ro "$root" && ' +
    `exec chroot --userspec=${NOBODY}:${NOBODY} "$root" "$@"`;
  return ["unshare", "--mount", "sh", "-c", script, root, dataDir, ...words];
}

/** The service under another processor's Node: qemu needs nothing of the root file system for itself. */
function emulated(root, node) {
  const qemu = "/usr/bin/qemu-aarch64-static";
  copyFileSync(qemu, join(root, qemu));
  const program = "/srv/headgate/node_modules/headgate/deploy/headgate.mjs";
  return [qemu, join("/", relative(root, node)), program, "serve"];
}
