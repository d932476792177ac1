// Provides a Go that is new enough for what tests build with it, and the programs built with it. Debian 12 has Go 1.19;
// in that case the release that Go publishes as a module is downloaded into .build/go. The machine's own Go is not
// changed.
import { spawnSync } from "node:child_process";
import { chmodSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { BuildError, hashOf, root, step } from "./build.mjs";
import { withLock } from "./lock.mjs";

/** Required by oapi-codegen. */
const GO_AT_LEAST = [1, 25];
const TOOLCHAIN = "go1.25.9";
const GENERATOR = "github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen@v2.8.2";
const PION_WHIP = join("test", "fixtures", "pion-whip");
const FOLDER = join(root, ".build", "go");
const ARCHITECTURES = { x64: "amd64", arm64: "arm64" };

/** Provides Go. Its caches are in .build and are kept for the next run.
 *  @returns {{ readonly go: string, readonly env: Readonly<Record<string, string>> }} the command, and what to add to its
 *  environment
 *  @throws {BuildError} if there is no Go, or no version that is new enough */
export function provideGo() {
  return withLock(join(root, ".build", "go-lock"), newEnoughGo);
}

/** Provides oapi-codegen, which generates Go clients from OpenAPI documents.
 *  @returns {string} its path
 *  @throws {BuildError} if it cannot be built */
export function provideOapiCodegen() {
  return withLock(join(root, ".build", "go-lock"), () => {
    const { go, env } = newEnoughGo();
    const folder = join(FOLDER, "bin");
    step("oapi-codegen", join(FOLDER, "oapi-codegen-stamp"), `${GENERATOR} ${versionOf(go)}`, () => {
      runGo(go, ["install", GENERATOR], { ...env, GOBIN: folder });
    });
    return join(folder, "oapi-codegen");
  });
}

/** Provides the WHIP client in test/fixtures/pion-whip.
 *  @returns {string} its path
 *  @throws {BuildError} if it cannot be built */
export function providePionWhip() {
  return withLock(join(root, ".build", "go-lock"), () => {
    const { go, env } = newEnoughGo();
    const program = join(FOLDER, "bin", "pion-whip");
    step("pion-whip", join(FOLDER, "pion-whip-stamp"), `${hashOf([PION_WHIP])} ${versionOf(go)}`, () => {
      runGo(go, ["-C", PION_WHIP, "build", "-mod=readonly", "-o", program, "."], env);
    });
    return program;
  });
}

function newEnoughGo() {
  const env = {
    GOCACHE: join(root, ".build", "go-cache"),
    GOMODCACHE: join(FOLDER, "modules"),
    GOFLAGS: "-mod=mod -modcacherw -buildvcs=false",
    GO111MODULE: "on",
    GOTOOLCHAIN: "local",
    GOWORK: "off",
  };
  const [major = 0, minor = 0] = versionOf("go").split(".").map(Number);
  const [leastMajor, leastMinor] = GO_AT_LEAST;
  if (major > leastMajor || (major === leastMajor && minor >= leastMinor)) return { go: "go", env };
  const architecture = ARCHITECTURES[process.arch];
  const release = `golang.org/toolchain@v0.0.1-${TOOLCHAIN}.${process.platform}-${architecture}`;
  const folder = join(env.GOMODCACHE, release);
  const go = join(folder, "bin", "go");
  step(TOOLCHAIN, join(FOLDER, "toolchain-stamp"), release, () => {
    runGo("go", ["mod", "download", release], env);
    makeExecutable(folder);
  });
  return { go, env: { ...env, GOROOT: folder } };
}

/** Files in a Go module are not executable: this sets the mode, as Go itself does. */
function makeExecutable(folder) {
  const tools = join(folder, "pkg", "tool");
  const folders = [join(folder, "bin"), ...readdirSync(tools).map((name) => join(tools, name))];
  for (const each of folders) for (const name of readdirSync(each)) chmodSync(join(each, name), 0o755);
}

/** The version of this `go`, such as `1.19.8`. */
function versionOf(go) {
  const said = spawnSync(go, ["version"], { encoding: "utf8", env: { ...process.env, GOTOOLCHAIN: "local" } });
  const version = /go(\d+\.\d+(\.\d+)?)/.exec(said.stdout ?? "")?.[1];
  if (version === undefined) throw new BuildError("Go is missing; on Debian: apt-get install golang-go");
  return version;
}

function runGo(go, args, env) {
  const options = { cwd: root, stdio: ["ignore", 2, 2], env: { ...process.env, ...env } };
  const { status, error } = spawnSync(go, args, options);
  if (error) throw new BuildError(`${go} cannot be started: ${error.message}`);
  if (status !== 0) throw new BuildError(`${go} ${args[0]} failed (exit code ${status})`);
}
