// A systemd of its own, booted in namespaces: it has none of the machine's units, and can write only to its folder, so
// it changes nothing of the machine. Where the machine does not allow that, there is none.
import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, rmdirSync } from "node:fs";
import { join } from "node:path";
import { type Child, start, until } from "./child.ts";

const SYSTEMD = "/lib/systemd/systemd";
/** The folder of a test, as seen from inside. */
export const INSIDE = "/run/folder";
/** Where the hierarchies of this machine are. */
const HIERARCHIES = { v1: "/sys/fs/cgroup/systemd", v2: ["/sys/fs/cgroup/unified", "/sys/fs/cgroup"] } as const;

export type CgroupVersion = "v1" | "v2";

export interface BootedSystemd {
  /** Words in front of a command that runs inside. */
  readonly within: readonly string[];
  /** Runs systemctl inside; returns its output, whatever its exit code. */
  systemctl(...words: readonly string[]): string;
  close(): Promise<void>;
}

/** Everything but `folder` is read-only, or empty. In the words of mount(8), since the shell is what runs there. */
const boot = (version: CgroupVersion) => `
set -e
mount --make-rprivate /
mount -t tmpfs tmpfs /run
mkdir -p ${INSIDE}
mount --bind "$FOLDER" ${INSIDE}
for each in $(awk '$2 ~ "^/sys/fs/cgroup" { print $2 }' /proc/mounts | sort -r); do umount "$each"; done
${
  version === "v2"
    ? "mount -t cgroup2 none /sys/fs/cgroup"
    : "mount -t tmpfs tmpfs /sys/fs/cgroup; mkdir /sys/fs/cgroup/systemd; mount -t cgroup -o none,name=systemd none /sys/fs/cgroup/systemd"
}
for each in /tmp /var /etc/systemd/system /usr/lib/systemd/system /usr/lib/systemd/system-generators; do
  mount -t tmpfs tmpfs "$each"
done
mkdir -p /var/tmp /var/log /var/lib
cp ${INSIDE}/*.service /etc/systemd/system
printf '[Unit]\\nDefaultDependencies=no\\n' >/etc/systemd/system/booted.target
mount --bind /proc/sys /proc/sys
for each in /proc/sys /dev /sys /; do mount -o remount,bind,ro "$each"; done
ip link set lo up
exec env container=test ${SYSTEMD} --system --unit=booted.target --log-target=null --show-status=no
`;

/** Boots with the units in `folder`; null where the machine does not allow it. */
export async function bootSystemd(folder: string, version: CgroupVersion): Promise<BootedSystemd | null> {
  if (process.getuid?.() !== 0 || !existsSync(SYSTEMD)) return null;
  const hierarchy = [HIERARCHIES[version]].flat().find((path) => existsSync(join(path, "cgroup.procs")));
  if (hierarchy === undefined) return null;
  const group = join(hierarchy, `headgate-test-${process.pid}-${version}`);
  try {
    mkdirSync(group);
  } catch {
    return null;
  }
  const namespaces = [
    "--mount",
    "--pid",
    "--fork",
    "--kill-child",
    "--uts",
    "--ipc",
    "--net",
    "--cgroup",
    "--mount-proc",
  ];
  const script = `echo $$ >${group}/cgroup.procs && exec unshare ${namespaces.join(" ")} sh -c "$BOOT"`;
  const outer = start("sh", ["-c", script], { env: { PATH: process.env.PATH, FOLDER: folder, BOOT: boot(version) } });
  const close = async () => {
    outer.kill("SIGKILL");
    await outer.exit;
    await until("its processes are gone", () => removed(group));
  };
  try {
    const init = await until("systemd runs", () => initOf(outer));
    const within = ["nsenter", "--target", String(init), "--mount", "--pid", "--net", "--uts", "--ipc", "--cgroup"];
    const inside = (words: readonly string[]) => {
      const [program = "", ...rest] = [...within, ...words];
      return spawnSync(program, rest, { encoding: "utf8" });
    };
    await until("systemctl is answered", () => inside(["systemctl", "list-units"]).status === 0);
    return {
      within,
      systemctl: (...words) => inside(["systemctl", ...words]).stdout,
      close,
    };
  } catch (error) {
    await close();
    if (/not permitted|denied/.test(outer.stderr())) return null;
    throw new Error(`${error}: ${outer.stderr()}`);
  }
}

/** The only child of unshare, once it has become systemd. */
function initOf({ pid, stderr }: Child): number | null {
  if (stderr() !== "") throw new Error(stderr());
  const [child] = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim().split(" ").map(Number);
  if (child === undefined || child === 0) return null;
  return readFileSync(`/proc/${child}/comm`, "utf8") === "systemd\n" ? child : null;
}

function removed(group: string): boolean {
  const inner = execFileSync("find", [group, "-depth", "-type", "d"], { encoding: "utf8" }).trim().split("\n");
  try {
    for (const each of inner) rmdirSync(each);
    return true;
  } catch {
    return false;
  }
}
