// Installs a release as a user does: `npm install headgate` in an empty folder.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { openRegistry } from "./registry.mjs";

/** `release`: folder of the release; `tree`: where to install; `scratch`: for npm's own files; `elsewhere`: see
 *  `openRegistry`. Resolves with the names that were requested and are not in the release.
 *  @param {{ release: string, tree: string, scratch: string, target: import("./targets.mjs").Target, elsewhere?: string | null }} options
 *  @returns {Promise<string[]>} */
export async function installRelease({ release, tree, scratch, target, elsewhere = null }) {
  mkdirSync(tree, { recursive: true });
  writeFileSync(join(tree, "package.json"), `${JSON.stringify({ name: "broadcasts", private: true })}\n`);
  const registry = await openRegistry(release, elsewhere);
  try {
    const platform = ["--os", "linux", "--cpu", target.cpu, "--libc", target.libc];
    const own = ["--registry", registry.url, "--cache", join(scratch, "npm"), "--userconfig", join(scratch, "npmrc")];
    const words = ["install", "headgate", ...platform, ...own, "--no-audit", "--no-fund", "--loglevel=error"];
    const npm = spawn("npm", words, { cwd: tree, stdio: ["ignore", 2, 2] });
    const [code] = await once(npm, "close");
    if (code !== 0) throw new Error(`npm install ended with ${code}`);
    return registry.asked;
  } finally {
    await registry.close();
  }
}
