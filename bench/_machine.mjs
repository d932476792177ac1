// The machine and the versions a figure belongs to, in one line.
import { execFileSync } from "node:child_process";
import { cpus, release } from "node:os";
import { root } from "../scripts/build.mjs";

export function machine() {
  const model = cpus()[0]?.model ?? "an unknown processor";
  return `${model.trim()}, ${cpus().length} cores, kernel ${release()}, Node ${process.version}, commit ${commit()}`;
}

function commit() {
  try {
    return execFileSync("git", ["describe", "--always", "--dirty"], { cwd: root, encoding: "utf8" }).trim();
  } catch {
    return "unknown";
  }
}
