// Makes sure that no child process survives a measurement, however that ends.
const children = new Set();
process.on("exit", () => {
  for (const child of children) child.kill("SIGKILL");
});
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.once(signal, () => process.exit(1));

/** @template {import("node:child_process").ChildProcess} C @param {C} child @returns {C} */
export function endingWithUs(child) {
  children.add(child);
  child.once("exit", () => children.delete(child));
  return child;
}
