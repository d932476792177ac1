// This machine's system with a layer of the test's own on top: what is installed there disappears with the layer. Needs
// the right to mount, which root has.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Child, start, until } from "./child.ts";

export interface Overlay {
  /** Starts a shell command there, as root. */
  start(command: string): Child;
  /** Runs a command to its end; returns its output. If its exit code is not 0, fails with its output. */
  run(command: string): Promise<string>;
  close(): Promise<void>;
}

/** `shared`: folders that are the same inside. There is no service manager, and `/run` is empty. */
export async function openOverlay(shared: readonly string[]): Promise<Overlay> {
  const folder = mkdtempSync(join(tmpdir(), "headgate-overlay-"));
  const at = join(folder, "root");
  const mounts = [
    "set -e",
    `mount -t tmpfs none ${folder}`,
    `mkdir ${folder}/upper ${folder}/work ${at}`,
    `mount -t overlay overlay -o lowerdir=/,upperdir=${folder}/upper,workdir=${folder}/work ${at}`,
    `mount -t proc proc ${at}/proc`,
    `mount --bind /dev ${at}/dev`,
    `mount -t tmpfs none ${at}/run`,
    `mount -t tmpfs none ${at}/tmp`,
    ...shared.map((path) => `mkdir -p ${at}${path} && mount --bind ${path} ${at}${path}`),
    "echo mounted",
    "exec sleep infinity",
  ];
  // Its mounts are private, and disappear with its last process.
  const holder = start("unshare", ["--mount", "sh", "-c", mounts.join("\n")]);
  let hasEnded = false;
  holder.exit.then(() => {
    hasEnded = true;
  });
  await until("the overlay is mounted", () => {
    if (hasEnded) throw new Error(`no overlay: ${holder.stderr()}`);
    return holder.stdout().includes("mounted");
  });
  const inside = (command: string) =>
    start("nsenter", ["--target", String(holder.pid), "--mount", "chroot", at, "sh", "-c", command], {
      env: { PATH: "/usr/sbin:/usr/bin:/sbin:/bin", LC_ALL: "C.UTF-8", DEBIAN_FRONTEND: "noninteractive" },
    });
  return {
    start: inside,
    async run(command) {
      const child = inside(command);
      const code = await child.exit;
      if (code !== 0) throw new Error(`${command} ended with ${code}: ${child.stdout()}${child.stderr()}`);
      return child.stdout();
    },
    async close() {
      holder.kill("SIGKILL");
      await holder.exit;
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
