// The strictest place that a packaged command must work in: user nobody, and a file system that is read-only but for the data
// directory.

/** User and group `nobody` of Debian. */
export const NOBODY = 65534;
/** A mount namespace of its own is read-only as a whole; only root may make one. */
const READ_ONLY = 'mount --bind "$0" "$0" && mount -o remount,bind,ro / && exec "$@"';

/** `command` so run; as it is for whoever is not root, and so no more than unprivileged.
 *  @param {readonly [string, ...string[]]} command
 *  @param {string} dataDir
 *  @returns {[string, ...string[]]} */
export function asNobody(command, dataDir) {
  if (process.getuid?.() !== 0) return [...command];
  const user = ["setpriv", `--reuid=${NOBODY}`, `--regid=${NOBODY}`, "--clear-groups"];
  return ["unshare", "--mount", "sh", "-c", READ_ONLY, dataDir, ...user, ...command];
}
