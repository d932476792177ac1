// The cmake and ninja with which the media core's C libraries are built: programs, not the shims that version managers put
// before them on the path. A shim chooses by the folder in which it is called, or does not work at all, and the libraries'
// own build scripts call these programs in folders of cargo.
import { spawnSync } from "node:child_process";
import {
  accessSync,
  closeSync,
  constants,
  mkdirSync,
  mkdtempSync,
  openSync,
  readSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { basename, delimiter, join } from "node:path";

/** Answers a library that asks whether it can be used: it then uses make. */
const NOT_THERE = "#!/bin/sh\nexit 1\n";
/** A cmake names itself when it runs this. */
const NAME_ITSELF = `message(\${CMAKE_COMMAND})\n`;
/** How long a shim may take to run a program. */
const ANSWER_LIMIT_MS = 60_000;
const SHIM_FOLDER = /\/(\.?shims|\.proto)\//;

/** The programs of this name on the path, in its order; a shim is one of something else.
 *  @param {string} name
 *  @param {string} path as in the environment
 *  @returns {{ path: string, isShim: boolean }[]} */
function candidates(name, path) {
  const found = path.split(delimiter).map((folder) => join(folder, name));
  return found.filter(isExecutable).map((each) => ({ path: each, isShim: isShim(each, name) }));
}

/** A script, or a program of another name, such as the version manager itself. */
function isShim(path, name) {
  const real = realpathSync(path);
  if (SHIM_FOLDER.test(path) || SHIM_FOLDER.test(real) || !basename(real).startsWith(name)) return true;
  const head = Buffer.alloc(4);
  const file = openSync(real, "r");
  try {
    readSync(file, head);
  } finally {
    closeSync(file);
  }
  return head.toString("latin1") !== "\x7fELF";
}

function isExecutable(path) {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/** The path of a real cmake: the first on the path that is no shim, or else the one that a shim runs here; null if there
 *  is none.
 *  @param {string} path as in the environment
 *  @returns {string | null} */
export function realCmake(path = process.env.PATH ?? "") {
  const all = candidates("cmake", path);
  const direct = all.find(({ isShim }) => !isShim);
  if (direct !== undefined) return direct.path;
  const folder = mkdtempSync(join(tmpdir(), "headgate-cmake-"));
  try {
    const script = join(folder, "name-itself.cmake");
    writeFileSync(script, NAME_ITSELF);
    const named = all.map(({ path: shim }) => {
      const { stderr } = spawnSync(shim, ["-P", script], { encoding: "utf8", timeout: ANSWER_LIMIT_MS });
      return (stderr ?? "").trim().split("\n").at(-1) ?? "";
    });
    return named.find((each) => each.startsWith("/") && isExecutable(each)) ?? null;
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** Puts programs that precede shims into a folder, for the front of the path. It stays empty where there are no shims.
 *  @param {string} folder recreated
 *  @param {string} path as in the environment
 *  @returns {string} the path with the folder, or unchanged if it is empty */
export function pathWithoutShims(folder, path = process.env.PATH ?? "") {
  rmSync(folder, { recursive: true, force: true });
  const put = (name, text) => {
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, name), text, { mode: 0o755 });
  };
  const [cmake] = candidates("cmake", path);
  if (cmake?.isShim) put("cmake", callOf(realCmake(path)));
  const ninjas = candidates("ninja", path);
  if (ninjas[0]?.isShim) put("ninja", callOf(ninjas.find(({ isShim }) => !isShim)?.path ?? null));
  const isUsed = cmake?.isShim || ninjas[0]?.isShim;
  return isUsed ? [folder, path].join(delimiter) : path;
}

/** A script that runs the program. */
const callOf = (program) => (program === null ? NOT_THERE : `#!/bin/sh\nexec '${program}' "$@"\n`);
