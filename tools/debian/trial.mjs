// `node tools/debian/trial.mjs [SUITE]`: tries the package of this checkout, with Node in it, on a bare Debian that
// mmdebstrap makes in a folder: installed, started as its user, ready, purged; and runs lintian on it. Takes minutes.
import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { BuildError, build, root } from "../../scripts/build.mjs";
import { providePrograms } from "../../scripts/programs.mjs";
import { provideRuntime } from "../../scripts/runtimes.mjs";
import { makePackage } from "../debian.mjs";

const [suite = "bookworm"] = process.argv.slice(2);
const PROGRAMS = ["mmdebstrap", "lintian"].map((name) => ({
  ...{ name, package: name, use: "tries the Debian package" },
  isThere: () => existsSync(`/usr/bin/${name}`),
}));
/** Runs inside: the steps of a user, with checks in between. The service is also requested from inside. */
const TRIAL = `
set -eu
dpkg --install /headgate.deb
serve=$(sed -n 's/^ExecStart=//p' /lib/systemd/system/headgate.service)
: >/tmp/out
started=$(date +%s%N)
setpriv --reuid=headgate --regid=headgate --init-groups --no-new-privs env HEADGATE_BOOTSTRAP_SHOW=file $serve \
  >/tmp/out 2>/tmp/err & service=$!
for turn in $(seq 150); do grep -q '"ready":true' /tmp/out && break; sleep 0.1; done
grep '"ready":true' /tmp/out || { cat /tmp/err; exit 1; }
echo "ready after $(( ($(date +%s%N) - started) / 1000000 )) ms, as $(stat --format %U /proc/$service)"
/usr/lib/headgate/bin/node -e 'fetch("http://127.0.0.1:9464/readyz").then((r) => { console.log("readyz", r.status); process.exit(r.ok ? 0 : 1); })'
headgate keys ls
kill -TERM $service
wait $service
echo "stopped with 0"
dpkg --purge headgate
left=$(find / -xdev -name '*headgate*' ! -path '/proc/*' ! -name headgate.deb)
if [ -n "$left" ] || getent passwd headgate; then echo "left: $left"; exit 1; fi
echo "nothing is left"
`;

function run(program, args, options = {}) {
  const { status, error } = spawnSync(program, args, { cwd: root, stdio: ["ignore", 1, 2], ...options });
  if (error) throw new BuildError(`${program} cannot be started: ${error.message}`);
  if (status !== 0) throw new BuildError(`${program} ended with ${status}`);
}

const folder = mkdtempSync(join(tmpdir(), "headgate-debian-"));
try {
  const missing = providePrograms(PROGRAMS);
  if (missing) throw new BuildError(missing);
  build();
  const [node] = provideRuntime("node-24");
  const path = join(folder, "headgate.deb");
  makePackage(".", path, node);
  run("lintian", ["--allow-root", "--tag-display-limit", "0", "--fail-on", "error", path]);
  const system = join(folder, "system");
  // systemd-sysusers and systemd-tmpfiles without the rest of systemd, as in a container.
  const minimal = ["--include=systemd-standalone-sysusers,systemd-standalone-tmpfiles,libstdc++6"];
  run("mmdebstrap", ["--variant=minbase", ...minimal, suite, system]);
  run("cp", [path, join(system, "headgate.deb")]);
  const inside = `mount -t proc proc ${system}/proc && exec chroot ${system} sh -c "$TRIAL"`;
  const env = { PATH: "/usr/sbin:/usr/bin:/sbin:/bin", LC_ALL: "C.UTF-8", TRIAL };
  run("unshare", ["--mount", "sh", "-c", inside], { env });
} catch (error) {
  if (!(error instanceof BuildError)) throw error;
  console.error(`headgate: ${error.message}`);
  process.exitCode = 1;
} finally {
  rmSync(folder, { recursive: true, force: true });
}
