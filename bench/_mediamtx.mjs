// MediaMTX for comparison with Headgate: WebRTC in, forwarded by RTMP. The path of its program is given; docs/peers.md
// says how to get one.
import { spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePort, onCore, SERVER_CORE } from "./_servers.mjs";

const START_LIMIT_MS = 10_000;
const LOOK_EVERY_MS = 50;

/** Its version, as it prints it. */
export function mediamtxVersion(program) {
  const { status, stdout, error } = spawnSync(program, ["--version"], { encoding: "utf8" });
  if (status !== 0) throw new Error(`--mediamtx: ${program} does not run: ${error?.message ?? status}`);
  return stdout.trim();
}

/** Forwards every stream to `sinkPort`; its other protocols are off. */
export async function startMediamtx(program, sinkPort) {
  const folder = mkdtempSync(join(tmpdir(), "headgate-bench-"));
  const [http, media] = [await freePort(), await freePort()];
  const settings = {
    logLevel: "error",
    ...Object.fromEntries(["rtsp", "rtmp", "hls", "srt", "moq", "api", "metrics"].map((name) => [name, false])),
    webrtcAddress: `127.0.0.1:${http}`,
    webrtcLocalUDPAddress: `127.0.0.1:${media}`,
    webrtcIPsFromInterfaces: false,
    webrtcAdditionalHosts: ["127.0.0.1"],
    // Media begins once all publishers are connected.
    webrtcTrackGatherTimeout: "60s",
    paths: { all_others: { forward: [{ dest: `rtmp://127.0.0.1:${sinkPort}/live/$MTX_PATH` }] } },
  };
  // JSON is valid YAML.
  writeFileSync(join(folder, "mediamtx.yml"), JSON.stringify(settings));
  const child = onCore(SERVER_CORE, program, [join(folder, "mediamtx.yml")], { cwd: folder });
  const startedAt = performance.now();
  while (!(await answers(http))) {
    if (child.exitCode !== null || performance.now() - startedAt > START_LIMIT_MS) {
      throw new Error("MediaMTX did not start");
    }
    await new Promise((resolve) => setTimeout(resolve, LOOK_EVERY_MS));
  }
  return {
    name: "MediaMTX",
    pid: child.pid,
    http: `127.0.0.1:${http}`,
    streamUrl: "/{name}/whip",
    names: (n) => Array.from({ length: n }, (_, i) => `bench${i}`),
    async stop() {
      child.kill("SIGTERM");
      await once(child, "exit");
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

const answers = (port) =>
  fetch(`http://127.0.0.1:${port}/`).then(
    () => true,
    () => false,
  );
