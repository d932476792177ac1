// Root file systems in which a release is tried, as minimal as possible: Debian's smallest set with this machine's
// Node; musl, a shell and Node, as in Alpine; and for other processors what runs without being set up.
import { cpSync, mkdirSync, readdirSync, realpathSync, rmSync, symlinkSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { run } from "../../scripts/build.mjs";
import { ARCHITECTURES } from "../debian/contents.mjs";
import { MUSL_LIBRARIES, MUSL_NODE, provideMuslNode } from "./musl-node.mjs";

/** Debian's first release whose Node is new enough and whose musl runs Node: before 1.2.4 it did not support packed
 *  relocations. */
const WITH_NODE = "trixie";
const BARE = "bookworm";
const MUSL_FOLDER = "opt/node";

/** Makes one for a target, and returns the path of its Node.
 *  @param {string} root folder
 *  @param {import("./targets.mjs").Target} target
 *  @throws {import("../../scripts/build.mjs").BuildError} if it cannot be made */
export function makeRoot(root, target) {
  const isOwn = target.cpu === process.arch;
  if (target.libc === "musl") makeMusl(root, target);
  else if (isOwn) makeBare(root);
  else unpack(root, "nodejs", target);
  return join(root, target.libc === "musl" ? join(MUSL_FOLDER, MUSL_NODE) : "usr/bin/node");
}

function debstrap(root, variant, include, suite, more = []) {
  run("mmdebstrap", ["--quiet", "--mode=root", `--variant=${variant}`, `--include=${include}`, ...more, suite, root]);
}

/** Debian's smallest set, and this machine's Node. */
function makeBare(root) {
  debstrap(root, "minbase", "libstdc++6", BARE);
  cpSync(realpathSync(process.execPath), join(root, "usr", "bin", "node"));
}

/** Packages that are only unpacked: programs of another processor do not run while it is made. */
function unpack(root, packages, { machine }) {
  debstrap(root, "extract", packages, WITH_NODE, [`--arch=${ARCHITECTURES[machine]}`]);
  // A Debian package creates these when it is configured.
  for (const folder of ["bin", "lib"]) symlinkSync(join("usr", folder), join(root, folder));
  for (const folder of ["proc", "dev", "tmp"]) mkdirSync(join(root, folder), { recursive: true });
}

/** Contains nothing of glibc. Node finds the C++ libraries relative to its own path, for which /proc must be
 *  mounted; the embedded store's driver needs the C library where Alpine has it. */
function makeMusl(root, target) {
  unpack(root, "musl,busybox-static", target);
  const node = join(root, MUSL_FOLDER);
  cpSync(provideMuslNode(target), node, { recursive: true });
  // With Debian's list of library folders it would search elsewhere.
  const lists = readdirSync(join(root, "etc")).filter((name) => /^ld-musl-.*\.path$/.test(name));
  for (const name of lists) rmSync(join(root, "etc", name));
  const libgcc = readdirSync(join(node, MUSL_LIBRARIES)).find((name) => name.startsWith("libgcc_s"));
  const links = {
    "usr/bin/sh": "usr/bin/busybox",
    "usr/bin/env": "usr/bin/busybox",
    "usr/bin/node": join(MUSL_FOLDER, MUSL_NODE),
    "usr/lib/libgcc_s.so.1": join(MUSL_FOLDER, MUSL_LIBRARIES, libgcc ?? ""),
  };
  for (const [link, to] of Object.entries(links)) {
    symlinkSync(relative(dirname(join(root, link)), join(root, to)), join(root, link));
  }
}
