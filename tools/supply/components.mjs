// The components of Headgate besides its own code: crates in the media core, packages of the gateway, and packages
// whose code is bundled into pages and clients. Read from the lock files and from what is installed, without network
// access.
import { execFileSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { root } from "../../scripts/build.mjs";
import { TARGETS as RELEASED } from "../release/targets.mjs";

/** @typedef {{
 *    readonly kind: "cargo" | "npm";
 *    readonly name: string;
 *    readonly version: string;
 *    readonly licence: string;
 *    readonly isFromRegistry: boolean;
 *    readonly checksum: string | null;
 *    readonly folder: string | null;
 *  }} Component */

/**
 * @typedef {object} Component
 * @property {"cargo" | "npm"} kind
 * @property {string} name
 * @property {string} version
 * @property {string} licence SPDX expression; "" when it names none
 * @property {boolean} isFromRegistry
 * @property {string | null} checksum of its archive, SHA-256 in hex or Subresource Integrity
 * @property {string | null} folder where its files are; null when it is for another platform
 */

const CORE = "headgate-bridge";
const TARGETS = RELEASED.map(({ triple }) => triple);
/** Parts whose imports end up in files that browsers load. */
const BUNDLED = ["broadcast", "dashboard", "webcaster"];
/** The build loads styles by name. */
const STYLES = join(root, "scripts", "dashboard-pages.mjs");
const PACKAGE_IN = /(?:from|import|packageFile)\s*\(?\s*"((?:@[\w-]+\/)?[\w-][\w.-]*)(?:\/[^"]*)?"/g;
const REGISTRY_OF_CRATES = "registry+https://github.com/rust-lang/crates.io-index";

/** Every component of what ships, in the order of kind and name. @returns {Component[]} */
export function components() {
  return [...crates(), ...packages()].sort(
    (a, b) => a.kind.localeCompare(b.kind) || a.name.localeCompare(b.name) || a.version.localeCompare(b.version),
  );
}

function crates() {
  const platforms = TARGETS.flatMap((target) => ["--filter-platform", target]);
  const words = ["metadata", "--format-version", "1", "--locked", ...platforms];
  const metadata = JSON.parse(execFileSync("cargo", words, { cwd: root, maxBuffer: 1 << 28, encoding: "utf8" }));
  const byId = new Map(metadata.packages.map((each) => [each.id, each]));
  const nodes = new Map(metadata.resolve.nodes.map((each) => [each.id, each]));
  const checksums = checksumsOf(readFileSync(join(root, "Cargo.lock"), "utf8"));
  const linked = new Set();
  const add = (id) => {
    if (linked.has(id)) return;
    linked.add(id);
    // Build and test dependencies are not in the addon.
    for (const { pkg, dep_kinds: kinds } of nodes.get(id).deps) if (kinds.some(({ kind }) => kind === null)) add(pkg);
  };
  add(metadata.packages.find(({ name }) => name === CORE).id);
  return [...linked]
    .map((id) => byId.get(id))
    .filter(({ source }) => source !== null)
    .map(({ name, version, license, source, manifest_path: manifest }) => ({
      kind: "cargo",
      name,
      version,
      licence: (license ?? "").replaceAll("/", " OR "),
      isFromRegistry: source === REGISTRY_OF_CRATES,
      checksum: checksums.get(`${name} ${version}`) ?? null,
      folder: dirname(manifest),
    }));
}

function checksumsOf(lock) {
  const entries = lock.matchAll(
    /name = "([^"]+)"\nversion = "([^"]+)"\nsource = "[^"]+"\nchecksum = "([0-9a-f]{64})"/g,
  );
  return new Map([...entries].map(([, name, version, checksum]) => [`${name} ${version}`, checksum]));
}

function packages() {
  const { packages: all } = JSON.parse(readFileSync(join(root, "package-lock.json"), "utf8"));
  const bundled = withDependencies(all, bundledNames());
  return Object.entries(all)
    .filter(([path, { dev, devOptional }]) => path !== "" && (!(dev || devOptional) || bundled.has(path)))
    .map(([path, { version, license = "", resolved, integrity = null, link }]) => {
      const folder = join(root, path);
      return {
        kind: "npm",
        name: path.slice(path.lastIndexOf("node_modules/") + "node_modules/".length),
        version,
        licence: license,
        // Without an address it is what the registry has under this checksum.
        isFromRegistry: !link && resolved === undefined && integrity !== null,
        checksum: integrity,
        folder: existsSync(folder) ? folder : null,
      };
    });
}

function bundledNames() {
  const files = BUNDLED.flatMap((name) =>
    readdirSync(join(root, "ts", name), { recursive: true })
      .filter((file) => /\.tsx?$/.test(file))
      .map((file) => join(root, "ts", name, file)),
  );
  const names = [...files, STYLES].flatMap((file) =>
    [...readFileSync(file, "utf8").matchAll(PACKAGE_IN)].map(([, name]) => name),
  );
  return new Set(names.filter((name) => name !== "rolldown" && !name.startsWith("node:")));
}

/** Paths in the lock file of these packages and their dependencies.
 *  @param {Record<string, { dependencies?: object, optionalDependencies?: object }>} all of the lock file
 *  @param {Iterable<string>} names
 *  @returns {Set<string>} */
export function withDependencies(all, names) {
  const found = new Set();
  const add = (name, from) => {
    for (let folder = from; ; folder = folder.slice(0, Math.max(0, folder.lastIndexOf("node_modules/") - 1))) {
      const path = `${folder === "" ? "" : `${folder}/`}node_modules/${name}`;
      if (path in all) {
        if (found.has(path)) return;
        found.add(path);
        const { dependencies, optionalDependencies } = all[path];
        for (const next of Object.keys({ ...dependencies, ...optionalDependencies })) add(next, path);
        return;
      }
      if (folder === "") return; // built into Node, or a peer that is not installed
    }
  };
  for (const name of names) add(name, "");
  return found;
}
