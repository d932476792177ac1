// Brings everything that `npm start` and `npm test` run up to date, each step only if its inputs changed. Reports
// progress on standard error; standard output belongs to the service.
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { pathWithoutShims } from "./build-tools.mjs";
import { withLock } from "./lock.mjs";
import { providePrograms, toBuild } from "./programs.mjs";

export const root = join(dirname(fileURLToPath(import.meta.url)), "..");
const NODE_AT_LEAST = [20, 19];
const RUST_AT_LEAST = [1, 88];

/** A problem that the user can fix; printed without a stack. */
export class BuildError extends Error {}

/** Runs the necessary steps, or throws a BuildError. */
export function build() {
  requireVersion("Node", process.versions.node, NODE_AT_LEAST, "https://nodejs.org or your package manager");
  // Commands that have nothing to build do not wait for the lock.
  const parts = [packages, addon, gateway, webcaster, broadcastPage, dashboard, guidePages];
  if (parts.every(isBuilt)) return;
  withLock(join(root, ".build"), () => parts.forEach(provide));
}

/** Installs only the Node packages, which the checks need. */
export const installPackages = () => provide(packages);
/** Builds only the gateway. */
export const buildGateway = () => provide(gateway);

/** Builds the load generator for measurements and tests; cargo knows what changed. */
export const buildLoadGenerator = () =>
  run("cargo", ["build", "--quiet", "--release", "--locked", "-p", "headgate-bench"]);

const isRustInput = (path) => /\.(rs|toml|lock|flv)$/.test(path) && !/crates\/(fuzz|bench)\//.test(path);
const isGatewayInput = (path) =>
  !/ts\/(native|webcaster|broadcast|dashboard)\//.test(path) && /\.(ts|mjs|json)$/.test(path);

// What is built: `made` must exist, and `stamp` holds the hash of the inputs that it was made from.

const packages = {
  name: "packages",
  made: join(root, "node_modules"),
  stamp: join(root, "node_modules", ".headgate-stamp"),
  inputs: () => hashOf(["package-lock.json", ".npmrc"]),
  make: () => run("npm", ["ci", "--include=dev", "--no-progress", "--loglevel=error"]),
};

const addon = {
  name: "media core",
  made: join(root, "ts", "native", "headgate.node"),
  stamp: join(root, ".build", "addon-stamp"),
  inputs: () => hashOf(["Cargo.toml", "Cargo.lock", "crates"], isRustInput),
  make() {
    const missing = providePrograms(toBuild);
    if (missing) throw new BuildError(missing);
    requireRust();
    const env = { ...process.env, PATH: pathWithoutShims(join(root, ".build", "tools")) };
    run("cargo", ["build", "--release", "--locked", "-p", "headgate-bridge"], env);
    // Copied under another name and renamed, because a running gateway has the old file mapped.
    copyFileSync(join(targetFolder(), "release", "libheadgate_bridge.so"), `${addon.made}.new`);
    renameSync(`${addon.made}.new`, addon.made);
  },
};

/** Folders in dist that do not belong to the gateway: what browsers load, and what `npm run release` made. */
export const OTHER_FOLDERS = ["sdk", "broadcast", "dashboard", "guide", "release"];

const GATEWAY_LIBRARIES = "scripts/gateway-libraries.mjs";
const LIBRARY_FILES = "scripts/library-files.mjs";

/** The gateway's TypeScript compiled to JavaScript in dist, and the libraries that it imports. */
const gateway = {
  name: "gateway",
  made: join(root, "dist", "main.js"),
  stamp: join(root, ".build", "gateway-stamp"),
  inputs: () =>
    hashOf(
      ["tsconfig.json", "tsconfig.build.json", "package-lock.json", GATEWAY_LIBRARIES, LIBRARY_FILES, "ts"],
      isGatewayInput,
    ),
  make() {
    const dist = join(root, "dist");
    const old = existsSync(dist) ? readdirSync(dist).filter((name) => !OTHER_FOLDERS.includes(name)) : [];
    for (const name of old) rmSync(join(dist, name), { recursive: true, force: true });
    run(process.execPath, [join("node_modules", "ts7", "bin", "tsc"), "-p", "tsconfig.build.json"]);
    run(process.execPath, [GATEWAY_LIBRARIES]);
  },
};

/** The browser client, which /sdk/ serves. */
const webcaster = bundle("sdk", {
  name: "browser client",
  sources: ["ts/webcaster"],
  words: ["webcaster-package.mjs", "--bundles", join(root, "dist", "sdk")],
});

/** The page /broadcast. */
const broadcastPage = bundle("broadcast", {
  name: "broadcast page",
  sources: ["ts/broadcast", "ts/webcaster", "ts/text"],
  words: ["broadcast-page.mjs"],
});

/** The pages below /dashboard. */
const dashboard = bundle("dashboard", {
  name: "dashboard",
  sources: ["ts/dashboard", "ts/client", "ts/text"],
  words: ["dashboard-pages.mjs"],
});

/** The pages below /docs/guide. */
const guidePages = bundle("guide", {
  name: "guide",
  sources: ["docs", "SECURITY.md", "scripts/guide-markdown.mjs", "ts/http/guide/html-text.ts"],
  words: ["guide-pages.mjs"],
});

/** A bundle for browsers that a script makes in a folder of dist. */
function bundle(folder, { name, sources, words: [script, ...words] }) {
  const path = join("scripts", script);
  return {
    name,
    made: join(root, "dist", folder),
    stamp: join(root, ".build", `${folder}-stamp`),
    inputs: () => hashOf(["package.json", "package-lock.json", path, ...sources]),
    make: () => run(process.execPath, [path, ...words]),
  };
}

function isBuilt({ made, stamp, inputs }) {
  return existsSync(made) && existsSync(stamp) && readFileSync(stamp, "utf8") === inputs();
}

function provide({ name, made, stamp, inputs, make }) {
  if (!existsSync(made)) rmSync(stamp, { force: true });
  step(name, stamp, inputs(), make);
}

function targetFolder() {
  return process.env.CARGO_TARGET_DIR ?? join(root, "target");
}

/** Runs `act` unless the stamp shows that these inputs were already built. */
export function step(name, stamp, inputs, act) {
  if (existsSync(stamp) && readFileSync(stamp, "utf8") === inputs) return;
  const started = Date.now();
  console.error(`headgate: building ${name} …`);
  act();
  mkdirSync(dirname(stamp), { recursive: true });
  writeFileSync(stamp, inputs);
  console.error(`headgate: ${name} ready after ${((Date.now() - started) / 1000).toFixed(1)} s`);
}

/** A hash over the names and contents of files; folders are included completely. */
export function hashOf(paths, wanted = () => true) {
  const hash = createHash("sha256");
  const visit = (path) => {
    const whole = join(root, path);
    if (!existsSync(whole)) return;
    if (statSync(whole).isDirectory()) {
      for (const name of readdirSync(whole).sort()) visit(`${path}/${name}`);
    } else if (wanted(path)) {
      hash.update(`${path}\0`).update(readFileSync(whole));
    }
  };
  for (const path of paths) visit(path);
  return hash.digest("hex");
}

function requireRust() {
  const said = spawnSync("rustc", ["--version"], { encoding: "utf8" });
  const version = /rustc (\d+\.\d+\.\d+)/.exec(said.stdout ?? "")?.[1];
  if (!version) throw new BuildError("Rust is missing: install it with rustup (https://rustup.rs)");
  requireVersion("Rust", version, RUST_AT_LEAST, "rustup update stable");
}

function requireVersion(what, version, atLeast, how) {
  const [major, minor] = version.split(".").map(Number);
  if (major > atLeast[0] || (major === atLeast[0] && minor >= atLeast[1])) return;
  throw new BuildError(`${what} ${atLeast.join(".")} or newer is needed, this is ${version}: ${how}`);
}

/** Runs a command to its end, or throws a BuildError. */
export function run(command, args, env = process.env) {
  // All output goes to standard error, whichever stream the program uses.
  const { status, error } = spawnSync(command, args, { cwd: root, env, stdio: ["ignore", 2, 2] });
  if (error) throw new BuildError(`${command} cannot be started: ${error.message}`);
  if (status !== 0) throw new BuildError(`${command} ${args[0]} failed (exit code ${status})`);
}
