#!/usr/bin/env node
// The command line of an installation: runs the existing build, and builds nothing.
import { closeSync, openSync, readFileSync, readSync } from "node:fs";

// A service that this process is to replace tells its operator why that failed. First, and without an import of ours: what
// is broken may be any file of the new version.
process.on("uncaughtExceptionMonitor", (error) => process.send?.({ failed: error.message, stack: error.stack }));

/** Some installers only warn, or check nothing: the first addon that is loaded would end in a message about symbols. */
const misfit = whyNotHere(JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8")));
if (misfit === null) {
  const { run } = await import("../dist/cli/main.js");
  await run(process.argv.slice(2));
} else {
  process.send?.({ failed: misfit });
  process.disconnect?.();
  console.error(`headgate: ${misfit}`);
  process.exitCode = 1;
}

/** Why this machine, or its Node, does not run the package; null if it does. Only a package of a release is for one
 *  platform. */
function whyNotHere({ version, engines, cpu: [cpu] = [process.arch], libc: [libc] = [null] }) {
  const { node, deno, bun } = process.versions;
  const least = engines.node.replace(">=", "");
  const [major, minor] = node.split(".").map(Number);
  const [leastMajor, leastMinor] = least.split(".").map(Number);
  if (!(deno || bun) && (major < leastMajor || (major === leastMajor && minor < leastMinor)))
    return `Node ${node} is too old: ${least} or newer is needed`;
  const here = libc === null ? null : ownLibc();
  const isForHere = process.platform === "linux" && process.arch === cpu && (here === null || here === libc);
  if (isForHere || libc === null) return null;
  const machine = `${process.platform} on ${process.arch}${here === null ? "" : ` with ${here}`}`;
  const name = `${process.platform}-${process.arch}-${(here ?? libc) === "musl" ? "musl" : "gnu"}`;
  const remedy = process.platform === "linux" ? `: install headgate-${version}-${name}.tgz` : "";
  return `this package is for linux on ${cpu} with ${libc}, and this is ${machine}${remedy}`;
}

/** The C library of the running program, by the loader that its head names; null if it names none. */
function ownLibc() {
  const head = Buffer.alloc(4_096);
  const file = openSync(process.execPath, "r");
  try {
    readSync(file, head);
  } finally {
    closeSync(file);
  }
  if (head.includes("/ld-musl-")) return "musl";
  return head.includes("/ld-linux") ? "glibc" : null;
}
