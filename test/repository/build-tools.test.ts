// The programs that build the media core and a release where version managers have put shims of them first on the path,
// and the command line of `npm run release`.
import { spawnSync } from "node:child_process";
import {
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { pathWithoutShims, realCmake } from "../../scripts/build-tools.mjs";
import { TARGETS } from "../../tools/release/targets.mjs";

let folder: string;
let programs: string;
let manager: string;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "headgate-tools-"));
  programs = join(folder, "programs");
  manager = join(folder, "manager");
  mkdirSync(programs);
  // Any program: only its form matters.
  for (const name of ["cmake", "ninja"]) copyFileSync("/bin/sh", join(programs, name));
  writeFileSync(manager, '#!/bin/sh\necho "no version is set for $0" >&2\nexit 126\n', { mode: 0o755 });
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

let count = 0;
/** A folder with shims of both programs, and the path on which it precedes the programs. */
function shims(make: (path: string, name: string) => void, name = `shims-of-${count++}`) {
  const before = join(folder, name);
  mkdirSync(before, { recursive: true });
  for (const program of ["cmake", "ninja"]) make(join(before, program), program);
  return [before, programs].join(":");
}

/** The first program of a name on a path, and the arguments with which it is run. */
const resolved = (path: string, name: string) => {
  const found = path.split(":").map((each) => join(each, name));
  const text = readFileSync(found.find((each) => existsSync(each)) ?? "", "latin1");
  return /^exec '(.*)' "\$@"$/m.exec(text)?.[1] ?? (text.startsWith("#!") ? text : found[0]);
};

describe("a path on which these precede cmake and ninja is one on which the programs do", () => {
  test.each([
    ["scripts that choose a version", (path: string) => copyFileSync(manager, path)],
    ["links to the manager, a script", (path: string) => symlinkSync(manager, path)],
    ["links to the manager, a program", (path: string) => symlinkSync("/bin/sh", path)],
  ])("%s", (_, make) => {
    const path = pathWithoutShims(join(folder, "tools"), shims(make));
    for (const name of ["cmake", "ninja"]) expect(resolved(path, name)).toBe(join(programs, name));
  });

  test.each(["a/shims", "b/.shims", "c/.proto/bin"])("programs in %s", (name) => {
    const copies = shims((path) => copyFileSync(join(programs, "ninja"), path), name);
    const path = pathWithoutShims(join(folder, "tools"), copies);
    for (const program of ["cmake", "ninja"]) expect(resolved(path, program)).toBe(join(programs, program));
  });
});

test("a path without shims stays as it is, and the folder empty", () => {
  const tools = join(folder, "none");
  expect(pathWithoutShims(tools, programs)).toBe(programs);
  expect(existsSync(tools)).toBe(false);
});

test("a ninja of which there are only shims is said not to be there: a library then uses make", () => {
  const only = shims((at) => copyFileSync(manager, at)).split(":")[0];
  const [first = ""] = pathWithoutShims(join(folder, "tools"), only).split(":");
  expect(spawnSync(join(first, "ninja"), ["--version"]).status).toBe(1);
});

test("a cmake of which there are only shims is the one that a shim runs, or none", () => {
  const real = realCmake() ?? "";
  const working = shims((at) => writeFileSync(at, `#!/bin/sh\nexec ${real} "$@"\n`, { mode: 0o755 })).split(":")[0];
  expect(realCmake(working)).toMatch(/^\/.*cmake/);
  const broken = shims((at) => copyFileSync(manager, at)).split(":")[0];
  expect(realCmake(broken)).toBeNull();
  expect(realCmake(join(folder, "nothing"))).toBeNull();
});

test("a C library builds by cmake where shims precede it, which without this it does not", () => {
  const source = join(folder, "source");
  mkdirSync(source);
  writeFileSync(join(source, "a.c"), "int a(void) { return 1; }\n");
  writeFileSync(
    join(source, "CMakeLists.txt"),
    "cmake_minimum_required(VERSION 3.10)\nproject(a C)\nadd_library(a STATIC a.c)\n",
  );
  const all = `${shims((at) => copyFileSync(manager, at)).split(":")[0]}:${process.env.PATH}`;
  const built = (path: string, into: string) => {
    const script = 'cmake -S "$0" -B "$1" && cmake --build "$1"';
    const env = { ...process.env, PATH: path };
    return spawnSync("sh", ["-c", script, source, into], { env, encoding: "utf8" });
  };
  expect(built(all, join(folder, "first")).stderr).toContain("no version is set");
  const second = built(pathWithoutShims(join(folder, "tools"), all), join(folder, "second"));
  expect(second.status, second.stderr).toBe(0);
  expect(existsSync(join(folder, "second/liba.a"))).toBe(true);
});

describe("npm run release", () => {
  // A clone in which nothing is installed yet.
  const release = (...words: readonly string[]) => {
    const clone = join(folder, "clone");
    for (const tools of ["scripts", "tools"]) cpSync(tools, join(clone, tools), { recursive: true });
    copyFileSync("package.json", join(clone, "package.json"));
    const { status, stdout, stderr } = spawnSync(process.execPath, [join(clone, "tools/release.mjs"), ...words], {
      encoding: "utf8",
    });
    return { status, stdout, stderr };
  };

  test.each(["--help", "-h"])("explains itself with %s, and builds nothing", (word) => {
    const { status, stdout, stderr } = release(word);
    expect([status, stderr]).toEqual([0, ""]);
    for (const said of ["--targets", "--built", "--try", "--help", "dist/release", ...TARGETS.map(({ name }) => name)])
      expect(stdout).toContain(said);
    expect(existsSync(join(folder, "clone/dist"))).toBe(false);
  });

  test.each([
    [["--targts", "own"], "'--targts'"],
    [["--targets", "linux-x86"], "linux-x86 is none of"],
    [["--targets", ""], "is none of"],
    [["--targets"], "argument missing"],
    [["everything"], "'everything'"],
  ])("rejects %j with its help", (words, said) => {
    const { status, stdout, stderr } = release(...words);
    expect([status, stdout]).toEqual([2, ""]);
    expect(stderr).toMatch(/^headgate: /);
    expect(stderr).toContain(said);
    expect(stderr).toContain("--targets NAMES");
    expect(stderr).not.toContain("    at ");
  });
});
