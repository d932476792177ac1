// The folders that become packages: the service, and the media core for one platform.
import { chmodSync, copyFileSync, cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { root } from "../build.mjs";
import { INSTALLED_LIBRARIES } from "../installed-libraries.mjs";
import { packageOf, TARGETS } from "./targets.mjs";

/** The licence files in every package. */
const LEGAL = ["LICENSE", "licences.txt"];
/** Parts of the service's folder in a clone: what runs, documentation, and what an operator installs. */
const SERVICE = ["dist", "docs", "deploy/headgate.mjs", "deploy/systemd", "deploy/kubernetes", "ts/native/index.js"];
const TEXTS = ["README.md", "CHANGELOG.md", "SECURITY.md", "LICENSE"];
/** For the page /docs. The complete package is four times larger, and runs a script when it is installed. */
const SWAGGER = "swagger-ui-dist";
const SWAGGER_FILES = [
  "swagger-ui.css",
  "swagger-ui-bundle.js",
  "swagger-ui-bundle.js.LICENSE.txt",
  "LICENSE",
  "NOTICE",
];
/** Made by `npm run licences`, and by `npm run release` itself. */
const NOT_SERVED = ["dist/release", "dist/licences.txt", "dist/sbom.cdx.json"];

const ownManifest = () => JSON.parse(readFileSync(join(root, "package.json"), "utf8"));

/** Puts the service into `folder`. Needs what `npm start` builds and what `npm run licences` writes.
 *  @param {string} folder recreated
 *  @param {string | null} commit */
export function makeService(folder, commit) {
  empty(folder);
  const excluded = NOT_SERVED.map((path) => join(root, path));
  for (const path of [...SERVICE, ...TEXTS]) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    cpSync(join(root, path), join(folder, path), { recursive: true, filter: (from) => !excluded.includes(from) });
  }
  for (const name of ["licences.txt", "sbom.cdx.json"]) copyFileSync(join(root, "dist", name), join(folder, name));
  const swagger = join(folder, "dist", "swagger-ui");
  mkdirSync(swagger);
  for (const name of SWAGGER_FILES) copyFileSync(join(root, "node_modules", SWAGGER, name), join(swagger, name));
  chmodSync(join(folder, "deploy", "headgate.mjs"), 0o755);
  const { name, version, description, license, type, engines, imports, dependencies: all } = ownManifest();
  const dependencies = Object.fromEntries(INSTALLED_LIBRARIES.map((library) => [library, all[library]]));
  write(folder, {
    ...{ name, version, description, license, type },
    bin: { headgate: "deploy/headgate.mjs" },
    ...{ imports, os: ["linux"], engines, dependencies },
    // Both must have the same version: the interface between them is not versioned.
    optionalDependencies: Object.fromEntries(TARGETS.map((target) => [packageOf(target), version])),
    ...said(commit),
  });
}

/** Puts the media core for one platform into `folder`.
 *  @param {string} folder recreated
 *  @param {import("./targets.mjs").Target} target
 *  @param {string} library path
 *  @param {string | null} commit */
export function makePlatform(folder, target, library, commit) {
  empty(folder);
  copyFileSync(library, join(folder, "headgate.node"));
  chmodSync(join(folder, "headgate.node"), 0o644);
  copyFileSync(join(root, "LICENSE"), join(folder, "LICENSE"));
  copyFileSync(join(root, "dist", "licences.txt"), join(folder, "licences.txt"));
  const { version, license, engines } = ownManifest();
  const name = packageOf(target);
  const description = `The media core of Headgate for Linux on ${target.cpu} with ${target.libc}`;
  writeFileSync(join(folder, "README.md"), `# ${name}\n\n${description}. npm installs it with \`headgate\`.\n`);
  write(folder, {
    ...{ name, version, description, license },
    main: "headgate.node",
    files: ["headgate.node", ...LEGAL],
    ...{ os: ["linux"], cpu: [target.cpu], libc: [target.libc], engines },
    ...said(commit),
  });
}

/** The commit, as npm records it in published packages. */
const said = (commit) => (commit === null ? {} : { gitHead: commit });

function empty(folder) {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
}

function write(folder, manifest) {
  writeFileSync(join(folder, "package.json"), `${JSON.stringify(manifest, null, 2)}\n`);
}
