// Container images without a registry: a base image made of this machine's programs, and builds on it by buildah, in a
// store of the test's own.
import { execFileSync, spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, readFileSync, realpathSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";

/** The programs that the last stage's commands and the service need. */
const PROGRAMS = ["sh", "ln", "chmod", "install", "sleep", "prlimit", "cat", "ls", "id", "touch", "env"];

export interface Buildah {
  /** Runs buildah; returns its output. */
  run(...words: readonly string[]): string;
  /** Words that precede a buildah command. */
  readonly words: readonly string[];
}

/** `folder`: for images and containers, removed by the caller. */
export function buildahIn(folder: string): Buildah {
  const words = ["--root", join(folder, "images"), "--runroot", join(folder, "run"), "--storage-driver", "vfs"];
  return {
    words,
    run: (...more) =>
      execFileSync("buildah", [...words, ...more], {
        encoding: "utf8",
        stdio: ["ignore", "pipe", "pipe"],
        maxBuffer: 1e8,
      }),
  };
}

/** Makes the image `name` of node, a shell and a few tools of this machine, with the libraries that they and
 *  `addons` load; all of glibc, as on a real system. */
export function makeBaseImage(buildah: Buildah, folder: string, name: string, addons: readonly string[]): void {
  const root = join(folder, "base");
  for (const path of [
    "usr/bin",
    "usr/sbin",
    "usr/local/bin",
    "etc",
    "tmp",
    "var/lib",
    "proc",
    "sys",
    "dev",
    "run",
    "root",
  ]) {
    mkdirSync(join(root, path), { recursive: true });
  }
  const take = (path: string) => {
    const to = join(root, path);
    if (existsSync(to)) return;
    mkdirSync(dirname(to), { recursive: true });
    cpSync(realpathSync(path), to);
  };
  for (const link of ["bin", "sbin", "lib", "lib64"]) {
    mkdirSync(join(root, "usr", link), { recursive: true });
    symlinkSync(`usr/${link}`, join(root, link));
  }
  const node = realpathSync(process.execPath);
  const programs = PROGRAMS.map((each) =>
    execFileSync("sh", ["-c", `command -v ${each}`], { encoding: "utf8" }).trim(),
  );
  for (const program of [node, ...programs.map((path) => realpathSync(path)), ...addons]) {
    const libraries = spawnSync("ldd", [program], { encoding: "utf8" }).stdout.match(/\/\S+(?= \()/g) ?? [];
    for (const library of libraries) take(library.replace(/^\/lib/, "/usr/lib"));
  }
  for (const program of programs) cpSync(realpathSync(program), join(root, "usr/bin", program.split("/").at(-1) ?? ""));
  cpSync(node, join(root, "usr/local/bin/node"));
  writeFileSync(join(root, "etc/passwd"), "root:x:0:0:root:/:/bin/sh\n");
  const file = join(folder, "Base");
  writeFileSync(file, "FROM scratch\nCOPY . /\nENV PATH=/usr/local/bin:/usr/bin\n");
  buildah.run("build", "--isolation", "chroot", "--file", file, "--tag", name, root);
}

/** The last stage of a file, with the arguments that precede the first stage. */
export function lastStageOf(path: string): string {
  const text = readFileSync(path, "utf8");
  const stages = text.split(/^(?=FROM )/m);
  return `${stages[0]}${stages.at(-1)}`;
}
