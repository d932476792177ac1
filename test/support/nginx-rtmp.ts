// nginx-rtmp as upstream: takes every stream and records it as it came.
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { createConnection, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { start, until } from "./child.ts";

export interface NginxRtmp {
  /** `rtmp://127.0.0.1:…/live` */
  readonly url: string;
  /** The recording of a stream; null when the upstream never got one. */
  recording(name: string): string | null;
  /** Names of all recordings. */
  recordings(): readonly string[];
  stop(): Promise<void>;
}

/** `notify`: an http URL that nginx tells of publishes, in the form that the webhook has from it. */
export async function startNginxRtmp(options: { readonly notify?: string } = {}): Promise<NginxRtmp> {
  const folder = mkdtempSync(join(tmpdir(), "headgate-nginx-"));
  const records = join(folder, "records");
  mkdirSync(records, { mode: 0o777 });
  const port = await freePort();
  writeFileSync(
    join(folder, "nginx.conf"),
    `load_module /usr/lib/nginx/modules/ngx_rtmp_module.so;
     daemon off; master_process off; worker_processes 1;
     error_log ${folder}/error.log warn; pid ${folder}/nginx.pid;
     events { worker_connections 256; }
     rtmp { server { listen 127.0.0.1:${port}; chunk_size 4096; max_message 8M;
       application live { live on; wait_key off; record all; record_path ${records}; record_suffix .flv;
       ${notifications(options.notify)} } } }`,
  );
  const nginx = start("/usr/sbin/nginx", [
    "-p",
    folder,
    "-c",
    join(folder, "nginx.conf"),
    "-e",
    join(folder, "start.log"),
  ]);
  await until("nginx listens", () => answers(port));
  return {
    url: `rtmp://127.0.0.1:${port}/live`,
    recording(name) {
      const path = join(records, `${name}.flv`);
      return existsSync(path) ? path : null;
    },
    recordings: () => readdirSync(records),
    async stop() {
      nginx.kill("SIGTERM");
      await nginx.exit;
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

function notifications(url: string | undefined): string {
  if (url === undefined) return "";
  return `notify_method post; notify_update_timeout 1s; on_publish ${url}; on_update ${url}; on_publish_done ${url};`;
}

/** A port that was free a moment ago: nginx cannot take "any". */
async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  if (address === null || typeof address === "string") throw new Error("no port");
  return address.port;
}

function answers(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = createConnection({ host: "127.0.0.1", port });
    socket.once("connect", () => resolve(true)).once("error", () => resolve(false));
    socket.once("close", () => socket.destroy());
    socket.once("connect", () => socket.destroy());
  });
}
