// Brings everything that `npm start` and `npm test` run up to date, each step only when its inputs changed.
// Says on standard error what it does; standard output belongs to the service.
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
import { withLock } from "./lock.mjs";
import { providePrograms, toBuild } from "./programs.mjs";

export const root = join(dirname(fileURLToPath(import.meta.url)), "..");
const NODE_AT_LEAST = [20, 19];
const RUST_AT_LEAST = [1, 88];

/** What a person can mend; printed without a stack. */
export class BuildError extends Error {}

/** Runs what is needed, or throws a BuildError. */
export function build() {
  requireVersion("Node", process.versions.node, NODE_AT_LEAST, "https://nodejs.org or your package manager");
  withLock(join(root, ".build"), () => {
    installPackages();
    buildAddon();
    buildGateway();
    buildWebcaster();
    buildBroadcastPage();
  });
}

/** Node packages alone: what the checks need. */
export function installPackages() {
  const inputs = hashOf(["package-lock.json", ".npmrc"]);
  step("packages", join(root, "node_modules", ".headgate-stamp"), inputs, () => {
    run("npm", ["ci", "--include=dev", "--no-progress", "--loglevel=error"]);
  });
}

function buildAddon() {
  const addon = join(root, "ts", "native", "headgate.node");
  const inputs = hashOf(["Cargo.toml", "Cargo.lock", "crates"], isRustInput);
  const stamp = join(root, ".build", "addon-stamp");
  if (!existsSync(addon)) rmSync(stamp, { force: true });
  step("media core", stamp, inputs, () => {
    const missing = providePrograms(toBuild);
    if (missing) throw new BuildError(missing);
    requireRust();
    run("cargo", ["build", "--release", "--locked", "-p", "headgate-bridge"]);
    // Copied beside and renamed over: a running gateway has the old file mapped.
    copyFileSync(join(targetFolder(), "release", "libheadgate_bridge.so"), `${addon}.new`);
    renameSync(`${addon}.new`, addon);
  });
}

/** The TypeScript of the gateway, as JavaScript in dist, beside the browser client's. */
export function buildGateway() {
  const inputs = hashOf(["tsconfig.json", "tsconfig.build.json", "package-lock.json", "ts"], isGatewayInput);
  const stamp = join(root, ".build", "gateway-stamp");
  const dist = join(root, "dist");
  if (!existsSync(join(dist, "main.js"))) rmSync(stamp, { force: true });
  step("gateway", stamp, inputs, () => {
    for (const name of existsSync(dist) ? readdirSync(dist) : []) {
      if (name !== "sdk") rmSync(join(dist, name), { recursive: true, force: true });
    }
    run(process.execPath, [join("node_modules", "typescript", "bin", "tsc"), "-p", "tsconfig.build.json"]);
  });
}

/** The browser client's bundles in dist/sdk, which /sdk/ serves. */
export function buildWebcaster() {
  const script = join("scripts", "webcaster-package.mjs");
  const inputs = hashOf(["package.json", "package-lock.json", "ts/webcaster", script]);
  const stamp = join(root, ".build", "webcaster-stamp");
  if (!existsSync(join(root, "dist", "sdk"))) rmSync(stamp, { force: true });
  step("browser client", stamp, inputs, () => run(process.execPath, [script, "--bundles", join(root, "dist", "sdk")]));
}

/** The page /broadcast, in dist/broadcast. */
export function buildBroadcastPage() {
  const script = join("scripts", "broadcast-page.mjs");
  const inputs = hashOf(["package.json", "package-lock.json", "ts/broadcast", "ts/webcaster", script]);
  const stamp = join(root, ".build", "broadcast-stamp");
  if (!existsSync(join(root, "dist", "broadcast"))) rmSync(stamp, { force: true });
  step("broadcast page", stamp, inputs, () => run(process.execPath, [script]));
}

const isRustInput = (path) => /\.(rs|toml|lock)$/.test(path) && !/crates\/(fuzz|bench)\//.test(path);
const isGatewayInput = (path) => !/ts\/(native|webcaster|broadcast)\//.test(path) && /\.(ts|mjs|json)$/.test(path);

function targetFolder() {
  return process.env.CARGO_TARGET_DIR ?? join(root, "target");
}

/** Runs `act` unless the stamp says that these inputs were built already. */
export function step(name, stamp, inputs, act) {
  if (existsSync(stamp) && readFileSync(stamp, "utf8") === inputs) return;
  const started = Date.now();
  console.error(`headgate: building ${name} …`);
  act();
  mkdirSync(dirname(stamp), { recursive: true });
  writeFileSync(stamp, inputs);
  console.error(`headgate: ${name} ready after ${((Date.now() - started) / 1000).toFixed(1)} s`);
}

/** A hash over names and contents of files, folders taken whole. */
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
export function run(command, args) {
  // Progress goes to standard error, whatever the program thinks.
  const { status, error } = spawnSync(command, args, { cwd: root, stdio: ["ignore", 2, 2] });
  if (error) throw new BuildError(`${command} cannot be started: ${error.message}`);
  if (status !== 0) throw new BuildError(`${command} ${args[0]} failed (exit code ${status})`);
}
