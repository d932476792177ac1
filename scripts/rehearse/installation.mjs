// An installation of this checkout's build in a folder of its own, whose files a rehearsal may break, and its service.
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { cpSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { endingWithUs } from "../bench/_ending.mjs";
import { root } from "../build.mjs";

const PORTS = ["HTTP", "RTMP", "MEDIA", "METRICS", "NODE"];

/** Installs in `folder`. */
export function install(folder) {
  for (const name of ["dist", "deploy", "package.json", "ts/native"])
    cpSync(join(root, name), join(folder, name), { recursive: true });
  symlinkSync(join(root, "node_modules"), join(folder, "node_modules"));
  const dataDir = join(folder, "data");
  mkdirSync(dataDir, { mode: 0o700 });
  const program = join(folder, "deploy", "headgate.mjs");
  const env = {
    ...{ PATH: process.env.PATH, HEADGATE_DATA_DIR: dataDir, HEADGATE_BOOTSTRAP_API_KEY: "rehearse-key-rehearse-key" },
    ...{ HEADGATE_MEDIA_WORKERS: "1", HEADGATE_DRAIN_S: "3600", HEADGATE_DEV: "1", HEADGATE_LOG_FORMAT: "json" },
    ...{ HEADGATE_LIMITS_LOAD_PERCENT: "0", HEADGATE_PUBLISH_HOLD_S: "0" },
    ...Object.fromEntries(PORTS.flatMap((name) => [[`HEADGATE_${name}_PORT`, "0"]])),
    ...Object.fromEntries(PORTS.map((name) => [`HEADGATE_${name}_HOST`, "127.0.0.1"])),
  };

  return {
    /** Starts the service; resolves when it is ready. `log`: its lines, of every process. */
    async start() {
      const log = [];
      const child = endingWithUs(
        spawn(process.execPath, [program, "serve"], { env, stdio: ["ignore", "pipe", "pipe"] }),
      );
      createInterface({ input: child.stderr }).on("line", (line) => log.push(line));
      const lines = createInterface({ input: child.stdout });
      const [line] = await Promise.race([once(lines, "line"), once(child, "exit")]);
      if (typeof line !== "string") throw new Error(`it does not start: ${log.join("\n")}`);
      const { http, rtmp, metrics } = JSON.parse(line);
      /** Every process so far, in the order of their start. */
      const pids = () => {
        const started = log.filter((each) => each.includes('"msg":"the new process starts"'));
        return [child.pid, ...started.map((each) => JSON.parse(each).successor)];
      };
      return { http, rtmp, metrics, log, pids };
    },
    /** Runs `headgate upgrade`; resolves with what it said, and whether it succeeded. */
    upgrade: () =>
      new Promise((resolve) => {
        execFile(process.execPath, [program, "upgrade"], { env }, (error, stdout, stderr) =>
          resolve({ succeeded: error === null, said: stdout + stderr }),
        );
      }),
    /** Breaks a file of the program; the returned function mends it. */
    broken(name, change) {
      const path = join(folder, name);
      const text = readFileSync(path, "utf8");
      writeFileSync(path, change(text));
      return () => writeFileSync(path, text);
    },
    apiKey: env.HEADGATE_BOOTSTRAP_API_KEY,
  };
}
