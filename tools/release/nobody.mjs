// The most restricted environment in which a packaged command must work: user nobody, and a file system that is
// read-only except for the data directory.

/** User and group `nobody` of Debian.
 *  @type {number} */
export const NOBODY = 65534;
/** A mount namespace that is read-only as a whole; only root may create one. */
const READ_ONLY = 'mount --bind "$0" "$0" && mount -o remount,bind,ro / && exec "$@"';

/** The command to run `command` in that environment; unchanged if the caller is not root, and so only unprivileged.
 *  @param {readonly [string, ...string[]]} command
 *  @param {string} dataDir
 *  @returns {[string, ...string[]]} */
export function asNobody(command, dataDir) {
  if (process.getuid?.() !== 0) return [...command];
  const user = ["setpriv", `--reuid=${NOBODY}`, `--regid=${NOBODY}`, "--clear-groups"];
  return ["unshare", "--mount", "sh", "-c", READ_ONLY, dataDir, ...user, ...command];
}
