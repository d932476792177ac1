// A release, packed with what this machine built and installed as its users do, whose files a rehearsal may break; and
// services of it, with a data directory of their own.
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { endingWithUs } from "../../bench/_ending.mjs";
import { installPackage } from "../release/install.mjs";
import { release } from "../release.mjs";

const PORTS = ["HTTP", "RTMP", "MEDIA", "METRICS", "NODE"];
const API_KEY = "rehearse-key-rehearse-key";

/** Installs in `folder`, without a network. */
export async function install(folder) {
  const tree = join(folder, "tree");
  const [{ archive }] = await release({ into: join(folder, "release"), targets: "own", built: true });
  const { code, said, asked } = installPackage({ archive, tree, scratch: join(folder, "npm") });
  if (code !== 0) throw new Error(`npm ended with ${code}: ${said}`);
  const program = join(tree, "node_modules", ".bin", "headgate");
  /** What a service may not use: its own temporary and home folder. */
  const outside = ["tmp", "home"].map((name) => join(folder, name));
  for (const each of outside) mkdirSync(each);

  return {
    /** What npm asked a network for. */
    asked,
    apiKey: API_KEY,
    /** A service with its data in `dataDir`; `more` are environment variables. */
    service: (dataDir, more = {}) => serviceOf(program, environment(dataDir, outside, more)),
    /** Breaks a file of the program; the returned function mends it. */
    broken(name, change) {
      const path = join(tree, "node_modules", "headgate", name);
      const text = readFileSync(path, "utf8");
      writeFileSync(path, change(text));
      return () => writeFileSync(path, text);
    },
    /** Removes it as docs/installation.md says; returns what is left of it, and what its services left elsewhere. */
    remove(...dataDirs) {
      for (const each of [tree, ...dataDirs]) rmSync(each, { recursive: true });
      return [program, ...outside.flatMap((each) => readdirSync(each).map((name) => join(each, name)))].filter(
        existsSync,
      );
    },
  };
}

function environment(dataDir, [tmp, home], more) {
  mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  return {
    ...{ PATH: process.env.PATH, TMPDIR: tmp, HOME: home },
    ...{ HEADGATE_DATA_DIR: dataDir, HEADGATE_BOOTSTRAP_API_KEY: API_KEY },
    ...{ HEADGATE_MEDIA_WORKERS: "1", HEADGATE_DRAIN_S: "3600", HEADGATE_DEV: "1", HEADGATE_LOG_FORMAT: "json" },
    ...{ HEADGATE_LIMITS_LOAD_PERCENT: "0", HEADGATE_PUBLISH_HOLD_S: "0" },
    ...Object.fromEntries(PORTS.flatMap((name) => [[`HEADGATE_${name}_PORT`, "0"]])),
    ...Object.fromEntries(PORTS.map((name) => [`HEADGATE_${name}_HOST`, "127.0.0.1"])),
    ...more,
  };
}

function serviceOf(program, env) {
  return {
    /** Starts the service; resolves when it is ready. `log`: its lines, of every process. */
    async start() {
      const log = [];
      const child = endingWithUs(spawn(program, ["serve"], { env, stdio: ["ignore", "pipe", "pipe"] }));
      const exit = once(child, "exit");
      createInterface({ input: child.stderr }).on("line", (line) => log.push(line));
      const lines = createInterface({ input: child.stdout });
      const [line] = await Promise.race([once(lines, "line"), exit]);
      if (typeof line !== "string") throw new Error(`it does not start: ${log.join("\n")}`);
      const { http, rtmp, metrics } = JSON.parse(line);
      /** Every process so far, in the order of their start. */
      const pids = () => {
        const started = log.filter((each) => each.includes('"msg":"the new process starts"'));
        return [child.pid, ...started.map((each) => JSON.parse(each).successor)];
      };
      return { http, rtmp, metrics, log, pids, exit };
    },
    /** Runs `headgate upgrade`; resolves with what it said, and whether it succeeded. */
    upgrade: () =>
      new Promise((resolve) => {
        execFile(program, ["upgrade"], { env }, (error, stdout, stderr) =>
          resolve({ succeeded: error === null, said: stdout + stderr }),
        );
      }),
  };
}
